"""Two at once: what stands on both sides, both outputs aligned, both heads, and their difference where tokens align."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import streamlit as st
from numpy import ndarray

from pages.common import controls, loading, wording
from pages.common.components.aligned_tokens import aligned_tokens
from pages.common.components.scrolling_figure import scrolling_figure
from pages.common.pictures import is_dark
from pages.common.scene import Scene, say, sentence
from pages.common.two_choices import Choices, Two, change, misread
from pages.common.two_loading import Side, get_lab_at, get_matching, read_same, same_words, side, steps_of
from transformer.analysis.matching import Matching
from transformer.edits import Aligned, align
from transformer.figures.attention import head_heatmap
from transformer.figures.comparison import WIDTH, difference_figure, for_column
from transformer.figures.matching import matching_figure
from transformer.figures.theme import KIND_NAMES
from transformer.lab import Attention
from transformer.settings import CheckpointError

_TWO: dict[Two, str] = {"models": "Two models", "sentences": "Two sentences"}
ENDED = "as it ended"
_CHANGES = (("tired", "wide"), ("wide", "tired"), ("did not follow", "followed"), ("heavy", "weak"), ("fast", "slow"))


@dataclass(frozen=True)
class Pair:
    """Both sides, and the heads that stand beside each other."""

    first: Side
    second: Side
    two: Two
    aligned: Aligned
    """Tokens of both outputs, one across from the other."""


def choose_sides(scene: Scene, chosen: Choices) -> Pair | None:
    """The controls for what stands beside the page's model and sentence; None where one side cannot be had."""
    say(*misread())
    st.session_state["two"] = chosen.two
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.segmented_control(
            "Compare",
            list(_TWO),
            key="two",
            required=True,
            format_func=_TWO.__getitem__,
            on_change=lambda: change(two=st.session_state["two"]),
        )
        if chosen.two == "models":
            other = chosen.other or _partner(scene)
            _choose_step("two-at", f"Weights of {scene.lab.name}", scene.lab.name, chosen.at, "at")
            _choose_other(scene, other)
            _choose_step("two-other-at", f"Weights of {other}", other, chosen.other_at, "other_at")
        else:
            _choose_sentence(scene, chosen)
    text = scene.view.text if chosen.two == "models" else chosen.other_text or _other_sentence(scene)
    other = (chosen.other or _partner(scene)) if chosen.two == "models" else scene.lab.name
    at, other_at = (chosen.at, chosen.other_at) if chosen.two == "models" else ("", "")
    first = _side(scene.lab.name, at, scene.view.text, scene)
    second = _side(other, other_at, text, scene)
    if first is None or second is None:
        return None
    say(*first.left_out, *second.left_out)
    strange = second.lab.unknown(text)
    if strange and strange != scene.lab.unknown(scene.view.text):
        st.markdown(f"{wording.plain(second.name)}: {wording.unseen(strange)}")
    return Pair(first, second, chosen.two, align(first.seen.target_tokens, second.seen.target_tokens))


def show_outputs(pair: Pair) -> None:
    """Both outputs, what differs marked."""
    first, second = pair.first.seen, pair.second.seen
    labels = (pair.first.name, pair.second.name) if pair.two == "models" else ("first", "second")
    aligned_tokens(
        (first.target_tokens, first.probabilities.tolist()),
        (second.target_tokens, second.probabilities.tolist()),
        pair.aligned,
        labels=labels,
        key="two-outputs",
    )
    differing = sum(
        i is None or j is None or first.target_tokens[i] != second.target_tokens[j] for i, j in pair.aligned
    )
    st.markdown(
        "Both write the same tokens."
        if not differing
        else f"{differing} of {len(pair.aligned)} places differ: {_changed(pair)}"
    )


def show_heads(scene: Scene, pair: Pair, chosen: Choices) -> None:
    """One head of each side, side by side, and the difference of the two."""
    kind = scene.view.kind
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        controls.choose_kind(scene)
        controls.choose_layer(scene, width=80)
        heads = list(range(scene.lab.model.config.n_heads))
        st.session_state["choose-head"] = scene.head
        st.selectbox(
            "Head",
            heads,
            key="choose-head",
            width=80,
            on_change=lambda: controls.choose(head=st.session_state["choose-head"]),
        )
        matching, why_not = _matching(scene, pair)
        wanted = _pairing(pair, chosen, matching)
        if matching is not None:
            st.session_state["two-pairing"] = wanted
            st.segmented_control(
                "Beside it",
                ["matched", "same"],
                key="two-pairing",
                required=True,
                format_func={"matched": "The head that matches", "same": "The same place"}.__getitem__,
                on_change=lambda: change(pairing=st.session_state["two-pairing"]),
            )
    say(*controls.problems("kind", "layer", "head"))
    here = (scene.layer, scene.head)
    there = matching.partner(here) if matching is not None and wanted == "matched" else here
    shape = pair.second.seen.attention(kind).weights.shape
    if there is None or there[0] >= shape[0] or there[1] >= shape[1]:
        missing = "is left over by the matching" if there is None else "does not exist there"
        say(f"{pair.second.name} has {shape[0]} layers of {shape[1]} heads: layer {here[0]}, head {here[1]} {missing}.")
        return
    with st.container(horizontal=True, gap="medium"):
        for shown, where, key in ((pair.first, here, "two-first"), (pair.second, there, "two-second")):
            with st.container(width=WIDTH):
                _draw_head(pair, scene, shown, where, key)
        with st.container(width=WIDTH):
            _draw_difference(pair, scene, here, there)
        with st.container(width=WIDTH):
            if matching is None:
                st.caption(why_not)
            else:
                _draw_matching(pair, scene, matching, here, there)


