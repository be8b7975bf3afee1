"""Models and results, loaded once and shared. A model is known by its name and the age of its weights, so that what a
training run writes later is seen."""

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import streamlit as st

from pages.common import under_way
from transformer.analysis.cell import Cell
from transformer.analysis.draws import Draw, Drawn, draws
from transformer.analysis.effects import HeadEffect, OutputEffect, head_effects, output_effects
from transformer.analysis.leaks import Leak
from transformer.analysis.proofs import Proof, prove
from transformer.analysis.search_tree import SearchTree, search_tree
from transformer.config import LengthNorm
from transformer.corpora import CorpusError, load_corpus
from transformer.interventions import Intervention, parse_intervention
from transformer.lab import AttentionKind, AttentionShift, Comparison, Inspection, Lab, load
from transformer.pairs import Pair, words
from transformer.pronouns.reading import read as read_pronoun_sentence
from transformer.settings import WEIGHTS_FILE, CheckpointError, Found, find_checkpoint, list_checkpoints

FIRST_CHOICE = "pronouns-en-fr"
CLASSIC = "The animal did not cross the street because it was too tired."


def models() -> tuple[Found, ...]:
    """Every model that can be opened: shipped ones, then runs, the newest first."""
    return list_checkpoints()


def first_choice(found: Sequence[Found]) -> str:
    """The model that a visitor meets first."""
    names = [model.name for model in found]
    return FIRST_CHOICE if FIRST_CHOICE in names else names[0]


def get_lab(name: str) -> Lab:
    """The model of this name (never a path); CheckpointError where there is none."""
    return _lab(name, _age(find_checkpoint(name, folders=False)))


def age_of(lab: Lab) -> int:
    """The age of a model's weights: what else is remembered of it depends on it."""
    return _age(lab.checkpoint.folder)


def get_resolved(lab: Lab, switches: Sequence[object]) -> tuple[Intervention, ...]:
    """The switches with what they need from elsewhere, remembered; ValueError where that cannot be had."""
    return _resolved(lab.name, _age(lab.checkpoint.folder), tuple(map(str, switches)))


def get_inspection(lab: Lab, text: str, switches: Sequence[object] = ()) -> Inspection:
    """`lab.inspect`, remembered; ValueError for a text that the model cannot read."""
    return _inspection(lab.name, _age(lab.checkpoint.folder), text, tuple(map(str, switches)))


def decoding_under_way(lab: Lab, text: str, switches: Sequence[object] = ()) -> under_way.UnderWay | None:
    """What another thread is decoding of this just now; None where none is."""
    return under_way.look((lab.name, _age(lab.checkpoint.folder), text, tuple(map(str, switches))))


def get_draws(lab: Lab, text: str, switches: Sequence[object], draw: Draw, *, n: int, seed: int) -> tuple[Drawn, ...]:
    """`draws` of a text, remembered."""
    return _draws(lab.name, _age(lab.checkpoint.folder), text, tuple(map(str, switches)), draw, n, seed)


def get_search(
    lab: Lab,
    text: str,
    switches: Sequence[object],
    *,
    size: int,
    alpha: float,
    norm: LengthNorm,
    early_stopping: bool,
) -> SearchTree:
    """`search_tree` of a text, remembered."""
    names = tuple(map(str, switches))
    return _search(lab.name, _age(lab.checkpoint.folder), text, names, size, alpha, norm, early_stopping)


def get_road(lab: Lab, text: str, switches: Sequence[object], forced: Sequence[tuple[int, int]]) -> Inspection:
    """`lab.inspect` with tokens forced at some steps, remembered; ValueError for a token that cannot be written."""
    return _road(lab.name, _age(lab.checkpoint.folder), text, tuple(map(str, switches)), tuple(forced))


def get_comparison(lab: Lab, text: str, switches: Sequence[object]) -> Comparison:
    """`lab.compare`, remembered."""
    return _comparison(lab.name, _age(lab.checkpoint.folder), text, tuple(map(str, switches)))


