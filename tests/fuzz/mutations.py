"""Texts, values and zip files that somebody might send: known good ones, with parts replaced, lost and repeated."""

import json
import random
from collections.abc import Sequence
from typing import Any

ODD_TEXTS = (
    *(
        "",
        "\x00",
        "\n",
        "\ud800",
        "é",
        "\u202e",
        "🙂",
        "%",
        "%ff",
        "&",
        "=",
        ":",
        ",",
        ".",
        "-",
        "/",
        "\\",
        '"',
        "'",
        "{",
    ),
    *(
        "../",
        "..\\",
        "nan",
        "inf",
        "-1",
        "0",
        "1e999",
        "9" * 40,
        "٣",
        "null",
        "true",
        "[[[[",
        "{}",
        "<script>",
        "x" * 3_000,
    ),
    *("off:", "mask:", "row:", "positions:", "decoder.0.cross", "encoder.-1", "=HYPERLINK(1)", "\t", "\ufeff", "_" * 9),
)
ODD_VALUES = (
    None,
    True,
    -1,
    0,
    10**30,
    1.5,
    float("nan"),
    float("inf"),
    "",
    "\ud800",
    "../x",
    [],
    {},
    [[]],
    {"": None},
)


def changed_text(chance: random.Random, seeds: Sequence[str]) -> str:
    """Returns one of the texts with one to four changes."""
    text = chance.choice(seeds)
    for _ in range(chance.randint(1, 4)):
        start, end = sorted((chance.randint(0, len(text)), chance.randint(0, len(text))))
        end = min(end, start + chance.choice((0, 1, 1, 4, 40)))
        other = chance.choice(seeds)
        cut = chance.randint(0, len(other))
        put = chance.choice(
            ("", chr(chance.randint(0, 0x2FF)), chance.choice(ODD_TEXTS), other[cut : cut + 20], text[start:end] * 3)
        )
        text = text[:start] + put + text[end:]
    return text


def changed_bytes(chance: random.Random, content: bytes) -> bytes:
    """Returns bytes of which some were replaced, lost or repeated."""
    found = bytearray(content)
    for _ in range(chance.choice((1, 1, 2, 8))):
        place, length = chance.randint(0, len(found)), chance.choice((0, 1, 4, 64))
        match chance.randrange(4):
            case 0:
                found[place : place + length] = chance.randbytes(length)
            case 1:
                del found[place : place + length]
            case 2:
                found[place:place] = found[place : place + length]
            case _:
                found[place : place + length] = b"\xff" * length
    return bytes(found[: chance.randint(0, len(found))] if chance.random() < 0.05 else found)


def changed_value(chance: random.Random, value: Any) -> Any:
    """Returns a value as JSON has it, with one part of it replaced, left out or added."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        name = chance.choice(list(value))
        if chance.random() < 0.1:
            return {key: part for key, part in value.items() if key != name}
        return {**value, name: changed_value(chance, value[name])}
    if isinstance(value, list) and value and chance.random() < 0.9:
        place = chance.randrange(len(value))
        return [*value[:place], changed_value(chance, value[place]), *value[place + chance.randint(0, 1) :]]
    if isinstance(value, str) and value and chance.random() < 0.5:
        return changed_text(chance, [value])
    return chance.choice(ODD_VALUES)


def changed_member(chance: random.Random, content: bytes) -> bytes:
    """Returns a file of an archive with a change: of a JSON value where it is JSON, else of some bytes."""
    if content[:1] in (b"{", b"[") and chance.random() < 0.8:
        try:
            return json.dumps(changed_value(chance, json.loads(content)), ensure_ascii=chance.random() < 0.9).encode(
                "utf-8", "surrogatepass"
            )
        except ValueError:
            pass
    return changed_bytes(chance, content)
