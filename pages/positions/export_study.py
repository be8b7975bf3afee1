"""What is taken away of the paired study and of exact match by length."""

from collections.abc import Sequence

import numpy as np

from pages.shared.context import PageContext, is_dark
from pages.shared.exports import Export, papered, take_away
from transformer.experiments.study import TARGET, Study
from transformer.figures.positions.study import ByLength, Learning, learning_figure, lengths_figure
from transformer.figures.tables import Table
from transformer.model.position_extension import Extension


def take_learning_away(context: PageContext, study: Study, corpus: str, curves: Sequence[Learning]) -> None:
    """Of the learning curves of a study."""

    def make() -> Export:
        kinds = list(study.plan.positions)
        lines = [
            "from transformer.figures.positions.study import learning_figure",
            "from transformer.experiments.study import TARGET, load_study",
            "from transformer.experiments.figure_data import learning_curves",
            "",
            f"study = load_study({study.name!r})",
            f"curves = [curve for curve in learning_curves(study, {corpus!r}) if len(curve.step)]",
            "numbers = [curve.exact_match for curve in curves]",
            "kinds = list(study.plan.positions)",
            "figure = learning_figure(curves, kinds, budget=study.plan.steps, target=TARGET)",
        ]
        shown = [curve for curve in curves if len(curve.step)]
        figure = learning_figure(shown, kinds, budget=study.plan.steps, target=TARGET, dark=is_dark())
        tables = [
            Table(
                f"{curve.name}, seed {curve.seed}",
                curve.exact_match[:, None],
                [f"step {step}" for step in curve.step],
                ["exact match"],
            )
            for curve in shown
        ]
        name = f"{study.name}-{corpus}-learning"
        return Export(name, papered(figure, dark=is_dark()), tuple(tables), "\n".join(lines))

    take_away(context, "positions", {"learning": make}, key="take-learning")


def take_study_lengths_away(
    context: PageContext, study: Study, corpus: str, past: Extension, curves: Sequence[ByLength]
) -> None:
    """Of exact match by length of each kind in a study."""

    def make() -> Export:
        lines = [
            "from transformer.figures.positions.study import lengths_figure",
            "from transformer.experiments.study import load_study",
            "from transformer.experiments.figure_data import by_length",
            "from transformer.experiments.verdict import length_curves",
            "",
            f"study = load_study({study.name!r})",
            f"curves = by_length(length_curves(study, {corpus!r}, {past!r}))",
            "numbers = [curve.right for curve in curves]",
            "figure = lengths_figure(curves, list(study.plan.positions), trained_to=study.plan.trained_to)",
        ]
        kinds, trained = list(study.plan.positions), study.plan.trained_to
        return _lengths(f"{study.name}-{corpus}-lengths-{past}", curves, kinds, trained, lines)

    take_away(context, "positions", {"lengths": make}, key="take-study-lengths")


def take_own_lengths_away(context: PageContext, past: Extension, longest: int, pairs: int, curve: ByLength) -> None:
    """Of exact match by length of the model in hand, tested up to the curve's last length."""

    def make() -> Export:
        last, corpus = int(curve.length[-1]), context.lab.checkpoint.settings.corpus.name
        lines = [
            "from transformer import load",
            "from transformer.analysis.positions.lengths import scores_by_length",
            "from transformer.figures.positions.study import lengths_figure",
            "from transformer.experiments.figure_data import by_length",
            "from transformer.experiments.verdict import LengthCurve",
            "from transformer.data.tasks import pairs_of_length",
            "",
            f"lab = load({context.lab.name!r})",
            f"pairs = {{n: pairs_of_length({corpus!r}, n, {pairs}) for n in range(1, {last + 1})}}",
            f"scores = scores_by_length(lab.model, lab.tokenizer, pairs, {past!r}, trained={longest + 1})",
            f"curves = by_length([LengthCurve({curve.name!r}, scores)])",
            "numbers = [curve.right for curve in curves]",
            f"figure = lengths_figure(curves, [{curve.name!r}], trained_to={longest})",
        ]
        return _lengths(f"{context.lab.name}-lengths-{past}", [curve], [curve.name], longest, lines)

    take_away(context, "positions", {"lengths": make}, key="take-own-lengths")


def _lengths(name: str, curves: Sequence[ByLength], kinds: Sequence[str], trained: int, lines: Sequence[str]) -> Export:
    tables = [
        Table(
            curve.name,
            np.column_stack((curve.right, curve.count, curve.low, curve.high)),
            [f"length {length}" for length in curve.length],
            ["right", "of", "low 95 %", "high 95 %"],
        )
        for curve in curves
    ]
    figure = papered(lengths_figure(curves, kinds, trained_to=trained, dark=is_dark()), dark=is_dark())
    return Export(name, figure, tuple(tables), "\n".join(lines))
