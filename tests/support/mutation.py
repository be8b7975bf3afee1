"""One fault put into a running program: the code of every function that a replaced text changes, and back again."""

import importlib
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

ROOT = Path(__file__).parents[2]


@contextmanager
def mutated(file: str, old: str, new: str) -> Iterator[None]:
    """Runs its block with `old`, which must stand in the file exactly once, replaced by `new`.

    Code objects are exchanged in place, so that whoever imported a function by name has the fault too.
    """
    source = (ROOT / file).read_text(encoding="utf-8")
    if source.count(old) != 1:
        raise ValueError(f"{file} has this text {source.count(old)} times instead of once: {old!r}")
    module = importlib.import_module(file.removesuffix(".py").replace("/", "."))
    before = _functions_in(compile(source, file, "exec"))
    after = _functions_in(compile(source.replace(old, new), file, "exec"))
    changed = {name: code for name, code in after.items() if _gist(code) != _gist(before[name])}
    if not changed:
        raise ValueError(f"{file}: no function is another with {new!r}")
    found = {name: _function(module, name) for name in changed}
    originals = {name: function.__code__ for name, function in found.items()}
    try:
        for name, code in changed.items():
            found[name].__code__ = code
        yield
    finally:
        for name, code in originals.items():
            found[name].__code__ = code


def _functions_in(code: CodeType) -> dict[str, CodeType]:
    """Returns the code of functions and of methods of classes, by qualified name; those inside functions belong to
    these."""
    found = {}
    for inner in code.co_consts:
        if isinstance(inner, CodeType) and not inner.co_name.startswith("<"):
            found |= _functions_in(inner) if not inner.co_flags & inspect.CO_OPTIMIZED else {inner.co_qualname: inner}
    return found


def _gist(code: CodeType) -> tuple[Any, ...]:
    """Returns what a function does, wherever it stands in its file."""
    consts = tuple(_gist(const) if isinstance(const, CodeType) else repr(const) for const in code.co_consts)
    return code.co_code, consts, code.co_names, code.co_varnames, code.co_freevars


def _function(module: ModuleType, name: str) -> FunctionType:
    """Returns the function itself, without what decorators put around it."""
    found: Any = module
    for part in name.split("."):
        found = found.__dict__[part]
    if isinstance(found, property):
        found = found.fget
    elif isinstance(found, cached_property):
        found = found.func
    elif isinstance(found, classmethod | staticmethod):
        found = found.__func__
    return inspect.unwrap(found)