def _draw_head(pair: Pair, scene: Scene, shown: Side, where: tuple[int, int], key: str) -> None:
    (layer, head), attention = where, shown.seen.attention(scene.view.kind)
    name = shown.name if pair.two == "models" else shown.seen.text
    st.caption(f"**{wording.plain(name)}** · layer {layer} · head {head}")
    figure = head_heatmap(
        attention.weights[layer, head],
        attention.queries,
        attention.keys,
        kind=scene.view.kind,
        mask=attention.mask[layer],
        dark=is_dark(),
    )
    scrolling_figure(for_column(figure, len(attention.queries), len(attention.keys)), key=key)


def _draw_difference(pair: Pair, scene: Scene, here: tuple[int, int], there: tuple[int, int]) -> None:
    found = _comparable(pair, scene)
    if isinstance(found, str):
        st.caption(f"No difference is drawn. {found}")
        return
    first, second, note = found
    st.caption(f"{KIND_NAMES[scene.view.kind]} · right minus left · {note}")
    a, b = first.weights[here], second.weights[there]
    if np.array_equal(a, b):
        st.markdown("Both are equal: the largest difference is exactly 0.")
        return
    mask = first.mask[here[0]] | second.mask[there[0]]
    figure = difference_figure(a, b, first.queries, first.keys, kind=scene.view.kind, mask=mask, dark=is_dark())
    scrolling_figure(figure, key="two-difference")


def _comparable(pair: Pair, scene: Scene) -> tuple[Attention, Attention, str] | str:
    """Attention of both sides with the same tokens at rows and columns and how that was had, or why it cannot be."""
    kind, first, second = scene.view.kind, pair.first, pair.second
    mine, theirs = first.seen.attention(kind), second.seen.attention(kind)
    if pair.two == "sentences":
        return _on_common_tokens(mine, theirs)
    if (mine.queries, mine.keys) == (theirs.queries, theirs.keys):
        return mine, theirs, "both have the same tokens"
    if not same_words(first.lab, second.lab):
        return (
            f"{first.name} and {second.name} cut sentences into different tokens, so a row or a column of one does not "
            "stand for one of the other."
        )
    note = f"both read the output of {wording.plain(first.name)} (teacher-forced)"
    try:
        return read_same(first, first, kind), read_same(first, second, kind), note
    except ValueError as error:
        return wording.plain(sentence(str(error)))


def _on_common_tokens(mine: Attention, theirs: Attention) -> tuple[Attention, Attention, str] | str:
    rows = _across(mine.queries, theirs.queries)
    columns = _across(mine.keys, theirs.keys)
    for pairs, a, b, what in (
        (rows, mine.queries, theirs.queries, "rows"),
        (columns, mine.keys, theirs.keys, "columns"),
    ):
        if 2 * len(pairs) < max(len(a), len(b)):
            return (
                f"Only {len(pairs)} of {max(len(a), len(b))} {what} have a token across from them in the other "
                "sentence: too few to compare cell by cell."
            )
    left_out = len(mine.queries) + len(theirs.queries) - 2 * len(rows)
    left_out += len(mine.keys) + len(theirs.keys) - 2 * len(columns)
    note = "rows and columns aligned by the fewest edits" + f", {left_out} left out" * (left_out > 0)
    return (
        _cut(mine, [i for i, _ in rows], [i for i, _ in columns], _names(mine, theirs, rows, columns)),
        _cut(theirs, [j for _, j in rows], [j for _, j in columns], None),
        note,
    )


def _across(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int]]:
    return [(i, j) for i, j in align(a, b) if i is not None and j is not None]


