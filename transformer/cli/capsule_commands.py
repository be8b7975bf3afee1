"""The command for capsules: save an analysis, show what a file holds, verify its numbers."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import tyro

from transformer.capsules.capsule import other_versions, read_capsule, save_capsule
from transformer.capsules.comparison import Compared
from transformer.capsules.contents import Manifest, SavedFigure
from transformer.capsules.notebook import load_capsule
from transformer.interventions import merged, parse_intervention
from transformer.lab import load


class CapsuleDiffers(Exception):
    """The numbers of a capsule are not those of a fresh pass; the message says how many."""


def capsule(
    action: tyro.conf.Positional[Literal["show", "verify", "save"]],
    file: tyro.conf.Positional[Path],
    text: tyro.conf.Positional[str] = "",
    *,
    model: str = "",
    switch: Annotated[tuple[str, ...], tyro.conf.arg(metavar="SWITCH ...")] = (),
    notes: str = "",
) -> None:
    """Show what an .attnlab file holds, or verify its numbers by a fresh pass; save one decoding as such a file.

    Verify ends with status 1 where a number is off.

    Args:
        file: The capsule.
        text: For save, the sentence.
        model: For save, a shipped checkpoint's name, a run's id, or a folder.
        switch: For save, changes of the pass, such as off:decoder.0.cross:1,3.
        notes: For save, a note that goes along.
    """
    match action:
        case "show":
            with file.open("rb") as source:
                found = read_capsule(source)
            _print_manifest(found.manifest, found.figures)
            for member in found.changed:
                print(f"warning: {member} was changed after it was saved", file=sys.stderr)
        case "verify":
            loaded = load_capsule(file)
            for said in other_versions(loaded.manifest):
                print(f"note: {said}", file=sys.stderr)
            _print_rows(loaded.verify(), loaded.figures)
        case "save":
            if not (text and model):
                raise ValueError('say: capsule save FILE.attnlab "TEXT" --model NAME')
            lab = load(model)
            save_capsule(file, lab, lab.inspect(text, merged(map(parse_intervention, switch))), notes=notes)
            print(f"{text!r} by {lab.name} is in {file}")


def _print_manifest(found: Manifest, figures: tuple[SavedFigure, ...]) -> None:
    rows = [("page", found.title or found.page), ("saved", found.created)]
    for model in found.models:
        kept = "shipped, by its checksum" if model.shipped else "carried along"
        rows.append(("model", f"{model.name}, step {model.step:,} ({kept}; weights {model.weights[:12]}…)"))
    for decoding in found.decodings:
        rows += [("sentence", decoding.text), ("output", f"{decoding.translation} ({decoding.model})")]
        rows += [("switch", switch) for switch in decoding.switches]
        rows += [("forced", f"token {token} at step {step}") for step, token in decoding.forced]
    rows += [("figure", f"{figure.title}: {len(figure.tables)} tables") for figure in figures]
    if found.lesson:
        rows.append(("lesson", ", ".join(f"{name} {value}" for name, value in found.lesson.items())))
    rows.append(("versions", ", ".join(f"{name} {version}" for name, version in found.versions.items())))
    rows += [("note", line) for line in found.notes.splitlines()]
    for name, value in rows:
        print(f"{name:9} {_one_line(value)}")


def _print_rows(rows: tuple[Compared, ...], figures: tuple[SavedFigure, ...]) -> None:
    for row in rows:
        mark = "ok      " if row.holds else "DIFFERS "
        print(
            f"{mark} {_one_line(row.what)}: {row.count:,} compared, largest deviation {row.deviation:.3g} "
            f"(allowed {row.tolerance:g})"
        )
        if not row.holds:
            sides = f": saved {row.saved}, fresh {row.fresh}" if row.saved or row.fresh else ""
            print(f"         {_one_line(row.where + sides)}")
    if figures:
        print(f"note: the tables of {len(figures)} figures are compared when their page opens", file=sys.stderr)
    failing = sum(not row.holds for row in rows)
    if failing:
        raise CapsuleDiffers(f"{failing} of {len(rows)} comparisons differ")
    print(f"all {len(rows)} comparisons agree")


def _one_line(text: str) -> str:
    """Returns text from a foreign file as a terminal may show it: without control characters."""
    return "".join(character if character.isprintable() else " " for character in text)
