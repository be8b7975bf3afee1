"""A capsule: one zip file with an analysis. Written here, read without trust, and verified by a fresh pass.

capsule.json             the page and its state, models, sentences, switches, notes, lesson, versions
results-0.safetensors    ids, log-probabilities and attention of the first decoding, and so on
figures.json             the numbers of the page's figures
models/NAME/             a model that is not shipped with Attention Lab, as an archive of a run holds it
checksums.txt            the SHA-256 of each of them
"""

import platform
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import metadata
from io import BufferedReader, BytesIO
from pathlib import Path, PurePath
from typing import IO

import torch
from numpy import ndarray

import transformer
from transformer.access import audit
from transformer.access.ownership import refusal
from transformer.capsules.arrays import arrays_of, pack_arrays, read_arrays
from transformer.capsules.comparison import Compared, compare_decoding, compare_model, differing
from transformer.capsules.contents import (
    MAX_DECODINGS,
    MAX_MODELS,
    CapsuleError,
    Manifest,
    Parameters,
    SavedDecoding,
    SavedFigure,
    figures_json,
    manifest_json,
    read_figures,
    read_manifest,
)
from transformer.capsules.models import OpenedModel, saved_model
from transformer.checkpoints.settings import CheckpointError, is_pickle
from transformer.files import replacing
from transformer.inspection.inspection import Comparison, Inspection
from transformer.lab import Lab
from transformer.runs.archive import MODEL_FILES, Packing, model_members
from transformer.runs.untrusted_zip import ArchiveError, Member, members_of

ENDING = ".attnlab"
MANIFEST_FILE, FIGURES_FILE, CHECKSUMS_FILE = "capsule.json", "figures.json", "checksums.txt"
_MOST = {MANIFEST_FILE: 2**21, FIGURES_FILE: 2**25, CHECKSUMS_FILE: 2**20}
_MOST_RESULTS = 2**28
_TEXT_RATIO, _RESULTS_RATIO = 200.0, 8.0
"""Results are stored as they are."""
_LINE = re.compile(r"([0-9a-f]{64})  (.+)")


@dataclass(frozen=True)
class Shown:
    """A decoding with the model that made it."""

    lab: Lab
    seen: Inspection


def decodings_of(subject: object) -> Iterator[Shown]:
    """Yields the decodings that the subject of a view holds, each with the model named before it."""
    lab: Lab | None = None
    for value in vars(subject).values():
        if isinstance(value, Lab):
            lab = value
        elif lab is not None and isinstance(value, Inspection):
            yield Shown(lab, value)
        elif lab is not None and isinstance(value, Comparison):
            yield Shown(lab, value.before)
            yield Shown(lab, value.after)


@dataclass(frozen=True)
class Capsule:
    """An analysis as it was saved."""

    manifest: Manifest
    results: tuple[Mapping[str, ndarray], ...]
    """The arrays of each decoding, by the names that arrays.py gives them."""
    figures: tuple[SavedFigure, ...]
    changed: tuple[str, ...]
    """The members whose content is not what their checksum says."""