def get_attention_shift(lab: Lab, text: str, switches: Sequence[object]) -> AttentionShift:
    """`lab.attention_shift` of the comparison, remembered for a while: it is large."""
    return _attention_shift(lab.name, _age(lab.checkpoint.folder), text, tuple(map(str, switches)))


@st.cache_data(max_entries=64, show_spinner=False)
def get_examples(name: str, corpus: str, pinned: tuple[str, ...]) -> tuple[str, ...]:
    """Sentences to offer for a model: its corpus's, then those pinned to its run."""
    try:
        offered = load_corpus(corpus).examples
    except CorpusError:  # an uploaded file that is not here any more
        offered = ()
    first = (CLASSIC,) if CLASSIC in offered else ()
    return tuple(dict.fromkeys((*first, *offered, *pinned)))


def examples(lab: Lab) -> tuple[str, ...]:
    """Sentences to offer for this model."""
    settings = lab.checkpoint.settings
    return get_examples(lab.name, settings.corpus.name, settings.pinned)


def reference(lab: Lab, text: str) -> Pair | None:
    """The right translation with its referent, where this model's corpus has a rule for it."""
    return read_pronoun_sentence(text) if lab.checkpoint.settings.corpus.name == "pronouns-en-fr" else None


def unseen_tokens(lab: Lab, text: str) -> dict[int, str]:
    """The words with a part that was never seen in training, by the source tokens that belong to them."""
    strange = set(lab.unknown(text))
    if not strange:
        return {}
    found = words(text)
    owners = lab.tokenizer.word_of_token(text)
    return {i: found[owner] for i, owner in enumerate(owners) if owner >= 0 and found[owner] in strange}


@st.cache_data(max_entries=64, show_spinner=False)
def get_head_effects(name: str, text: str, step: int, age: int) -> tuple[HeadEffect, ...]:
    """`head_effects` of a sentence's own output, remembered."""
    lab = get_lab(name)
    inspection = get_inspection(lab, text)
    return head_effects(lab.model, inspection.source_ids, inspection.target_ids, step)


def strongest_heads(lab: Lab, text: str, step: int) -> tuple[HeadEffect, ...]:
    """The two heads that move the probability of this step's token most when switched off one at a time."""
    return get_head_effects(lab.name, text, step, _age(lab.checkpoint.folder))[:2]


@st.cache_data(max_entries=64, show_spinner=False)
def get_output_effects(name: str, text: str, age: int) -> tuple[OutputEffect, ...]:
    """`output_effects` of a sentence's own output, remembered."""
    lab = get_lab(name)
    inspection = get_inspection(lab, text)
    return output_effects(lab.model, inspection.source_ids, inspection.target_ids)


def heads_by_effect(lab: Lab, text: str) -> tuple[OutputEffect, ...]:
    """Every head alone, the one whose absence changes the output most first."""
    return get_output_effects(lab.name, text, _age(lab.checkpoint.folder))


def get_cell(lab: Lab, seen: Inspection, kind: AttentionKind, layer: int, head: int, query: int, key: int) -> Cell:
    """`lab.cell`, remembered; ValueError for a cell that does not exist."""
    switches, where = tuple(map(str, seen.interventions)), (kind, layer, head, query, key)
    return _cell(lab.name, _age(lab.checkpoint.folder), seen.text, switches, seen.forced, where)


def get_leak(lab: Lab, texts: Sequence[str], off: Sequence[Intervention]) -> Leak:
    """`lab.leak`, remembered; ValueError for a text that the model cannot read."""
    return _leak(lab.name, _age(lab.checkpoint.folder), tuple(texts), tuple(map(str, off)))


