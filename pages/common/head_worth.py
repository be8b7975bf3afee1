"""What each head is worth, on the Heads page: each removed in turn, for this translation and over many pairs."""

from collections.abc import Mapping, Sequence

import streamlit as st

from pages.common import loading
from pages.common.components.head_table import Cell, Column, Row, head_table
from pages.common.components.scrolling_figure import scrolling_figure
from pages.common.controls import Scene
from pages.common.head_choices import TABLE, Choices, Removal, segments
from pages.common.head_data import Measured, choose_data
from pages.common.head_roles import (
    chosen_head,
    clickable_map,
    draw_profile,
    open_link,
    opens,
    say_measured,
    survey_of,
    two_columns,
)
from pages.common.head_words import head_name, role_said
from pages.common.head_work import result_of
from pages.common.pictures import is_dark
from pages.common.wording import number, token
from transformer.analysis.effects import OutputEffect, output_effects
from transformer.analysis.head_places import HeadAt, Tell
from transformer.analysis.head_statistics import HeadMeans
from transformer.analysis.head_survey import Survey
from transformer.analysis.trials import Means
from transformer.analysis.validation_effects import LEVEL, RESAMPLES, Change, ValidationEffects, validation_effects
from transformer.figures.head_bars import Bar, ranking
from transformer.lab import Lab

MOST_RANKED = 24
_WORTHS = {
    "sentence": "This translation",
    "loss": "Loss on the pairs",
    "exact_match": "Exact matches on the pairs",
}
_REMOVALS = {"zero": "Zero", "mean": "Its mean"}
_QUANTITIES = {
    "sentence": "change of log-probability, nats",
    "loss": "change of loss, nats per token",
    "exact_match": "change of exact match",
}


