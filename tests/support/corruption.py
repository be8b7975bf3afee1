"""Copies of a view's data with one number wrong, for every number or for a few cells of each array."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

CELLS = 2
"""Cells of each array that are made wrong, one a copy."""


def numbers(data: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every array of numbers and every number inside, with its path, as in `parts.0.mask`."""
    if (isinstance(data, np.ndarray) and data.dtype.kind in "biuf") or isinstance(data, bool | int | float | np.number):
        yield path, data
    else:
        for name, part in _parts(data):
            yield from numbers(part, f"{path}.{name}" if path else name)


def corruptions(
    data: Any, rng: np.random.Generator, cells: int = CELLS, most: int | None = None
) -> Iterator[tuple[str, Any]]:
    """Copies of the data with one number wrong each, and which one; `most` of them at random, all without."""
    places = [
        (path, value, int(flat))
        for path, value in numbers(data)
        for flat in rng.permutation(np.asarray(value).size)[:cells]
    ]
    for chosen in rng.permutation(len(places))[:most]:
        path, value, flat = places[chosen]
        array = np.asarray(value)
        wrong = array.copy()
        index = np.unravel_index(flat, array.shape)
        wrong[index] = _wrong(array[index])
        where = f"{path}{[int(i) for i in index]}" if array.ndim else path
        again = wrong if isinstance(value, np.ndarray) else wrong.tolist()
        again = tuple(again) if isinstance(value, tuple) else again
        yield where, _put(data, path.split(".") if path else [], again)


def _wrong(value: Any) -> Any:
    """Another number of the same kind, further off than rounding explains."""
    if value.dtype.kind == "b":
        return ~value
    if value.dtype.kind in "iu":
        return value - 1 if value > 0 else value + 1  # an id stays one that exists
    return 0.02 * max(1.0, abs(value)) + value if np.isfinite(value) else 0.0


def _is_number(value: Any) -> bool:
    return isinstance(value, bool | int | float | np.number | np.bool_)


def _parts(data: Any) -> Iterator[tuple[str, Any]]:
    if is_dataclass(data):
        yield from ((field.name, getattr(data, field.name)) for field in fields(data))
    elif isinstance(data, Mapping):
        yield from ((str(name), part) for name, part in data.items())
    elif isinstance(data, tuple | list):
        yield from ((str(index), part) for index, part in enumerate(data))


def _put(data: Any, path: list[str], value: Any) -> Any:
    """A copy with the value at the path."""
    if not path:
        return value
    name, *rest = path
    if is_dataclass(data) and not isinstance(data, type):
        return replace(data, **{name: _put(getattr(data, name), rest, value)})
    if isinstance(data, Mapping):
        return {key: _put(part, rest, value) if str(key) == name else part for key, part in data.items()}
    return type(data)(_put(part, rest, value) if str(index) == name else part for index, part in enumerate(data))
