"""The curves of both runs in one picture, which follows them while they learn."""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from pages.shared.components.frontend import Live
from pages.shared.components.run_progress import described_curve, draw_curve
from pages.shared.exhibit import exhibit
from pages.shared.live.watches import LivePart, Look, address_of
from pages.training.live.parts import OF_SIDE
from transformer.figures.training.curves import X_TITLES
from transformer.runs.run_folder import Run
from transformer.views.subjects import Runs
from transformer.views.training.runs import ComparedRuns, CurvesData

_LOSS, _RIGHT = ComparedRuns(quantity="validation loss"), ComparedRuns(quantity="exact match")
_HEIGHT = 104


@dataclass(frozen=True)
class Curves:
    """One quantity of both runs."""

    view: ComparedRuns
    folders: tuple[Path, Path]
    names: tuple[str, str]
    n_steps: int
    """The steps that the axis has room for."""

    def __call__(self, look: Look) -> tuple[int, dict[str, Any]]:
        """Returns the last steps of both together, which grow with either, and the curves."""
        data = self.view.data(self.folders)
        return self.step(data), self.described(data)

    def described(self, data: CurvesData) -> dict[str, Any]:
        """Returns the curves as their component draws them, named like the sides."""
        named = tuple(replace(curve, name=name) for curve, name in zip(data.curves, self.names, strict=True))
        panel = replace(self.view.drawn(CurvesData(named)), height=_HEIGHT)
        return described_curve([panel], x_title=X_TITLES["step"], x_least=float(self.n_steps))

    @staticmethod
    def step(data: CurvesData) -> int:
        """Returns the last steps of both curves together."""
        return sum(int(curve.x[-1]) for curve in data.curves if len(curve.x))


def curves_of(left: Run, right: Run, names: tuple[str, str]) -> tuple[Curves, ...]:
    """Returns the curves of a race."""
    n_steps = max(run.settings.train.max_steps for run in (left, right))
    return tuple(Curves(view, (left.folder, right.folder), names, n_steps) for view in (_LOSS, _RIGHT))


def parts_of(curves: tuple[Curves, ...]) -> tuple[LivePart, ...]:
    """Returns the parts of the page that follow the left run: its own, and the curves of both."""
    return (*OF_SIDE, *(LivePart(one.view.name, ("metrics",), one, one.folders[1:]) for one in curves))


def render_curves(left: Run, text: str, curves: tuple[Curves, ...], *, live: bool) -> None:
    """Renders the loss and the share of right answers; live ones follow both runs."""
    address = address_of(left, text, parts_of(curves)) if live else ""
    for one in curves:
        exhibit(Runs(one.folders), one.view, draw=partial(_draw, one, address), key=f"race-{one.view.name}", live=live)


def _draw(curves: Curves, address: str, data: CurvesData) -> None:
    live = Live(address, curves.view.name, curves.step(data)) if address else None
    draw_curve(curves.described(data), live=live, key=f"race-curve-{curves.view.name}")
