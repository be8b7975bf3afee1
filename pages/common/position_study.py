"""The paired study on the Positions page: start it, watch it, and read its verdict beside the paper's."""

from statistics import median_low

import numpy as np
import streamlit as st

from pages.common.controls import say
from pages.common.pictures import is_dark
from pages.common.position_choices import Choices, box, change, segments
from pages.common.position_proofs import prove_curves
from transformer import runs, study
from transformer.figures.study import Learning, learning_figure
from transformer.study import TARGET, Study, StudyError, StudyPlan, StudyRun
from transformer.study_verdict import Share, Spread, Verdict, verdicts

EVERY_S = 3.0
_QUIET = {"displayModeBar": False}
_SEEDS, _STEPS = (1, 2, 3, 5), (300, 600, 1_000, 1_500, 2_000)
_CORPORA = ("reverse", "copy", "sort")

THE_PAPER = (
    "The paper's own comparison (Table 3, row E): a learned table in place of the sinusoids gave **25.7 BLEU against "
    "25.8** and the same perplexity, 4.92. That was its base model (6 + 6 layers, d_model 512, 65 million parameters) "
    "after 100,000 steps on WMT 2014 English-German, measured once on newstest2013. It says of longer sentences only "
    "that sinusoids *may* allow the model to extrapolate to them. Here is a far smaller model on a far smaller task, "
    "and three things that the paper did not try: no positions, rotary, ALiBi."
)
LATER_KINDS = (
    "Rotary and ALiBi are later than the paper (2021). Here they act in self-attention alone: cross-attention carries "
    "no positions, because source and target have no common ruler. ALiBi was published for decoders that only look "
    "back; in this encoder its penalty is symmetric in |i − j| and does not say which of two tokens comes first. "
    "Mirror all tokens, and their states are the same, mirrored: only the end mark, which always stands last, tells "
    "the directions apart. What is measured for ALiBi here is that variant, not ALiBi as it was published."
)


def draw_study(chosen: Choices) -> None:
    """Which study, its curves, its verdict, what the paper says."""
    name, found = _choose(chosen)
    if not name:
        st.markdown("No study yet. Start one: each kind of positions is trained on the same data with the same seeds.")
    _start_form()
    if found is None:
        return
    active = study.is_active(name)
    st.fragment(_panel, run_every=EVERY_S if active else None)(name, chosen, active)
    st.markdown(THE_PAPER)
    st.markdown(LATER_KINDS)
    st.markdown(_settings_said(found))
    _command(found)


def choose_study(chosen: Choices) -> Study | None:
    """The chosen study, or the first one that can be read; the boxes to choose it and its corpus are drawn."""
    return _choose(chosen)[1]


def corpus_of(found: Study, chosen: Choices) -> str:
    """The chosen corpus of the study, else its first."""
    return chosen.task if chosen.task in found.plan.corpora else found.plan.corpora[0]


def _choose(chosen: Choices) -> tuple[str, Study | None]:
    """The name of the study to show, empty where there is none, and the study where it can be read."""
    names = study.list_studies()
    if not names:
        return "", None
    if chosen.study and chosen.study not in names:
        say(f"There is no study {chosen.study} here; the first one is shown.")
    name = chosen.study if chosen.study in names else _first(names)
    found = _load(name)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        if len(names) > 1:
            box("study", "Study", names, name, _label)
        if found is not None and len(found.plan.corpora) > 1:
            segments("task", "Task", {corpus: corpus for corpus in found.plan.corpora}, corpus_of(found, chosen))
    return name, found


def _first(names: tuple[str, ...]) -> str:
    """One that is at work, else the shipped one, else the newest."""
    at_work = [name for name in names if study.is_active(name)]
    return (*at_work, *(name for name in names if study.is_shipped(name)), *names)[0]


def _label(name: str) -> str:
    return "shipped with the lab" if study.is_shipped(name) else name


def _load(name: str) -> Study | None:
    try:
        return study.load_study(name)
    except StudyError as error:
        say(f"{error}.")
        return None