def draw_worth(scene: Scene, chosen: Choices) -> None:
    """The whole section."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="large"):
        segments("worth", "Measured by", _WORTHS, chosen.worth)
        segments("removal", "A removed head is set to", _REMOVALS, chosen.removal)
    if chosen.removal == "mean" and not _say_means(scene):
        return
    effects = _sentence_effects(scene, chosen.removal)
    measured = choose_data(scene, chosen)
    found = measured and survey_of(scene, measured)
    over_pairs = _over_pairs(scene, measured, chosen.removal) if measured is not None and found is not None else None
    if chosen.worth == "sentence":
        values = {at: effect.log_prob for at, effect in effects.items()}
        changes = {}
        _say_sentence(scene, effects)
    elif measured is None or found is None or over_pairs is None:
        return
    else:
        changes = {worth.at: getattr(worth, chosen.worth) for worth in over_pairs.heads}
        values = {at: change.value for at, change in changes.items()}
        say_measured(found, measured, scene)
        _say_pairs(chosen, over_pairs, changes, measured)
    _draw(scene, chosen, values, changes, found)
    _draw_table(scene, chosen, effects, over_pairs, found)
    _explain(scene)


def _say_means(scene: Scene) -> bool:
    """Whether the means of the heads are there; what they were taken over is said, or why there are none."""
    lab = scene.lab
    key = ("means", lab.name, loading.age_of(lab))
    found: HeadMeans | None = result_of(
        "means", key, lambda tell: lab.head_means, "Taking each head's mean over validation pairs"
    )
    if found is None:
        return False
    source = "taken just now" if found.measured else "as the model carries them"
    st.caption(f"Means over {found.pairs:,} validation pairs, {source}.")
    return True


def means_of(lab: Lab, removal: Removal) -> Means | None:
    """What a removed head says; None: nothing."""
    return lab.head_means.means if removal == "mean" else None


def _sentence_effects(scene: Scene, removal: Removal) -> Mapping[HeadAt, OutputEffect]:
    """What becomes of the output in sight without each head, the switches in force."""
    switches = tuple(map(str, scene.view.switches))
    found = _output_effects(scene.lab.name, loading.age_of(scene.lab), scene.view.text, switches, removal)
    return {HeadAt(e.switch.stack, e.switch.layer, e.switch.block, e.switch.heads[0]): e for e in found}


@st.cache_data(max_entries=64, show_spinner="Removing each head in turn")
def _output_effects(
    name: str, age: int, text: str, switches: tuple[str, ...], removal: Removal
) -> tuple[OutputEffect, ...]:
    lab = loading.get_lab(name)
    seen = loading.get_inspection(lab, text, switches)
    means = means_of(lab, removal)
    return output_effects(lab.model, seen.source_ids, seen.target_ids, seen.interventions, means=means)


def _over_pairs(scene: Scene, measured: Measured, removal: Removal) -> ValidationEffects | None:
    lab = scene.lab

    def compute(tell: Tell) -> ValidationEffects:
        return validation_effects(lab.model, measured.pairs, lab.tokenizer, means=means_of(lab, removal), tell=tell)

    key = ("worth", removal, lab.name, loading.age_of(lab), measured.key)
    return result_of("worth", key, compute, f"Removing each head in turn, on {measured.said}")


def _say_sentence(scene: Scene, effects: Mapping[HeadAt, OutputEffect]) -> None:
    """How many heads the output needs, and the one that it needs most."""
    changing = [at for at, effect in effects.items() if effect.instead is not None]
    worst = min(effects, key=lambda at: effects[at].log_prob)
    effect, n = effects[worst], len(effects)
    same = n - len(changing)
    said = (
        f"**{len(changing)} of {n} heads {'change' if len(changing) > 1 else 'changes'} what is written when removed "
        "alone**"
        if changing
        else f"**None of the {n} heads changes what is written when it alone is removed**"
    )
    said += f"; without any other one ({same}) every token stays." if changing and same else "."
    written = scene.inspection.target_tokens[effect.step]
    said += f" The largest loss: without {head_name(worst)} this output has {number(effect.log_prob, signed=True)} nats"
    if effect.instead is not None:
        instead = scene.lab.tokenizer.piece(effect.instead)
        said += f", and {token(instead)} is written in place of {token(written)}."
    else:
        said += f"; {token(written)} moves most, from {number(effect.before)} to {number(effect.after)}."
    st.markdown(said)
    note = (
        "Log-probability of the output in sight, summed over its tokens, the same words before each (teacher-forced)."
    )
    if scene.view.switches:
        note += " Your switches hold throughout; heads that are off already are left out."
    st.caption(note)


def _say_pairs(chosen: Choices, found: ValidationEffects, changes: Mapping[HeadAt, Change], measured: Measured) -> None:
    clear = sum(change.is_clear for change in changes.values())
    whole = (
        f"exact match {number(found.exact_match)}" if chosen.worth == "exact_match" else f"loss {number(found.loss)}"
    )
    st.markdown(
        f"With all heads: {whole} on {found.n_pairs:,} pairs. **For {clear} of {len(changes)} heads the "
        f"{LEVEL:.0%} interval of the change leaves out 0.**"
    )
    reference = "the model's own translation" if measured.own_output else "the reference"
    st.caption(
        f"Intervals: percentile bootstrap over the {found.n_pairs:,} pairs, {RESAMPLES:,} samples, a fixed seed. "
        + (
            f"A match: greedy decoding writes {reference} token for token."
            if chosen.worth == "exact_match"
            else f"Cross-entropy of {reference} in nats per token, not smoothed."
        )
    )


def _draw(
    scene: Scene,
    chosen: Choices,
    values: Mapping[HeadAt, float],
    changes: Mapping[HeadAt, Change],
    found: Survey | None,
) -> None:
    reach = max(map(abs, values.values()), default=1.0) or 1.0
    left, right = two_columns(2, 3)
    with left:
        said = {at: _said(value, changes.get(at)) for at, value in values.items()}
        quantity = _QUANTITIES[chosen.worth].split(",")[-1].strip() if chosen.worth != "exact_match" else "change"
        clickable_map(scene, dict(values), said, quantity=quantity, limits=(-reach, reach), diverging=True)
        if found is not None:
            at = chosen_head(scene)
            st.caption(f"Mean attention of {head_name(at)}: where its weight goes. Ticks: a head that looks evenly.")
            draw_profile(found, at)
        open_link(scene, chosen_head(scene))
    with right:
        harmful = sorted(values, key=lambda at: -values[at] if chosen.worth == "loss" else values[at])
        shown = harmful[:MOST_RANKED]
        bars = [_bar(at, values[at], changes.get(at)) for at in shown]
        scrolling_figure(ranking(bars, quantity=_QUANTITIES[chosen.worth], dark=is_dark()), key="heads-ranking")
        if len(harmful) > len(shown):
            st.caption(f"The {len(shown)} heads whose removal costs most, of {len(harmful)}; all are in the table.")


def _bar(at: HeadAt, value: float, change: Change | None) -> Bar:
    ends = (None, None) if change is None else (change.low, change.high)
    return Bar(head_name(at), at.kind, value, *ends)


def _said(value: float, change: Change | None) -> str:
    interval = "" if change is None else f"<br>{number(change.low, signed=True)} to {number(change.high, signed=True)}"
    return number(value, signed=True) + interval


def _draw_table(
    scene: Scene,
    chosen: Choices,
    effects: Mapping[HeadAt, OutputEffect],
    over_pairs: ValidationEffects | None,
    found: Survey | None,
) -> None:
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
    worths = {} if over_pairs is None else {worth.at: worth for worth in over_pairs.heads}
    places = list(worths) or (list(effects) if found is None else list(found.by_head))
    rows = []
    for at in places:
        cells: list[Cell | None] = [*_sentence_cells(scene, effects.get(at))]
        if over_pairs is not None:
            cells += [_change_cell(worths[at].loss), _change_cell(worths[at].exact_match)]
        if found is not None:
            profile = found.by_head[at]
            cells += [
                Cell(f"{profile.largest:.2f}", profile.largest, profile.largest),
                Cell(role_said(found, profile), quiet=not found.role(profile).clear),
            ]
        rows.append(Row(str(at), head_name(at), at.kind, opens(scene, at), tuple(cells)))
    usual = {"sentence": "log_prob", "loss": "-loss", "exact_match": "exact_match"}[chosen.worth]
    names = {"head", *(column.name for column in columns)}
    sort = chosen.sort if chosen.sort.removeprefix("-") in names else usual
    head_table(rows, columns, sort=sort, chosen=str(chosen_head(scene)), page="attention", key=TABLE)


def _sentence_cells(scene: Scene, effect: OutputEffect | None) -> Sequence[Cell | None]:
    if effect is None:
        return (None, Cell("off", quiet=True))
    value = Cell(f"{effect.log_prob:+.2f}".replace("-", "−"), effect.log_prob)
    if effect.instead is None:
        return (value, Cell("the same", quiet=True))
    pieces = (scene.inspection.target_tokens[effect.step], scene.lab.tokenizer.piece(effect.instead))
    before, after = (piece.strip("▁") or piece for piece in pieces)
    return (value, Cell(f"{before} → {after}", note=f"At step {effect.step}, the first that changes."))


def _change_cell(change: Change) -> Cell:
    value, low, high = (f"{v:+.3f}".replace("-", "−") for v in (change.value, change.low, change.high))
    return Cell(f"{value}  [{low}, {high}]", change.value, quiet=not change.is_clear)


def _explain(scene: Scene) -> None:
    with st.expander("What am I looking at?"):
        st.markdown(
            "To remove a head is to set its context before $W^O$ (section 3.2.2) to zero, or to its mean over "
            "validation pairs: what it looked at then goes nowhere, and all other heads stay as they are. At zero it "
            "says something that it never said; at its mean, what it says whatever the sentence. Each head is removed "
            "alone. Heads are redundant: where "
            "another one carries the same, a single removal does nothing, although both together may be needed. *The "
            "smallest set* looks for such sets. A head with large weights need not be one that matters: compare *Mean "
            "attention* with the changes beside it."
        )
        st.markdown(
            "Loss and exact match come from one teacher-forced pass per head: greedy decoding writes the reference "
            "exactly where each of its tokens is the most probable one after the tokens before it. The intervals are "
            "percentile bootstraps (Efron and Tibshirani, 1993) over pairs, drawn together for all heads, so that "
            "the differences are paired (Koehn, 2004). Quiet numbers have an interval that holds 0."
        )
