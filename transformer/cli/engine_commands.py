"""`python -m transformer export` and `import`: models to other libraries' folders, and Marian's to ours."""

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import tyro

from transformer.checkpoints.engines import ctranslate2, marian, marian_import
from transformer.checkpoints.settings import CheckpointError, find_checkpoint, is_name
from transformer.checkpoints.store import load_checkpoint
from transformer.files import runs_folder

Engine = Literal["ctranslate2", "marian"]


def export_model(
    folder: tyro.conf.Positional[Path],
    *,
    model: Annotated[str, tyro.conf.arg(help="A shipped checkpoint's name, a run's id, or a folder.")],
    to: Engine,
) -> None:
    """Write a model into a new FOLDER that another library loads.

    Args:
        to: ctranslate2 (ctranslate2.Translator) or marian (transformers.MarianMTModel).
    """
    checkpoint = load_checkpoint(find_checkpoint(model))
    if to == "ctranslate2":
        ctranslate2.export(checkpoint, folder)
        print(f"{folder}: for ctranslate2.Translator; its tokens are pieces, with </s> at the end of the source")
        return
    marian.export(checkpoint, folder)
    print(f"{folder}: for transformers.MarianMTModel")
    if not marian.has_pieces(checkpoint):
        print(
            "It has no source.spm: this model's tokens are whole words, which sentencepiece cannot cut. Use vocab.json."
        )


def import_command(arguments: list[str]) -> Callable[..., None]:
    """The import command; its card names these arguments."""
    command = "python -m transformer " + shlex.join(arguments)

    def import_model(
        folder: tyro.conf.Positional[Path],
        *,
        source: Annotated[Literal["marian"], tyro.conf.arg(name="from")],
        name: str | None = None,
    ) -> None:
        """Read another library's FOLDER into a model that every command and page takes.

        Args:
            source: marian: a folder of transformers with config.json, model.safetensors, vocab.json and two .spm files.
            name: What it is called here; without it, the folder's name.
        """
        chosen = name or folder.resolve().name
        if not is_name(chosen):
            raise CheckpointError(
                f"{chosen!r} cannot be a model's name: say --name with letters, digits, dots and dashes"
            )
        into = runs_folder() / chosen
        if into.exists():
            raise CheckpointError(f"there is a model {chosen!r} already: say another --name")
        marian_import.read(folder, chosen, into, command)
        print(f"{chosen} is there now: python -m transformer translate --model {chosen} TEXT")

    return import_model


def commands(arguments: list[str]) -> dict[str, Callable[..., None]]:
    """The commands of this module by their names."""
    return {"export": export_model, "import": import_command(arguments or sys.argv[1:])}