def _panel(name: str, chosen: Choices, was_active: bool) -> None:
    found = _load(name)
    if found is None:
        return
    if study.is_active(name) != was_active:
        st.rerun()
    corpus = corpus_of(found, chosen)
    if not study.is_shipped(name):
        _progress(found, was_active)
    curves = _curves(found, corpus)
    figure = learning_figure(
        [curve for curve in curves if len(curve.step)],
        list(found.plan.positions),
        budget=found.plan.steps,
        target=TARGET,
        dark=is_dark(),
    )
    st.plotly_chart(figure, key="study-curves", theme=None, config=_QUIET)
    prove_curves(lambda: _points(curves), lambda: _points(_curves(_load(name), corpus)))
    rows = verdicts(found, corpus, chosen.past)
    if not rows:
        st.caption("The verdict stands here as soon as a run has finished and its lengths are tested.")
        return
    _verdict(found, rows, chosen)


def _progress(found: Study, active: bool) -> None:
    done, total = sum(run.state not in ("waiting", "running") for run in found.runs), len(found.runs)
    running = next((run for run in found.runs if run.state == "running"), None)
    said = f"{done} of {total} runs done"
    share = done / total
    if running is not None:
        step = _step(running)
        said += f" · {running.corpus}, {running.positions}, seed {running.seed}: step {step:,} of {found.plan.steps:,}"
        share += min(step / found.plan.steps, 1) / total
    lost = [f"{run.id or run.positions} ({run.state})" for run in found.runs if run.state in _LOST]
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        if done < total:
            st.progress(min(share, 1.0), text=said)
        if active:
            st.button("Stop", key="study-stop", icon=":material/stop:", on_click=_stop, args=(found.name,))
        elif done < total:
            st.button("Go on", key="study-go-on", icon=":material/play_arrow:", on_click=_go_on, args=(found.name,))
    if lost:
        st.caption(f"Without a result, and left out below: {', '.join(lost)}.")


_LOST = ("stopped", "failed", "deleted")


def _step(run: StudyRun) -> int:
    try:
        return runs.status(run.id).step
    except runs.RunError:
        return 0


def _stop(name: str) -> None:
    study.stop_study(name)


def _go_on(name: str) -> None:
    try:
        study.start_study(name)
    except StudyError as error:
        st.session_state["study-refusal"] = f"{error}."


def _curves(found: Study | None, corpus: str) -> list[Learning]:
    return [] if found is None else [_learning(run) for run in found.runs if run.corpus == corpus]


def _points(curves: list[Learning]) -> np.ndarray:
    """(step, exact match) of all curves, one after the other."""
    found = [np.column_stack((curve.step, curve.exact_match)) for curve in curves]
    return np.concatenate(found) if found else np.zeros((0, 2))


def _learning(run: StudyRun) -> Learning:
    points = run.curve
    if not points and run.id:
        try:
            rows = [row for row in runs.metrics(run.id) if row["split"] == "validation"]
        except runs.RunError:
            rows = []
        points = tuple((row["step"], row["loss"], row["exact_match"]) for row in rows)
    return Learning(
        run.positions, run.seed, np.array([p[0] for p in points], int), np.array([p[2] for p in points], float)
    )


def _verdict(found: Study, rows: tuple[Verdict, ...], chosen: Choices) -> None:
    plan = found.plan
    tested = any(row.beyond is not None for row in rows)
    table: dict[str, list[object]] = {
        "positions": [row.positions for row in rows],
        f"steps to {TARGET}": [_steps(row) for row in rows],
        "exact match, held out": [_percent(row.exact_match) for row in rows],
    }
    if any(row.bleu is not None for row in rows):
        table["BLEU"] = ["" if row.bleu is None else _range(row.bleu, ".1f") for row in rows]
    if tested:
        near = min(plan.trained_to + 4, plan.tested_to)
        table[f"lengths {plan.trained_to + 1} to {near}"] = [_share(row.near) for row in rows]
        table[f"lengths {plan.trained_to + 1} to {plan.tested_to}"] = [_share(row.beyond) for row in rows]
    table["parameters"] = [f"{row.parameters:,}" for row in rows]
    table["tokens/s"] = [_range(row.tokens_per_s, ",.0f") for row in rows]
    st.dataframe(table, hide_index=True, width="stretch")
    seeds = len(plan.seeds)
    said = (
        f"{seeds} seed{'s' * (seeds > 1)} a kind, {plan.steps:,} steps each, none stopped early; "
        "exact match is looked at every 50 steps. In brackets: the least and the most of the seeds. "
    )
    if tested:
        said += "Beyond the trained length all seeds are counted together, with Wilson's 95 % interval. "
        if any(row.positions == "learned" for row in rows):
            said += f"The learned table there: {PAST_SAID[chosen.past]}. "
    st.caption(said)