def write_capsule(
    file: IO[bytes],
    decodings: Sequence[Shown],
    *,
    page: str = "",
    title: str = "",
    parameters: Parameters | None = None,
    figures: Sequence[SavedFigure] = (),
    others: Sequence[Lab] = (),
    notes: str = "",
    lesson: Parameters | None = None,
) -> None:
    """Writes an analysis as a capsule. `others` are models that the page names and no decoding comes from.

    CapsuleError where a model cannot be carried.
    """
    labs = {lab.name: lab for lab in (*(shown.lab for shown in decodings), *others)}
    if len(decodings) > MAX_DECODINGS or len(labs) > MAX_MODELS:
        raise CapsuleError(f"{len(decodings)} decodings of {len(labs)} models are too many for one capsule")
    manifest = Manifest(
        page=page,
        title=title,
        parameters=parameters or {},
        models=tuple(map(saved_model, labs.values())),
        decodings=tuple(_saved(shown) for shown in decodings),
        notes=notes,
        lesson=lesson or {},
        versions=versions_here(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    written = manifest_json(manifest)
    read_manifest(written)  # what cannot be read again is not written
    with zipfile.ZipFile(file, "w") as archive:
        packing = Packing(archive)
        packing.add(MANIFEST_FILE, written)
        for number, shown in enumerate(decodings):
            packing.add(_results_file(number), pack_arrays(arrays_of(shown.seen)))
        if figures:
            packing.add(FIGURES_FILE, figures_json(figures))
        for model in manifest.models:
            if not model.shipped:
                folder = labs[model.name].checkpoint.folder
                if why := refusal(folder, "save it in a file of your own"):
                    raise CapsuleError(why)
                audit.record("download", folder)
                try:
                    packing.add_model(folder, model.folder)
                except (CheckpointError, OSError) as error:
                    raise CapsuleError(f"{model.name} cannot be saved: {error}") from error
        lines = [f"{checksum}  {path}\n" for path, checksum in packing.checksums.items()]
        packing.add(CHECKSUMS_FILE, "".join(lines).encode())


def save_capsule(path: Path, lab: Lab, seen: Inspection, *, notes: str = "", page: str = "attention") -> None:
    """Saves one decoding as a capsule that opens on a page; FileExistsError where the file is there already."""
    if path.exists():
        raise FileExistsError(f"{path} is already there; choose another name or remove it first")
    switches = [str(switch) for switch in seen.interventions]
    parameters: dict[str, str | list[str]] = {"model": lab.name, "text": seen.text}
    with replacing(path) as temporary, temporary.open("wb") as file:
        write_capsule(
            file,
            [Shown(lab, seen)],
            page=page,
            parameters=parameters | ({"switch": switches} if switches else {}),
            notes=notes,
        )


def read_capsule(file: BytesIO | BufferedReader) -> Capsule:
    """Reads a capsule from anywhere; CapsuleError, as the end of a sentence, where it is damaged, foreign, of another
    version or not to be trusted.

    Nothing is unpacked and no model opened. A member that is not what its checksum says is read, and named in
    `changed`.
    """
    try:
        members = _checked(members_of(file))
        manifest = read_manifest(members[MANIFEST_FILE].read())
        _check_places(members, manifest, file)
        sums = _read_checksums(members[CHECKSUMS_FILE].read(), members)
        changed = tuple(path for path, checksum in sums.items() if members[path].sha256() != checksum)
        results = tuple(read_arrays(members[_results_file(i)].read()) for i in range(len(manifest.decodings)))
        figures = read_figures(members[FIGURES_FILE].read()) if FIGURES_FILE in members else ()
    except ArchiveError as error:
        raise CapsuleError(str(error)) from error
    return Capsule(manifest, results, figures, changed)


def verify(capsule: Capsule, models: Mapping[str, OpenedModel]) -> tuple[Compared, ...]:
    """Decodes every sentence of a capsule again and compares all numbers; `models` are by their names in the capsule.

    The figures are not among them: their page draws them again, and compares.
    """
    rows: list[Compared] = [differing(path, "its checksum is not the saved one") for path in capsule.changed]
    for model in capsule.manifest.models:
        if model.name in models:
            rows += compare_model(model, models[model.name].identity)
        else:
            rows.append(differing(model.name, "this model is not here"))
    several = len(capsule.manifest.decodings) > 1
    for decoding, arrays in zip(capsule.manifest.decodings, capsule.results, strict=True):
        if opened := models.get(decoding.model):
            whose = f"{decoding.text} ({decoding.model}): " if several else ""
            rows += (replace(row, what=whose + row.what) for row in compare_decoding(decoding, arrays, opened.lab))
    return tuple(rows)


def versions_here() -> dict[str, str]:
    """Returns the versions on which the numbers depend."""
    return {
        "attention-lab": transformer.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "numpy": metadata.version("numpy"),
    }


def other_versions(manifest: Manifest) -> tuple[str, ...]:
    """Says with which other versions a capsule was made."""
    here = versions_here()
    return tuple(
        f"{name} {version} then, {here.get(name, 'none')} now"
        for name, version in manifest.versions.items()
        if here.get(name) != version
    )


def _saved(shown: Shown) -> SavedDecoding:
    seen = shown.seen
    return SavedDecoding(
        model=shown.lab.name,
        text=seen.text,
        switches=tuple(map(str, seen.interventions)),
        forced=seen.forced,
        source_tokens=seen.source_tokens,
        target_tokens=seen.target_tokens,
        translation=seen.translation,
    )


def _results_file(number: int) -> str:
    return f"results-{number}.safetensors"


def _checked(members: dict[str, Member]) -> dict[str, Member]:
    """Refuses pickles, an archive that is no capsule, and texts of an impossible size."""
    if pickled := [path for path in members if is_pickle(PurePath(path))]:
        raise ArchiveError(f"it holds {pickled[0]}, and pickles are refused because reading them can run any code")
    if missing := [file for file in (MANIFEST_FILE, CHECKSUMS_FILE) if file not in members]:
        raise ArchiveError(f"it is no capsule: it has no {missing[0]}")
    for name, most in _MOST.items():
        if name in members:
            members[name].check(most=most, ratio=_TEXT_RATIO)
    return members


def _check_places(members: Mapping[str, Member], manifest: Manifest, file: BytesIO | BufferedReader) -> None:
    """Refuses members that the manifest does not speak of, and a manifest that speaks of others."""
    results = [_results_file(number) for number in range(len(manifest.decodings))]
    carried = [model for model in manifest.models if not model.shipped]
    known = {MANIFEST_FILE, CHECKSUMS_FILE, FIGURES_FILE, *results}
    known |= {model.folder + name for model in carried for name in MODEL_FILES}
    if strange := [path for path in members if path not in known]:
        raise ArchiveError(f"it holds {strange[0]!r}, which belongs to no capsule")
    for name in results:
        if name not in members:
            raise ArchiveError(f"it has no {name}")
        members[name].check(most=_MOST_RESULTS, ratio=_RESULTS_RATIO)
    for model in carried:
        model_members(file, model.folder)


def _read_checksums(content: bytes, members: Mapping[str, Member]) -> dict[str, str]:
    lines = [_LINE.fullmatch(line) for line in content.decode("utf-8", "replace").splitlines()]
    found = {line[2]: line[1] for line in lines if line}
    if None in lines or found.keys() != members.keys() - {CHECKSUMS_FILE}:
        raise ArchiveError(f"its {CHECKSUMS_FILE} does not name the files that it holds, each with its SHA-256")
    return found
