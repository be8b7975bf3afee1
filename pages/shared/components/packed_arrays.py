"""Packing of arrays for a component: pooled to the size of a small picture, and sent as bytes instead of JSON."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Shaped
from numpy import ndarray


def packed_arrays(header: Mapping[str, Any], arrays: Sequence[ndarray]) -> bytes:
    """The header's length in four bytes, the header as JSON with the arrays' `shapes`, and all values as float32."""
    values = [np.ascontiguousarray(array, dtype="<f4") for array in arrays]
    text = json.dumps({**header, "shapes": [list(array.shape) for array in values]}).encode()
    return len(text).to_bytes(4, "little") + text + b"".join(array.tobytes() for array in values)


def unpacked_arrays(data: bytes) -> tuple[dict[str, Any], list[ndarray]]:
    """The header and the arrays again, as the browser reads them."""
    at = 4 + int.from_bytes(data[:4], "little")
    header, arrays = json.loads(data[4:at]), []
    for shape in header["shapes"]:
        count = int(np.prod(shape))
        arrays.append(np.frombuffer(data, "<f4", count, at).reshape(shape))
        at += 4 * count
    return header, arrays


def pooled(values: Shaped[ndarray, "*any row column"], side: int) -> Shaped[ndarray, "*any small_row small_column"]:
    """Returns the values with at most `side` rows and columns, each the largest of the patch that it stands for."""
    for axis in (-2, -1):
        length = values.shape[axis]
        size = min(side, length)
        values = np.maximum.reduceat(values, np.arange(size) * length // size, axis=axis)
    return values
