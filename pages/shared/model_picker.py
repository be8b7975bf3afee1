"""The choice of a model: each with what it does, how well, and an example, in one line."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from pages.shared import loading, wording
from pages.shared.cache import cached
from pages.shared.fields import one_of
from pages.shared.glossary import term_of
from pages.shared.texts.catalogue import Texts
from pages.shared.url.session import choose, session
from transformer.access.classroom import classroom
from transformer.access.ownership import is_pinned, may_change, may_take
from transformer.analysis.training.progress import progress_of
from transformer.checkpoints.settings import CheckpointError, Found, read_settings
from transformer.config import ModelConfig
from transformer.data.corpora import CORPORA, load_corpus, names_emoji

TEXTS = Texts("picker")
_LACKS = ("-without-", "-with-one-head", "-diverged")
"""Parts of the names of shipped models that lack something: these stand last."""


def choose_model(found: Sequence[Found], name: str) -> None:
    """Renders a button with the model's name, which opens the list of models."""
    listed = sorted(found, key=_place)
    lines = [_line(model) for model in listed]
    with st.container(width=220, gap=None, key="model-picker"):
        st.markdown(_whose(found, name))
        # A popover that was used is drawn anew, closed, over the new result.
        with st.popover(name, key=f"models-{session().changes}", width="stretch"):
            one_of(
                TEXTS("whose.anybody"),
                [model.name for model in listed],
                name,
                change_model,
                key="choose-model",
                captions=lines,
            )
            if any("BLEU" in line for line in lines) and (bleu := term_of("BLEU")):
                st.caption(f"{bleu.name}: {bleu.meaning}")


def change_model(name: str) -> None:
    """Chooses another model with the same sentence if that suits it, else with a sentence of its own."""
    memory = session()
    memory.draft = None
    text = memory.view.text
    choose(model=name, text=text if _suits(name, memory.view.model, text) else memory.texts.get(name, ""))


def _suits(name: str, before: str, text: str) -> bool:
    """Tells whether a model knows the words of another one's sentence, and both translate sentences or both do not."""
    try:
        lab, shown = loading.get_lab(name), loading.get_lab(before)
    except CheckpointError:
        return True  # the page will say what is wrong with the model
    emoji = [names_emoji(each.checkpoint.settings.corpus.name) for each in (lab, shown)]
    return emoji[0] == emoji[1] and not lab.unknown(text)


def _whose(found: Sequence[Found], name: str) -> str:
    model = next((model for model in found if model.name == name), None)
    if model is None or model.shipped:
        return TEXTS("whose.anybody")
    if may_change(model.folder):
        return TEXTS("whose.yours")
    return TEXTS("whose.class" if is_pinned(model.folder) else "whose.shared")


def is_for_the_class(model: Found) -> bool:
    """Tells whether a teacher pinned a model."""
    return model.name in classroom().models if model.shipped else is_pinned(model.folder)


def _place(model: Found) -> tuple[bool, bool, bool, bool, bool]:
    """Returns the place of a model in the list: the class's, one's own, the usual one, whole ones, emoji, and those
    that lack something."""
    lacks = any(part in model.name for part in _LACKS)
    return (
        not is_for_the_class(model),
        model.shipped,
        lacks,
        model.name.startswith("emoji"),
        model.name != loading.FIRST_CHOICE,
    )


def _line(model: Found) -> str:
    try:
        summary, example = _summary(model.folder)
    except CheckpointError as error:
        return wording.plain(str(error))
    if not example or not may_take(model.folder):
        return summary
    return f"{summary} · “{wording.plain(example)}”"


@cached(max_entries=128, shared=True)
def _summary(folder: Path) -> tuple[str, str]:
    """Returns what a model does, without what, and how well, from its settings and its newest score, and the sentence
    that it opens on, "" if it follows none; CheckpointError if it is gone."""
    settings, progress = read_settings(folder), progress_of(folder)
    corpus = settings.corpus.name
    does = CORPORA.get(corpus) or TEXTS("pairs", file=Path(corpus).name)
    newest = progress.held_out.get("random") or {
        name: progress.last("validation", name) for name in ("exact_match", "bleu")
    }
    missing = settings.model.missing_parts if isinstance(settings.model, ModelConfig) else ()
    offered = load_corpus(corpus).examples if corpus in CORPORA else settings.pinned
    return " · ".join((wording.plain(does), *missing, _score(newest))), offered[0] if offered else ""


def _score(newest: Mapping[str, Any]) -> str:
    """Returns a score on sentences that it did not train on: BLEU where that applies, else the share of right ones."""
    bleu, right = newest.get("bleu"), newest.get("exact_match")
    if bleu is not None and not math.isnan(bleu):
        return TEXTS("score.bleu", bleu=bleu)
    if right is None:
        return TEXTS("score.none")
    if "count" in newest:
        return TEXTS("score.counted", share=100 * right, total=newest["count"])
    return TEXTS("score.share", share=100 * right)
