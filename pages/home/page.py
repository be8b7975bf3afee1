"""Home: a sentence in, its translation and its cross-attention out, and where to look further."""

from dataclasses import replace
from functools import partial

import streamlit as st

from pages.home.links import (
    change_to_try,
    class_lesson,
    look_further,
    render_without_attention,
    sentence_change,
    try_a_change,
    watch_one_learn,
)
from pages.home.said import pronoun
from pages.home.translation import render_translation
from pages.shared import loading, wording
from pages.shared.components.tokens import token_lines
from pages.shared.context import say
from pages.shared.controls import choose_layer_or_average
from pages.shared.decoding import decode
from pages.shared.exhibit import exhibit
from pages.shared.explain import explain
from pages.shared.fields import drawer
from pages.shared.header import frame
from pages.shared.interventions.panel import switch_chips
from pages.shared.texts.catalogue import Texts
from pages.shared.url.session import problems, write_url
from transformer.data.tasks import TASKS
from transformer.lab import AttentionKind
from transformer.model.seq2seq import attention_layers
from transformer.views.attention.matrices import HeadMatrix, TokenLines
from transformer.views.attention.matrix_data import MatrixData
from transformer.views.subjects import Decoding

TEXTS = Texts("home")

context = frame(TEXTS("heading"))
context = decode(replace(context, view=replace(context.view, kind=AttentionKind.CROSS)))
if not attention_layers(context.lab.model):
    render_without_attention(context)
    st.stop()
inspection = context.inspection
chosen = context.view.head
heads = tuple(range(context.lab.model.config.n_heads)) if chosen is None else (chosen,)
cross = HeadMatrix(kind=AttentionKind.CROSS, layer=context.layer, heads=heads)
is_task = context.lab.checkpoint.settings.corpus.name in TASKS
from_, to = TEXTS.several(f"ends.{'of_task' if is_task else 'of_sentence'}")
lines = TokenLines(of=cross, labels=(from_, to))
change = sentence_change(context)


def draw(data: MatrixData) -> None:
    """Renders the lines on a canvas, and the sentence below them."""
    token_lines(
        inspection.source_tokens,
        inspection.target_tokens,
        data.values,
        kind=AttentionKind.CROSS,
        source_unseen=context.sentence.unseen_tokens,
        source_changed=change.source,
        target_changed=change.target,
        source_label=from_,
        target_label=to,
        off=data.off,
        key="home-lines",
    )
    layer = context.layer
    said = TEXTS("lines.of_all", layer=layer) if chosen is None else TEXTS("lines.of_one", layer=layer, head=chosen)
    st.caption(f"{said} {TEXTS('lines.off')}" if data.off else said)


class_lesson()
switch_chips(context)
render_translation(context, change.sentence)
with st.container(horizontal=True, vertical_alignment="center", gap="small", key="home-actions"):
    if offered := change_to_try(context):
        try_a_change(offered)
    drawer(partial(choose_layer_or_average, context), label=TEXTS("layer_and_head"), key="home-drawer")
    watch_one_learn()
say(*problems("layer", "head"))
explained = partial(explain, TEXTS("lines.explained"), context.lab.model.config)
exhibit(Decoding(context.lab, inspection), lines, draw=draw, also={TEXTS("matrix"): cross}, explain=explained)
if pronoun(inspection, loading.reference(context.lab, context.view.text)):
    st.caption(wording.smoothed(context.lab.checkpoint.settings.train.label_smoothing))

st.space("small")
look_further(context)
write_url()
