"""The bytes that results hold, as far as their arrays, tensors, strings and containers tell; no Streamlit here."""

import sys
from functools import lru_cache
from itertools import chain
from types import BuiltinFunctionType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

import numpy as np

_SHARED = (type, FunctionType, BuiltinFunctionType, MethodType, ModuleType)
"""Code, which a result names and does not hold."""
_PLAIN = {str, bytes, bytearray, int, float, complex, bool, type(None)}


def size_of(value: object) -> int:
    """Returns the bytes that an object keeps in memory, parts that it reaches twice counted once."""
    found, waiting, seen = 0, [value], set()
    while waiting:
        each = waiting.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if type(each) in _PLAIN:  # first, and by the type itself: a corpus is a hundred thousand of these
            found += sys.getsizeof(each)
        elif not isinstance(each, _SHARED):
            own, parts = _parts(each)
            found += sys.getsizeof(each) + own
            waiting.extend(parts)
    return found


@lru_cache(maxsize=256)
def _slots(kind: type) -> tuple[str, ...]:
    """Returns the names of the attributes that objects of a type keep outside their `__dict__`."""
    return tuple(name for base in kind.__mro__ for name in getattr(base, "__slots__", ()) if isinstance(name, str))


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
    attributes.extend(getattr(value, name, None) for name in _slots(type(value)))
    buffer = getattr(value, "nbytes", 0)  # a tensor's, without an import of torch
    return (buffer if isinstance(buffer, int) else 0), attributes