def get_proofs(lab: Lab, text: str, switches: Sequence[object]) -> tuple[Proof, ...]:
    """The proofs for the decoding of a text under switches, run now and never remembered."""
    shown = get_inspection(lab, text, switches)
    kinds = (shown.encoder_self, shown.decoder_self, shown.cross)
    return prove(
        lab.model,
        source=shown.source_ids,
        target=shown.target_ids,
        log_probs=shown.log_probs,
        weights={attention.kind: attention.weights for attention in kinds},
        masks={attention.kind: attention.mask for attention in kinds},
        switches=shown.interventions,
    )


@st.cache_resource(max_entries=6, show_spinner=False)
def _lab(name: str, age: int) -> Lab:
    return load(name)


@st.cache_data(max_entries=128, show_spinner=False)
def _resolved(name: str, age: int, switches: tuple[str, ...]) -> tuple[Intervention, ...]:
    specs = [parse_intervention(switch) for switch in switches]
    waiting = [spec.preparation for spec in specs if spec.preparation]
    with st.spinner(waiting[0]) if waiting else nullcontext():
        return get_lab(name).resolved(specs)


@st.cache_data(max_entries=128, show_spinner=False)
def _inspection(name: str, age: int, text: str, switches: tuple[str, ...]) -> Inspection:
    lab = get_lab(name)
    specs, longest = get_resolved(lab, switches), lab.model.config.max_length
    with under_way.announced((name, age, text, switches), most=longest) as watch:
        return lab.inspect(text, specs, watch=watch)


@st.cache_data(max_entries=128, show_spinner=False)
def _cell(name: str, age: int, text: str, switches: tuple[str, ...], forced: tuple, where: tuple) -> Cell:
    lab = get_lab(name)
    return lab.cell(get_road(lab, text, switches, forced), *where)


@st.cache_data(max_entries=64, show_spinner="Drawing samples")
def _draws(
    name: str, age: int, text: str, switches: tuple[str, ...], draw: Draw, n: int, seed: int
) -> tuple[Drawn, ...]:
    lab = get_lab(name)
    specs = get_resolved(lab, switches)
    return draws(lab.model, get_inspection(lab, text).source_ids, specs, draw, n=n, seed=seed)


@st.cache_data(max_entries=64, show_spinner=False)
def _search(
    name: str,
    age: int,
    text: str,
    switches: tuple[str, ...],
    size: int,
    alpha: float,
    norm: LengthNorm,
    early_stopping: bool,
) -> SearchTree:
    lab = get_lab(name)
    specs = get_resolved(lab, switches)
    source = get_inspection(lab, text).source_ids
    return search_tree(lab.model, source, specs, size=size, alpha=alpha, norm=norm, early_stopping=early_stopping)


@st.cache_data(max_entries=128, show_spinner=False)
def _road(name: str, age: int, text: str, switches: tuple[str, ...], forced: tuple[tuple[int, int], ...]) -> Inspection:
    lab = get_lab(name)
    return lab.inspect(text, get_resolved(lab, switches), dict(forced))


@st.cache_data(max_entries=32, show_spinner="Reading the batch with and without the masks")
def _leak(name: str, age: int, texts: tuple[str, ...], off: tuple[str, ...]) -> Leak:
    return get_lab(name).leak(texts, list(map(parse_intervention, off)))


@st.cache_data(max_entries=128, show_spinner=False)
def _comparison(name: str, age: int, text: str, switches: tuple[str, ...]) -> Comparison:
    lab = get_lab(name)
    return lab.effect(get_inspection(lab, text), get_inspection(lab, text, switches))


@st.cache_data(max_entries=8, show_spinner=False)
def _attention_shift(name: str, age: int, text: str, switches: tuple[str, ...]) -> AttentionShift:
    lab = get_lab(name)
    return lab.attention_shift(get_comparison(lab, text, switches))


def _age(folder: Path) -> int:
    try:
        return (folder / WEIGHTS_FILE).stat().st_mtime_ns
    except FileNotFoundError:
        raise CheckpointError(f"the model in {folder.name} is gone; choose another one") from None
