"""Damaged copies of files, as a full disk, a killed process, another program or a curious visitor leaves them."""

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import torch
from safetensors.torch import load, save

WRONG = (
    None,
    "",
    "x",
    [],
    {},
    [1],
    {"a": {}},
    [[[]]],
    10**400,
    -(10**400),
    10**20,
    -1,
    0,
    1.5,
    float("nan"),
    1e300,
    "\ud800",
    True,
)
"""Values that stand where another kind of value belongs."""
DEEP = "[" * 100_000
Damage = tuple[str, bytes | None]
"""What was done to a file, and its new content; None where it is missing."""


def damages(name: str, content: bytes, chance: random.Random, n_values: int) -> Iterator[Damage]:
    """Yields damaged copies of a file; of one that holds values also as many with one of them wrong."""
    yield "missing", None
    yield "empty", b""
    yield "cut", content[: len(content) // 2]
    yield "random bytes", chance.randbytes(min(len(content), 4_096) or 10)
    if name.endswith((".json", ".jsonl")):
        for value in (None, [], 10**400, "x", {}):
            yield f"only {str(value)[:9]}", json.dumps(value).encode() + b"\n"
        yield "deep", DEEP.encode() + b"\n"
        yield from _wrong_values(name, content, chance, n_values)
    if name.endswith(".safetensors"):
        yield from _wrong_tensors(content, chance)


def _wrong_values(name: str, content: bytes, chance: random.Random, n_values: int) -> Iterator[Damage]:
    lines = content.decode().splitlines() if name.endswith("l") else [content.decode()]
    held = [json.loads(line) for line in lines]
    everywhere = [place for place in places(held) if len(place) > 1]
    outer = [place for place in everywhere if len(place) == 2]
    for number in range(n_values):
        place = chance.choice(outer if number % 2 else everywhere)
        wrong = WRONG[(number + chance.randrange(3)) % len(WRONG)]
        changed = [with_value(value, place[1:], wrong) if i == place[0] else value for i, value in enumerate(held)]
        where = ".".join(map(str, place[1:]))
        yield f"{where} = {str(wrong)[:9]}", "".join(json.dumps(value) + "\n" for value in changed).encode()


def _wrong_tensors(content: bytes, chance: random.Random) -> Iterator[Damage]:
    length = int.from_bytes(content[:8], "little")
    notes = json.loads(content[8 : 8 + length]).get("__metadata__") or {}
    tensors = load(content)
    name = chance.choice(sorted(tensors))
    changes: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "another shape": lambda values: values.flatten()[:1],
        "no rows": lambda values: values[:0].clone() if values.dim() else values.reshape(1),
        "whole numbers": lambda values: values.to(torch.int8),
        "not finite": lambda values: torch.full_like(values.float(), float("nan")),
    }
    yield f"{name} lost", save({other: values for other, values in tensors.items() if other != name}, notes)
    for kind, change in changes.items():
        yield f"{name}: {kind}", save({**tensors, name: change(tensors[name]).contiguous()}, notes)
        yield f"all: {kind}", save({each: change(values).contiguous() for each, values in tensors.items()}, notes)
    yield "no notes", save(tensors)
    yield "odd notes", save(tensors, dict.fromkeys(notes, "x"))


def places(content: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yields the place of every value in JSON content, outermost first."""
    yield at
    if isinstance(content, dict | list):
        for key in content if isinstance(content, dict) else range(len(content)):
            yield from places(content[key], (*at, key))


def with_value(content: Any, place: tuple[Any, ...], value: Any) -> Any:
    """Returns a copy of JSON content with another value at a place."""
    if not place:
        return value
    key, *rest = place
    inner = with_value(content[key], tuple(rest), value)
    if isinstance(content, dict):
        return {**content, key: inner}
    return [*content[:key], inner, *content[key + 1 :]]
