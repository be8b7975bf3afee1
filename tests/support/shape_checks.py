"""The type checker that tests/conftest.py puts behind every annotation of the library, shapes included."""

from typing import Any

from beartype import BeartypeConf, beartype

# An int is a fine float (`dropout=0`), as type checkers hold.
_checked = beartype(conf=BeartypeConf(is_pep484_tower=True))


def checked(annotated: Any) -> Any:
    """The function or class, checked at each call; configs are spared, so that tests see their own refusals."""
    return annotated if annotated.__module__ in ("transformer.config", "transformer.setting") else _checked(annotated)
