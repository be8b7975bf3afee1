"""The choice of a model for the sections that show its tokens."""

import streamlit as st

from pages.shared import loading
from pages.shared.context import say, sentence
from pages.shared.fields import box
from pages.tokenizers.choices import PAGE, Choices
from transformer.checkpoints.settings import CheckpointError
from transformer.lab import Lab


def choose_model(chosen: Choices) -> Lab | None:
    """Renders the choice of a model; returns it, or None where there is none that can be opened."""
    found = loading.models()
    if not found:
        st.markdown("There is no model here yet. Train one on the *Train* page.")
        return None
    names = [model.name for model in found]
    wanted = chosen.model or loading.first_choice(found)
    name = wanted if wanted in names else loading.first_choice(found)
    box("Model", names, name, PAGE.take("model"), key="tokenizers-model", width=240)
    if name != wanted:
        say(f"There is no model {wanted!r} here; {name} is shown.")
    try:
        return loading.get_lab(name)
    except CheckpointError as error:
        say(sentence(str(error)))
        return None
