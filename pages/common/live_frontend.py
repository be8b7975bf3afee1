"""The scripts and styles that lie beside the live components."""

from pathlib import Path

_FOLDER = Path(__file__).parent


def text_of(*names: str) -> str:
    """The named files of this folder, one after the other."""
    return "\n".join((_FOLDER / name).read_text(encoding="utf-8") for name in names)
