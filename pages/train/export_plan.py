"""What is taken away of the figures of a plan: how long the sentences are, and the course of the learning rate."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pages.shared.context import is_dark
from pages.shared.exports import WIDTH, Export, papered
from pages.shared.wording import plain
from pages.training.export_run import take_figures_away
from transformer.config import CorpusConfig, TrainConfig
from transformer.data.corpora import CORPORA
from transformer.data.statistics import CorpusStats
from transformer.figures.tables import Table
from transformer.figures.training.plan import length_figure, schedule_figure
from transformer.training.schedule import learning_rate


def take_lengths_away(config: CorpusConfig, stats: CorpusStats, names: tuple[str, str], limit: int | None) -> None:
    """The lengths of a corpus's sentences as the corpus panel draws them."""
    figures = {"lengths": partial(_lengths, config, stats, names, limit)}
    take_figures_away(figures, page="train", said=f"sentences of {' and '.join(names)}", key="take-lengths")


def _lengths(config: CorpusConfig, stats: CorpusStats, names: tuple[str, str], limit: int | None) -> Export:
    found = stats.tokens
    assert found is not None, "a tokenizer was given"
    figure = length_figure(found.source + 1, found.target + 1, names, limit=limit, dark=is_dark())
    bars: Any = figure.data
    shares = np.stack([np.asarray(side.y, dtype=float) for side in bars], axis=1)
    table = Table("sentences, %", shares, [f"{label} tokens" for label in bars[0].customdata], names)
    file = "" if config.name in CORPORA else Path(config.name).name
    brought = replace(config, name=file or config.name)  # its place here is none of whoever takes the lines away
    lines = [
        "from transformer.config import CorpusConfig",
        "from transformer.data.statistics import corpus_stats",
        "from transformer.figures.training.plan import length_figure",
        "from transformer.data.corpus_cache import prepared",
        "",
        f"corpus, tokenizer = prepared({brought!r})",
        "lengths = corpus_stats(corpus, tokenizer).tokens",
        "numbers = [lengths.source + 1, lengths.target + 1]",
        f"figure = length_figure(*numbers, {names!r}, limit={limit!r})",
    ]
    note = f"put {plain(file)}, the file that was brought, beside these lines" if file else ""
    return Export("sentence-lengths", papered(figure, dark=is_dark(), width=WIDTH), (table,), "\n".join(lines), note)


def take_course_away(train: TrainConfig, last: int, points: int, *, key: str) -> None:
    """The learning rate from the first step to the last, at so many steps."""
    take_figures_away(
        {"schedule": partial(_course, train, last, points)}, page="train", said="learning rate by step", key=key
    )


def _course(train: TrainConfig, last: int, points: int) -> Export:
    course = {
        **{"kind": train.schedule, "peak": train.learning_rate},
        **{"warmup_steps": train.warmup_steps, "max_steps": train.max_steps},
    }
    steps = np.unique(np.linspace(1, last, points).astype(int))
    rates = np.array([learning_rate(int(step), **course) for step in steps])  # type: ignore[arg-type]
    figure = schedule_figure(steps, rates, warmup_steps=train.warmup_steps, dark=is_dark())
    lines = [
        "import numpy as np",
        "",
        "from transformer.figures.training.plan import schedule_figure",
        "from transformer.training.schedule import learning_rate",
        "",
        f"course = {course!r}",
        f"steps = np.unique(np.linspace(1, {last}, {points}).astype(int))",
        "numbers = np.array([learning_rate(int(step), **course) for step in steps])",
        f"figure = schedule_figure(steps, numbers, warmup_steps={train.warmup_steps})",
    ]
    table = Table("learning rate", rates[:, None], [f"step {step}" for step in steps], ["learning rate"])
    return Export("learning-rate", papered(figure, dark=is_dark(), width=WIDTH), (table,), "\n".join(lines))
