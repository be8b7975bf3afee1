"""The parts of a page that follow a run while it learns: its state, its output, one head, its curves."""

from dataclasses import replace
from typing import Any

from pages.shared.components.frontend import Live
from pages.shared.components.run_progress import described_curve, described_readings
from pages.shared.components.tokens import described_chips
from pages.shared.live.watches import LivePart, Look, address_of
from pages.shared.texts.catalogue import Texts
from pages.training import durations, run_status
from pages.training.live.clearest import described_head
from transformer.figures.training.curves import X_TITLES
from transformer.runs.live.watched import LiveOutput
from transformer.runs.run_folder import Run
from transformer.views.training.runs import CurvesData, RunCurves

TEXTS = Texts("live.output")
CURVES = RunCurves()
_MOST, _FIRST = 12, 5
"""The length of an output that is shown whole, and the tokens that are shown of a longer one: an untrained model writes
on and on."""


def live_part(
    run: Run | None, text: str, part: str, step: int = -1, *, parts: tuple[LivePart, ...] | None = None
) -> Live | None:
    """Returns where a component follows the run with a text, from this step on; None for a run that is not at work.

    `parts` are all those of the page that follow it, PARTS unless named: they share one connection.
    """
    if run is None or not run.status.active:
        return None
    return Live(address_of(run, text, parts or PARTS), part, step)


def described_state(run: Run, word: str) -> dict[str, Any]:
    """Returns where a run stands, in a word and a line, as its component draws it."""
    rest, share = run_status.state_rest(run), run_status.share_done(run)
    return described_readings(state=word, tone=run.status.state, rest=rest, share=share, readings=())


def described_briefly(run: Run, word: str) -> dict[str, Any]:
    """Returns where a run stands, in one short line."""
    took = durations.duration(run.status.elapsed_s)
    rest = run_status.state_rest(run) if run.place else run_status.brief(run.status.step, took)
    share = run_status.share_done(run)
    return described_readings(state=word, tone=run.status.state, rest=rest, share=share, readings=())


def described_output(output: LiveOutput) -> dict[str, Any]:
    """Returns an output as a line of chips; of a long one its beginning."""
    label, n = TEXTS("label", step=output.step), len(output.tokens)
    if n > _MOST:
        part = TEXTS("beginning" if output.ended else "so_far", first=_FIRST, total=n)
        label, n = f"{label} ({part})", _FIRST
    return described_chips(
        output.tokens[:n], label=label, probabilities=output.probabilities[:n].tolist(), scrolls=True
    )


def described_curves(run: Run, data: CurvesData) -> dict[str, Any]:
    """Returns a run's curves over all of its steps."""
    least = float(run.settings.train.max_steps)
    return described_curve(CURVES.drawn(data), x_title=X_TITLES["step"], x_least=least)


def _state(look: Look) -> tuple[int, dict[str, Any]]:
    run, word = _at_newest_step(look)
    return run.status.step, described_state(run, word)


def _brief_state(look: Look) -> tuple[int, dict[str, Any]]:
    run, word = _at_newest_step(look)
    return run.status.step, described_briefly(run, word)


def _at_newest_step(look: Look) -> tuple[Run, str]:
    """Returns the run at its newest step, and its state in a word."""
    status = look.run.status
    step = max(status.step, 0 if look.output is None else look.output.step)  # which is written more often
    return replace(look.run, status=replace(status, step=step)), run_status.phase(
        status.phase or status.state
    ).capitalize()


def _output(look: Look) -> tuple[int, dict[str, Any]] | None:
    return None if look.output is None else (look.output.step, described_output(look.output))


def _head(look: Look) -> tuple[int, dict[str, Any]] | None:
    if look.output is None or not look.output.weights.size:
        return None
    look.memory["clearest"], drawn = described_head(look.output, look.memory.get("clearest"))
    return look.output.step, drawn


def _curves(look: Look) -> tuple[int, dict[str, Any]] | None:
    if not (look.run.folder / "metrics.jsonl").is_file():
        return None
    data = CURVES.data((look.run.folder,))
    last = max((int(curve.x[-1]) for curve in data.curves if len(curve.x)), default=0)
    return last, described_curves(look.run, data)


_OUTPUT = (LivePart("output", ("output",), _output), LivePart("head", ("output",), _head))
PARTS = (LivePart("state", ("status", "output"), _state), *_OUTPUT, LivePart("curves", ("metrics",), _curves))
"""The parts of a page that shows one run."""
OF_SIDE = (LivePart("state", ("status", "output"), _brief_state), *_OUTPUT)
"""The parts of one run beside another; their curves are drawn together."""