PAST_SAID = {
    "refuse": "refused, so it answers nothing",
    "noise": "its untrained rows used as they are",
    "clamp": "its last trained row used again and again",
    "interpolate": "its trained rows stretched over the whole sentence",
}


def _settings_said(found: Study) -> str:
    """What was measured here, in the words in which the paper's measurement is told."""
    plan, said = found.plan, []
    for corpus in plan.corpora:
        model, train, _ = plan.configs(corpus, plan.positions[0], plan.seeds[0])
        lengths = f" of 1 to {plan.trained_to} symbols" if corpus in study.LENGTH_TASKS else ""
        said.append(
            f"**Here** *{corpus}*{lengths}: {model.n_encoder_layers} + {model.n_decoder_layers} layers, d_model "
            f"{model.d_model}, {model.n_heads} heads, d_ff {model.d_ff}, {plan.steps:,} steps of "
            f"{train.batch_tokens:,} tokens, {train.schedule} schedule with peak {train.learning_rate:g} after "
            f"{train.warmup_steps} steps of "
            f"warm-up, label smoothing {train.label_smoothing:g}, dropout {model.dropout:g}, float32; "
            f"{len(plan.seeds)} seed{'s' * (len(plan.seeds) > 1)}, alike for every kind."
        )
    return "  \n".join(said)


def _command(found: Study) -> None:
    with st.expander("The command that makes it again"):
        st.code(found.command, language="bash")
        st.caption(f"{found.machine}. Speeds were measured as the machine stood, whatever else it had to do.")


def _start_form() -> None:
    if "study-refusal" in st.session_state:
        say(st.session_state.pop("study-refusal"))
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        pressed = st.container(width="content")
        with st.popover("What it trains"):
            corpora = st.pills("Tasks", _CORPORA, default=["reverse"], selection_mode="multi", key="study-corpora")
            n_seeds = st.segmented_control("Seeds", _SEEDS, default=1, required=True, key="study-seeds")
            steps = st.select_slider("Steps", _STEPS, value=1_000, format_func="{:,}".format, key="study-steps")
        n = len(corpora) * len(study.KINDS) * n_seeds
        st.caption(
            f"{', '.join(corpora)}: {n} runs of {steps:,} steps, one after another, on one thread; trained on 1 to 16 "
            "symbols, tested to 40. They are ordinary runs: look inside them, pause or stop them."
            if corpora
            else "Choose at least one task."
        )
    pressed.button(
        "Run the study here",
        type="primary",
        key="study-start",
        icon=":material/play_arrow:",
        disabled=not corpora,
        on_click=_start,
        args=(tuple(corpora), n_seeds, steps),
    )


def _start(corpora: tuple[str, ...], n_seeds: int, steps: int) -> None:
    plan = StudyPlan(corpora=corpora, seeds=tuple(range(n_seeds)), steps=steps)
    command = (
        f"python -m transformer study positions --corpora {' '.join(corpora)} "
        f"--seeds {' '.join(map(str, plan.seeds))} --steps {steps}"
    )
    try:
        name = study.create_study(plan, command=command)
        study.start_study(name)
    except StudyError as error:
        st.session_state["study-refusal"] = f"The study was not started: {error}."
    else:
        change(study=name, task=corpora[0])


def _steps(row: Verdict) -> str:
    reached = [n for n in row.steps_to_target if n is not None]
    if not reached:
        return "never"
    said = f"{median_low(reached):,}"
    if len(reached) < row.n_runs:
        return f"{len(reached)} of {row.n_runs} seeds: {', '.join(f'{n:,}' for n in reached)}"
    return f"{said} ({min(reached):,}–{max(reached):,})" if row.n_runs > 1 else said


def _percent(spread: Spread) -> str:
    return _range(Spread(*(100 * value for value in spread)), ".1f", " %")


def _range(spread: Spread, form: str, unit: str = "") -> str:
    middle, low, high = (f"{value:{form}}" for value in spread)
    return f"{middle}{unit}" if low == high else f"{middle}{unit} ({low}–{high})"


def _share(share: Share | None) -> str:
    if share is None:
        return "–"
    if not share.count:
        return "refused"
    low, high = 100 * share.low, 100 * share.high
    return f"{100 * share.value:.1f} % ({low:.1f}–{high:.1f}), {share.right:,} of {share.count:,}"
