"""A Transformer to train and to look inside: "Attention Is All You Need" (Vaswani et al., 2017), complete.

Shapes are written with these axes: batch source target query key head d_head d_model vocab.
Masks are boolean and True means "may attend", everywhere.

    from transformer import load
    load("reverse").inspect("a b c").figure("cross").show()
"""

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformer.lab import load as load

__version__ = "0.1.0"
__all__ = ["check_memory", "load"]

MIN_ADDRESS_SPACE = 700_000_000
"""The bytes of memory below which loading PyTorch fails, measured on its CPU build."""


def check_memory() -> None:
    """Ends the process with a sentence where its memory limit (`ulimit -v`) has no room for PyTorch.

    Without it the import fails in a traceback, or a library aborts the process, which nothing can catch.
    """
    if sys.platform == "win32":  # has no such limit
        return
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < MIN_ADDRESS_SPACE:
        sys.exit(
            f"error: this process may use at most {limit / 1e6:,.0f} MB of memory, and PyTorch needs at least "
            f"{MIN_ADDRESS_SPACE / 1e6:,.0f} MB to load: raise the limit (ulimit -v)"
        )


def __getattr__(name: str) -> Any:
    """Imports the lab when it is first asked for, so that `transformer.config` or the figures do not load torch."""
    if name == "load":
        from transformer.lab import load

        return load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
