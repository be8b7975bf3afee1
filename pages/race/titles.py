"""Names of the two sides of a race, by what tells each from the other."""

from pages.race.choices import OPTIMIZERS, WHOLE, Race, Racer
from pages.training.live.settings import PARTS, TEXTS

_POSITIONS = {"sinusoidal": "sinusoids", "learned": "learned positions", "rotary": "rotary positions", "alibi": "ALiBi"}


def titles(race: Race) -> tuple[str, str]:
    """Returns a name for each side; where nothing tells them apart, that of its place."""
    left, right = race.left.in_effect, race.right.in_effect
    return ("Left", "Right") if left == right else (_title(left, right), _title(right, left))


def summary(racer: Racer) -> str:
    """Returns what a side is made of, in a line."""
    if racer.model == "rnn":
        return f"{TEXTS('models.rnn')} without attention, {OPTIMIZERS['adamw']}"
    positions = [] if "positions" in racer.without else [_POSITIONS[racer.positions]]
    without = [f"without {TEXTS(f'short.{part}')}" for part in PARTS if part in racer.without]
    sizes = (_several(racer.layers, "layer"), _several(racer.heads, "head"))
    return ", ".join((TEXTS("models.transformer"), *sizes, *positions, OPTIMIZERS[racer.optimizer], *without))


def _title(racer: Racer, rival: Racer) -> str:
    if racer.model == "rnn":
        return "RNN"
    kind, other = ([], rival) if rival.model == "transformer" else (["Transformer"], WHOLE)
    said = ", ".join((*kind, *_differences(racer, other)))
    return f"{said[:1].upper()}{said[1:]}"


def _differences(racer: Racer, other: Racer) -> list[str]:
    said = []
    if racer.optimizer != other.optimizer:
        said.append(OPTIMIZERS[racer.optimizer])
    if racer.layers != other.layers:
        said.append(_several(racer.layers, "layer"))
    if racer.heads != other.heads:
        said.append(_several(racer.heads, "head"))
    if racer.positions != other.positions and "positions" not in {*racer.without, *other.without}:
        said.append(_POSITIONS[racer.positions])
    for part in PARTS:
        if (part in racer.without) != (part in other.without):
            said.append(f"{'without' if part in racer.without else 'with'} {TEXTS(f'short.{part}')}")
    return said


def _several(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"
