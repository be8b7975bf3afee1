"""The models that this page compares: recurrent ones without and with attention, and Transformers."""

from pathlib import Path
from typing import Literal

import streamlit as st

from pages.shared import loading, wording
from pages.shared.cache import cached
from pages.shared.context import PageContext
from transformer.checkpoints.settings import CheckpointError, Found, read_settings
from transformer.config import AnyModelConfig, RecurrentConfig

Kind = Literal["vector", "attention", "transformer"]
KINDS: dict[Kind, str] = {
    "vector": "RNN, one vector",
    "attention": "RNN with attention",
    "transformer": "Transformer",
}


def kind_of(config: AnyModelConfig) -> Kind:
    """Returns the kind of model that this is."""
    if not isinstance(config, RecurrentConfig):
        return "transformer"
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


def first_recurrent() -> str | None:
    """Returns the name of the recurrent model that the page opens on: the first without attention, or with."""
    return next((model.name for model in models_of("vector", "attention")), None)


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
