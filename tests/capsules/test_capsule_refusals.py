"""A capsule that was tampered with, is damaged, or is none: refused in a sentence, or its damage is reported."""

import io
import json
import stat
import zipfile

import pytest
from archives import capsule_of, figure, members, packed_again, with_manifest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from numpy import ones

from transformer import load
from transformer.capsules.arrays import read_arrays
from transformer.capsules.capsule import FIGURES_FILE, MANIFEST_FILE, Capsule, read_capsule, verify
from transformer.capsules.contents import CapsuleError, figures_json, read_figures, read_manifest
from transformer.capsules.models import opened


@pytest.fixture(scope="module")
def packed() -> bytes:
    return capsule_of(load("reverse"), "a b c", figures=[figure(ones((2, 2)))], parameters={"model": "reverse"})


def refusal(content: bytes) -> str:
    with pytest.raises(CapsuleError) as caught:
        read_capsule(io.BytesIO(content))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def link(name: str):
    info = zipfile.ZipInfo(name)
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info, b"/etc/passwd"


@pytest.mark.parametrize(
    ("extra", "sentence"),
    [
        (("../evil.txt", b"x"), "leads out of its own folder"),
        (("/etc/evil.txt", b"x"), "leads out of its own folder"),
        (("models\\..\\evil.txt", b"x"), "leads out of its own folder"),
        (link("figures.jsonl"), "is a link"),
        (("models/reverse/weights.pt", b"x"), "pickles are refused because reading them can run any code"),
        (("models/reverse/config.json", b"{}"), "belongs to no capsule"),  # a shipped model comes by its name alone
        (("results-1.safetensors", b""), "belongs to no capsule"),
        (("notes.html", b"<script>"), "belongs to no capsule"),
    ],
)
def test_a_member_that_no_honest_capsule_holds_is_refused(packed, extra, sentence):
    assert sentence in refusal(packed_again(members(packed), extra=[extra]))


@pytest.mark.parametrize("missing", ["capsule.json", "checksums.txt", "results-0.safetensors", "figures.json"])
def test_a_missing_member_is_named(packed, missing):
    content = {name: held for name, held in members(packed).items() if name != missing}
    said = refusal(packed_again(content))
    assert missing in said or "does not name the files that it holds" in said


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"format_version": 2}, "it has format version 2; this copy of Attention Lab reads version 1"),
        ({"format": "zip"}, "does not say that its format is attention-lab-capsule"),
        ({"notes": "x" * 2_001}, "says no notes, or none that is a text of at most 2,000"),
        ({"notes": "\ud800"}, "says no notes"),
        ({"page": ["attention"]}, "says no page"),
        ({"parameters": {"model": 7}}, "has parameters that are not texts"),
        ({"models": [{}] * 9}, "says no models, or more than 8"),
        ({"models": [{"name": "../up"}]}, "which cannot be a name"),
        ({"models": []}, "it names no model 'reverse'"),
        ({"decodings": 3}, "says no decodings"),
    ],
)
def test_a_manifest_that_cannot_be_right_is_refused(packed, changes, sentence):
    assert sentence in refusal(with_manifest(packed, **changes))


@pytest.mark.parametrize("name", [FIGURES_FILE, MANIFEST_FILE])
def test_a_bomb_is_refused_before_it_is_unpacked(packed, name):
    assert "would" in refusal(packed_again({**members(packed), name: b" " * 60_000_000}))


@pytest.mark.parametrize("content", [b"", b"PK", b"not a zip", b"[" * 100_000])
def test_anything_else_is_no_capsule(content):
    assert "not a zip archive" in refusal(content)


def test_brackets_without_end_are_refused(packed):
    for name in (MANIFEST_FILE, FIGURES_FILE):
        assert "is not JSON" in refusal(packed_again({**members(packed), name: b"[" * 100_000}, honest=True))


@examples(max_examples=80)
@given(data=st.data())
def test_no_damage_of_bytes_does_more_than_be_refused_or_reported(packed, data):
    raw = bytearray(packed)
    match data.draw(st.sampled_from(["flip", "cut", "grow"])):
        case "flip":
            for place in data.draw(st.lists(st.integers(0, len(raw) - 1), min_size=1, max_size=4)):
                raw[place] = data.draw(st.integers(0, 255))
        case "cut":
            raw = raw[: data.draw(st.integers(0, len(raw) - 1))]
        case "grow":
            raw += data.draw(st.binary(min_size=1, max_size=64))
    try:
        capsule = read_capsule(io.BytesIO(bytes(raw)))
    except CapsuleError as error:
        assert "\n" not in str(error)
    else:
        assert all(row.holds for row in verify(capsule, {"reverse": opened(load("reverse"))})) or capsule.changed


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)


def places(content, at=()):
    """The place of every value in a JSON value."""
    yield at
    inner = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in inner:
        yield from places(value, (*at, key))


def put(content, at, value):
    """The JSON value with another value at a place."""
    if not at:
        return value
    copy = dict(content) if isinstance(content, dict) else list(content)
    copy[at[0]] = put(copy[at[0]], at[1:], value)
    return copy


@examples(max_examples=150)
@given(data=st.data())
def test_no_value_in_a_manifest_does_more_than_be_refused_or_reported(packed, data):
    content = members(packed)
    manifest = json.loads(content[MANIFEST_FILE])
    where = data.draw(st.sampled_from(sorted(places(manifest), key=repr)))
    content[MANIFEST_FILE] = json.dumps(put(manifest, where, data.draw(JSON))).encode()
    try:
        capsule = read_capsule(io.BytesIO(packed_again(content, honest=True)))
    except CapsuleError as error:
        assert "\n" not in str(error)
    else:
        assert isinstance(capsule, Capsule)
        verify(capsule, {"reverse": opened(load("reverse"))})


@examples(max_examples=150)
@given(data=st.data())
def test_no_value_in_the_figures_does_more_than_be_refused(data):
    figures = json.loads(figures_json([figure(ones((2, 2)))]))
    where = data.draw(st.sampled_from(sorted(places(figures), key=repr)))
    try:
        found = read_figures(json.dumps(put(figures, where, data.draw(JSON))).encode())
    except CapsuleError as error:
        assert "\n" not in str(error)
    else:
        figures_json(found)


@examples(max_examples=100)
@given(content=st.binary(max_size=200) | st.text(max_size=50).map(str.encode))
def test_no_bytes_are_more_than_refused_by_the_readers(content):
    for read in (read_manifest, read_figures, read_arrays):
        try:
            read(content)
        except CapsuleError as error:
            assert "\n" not in str(error)
