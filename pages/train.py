"""Train: what to train on the left; on the right the run, its curves, and the visitor's sentences getting better."""

import streamlit as st

from pages.common.controls import say
from pages.common.training.form import fields, text_field
from pages.common.training.memory import follow_url, memory, reset, settle_run, show_run, write_url
from pages.common.training.plans import LABELS
from pages.common.training.start import (
    EXPECTED,
    described,
    forecast,
    sentence_faults,
    sentence_notes,
    sentences_of,
    start,
)
from pages.common.training.view import invite, run_panel
from transformer.runs import list_runs

MORE_ROWS = (
    ("norm", "dropout"),
    ("schedule", "warmup_steps"),
    ("label_smoothing", "batch_tokens"),
    ("evaluate_every", "target_percent"),
    ("precision", "threads"),
)
MORE = frozenset(name for row in MORE_ROWS for name in row)

follow_url()
now, plan = memory(), memory().plan
found = list_runs()
settle_run(found)

st.markdown("#### How does it learn? Train one, and follow your own sentences from babble to right.")
recipe, result = st.columns([2, 3], gap="medium")

with recipe:
    faults = sentence_faults(plan) | plan.faults()
    shown, notes = now.problems | faults, plan.notes() | sentence_notes(plan)
    fields(("corpus",), shown, notes)
    st.caption(described(plan.corpus))
    text_field("\n".join(sentences_of(plan)), shown, notes)
    pressed = st.button("Train", type="primary", width="stretch", disabled=bool(faults), icon=":material/play_arrow:")
    st.caption(f"To be put right first: {', '.join(LABELS[name] for name in faults)}." if faults else forecast(plan))
    fields(("preset", "positions"), shown, notes)
    fields(("n_encoder_layers", "n_decoder_layers"), shown, notes)
    fields(("d_model", "n_heads", "d_ff"), shown, notes)
    fields(("learning_rate", "seed"), shown, notes)
    fields((plan.until, "until"), shown, notes)
    with st.expander("More", expanded=any(name in shown for name in MORE)):
        for names in MORE_ROWS:
            fields(names, shown, notes)
        st.button("Back to the recipe", type="tertiary", on_click=reset)

with result:
    if pressed:
        try:
            with st.spinner("Preparing the corpus and starting the trainer"):
                show_run(start(plan))
        except EXPECTED as error:
            say(f"The run was not started: {error}.")
        else:
            st.rerun()
    if "run" in now.problems:
        say(now.problems["run"])
    if now.run:
        run_panel(now.run)
    else:
        invite(plan.corpus, others=bool(found))

write_url()
