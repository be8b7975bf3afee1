"""The bytes that results hold, as far as their arrays, tensors, strings and containers tell; no Streamlit here."""

import sys
from itertools import chain
from types import BuiltinFunctionType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

import numpy as np

_SHARED = (type, FunctionType, BuiltinFunctionType, MethodType, ModuleType)
"""Code, which a result names and does not hold."""
_PLAIN = (str, bytes, bytearray, int, float, complex, bool, type(None))


def size_of(value: object) -> int:
    """Returns the bytes that an object keeps in memory, parts that it reaches twice counted once."""
    found, waiting, seen = 0, [value], set()
    while waiting:
        each = waiting.pop()
        if id(each) in seen or isinstance(each, _SHARED):
            continue
        seen.add(id(each))
        found += sys.getsizeof(each)
        if not isinstance(each, _PLAIN):
            own, parts = _parts(each)
            found += own
            waiting.extend(parts)
    return found


def _parts(value: Any) -> tuple[int, list[object]]:
    """Returns the bytes of a value's own buffer that `sys.getsizeof` does not see, and what else it holds."""
    if isinstance(value, np.ndarray):
        owns = value.base is None  # its buffer is then part of its size
        return (0 if owns else value.nbytes), list(value.flat) if value.dtype.hasobject else []
    if isinstance(value, (list, tuple, set, frozenset)):
        return 0, list(value)
    if isinstance(value, (dict, MappingProxyType)):  # other mappings hold theirs in an attribute
        # Copied before it is walked, since another thread may be filling it: by copy(), which makes no object for each
        # item as items() does, so that the collector cannot let another thread in half-way.
        return 0, list(chain.from_iterable(value.copy().items()))
    attributes = list(vars(value).values()) if hasattr(value, "__dict__") else []
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ()) if isinstance(name, str)]
    attributes.extend(getattr(value, name) for name in slots if hasattr(value, name))
    buffer = getattr(value, "nbytes", 0)  # a tensor's, without an import of torch
    return (buffer if isinstance(buffer, int) else 0), attributes
