"""A plan's values as text: in a URL, and in a field that is typed in. No Streamlit here."""

import re
from typing import Any

from pages.training.plan_fields import CHOICES, SWITCHES, WHOLE
from transformer.checkpoints.settings import is_name
from transformer.config import CorpusConfig

_EXPECTED = {
    "device": "auto, cpu, cuda, cuda:N or mps",
    "start_from": "the name of a run",
    "columns": "two columns of a file with a comma between them, such as en,fr",
}
_DEVICE = re.compile(r"auto|cpu|mps|cuda(:\d{1,2})?")


def written(value: object) -> str:
    """Returns a value as text; nothing for an empty field."""
    match value:
        case None:
            return ""
        case bool():
            return "on" if value else "off"
        case float():
            return f"{value:.12g}"
    return str(value)


def parsed(name: str, text: str) -> Any:
    """Reads a field's value from a text; ValueError where it is none."""
    if name in CHOICES or name in SWITCHES:
        if text not in CHOICES.get(name, ("on", "off")):
            raise ValueError(text)
        return text == "on" if name in SWITCHES else text
    if name in ("device", "start_from"):
        if not (_DEVICE.fullmatch(text) if name == "device" else is_name(text)):
            raise ValueError(text)
        return text
    if text == "":
        return None
    if name == "columns":
        return CorpusConfig(columns=text).columns
    number = float(text)
    if not abs(number) < 1e12:
        raise ValueError(text)
    return int(number) if name in WHOLE and number.is_integer() else number


def expected(name: str) -> str:
    """Describes what a field takes."""
    if name in CHOICES:
        return f"one of {', '.join(CHOICES[name])}"
    if name in SWITCHES:
        return "on or off"
    return _EXPECTED.get(name, "a number")


def short(text: str) -> str:
    """Returns the beginning of a text that may be long."""
    return text if len(text) <= 40 else f"{text[:40]}…"
