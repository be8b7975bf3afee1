"""Train: what to train on the left; on the right the run, its curves, and the visitor's sentences getting better."""

import streamlit as st

from pages.shared import wording
from pages.shared.context import say
from pages.shared.fields import segments
from pages.train import plan_errors
from pages.train.corpus_panel import choose_corpus, corpus_panel
from pages.train.costs import at_work, costs_of
from pages.train.costs_panel import costs_panel, forecast_line, schedule_curve
from pages.train.form import WITHOUT, fields, part_switches, rows_of, sentences, text_field
from pages.train.start import (
    EXPECTED,
    UNFOLDED,
    ceiling_of,
    changes_of,
    described,
    faults_of,
    notes_of,
    sentences_of,
    start,
)
from pages.training import corpora, run_status
from pages.training.corpora import recipe_of
from pages.training.plan_fields import FIELDS_OF, LABELS, OF_MODELS, PARTS, SETTINGS, Section
from pages.training.run_view import invite, run_panel
from pages.training.train_state import (
    CHOSEN,
    change,
    follow_url,
    key_of,
    memory,
    put,
    reset,
    settle_run,
    show_run,
)

_LAYERS = ("n_encoder_layers", "n_decoder_layers")
MODEL_ROWS = {
    "transformer": (("positions",), _LAYERS, ("d_model", "n_heads", "d_ff")),
    "rnn": (("cell", "attention"), _LAYERS, ("bidirectional", "input_feeding")),
    "conv": (("kernel",), _LAYERS, ("dilated", "separable")),
}
MORE_ROWS = (
    ("norm", "score"),
    ("dropout", "label_smoothing"),
    ("batch_tokens", "evaluate_every"),
    ("max_length", "window"),
    ("target_percent", "patience"),
    ("device", "precision", "threads"),
)
TOKENS, SCHEDULE = ("tokenizer", "vocab_size"), ("optimizer", "schedule", "warmup_steps")
MORE = frozenset(name for row in (*MORE_ROWS, TOKENS, SCHEDULE, ("longest",)) for name in row)
PLACED = frozenset(
    {*MORE, *PARTS, *UNFOLDED, "family", "learning_rate", "seed", "steps", "sentences"}
    | {name for rows in MODEL_ROWS.values() for row in rows for name in row}
)
SECTIONS: dict[Section, str] = {"model": "Model", "train": "Training", "corpus": "Corpus"}
RARE = SETTINGS.keys() - PLACED
"""Settings with no place of their own above: they come last, section by section."""
FOLDED = frozenset(LABELS) - UNFOLDED
LOOK_NAMES = {"run": "Run", "corpus": "Corpus", "costs": "Estimate"}

plan = follow_url().plan
found = run_status.runs_here()
settle_run(found)
chosen, problems = CHOSEN.now, CHOSEN.problems

st.markdown("# How does it learn? Train one, and follow your own sentences from gibberish to correct.")
recipe, result = st.columns([2, 3], gap="medium")

with recipe:
    wrong, costs = faults_of(plan) | plan_errors.misread(memory().drafts), None
    shown, notes = problems | wrong, notes_of(plan)
    choose_corpus()
    sentences(("corpus", "columns"), shown, notes)
    st.caption(described(plan))
    if why := recipe_of(plan.corpus, *plan.text).why:
        with st.popover("Why these settings", type="tertiary"):
            st.markdown("\n".join(f"- {wording.plain(reason)}" for reason in why))
    fields(("preset" if plan.is_transformer else "d_model", "seconds"), shown, notes)
    pressed = st.button("Train", type="primary", width="stretch", disabled=bool(wrong), icon=":material/play_arrow:")
    if wrong:
        st.caption(f"Fix first: {', '.join(LABELS[name] for name in LABELS if name in wrong)}.")
    else:
        costs = costs_of(plan, sentences_of(plan), at_work())
        forecast_line(plan, costs)
    if plan.start_from:
        st.caption(f"Starts from the weights of {wording.plain(plan.start_from)}.")
        st.button("Random initial weights", type="tertiary", on_click=put, args=("start_from", ""))
        sentences(("start_from",), shown, notes)
    if any(name in shown for name in FOLDED):
        st.session_state[key_of("settings")] = True
    settings = st.expander("Settings", key=key_of("settings"), on_change="rerun")
    if not settings.open and (changed := changes_of(plan)):
        st.caption(wording.plain(f"Not as in the recipe: {changed}."))
    with settings:
        text_field("\n".join(sentences_of(plan)), shown, notes)
        fields(("family",), shown, notes)
        for names in MODEL_ROWS[plan.family]:
            fields(names, shown, notes)
        fields(("learning_rate", "seed"), shown, notes)
        fields(("steps",), shown, notes)
        if any(name in shown for name in MORE):
            st.session_state[key_of("more")] = True
        more = st.expander("More", key=key_of("more"), on_change="rerun")
        if more.open:
            with more:
                fields(TOKENS, shown, notes)
                if (ceiling := ceiling_of(plan)) is not None:
                    st.button(f"Take {ceiling:,} tokens", on_click=change, args=("vocab_size", ceiling))
                if plan_errors.has_longest(plan.corpus):
                    fields(("longest",), shown, notes)
                fields(SCHEDULE, shown, notes)
                if costs is not None:
                    schedule_curve(plan, costs)
                for row in MORE_ROWS:
                    if names := [name for name in row if name in FIELDS_OF[plan.family] or name not in OF_MODELS]:
                        fields(names, shown, notes)
        if any(name in shown for name in RARE):
            st.session_state[key_of("rare")] = True
        rare = st.expander("All the rest", key=key_of("rare"), on_change="rerun")
        if rare.open:
            with rare:
                for section, title in SECTIONS.items():
                    if names := [name for name in plan.fields_of(section) if name in RARE]:
                        st.markdown(f"**{title}**")
                        for row in rows_of(names):
                            fields(row, shown, notes)
        st.button("Back to the recipe", type="tertiary", on_click=reset)
        without = st.expander("Ablate a component", key=key_of("without"), on_change="rerun")
        if without.open:
            with without:
                part_switches(plan.left_out, plan.parts)
        elif plan.left_out:
            st.caption(f"Left out: {', '.join(WITHOUT[part][0].lower() for part in plan.left_out)}.")

with result:
    if pressed:
        try:
            with st.spinner("Preparing the corpus and starting the trainer"):
                show_run(start(plan))
        except EXPECTED as error:
            say(f"The run was not started: {error}.")
        else:
            st.rerun()
    segments("Show", LOOK_NAMES, chosen.look, CHOSEN.take("look"), key=key_of("look"))
    say(*CHOSEN.said("run", "look"))
    if chosen.look == "corpus":
        corpus_panel(plan)
    elif chosen.look == "costs" and costs is not None:
        costs_panel(plan, costs)
    elif chosen.look == "costs":
        st.markdown("The cost of this plan appears here once its fields are valid.")
    elif chosen.run:
        run_panel(chosen.run)
    else:
        invite(corpora.title(plan.corpus), others=bool(found))

CHOSEN.write_url()
