"""The models that this page compares: recurrent ones without and with attention, convolutional ones, Transformers."""

from pathlib import Path
from typing import Literal

import streamlit as st

from pages.shared import loading, wording
from pages.shared.cache import cached
from pages.shared.context import PageContext
from transformer.checkpoints.settings import CheckpointError, Found, read_settings
from transformer.config import AnyModelConfig, RecurrentConfig
from transformer.lab import Lab

FIRST_CHOICE = "reverse-rnn"
Kind = Literal["vector", "attention", "convolutional", "transformer"]
KINDS: dict[Kind, str] = {
    "vector": "RNN, one vector",
    "attention": "RNN with attention",
    "convolutional": "Convolutional",
    "transformer": "Transformer",
}


def kind_of(config: AnyModelConfig) -> Kind:
    """Returns the kind of model that this is."""
    if not isinstance(config, RecurrentConfig):
        return "convolutional" if config.family == "conv" else "transformer"
    return "vector" if config.attention == "none" else "attention"


@cached(max_entries=256)
def _kind_and_corpus(folder: Path) -> tuple[Kind, str] | None:
    """Returns the kind of a model and the corpus that it learned; None for a folder that cannot be read."""
    try:
        settings = read_settings(folder)
    except CheckpointError:
        return None
    return kind_of(settings.model), settings.corpus.name


def models_of(*kinds: Kind, corpus: str = "") -> tuple[Found, ...]:
    """Returns the models of these kinds, kind by kind, of one corpus if it is named."""
    found = [(model, _kind_and_corpus(model.folder)) for model in loading.models()]
    return tuple(
        model for kind in kinds for model, own in found if own is not None and own[0] == kind and corpus in ("", own[1])
    )


def compared(context: PageContext) -> tuple[Lab, ...]:
    """Returns a model of each kind that learned the same corpus and can read the sentence, the page's own for its kind;
    kinds of which there is none are left out."""
    settings, found = context.lab.checkpoint.settings, {kind_of(context.lab.checkpoint.settings.model): context.lab}
    for kind in KINDS:
        for model in models_of(kind, corpus=settings.corpus.name):
            if kind in found:
                break
            try:
                lab = loading.get_lab(model.name)
                loading.get_sentence(lab, context.view.text)
            except (CheckpointError, ValueError):
                continue
            found[kind] = lab
    return tuple(found[kind] for kind in KINDS if kind in found)


def first_recurrent() -> str | None:
    """Returns the name of the recurrent model that the page opens on: the quickest to probe, or the first there is."""
    names = [model.name for model in models_of("vector", "attention")]
    return FIRST_CHOICE if FIRST_CHOICE in names else next(iter(names), None)


def offer_recurrent(context: PageContext) -> None:
    """Renders links to this page with a recurrent model filled in, or the command that trains one."""
    found = models_of("vector", "attention")[:6]
    for model in found:
        kind, corpus = _kind_and_corpus(model.folder) or ("vector", "")
        same = corpus == context.lab.checkpoint.settings.corpus.name
        filled = {"model": model.name} | ({"text": context.view.text} if same else {})
        label = f"Open {wording.plain(model.name)} ({KINDS[kind]}, learned {wording.plain(corpus)})"
        st.page_link("pages/before/page.py", label=label, icon=":material/arrow_forward:", query_params=filled)
    if not found:
        st.markdown("There is no recurrent model here yet. This trains one in a minute:")
        st.code("python -m transformer train reverse --model.family rnn", language="bash")
