"""Archives for the tests: of the one model, changed in a given place, loaded or refused."""

import io
import json
import zipfile

import pytest

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
