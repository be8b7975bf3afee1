"""How a race ended, in a sentence of the measurements of both runs. No Streamlit here."""

from pages.race.choices import Expected, Race, Racer
from pages.shared.wording import listed
from pages.training.live.results import FAILED, LEARNED, Result
from pages.training.live.settings import TEXTS, Part

_FIRST = f"{100 * LEARNED:.0f} % right"


def verdict(race: Race, names: tuple[str, str], left: Result | None, right: Result | None) -> str:
    """Returns which side was first, how far both came, and why one may have failed."""
    if left is None or right is None:
        stopped = listed([name for name, result in zip(names, (left, right), strict=True) if result is None])
        return f"**{stopped}** was stopped before it was tested once."
    sides = [(names[0], race.left, left), (names[1], race.right, right)]
    outcome = _outcome(left, right)
    return " ".join(filter(None, (_told(race, sides, outcome), _expectation(race.expected, outcome))))


def _outcome(left: Result, right: Result) -> Expected:
    """Returns which side was first to do the task; "neither" where none can, or both could at the same step."""
    ends = [
        result.first_right if result.has_learned and result.first_right else float("inf") for result in (left, right)
    ]
    if ends[0] == ends[1]:
        return "neither"
    return "left" if ends[0] < ends[1] else "right"


def _told(race: Race, sides: list[tuple[str, Racer, Result]], outcome: Expected) -> str:
    (one, _, left), (other, _, right) = sides
    if race.left.in_effect == race.right.in_effect and left.loss == right.loss:
        return (
            f"**Both did the same**, to the last digit: {left.share} right, a loss of {left.loss:.6g} nats per token. "
            "The same settings and the same seed make the same run."
        )
    if outcome == "neither" and left.has_learned:
        return f"**Both learned it, and at the same step**: {_FIRST} for the first time at step {left.first_right:,}."
    if outcome == "neither":
        why = " ".join(filter(None, (_why(racer, rival) for (_, racer, _), (_, rival, _) in (sides, sides[::-1]))))
        return f"**Neither learned it.** {_reached(one, left)}; {_reached(other, right)}. {why}".strip()
    if outcome == "right":
        sides = sides[::-1]
    (first, racer, winner), (second, loser, last) = sides
    said = f"**{first}** was first: {_FIRST} at step {winner.first_right:,}, after {winner.seconds:.1f} s of training."
    if last.has_learned and last.first_right:
        return f"{said} **{second}** needed {last.first_right:,} steps and {last.seconds:.1f} s."
    came = "did not learn it" if last.exact < FAILED else "learned it in part"
    told = f"{said} **{second}** {came}: {last.share} right after {last.steps:,} steps."
    return f"{told} {_why(loser, racer)}".strip()


def _reached(name: str, result: Result) -> str:
    return f"{name} gets {result.share} right after {result.steps:,} steps"


def _why(racer: Racer, rival: Racer) -> str:
    """Returns why a model may have failed that lacks something which the other has."""
    if racer.model != rival.model:
        return TEXTS("why.rnn") if racer.model == "rnn" else ""
    lacks: list[Part] = [part for part in racer.in_effect.without if part not in rival.in_effect.without]
    return TEXTS(f"why.{lacks[0]}") if len(lacks) == 1 else ""


def _expectation(expected: str, outcome: Expected) -> str:
    if not expected:
        return ""
    return "As you expected." if expected == outcome else "You expected something else."
