"""The two tables that the Positions page sets side by side, loaded and remembered."""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from numpy import ndarray

from pages.positions.choices import LONGEST, Choices
from pages.shared import loading
from pages.shared.cache import cached
from pages.shared.controls import PageContext
from transformer.analysis.positions.score_decomposition import ScoreSplit, split_scores
from transformer.analysis.positions.tables import sinusoids
from transformer.checkpoints.settings import CheckpointError, read_settings
from transformer.interventions import compile_interventions
from transformer.lab import Lab
from transformer.model.taps import Stack
from transformer.runs.position_moments import LearnedTable, learned_table, table_at_start

Table = Float[ndarray, "position d_model"]


@dataclass(frozen=True)
class Tables:
    """What is set side by side: a sinusoidal table of any size, and a learned one where there is any."""

    choices: Choices
    learned: LearnedTable | None
    partner: str
    """The model of the learned table."""
    models: tuple[str, ...]
    """Models with a learned table."""
    d_model: int
    length: int
    """Rows of the sinusoidal table."""

    @cached_property
    def sinusoidal(self) -> Table:
        """The paper's table in the chosen size."""
        return sinusoids(self.length, self.d_model, self.choices.base)

    @property
    def cut(self) -> Table:
        """The learned table's rows up to the chosen length."""
        assert self.learned is not None, "callers draw it only where there is one"
        return self.learned.rows[: self.length]

    @property
    def learned_name(self) -> str:
        """What stands above the learned table."""
        assert self.learned is not None, "callers draw it only where there is one"
        when = {"trained": "trained", "start": "before training"}.get(
            self.choices.moment, f"step {self.choices.moment}"
        )
        return f"learned: {self.partner}, {self.choices.stack}, {when}"

    @property
    def sinusoidal_name(self) -> str:
        """What stands above the sinusoidal table."""
        return f"sinusoidal: {self.length} × {self.d_model}, base {self.choices.base:,}"


def tables(context: PageContext, choices: Choices) -> Tables:
    """The tables that suit the chosen model and sizes."""
    models = learned_models()
    partner = _partner(context, choices, models) if models else ""
    learned = _learned(partner, choices) if models else None
    rows, width = context.lab.model.config.max_length, context.lab.model.config.d_model
    if learned is not None:
        rows, width = learned.rows.shape
    return Tables(
        choices,
        learned,
        partner,
        models,
        d_model=choices.d_model or min(width - width % 2, LONGEST),
        length=choices.length or min(rows, LONGEST),
    )


def learned_models() -> tuple[str, ...]:
    """Names of all models whose positions are learned."""
    found = []
    for model in loading.models():
        try:
            if read_settings(model.folder).model.positions == "learned":
                found.append(model.name)
        except CheckpointError:
            continue
    return tuple(found)


def get_split(context: PageContext, stack: Stack) -> ScoreSplit:
    """The split of the sentence's first-layer scores under the view's switches; ValueError without such positions."""
    lab, shown = context.lab, context.inspection
    decoder_input = [lab.model.config.bos_id, *shown.target_ids[:-1]]
    tap = compile_interventions(shown.interventions, lab.model)
    return split_scores(lab.model, torch.tensor([shown.source_ids]), torch.tensor([decoder_input]), stack, tap=tap)


def _partner(context: PageContext, choices: Choices, models: tuple[str, ...]) -> str:
    for name in (choices.table, context.lab.name, f"{context.lab.name}-learned"):
        if name in models:
            return name
    return models[0]


def _learned(name: str, choices: Choices) -> LearnedTable | None:
    try:
        lab = loading.get_lab(name)
    except CheckpointError:
        return None
    return learned_table(lab.checkpoint, choices.stack, choices.moment, start=_start(lab, choices.stack))


@cached(max_entries=16)
def _start(lab: Lab, stack: Stack) -> Table:
    return table_at_start(lab.checkpoint, stack)
