"""Archives and capsules for the tests: changed in a given place, loaded or refused."""

import hashlib
import io
import json
import zipfile

import pytest

from transformer.capsules.capsule import CHECKSUMS_FILE, MANIFEST_FILE, Shown, write_capsule
from transformer.capsules.contents import SavedFigure
from transformer.figures.tables import matrix_table
from transformer.lab import Lab
from transformer.runs.archive import load_archive, write_archive
from transformer.runs.status import RunError


def archive_of(name, **options):
    file = io.BytesIO()
    write_archive(name, file, **options)
    return file.getvalue()


def contents(packed):
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        return {name.removeprefix("origin/"): archive.read(name) for name in archive.namelist()}


def repacked(packed, changes=None, *, prefix="origin/", extra=()):
    """The archive with some files replaced, or left out where the new content is None; and with further entries."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (contents(packed) | (changes or {})).items():
            if content is not None:
                archive.writestr(prefix + name, content)
        for info, content in extra:
            archive.writestr(info, content)
    return file.getvalue()


def edited(packed, file, **changes):
    """A JSON file of the archive with other values, given by their dotted place."""
    content = json.loads(contents(packed)[file])
    for place, value in changes.items():
        *groups, last = place.split("__")
        inner = content
        for group in groups:
            inner = inner[group]
        inner[last] = value
    return json.dumps(content).encode()


def loaded(packed):
    return load_archive(io.BytesIO(packed))


def refusal(packed, room):
    before = sorted(room.iterdir())
    with pytest.raises(RunError) as caught:
        loaded(packed)
    assert sorted(room.iterdir()) == before, "something was left behind"
    assert "\n" not in str(caught.value) and str(room) not in str(caught.value)
    return str(caught.value)


def capsule_of(lab: Lab, text: str, switches=(), **options) -> bytes:
    """A capsule of one decoding."""
    file = io.BytesIO()
    write_capsule(file, [Shown(lab, lab.inspect(text, switches))], page="attention", title="Attention", **options)
    return file.getvalue()


def figure(values, **labels) -> SavedFigure:
    """A figure with one table."""
    rows, columns = [f"r{i}" for i in range(len(values))], [f"c{i}" for i in range(len(values[0]))]
    tables = (matrix_table("weight", values, labels.get("rows", rows), columns),)
    return SavedFigure(key="head-matrix", title="Head matrix", view="HeadMatrix()", tables=tables)


def members(packed: bytes) -> dict[str, bytes]:
    """Its members by their paths."""
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed_again(content: dict[str, bytes], *, honest: bool = False, extra=()) -> bytes:
    """A capsule of these members, and of further entries; `honest`: with checksums that fit."""
    content = dict(content)
    if honest:
        others = {name: held for name, held in content.items() if name != CHECKSUMS_FILE}
        sums = [f"{hashlib.sha256(held).hexdigest()}  {name}\n" for name, held in others.items()]
        content[CHECKSUMS_FILE] = "".join(sums).encode()
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, held in content.items():
            archive.writestr(name, held)
        for info, held in extra:
            archive.writestr(info, held)
    return file.getvalue()


def with_manifest(packed: bytes, **changes) -> bytes:
    """The capsule with other values in its capsule.json, and checksums that fit."""
    content = members(packed)
    content[MANIFEST_FILE] = json.dumps(json.loads(content[MANIFEST_FILE]) | changes).encode()
    return packed_again(content, honest=True)
