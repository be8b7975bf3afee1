"""A Transformer to train and to look inside: "Attention Is All You Need" (Vaswani et al., 2017), complete.

Shapes are written with these axes: batch source target query key head d_head d_model vocab.
Masks are boolean and True means "may attend", everywhere.

    from transformer import load
    load("reverse").inspect("a b c").figure("cross").show()
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformer.lab import load as load

__all__ = ["load"]


def __getattr__(name: str) -> Any:
    """Imports the lab when it is first asked for, so that `transformer.config` or the figures do not load torch."""
    if name == "load":
        from transformer.lab import load

        return load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
