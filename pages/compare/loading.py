"""Both sides of Two at once: models as they ended or as a snapshot has them, decodings, and heads brought together."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pages.shared import loading
from pages.shared.cache import cached
from pages.shared.interventions import intervention_names
from transformer.analysis.comparison.head_matching import Matching, Read, match_heads
from transformer.checkpoints.settings import CheckpointError, find_checkpoint
from transformer.checkpoints.store import load_checkpoint
from transformer.interventions import Intervention
from transformer.lab import Attention, AttentionKind, Inspection, Lab
from transformer.runs.run_folder import RunError, snapshots

SENTENCES = 6
"""On which heads are matched, beside the page's own: enough to tell heads apart, few enough for a page."""


@dataclass(frozen=True)
class Side:
    """One of the two: a model at a step of its run, a sentence, and what the model made of it."""

    lab: Lab
    step: str
    """Empty: the weights that it ended with."""
    seen: Inspection
    left_out: tuple[str, ...]
    """Sentences about switches that this model cannot take."""

    @property
    def name(self) -> str:
        """The model, with its step where it is a snapshot."""
        return f"{self.lab.name}, step {int(self.step):,}" if self.step else self.lab.name


def steps_of(name: str) -> tuple[str, ...]:
    """The steps at which weights of this model were kept; none for a shipped one."""
    try:
        return tuple(str(step) for step in snapshots(name))
    except RunError:
        return ()


def get_lab_at(name: str, step: str) -> Lab:
    """The model, at a step of its run where one is named; CheckpointError where there is no such thing."""
    if not step:
        return loading.get_lab(name)
    kept = {str(number): path for number, path in _snapshots(name).items()}
    if step not in kept:
        found = f"there are {', '.join(list(kept)[:12])}" if kept else "it kept none"
        raise CheckpointError(f"there is no snapshot of step {step} of {name}: {found}")
    return _snapshot(name, str(kept[step]))


def side(name: str, step: str, text: str, switches: Sequence[Intervention]) -> Side:
    """The decoding of a text by a model at a step; CheckpointError or ValueError where that cannot be had."""
    lab = get_lab_at(name, step)
    usable, left_out = [], []
    for spec in switches:
        try:
            lab.resolved([spec], n_source=lab.n_source_tokens(text))
            usable.append(spec)
        except ValueError as error:
            left_out.append(intervention_names.left_out(spec, error, f" for {name}"))
    return Side(lab, step, loading.get_inspection(lab, text, usable), tuple(left_out))


def same_words(first: Lab, second: Lab) -> bool:
    """Whether both models have the same vocabulary, so that one can read what the other wrote."""
    return first.tokenizer.vocabulary() == second.tokenizer.vocabulary()


def read_same(on: Side, reader: Side, kind: AttentionKind) -> Attention:
    """What a model's heads look at while it reads the sentence and the output of another, teacher-forced.

    ValueError where they are too long for it.
    """
    return reader.lab.attention_on(on.seen, reader.seen.interventions)[kind]


def get_matching(first: Side, second: Side, kind: AttentionKind) -> Matching:
    """The heads of both models brought together on several sentences, each with the first model's output."""
    switches = [side.seen.interventions for side in (first, second)]
    return _matching(first.lab, second.lab, texts_of(first), switches[0], switches[1], kind)


def texts_of(first: Side) -> tuple[str, ...]:
    """The sentences on which heads are matched: the page's, and examples of its model."""
    return tuple(dict.fromkeys((first.seen.text, *loading.examples(first.lab)[:SENTENCES])))


def read_texts(
    first: Lab,
    second: Lab,
    texts: Sequence[str],
    first_switches: Sequence[Intervention],
    second_switches: Sequence[Intervention],
    kind: AttentionKind,
) -> tuple[list[Read], list[Read]]:
    """What the heads of both look at while they read each text and the first model's output of it."""
    reads: tuple[list[Read], list[Read]] = [], []
    for text in texts:
        seen = first.inspect(text, first_switches)
        for found, lab, switches in zip(reads, (first, second), (first_switches, second_switches), strict=True):
            shown = lab.attention_on(seen, switches)[kind]
            found.append(Read(shown.weights, shown.mask))
    return reads


@cached(max_entries=32, spinner="Bringing the heads of both models together")
def _matching(
    first: Lab,
    second: Lab,
    texts: tuple[str, ...],
    first_switches: tuple[Intervention, ...],
    second_switches: tuple[Intervention, ...],
    kind: AttentionKind,
) -> Matching:
    return match_heads(*read_texts(first, second, texts, first_switches, second_switches, kind))


def _written_ns(name: str, path: str) -> int:
    return Path(path).stat().st_mtime_ns


@cached(max_entries=6, spinner="Opening a snapshot", shared=True, also=_written_ns)
def _snapshot(name: str, path: str) -> Lab:
    return Lab(load_checkpoint(find_checkpoint(name, folders=False), weights=Path(path)))


def _snapshots(name: str) -> dict[int, Path]:
    try:
        return snapshots(name)
    except RunError:
        return {}
