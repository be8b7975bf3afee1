"""What each head is worth as a table, on the Heads page, and all that belongs to it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pages.heads.checks import check_columns
from pages.heads.choices import TABLE, Choices
from pages.heads.data import Measured
from pages.heads.head_text import head_name, role_said
from pages.heads.patterns import chosen_head, opens
from pages.shared.components.head_table import Cell, Column, Row, head_table
from pages.shared.controls import PageContext
from transformer.analysis.heads.addresses import HeadAt
from transformer.analysis.heads.importance import OutputEffect
from transformer.analysis.heads.survey import Survey
from transformer.analysis.heads.validation_importance import LEVEL, Change, ValidationImportance


@dataclass(frozen=True)
class Importances:
    """What every head is worth, as far as it is known."""

    choices: Choices
    effects: Mapping[HeadAt, OutputEffect]
    over_pairs: ValidationImportance | None
    values: Mapping[HeadAt, float]
    """What is drawn."""
    changes: Mapping[HeadAt, Change]
    """The same with intervals; empty where this translation is drawn."""
    measured: Measured | None
    survey: Survey | None

    @property
    def of_pairs(self) -> tuple[Measured, ValidationImportance] | None:
        """The pairs and what was measured on them, where that is drawn."""
        if not self.changes or self.measured is None or self.over_pairs is None:
            return None
        return self.measured, self.over_pairs


def draw_worth_table(context: PageContext, worths: Importances) -> None:
    """All heads, sortable, with where they look."""
    chosen, effects, over_pairs, found = worths.choices, worths.effects, worths.over_pairs, worths.survey
    columns = [
        Column("log_prob", "This translation", "Change of the output's log-probability in nats, without the head."),
        Column("instead", "Then written", "The first token that greedy decoding writes otherwise.", text=True),
    ]
    if over_pairs is not None:
        columns += [
            Column("loss", "Loss", f"Change of the loss in nats per token, with its {LEVEL:.0%} interval."),
            Column(
                "exact_match", "Exact match", f"Change of the share of exact matches, with its {LEVEL:.0%} interval."
            ),
        ]
    if found is not None:
        columns += [
            Column("largest", "Mean attention", "The largest weight of a row, on average (Voita et al.: confidence)."),
            Column("role", "Looks above all at", text=True),
        ]
    by_head = {} if over_pairs is None else {worth.at: worth for worth in over_pairs.heads}
    places = list(by_head) or (list(effects) if found is None else list(found.by_head))
    rows = []
    for at in places:
        cells: list[Cell | None] = [*_sentence_cells(context, effects.get(at))]
        if over_pairs is not None:
            cells += [_change_cell(by_head[at].loss), _change_cell(by_head[at].exact_match)]
        if found is not None:
            profile = found.by_head[at]
            cells += [
                Cell(f"{profile.largest:.2f}", profile.largest, profile.largest),
                Cell(role_said(found, profile), quiet=not found.main_patterns(profile).clear),
            ]
        rows.append(Row(str(at), head_name(at), at.kind, opens(context, at), tuple(cells)))
    usual = {"sentence": "log_prob", "loss": "-loss", "exact_match": "exact_match"}[chosen.worth]
    names = {"head", *(column.name for column in columns)}
    sort = chosen.sort if chosen.sort.removeprefix("-") in names else usual
    head_table(rows, columns, sort=sort, chosen=str(chosen_head(context)), page="attention", key=TABLE)
    if found is not None and worths.measured is not None:
        check_columns(context, worths.measured, found, ("largest",), "weight", key="proof-heads-table")


def _sentence_cells(context: PageContext, effect: OutputEffect | None) -> Sequence[Cell | None]:
    if effect is None:
        return (None, Cell("switched already", quiet=True))
    value = Cell(f"{effect.log_prob:+.2f}".replace("-", "−"), effect.log_prob)
    if effect.instead is None:
        return (value, Cell("the same", quiet=True))
    pieces = (context.inspection.target_tokens[effect.step], context.lab.tokenizer.piece(effect.instead))
    before, after = (piece.strip("▁") or piece for piece in pieces)
    return (value, Cell(f"{before} → {after}", note=f"At step {effect.step}, the first that changes."))


def _change_cell(change: Change) -> Cell:
    value, low, high = (f"{v:+.3f}".replace("-", "−") for v in (change.value, change.low, change.high))
    return Cell(f"{value}  [{low}, {high}]", change.value, quiet=not change.is_clear)
