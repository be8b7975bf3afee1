"""How arrays travel to a component as bytes: lists of numbers in JSON would be ten times as long."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
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