def _names(
    mine: Attention, theirs: Attention, rows: list[tuple[int, int]], columns: list[tuple[int, int]]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Labels of rows and columns; both tokens where they differ."""
    queries = tuple(_both(mine.queries[i], theirs.queries[j]) for i, j in rows)
    return queries, tuple(_both(mine.keys[i], theirs.keys[j]) for i, j in columns)


def _both(a: str, b: str) -> str:
    return a if a == b else f"{a}→{b.lstrip('▁')}"


def _cut(attention: Attention, rows: list[int], columns: list[int], names: tuple | None) -> Attention:
    weights: ndarray = attention.weights[:, :, rows][..., columns]
    queries, keys = names or (tuple(attention.queries[i] for i in rows), tuple(attention.keys[i] for i in columns))
    return replace(attention, weights=weights, mask=attention.mask[:, rows][..., columns], queries=queries, keys=keys)


def _matching(scene: Scene, pair: Pair) -> tuple[Matching | None, str]:
    """The heads of both models brought together, or why that says nothing here."""
    if pair.two == "sentences":
        return None, "Both sentences went through the same heads: there is nothing to match."
    if not same_words(pair.first.lab, pair.second.lab):
        return None, (
            f"Heads are matched by what they look at in the same tokens; {wording.plain(pair.first.name)} and "
            f"{wording.plain(pair.second.name)} cut sentences into different ones."
        )
    try:
        return get_matching(pair.first, pair.second, scene.view.kind), ""
    except ValueError as error:
        return None, wording.plain(sentence(str(error)))


def _pairing(pair: Pair, chosen: Choices, matching: Matching | None) -> str:
    if matching is None:
        return "same"
    return chosen.pairing or ("same" if pair.first.lab.name == pair.second.lab.name else "matched")


def _draw_matching(pair: Pair, scene: Scene, matching: Matching, here: tuple[int, int], there: tuple[int, int]) -> None:
    st.caption("How far apart every two heads are · framed: the pairs that are closest all together")
    figure = matching_figure(
        matching.distances,
        matching.heads,
        matching.others,
        matching.partners,
        chosen=matching.heads.index(here),
        kind=scene.view.kind,
        names=("left", "right"),
        dark=is_dark(),
    )
    scrolling_figure(figure, key="two-matching")
    best = matching.partner(here)
    said = f"These two heads: distance **{wording.number(matching.distance(here, there))}**."
    if best is not None and best != there:
        nearest = wording.number(matching.distance(here, best))
        said += f" The head that matches is layer {best[0]}, head {best[1]}: {nearest}."
    st.markdown(said)
    st.caption(
        f"Jensen-Shannon distance (0: the same weights, 1: never a key in common), mean of {matching.n_rows} rows of "
        "the page's sentence and its model's examples, each with the left model's output. A seed deals the roles of "
        "heads out at random; the Hungarian method pairs them so that all distances together are least."
    )


def _choose_other(scene: Scene, other: str) -> None:
    names = [model.name for model in loading.models()]
    st.session_state["two-other"] = other if other in names else None
    st.selectbox(
        "Beside it",
        names,
        key="two-other",
        index=None,
        width=220,
        on_change=lambda: change(other=st.session_state["two-other"] or "", other_at=""),
    )


def _choose_step(key: str, label: str, name: str, step: str, field: str) -> None:
    steps = steps_of(name)
    if not steps:
        return
    st.session_state[key] = step if step in steps else ENDED
    st.selectbox(
        label,
        [ENDED, *steps],
        key=key,
        width=170,
        format_func=lambda s: s if s == ENDED else f"step {int(s):,}",
        on_change=lambda: change(**{field: "" if st.session_state[key] == ENDED else st.session_state[key]}),
    )


def _choose_sentence(scene: Scene, chosen: Choices) -> None:
    st.session_state["two-text"] = chosen.other_text or _other_sentence(scene)
    st.text_input(
        "The other sentence",
        key="two-text",
        width="stretch",
        max_chars=1_000,
        on_change=lambda: change(other_text=st.session_state["two-text"].strip()),
    )


def _side(name: str, step: str, text: str, scene: Scene) -> Side | None:
    """One side, or a sentence about what is wrong with it."""
    try:
        get_lab_at(name, step)
        return side(name, step, text, scene.view.switches)
    except (CheckpointError, ValueError) as error:
        say(sentence(str(error)))
        return None


def _partner(scene: Scene) -> str:
    """A model worth standing beside this one: another of the same corpus, else any other, else itself."""
    names = [model.name for model in loading.models() if model.name != scene.lab.name]
    corpus = scene.lab.checkpoint.settings.corpus.name
    alike = [name for name in names if _corpus_of(name) == corpus]
    near = [name for name in alike if scene.lab.name.removesuffix("-learned") in name]
    return next(iter([*near, *alike, *names]), scene.lab.name)


def _corpus_of(name: str) -> str:
    try:
        return loading.get_lab(name).checkpoint.settings.corpus.name
    except CheckpointError:
        return ""


def _other_sentence(scene: Scene) -> str:
    """The page's sentence with one word changed, else another example."""
    text = scene.view.text
    for old, new in _CHANGES:
        if f" {old}" in text and not scene.lab.unknown(new):
            return text.replace(f" {old}", f" {new}", 1)
    if " " in text and scene.lab.checkpoint.settings.corpus.name in ("reverse", "copy", "sort"):
        first, rest = text.split(" ", 1)
        return f"{rest} {first}"
    return next((other for other in loading.examples(scene.lab) if other != text), text)


def _changed(pair: Pair) -> str:
    """The first places that differ, in words."""
    a, b = pair.first.seen.target_tokens, pair.second.seen.target_tokens
    found = []
    for i, j in pair.aligned:
        if i is None or j is None or a[i] != b[j]:
            left = "nothing" if i is None else wording.token(a[i])
            right = "nothing" if j is None else wording.token(b[j])
            found.append(f"{left} / {right}")
    return f"{', '.join(found[: wording.MOST_NAMED])}{' …' * (len(found) > wording.MOST_NAMED)}"
