"""What comes from outside is used or refused with a sentence, whatever it is: links, files, archives, messages.

`make fuzz` tries 100,000 cases, the slow tests 2,000. A case is made of its number alone: `FUZZ_ONLY=links:1234` runs
it again by itself.
"""

import importlib
import io
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlencode

import pytest
from archives import archive_of, capsule_of, figure, members, packed_again
from mutations import changed_bytes, changed_member, changed_text, changed_value
from numpy import ones

from pages.shared.components.frontend import picked_head
from pages.shared.url.packed_link import CannotOpen, as_file, from_file, pack, unpack
from pages.shared.url.url_state import UrlState
from pages.shared.visitors.guards import OwnFiles
from pages.shared.visitors.recognition import COOKIE, HEADER, Recognise, request_person, sealed, signed_id, visitor_of
from transformer.access.server_settings import IDENTITY
from transformer.capsules.capsule import read_capsule
from transformer.capsules.contents import CapsuleError
from transformer.data.unpacking import CorpusError
from transformer.data.uploads import check_upload
from transformer.interventions import parse_intervention
from transformer.lab import load
from transformer.runs.archive import load_archive
from transformer.runs.status import RunError

pytestmark = pytest.mark.slow

CASES = int(os.environ.get("FUZZ_CASES", "2000"))
ONLY, _, NUMBER = os.environ.get("FUZZ_ONLY", "").partition(":")
ROOT = Path(__file__).parents[2]
SHARE = {"links": 0.5, "messages": 0.2, "uploads": 0.15, "capsules": 0.1, "archives": 0.05}
"""The part of all cases that each kind gets; archives take longest."""


def run_cases(kind: str, case: Callable[[random.Random], object]) -> None:
    """Runs a kind's share of all cases, each with chances of its own; names the one that raises what it should not."""
    if ONLY and kind != ONLY:
        pytest.skip(f"only {ONLY} is run")
    numbers = [int(NUMBER)] if NUMBER else range(round(CASES * SHARE[kind]))
    for number in numbers:
        try:
            case(random.Random(f"{kind} {number}"))
        except BaseException as error:
            error.add_note(f"run this case again with FUZZ_ONLY={kind}:{number}")
            raise
    print(f"{len(numbers):,} cases of {kind}", flush=True)


def url_states() -> list[type[UrlState]]:
    """Returns the state of every page."""
    for path in (ROOT / "pages").rglob("*.py"):
        if "(UrlState)" in path.read_text():
            importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
    found, waiting = [], [UrlState]
    while waiting:
        waiting += (kind := waiting.pop()).__subclasses__()
        found += [kind] if kind.__module__.startswith("pages.") and kind is not UrlState else []
    return sorted(found, key=lambda kind: kind.__qualname__)


SWITCHES = (
    *("off:decoder.0.cross:1,3", "mask:causal", "mask:padding", "positions:encoder:shuffle:1", "mean:encoder.1.self:0"),
    *(
        "block:decoder.0.ffn",
        "scale:decoder.1.cross:0:0.5",
        "row:decoder.0.cross:1:2:uniform",
        "residual:encoder.0.self",
    ),
)
QUERIES = (
    urlencode({"model": "reverse", "text": "a b c", "layer": 1, "head": 3, "kind": "cross", "entry": "1,2"}),
    urlencode({"switch": SWITCHES[:3], "picture": "bertviz", "quantity": "scores", "cell": "2-3"}, doseq=True),
    urlencode(
        {"corpus": "reverse", "steps": 400, "d_model": 64, "warmup_steps": 10, "learning_rate": 0.002, "seed": 7}
    ),
    urlencode(
        {"method": "beam", "beam": 4, "node": 12, "step": 3, "temperature": 0.7, "models": "models", "other": "x"}
    ),
    urlencode(
        {"run": "my-run", "show": ["a", "b"], "tab": "Sweeps", "lesson": "masks", "part": 2, "view": "eNqrVko"},
        doseq=True,
    ),
)
PAGES = {"attention": None, "runs": None}


def test_links(monkeypatch, tmp_path):
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path))
    states = url_states()
    assert len(states) >= 12
    names = sorted({name for state in states for name in state.names()})
    packed = [
        pack({"model": "reverse", "text": "a b", "switch": list(SWITCHES)}),
        pack({"model": "x" * 900, "layer": "0"}),
    ]
    files = [as_file("attention", {"model": "reverse", "text": "a b", "switch": list(SWITCHES)})]

    def case(chance: random.Random) -> None:
        match chance.randrange(5):
            case 0:
                try:
                    assert all(isinstance(name, str) for name in unpack(changed_text(chance, packed)))
                except CannotOpen as error:
                    assert str(error).endswith(".")
            case 1:
                content = changed_text(chance, files).encode("utf-8", "surrogatepass")
                try:
                    from_file(content, PAGES)
                except CannotOpen as error:
                    assert str(error).endswith(".") and "\n" not in str(error)
            case 2:
                try:
                    spec = parse_intervention(changed_text(chance, SWITCHES))
                except ValueError:
                    return
                assert parse_intervention(str(spec)) == spec
            case _:
                query = changed_text(chance, QUERIES)
                given = parse_qs(query, keep_blank_values=True, errors="replace")
                given |= {chance.choice(names): [changed_text(chance, [query[:20], *SWITCHES])] for _ in range(3)}
                state, problems = chance.choice(states).read(given)
                assert all(problem.sentence and "{" not in problem.place for problem in problems)
                again, _ = type(state).read(state.parameters())
                assert again.parameters() == state.parameters()

    run_cases("links", case)


def test_uploads():
    pairs = "".join(f"{a} {b}\t{b} {a}\n" for a in "abcdefghij" for b in "klmnopqrst")
    seeds = [
        ("pairs.tsv", pairs),
        ("pairs.csv", pairs.replace("\t", ",")),
        ("pairs.txt", pairs),
        ("p.json", '[["a","b"]]'),
    ]

    def case(chance: random.Random) -> None:
        name, text = chance.choice(seeds)
        content = changed_text(chance, [text]).encode("utf-8", "surrogatepass")
        if chance.random() < 0.5:
            content = changed_bytes(chance, content)
        if chance.random() < 0.2:
            name = changed_text(chance, [name])
        try:
            check_upload(name, content)
        except CorpusError as error:
            assert str(error)

    run_cases("uploads", case)


def test_capsules(monkeypatch, tmp_path):
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path))
    content = capsule_of(load("reverse"), "a b", [parse_intervention(SWITCHES[0])], figures=[figure(ones((2, 3)))])
    held = members(content)

    def case(chance: random.Random) -> None:
        changed = changed_bytes(chance, content)
        if chance.random() < 0.75:
            name = chance.choice(list(held))
            changed = packed_again({**held, name: changed_member(chance, held[name])}, honest=chance.random() < 0.8)
        try:
            read_capsule(io.BytesIO(changed))
        except CapsuleError as error:
            assert "\n" not in str(error)

    run_cases("capsules", case)


def test_archives(archive_room, origin):
    content = archive_of(origin)
    held = members(content)

    def case(chance: random.Random) -> None:
        changed = changed_bytes(chance, content)
        if chance.random() < 0.75:
            name = chance.choice(list(held))
            changed = packed_again({**held, name: changed_member(chance, held[name])})
        try:
            made = load_archive(io.BytesIO(changed))
        except RunError as error:
            assert "\n" not in str(error) and str(archive_room) not in str(error)
        else:
            assert (archive_room / made).resolve().parent == archive_room.resolve() and made != origin
            shutil.rmtree(archive_room / made)
        assert [path.name for path in archive_room.iterdir() if not path.name.startswith(".")] == [origin]

    run_cases("archives", case)


def test_messages(monkeypatch, tmp_path):
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path))
    ada = "a" * 32
    cookies = [f"{COOKIE}={signed_id(ada)}", f'theme=dark; {COOKIE}="{signed_id(ada)}"; _streamlit_user=x']
    headers = [sealed("ada"), "Ada@School.example", "bob"]

    async def app(scope, receive, send):
        known = visitor_of(scope)
        assert request_person(scope).id == known and known in ("", ada, *known.split())
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    whole = Recognise(OwnFiles(app))

    def case(chance: random.Random) -> None:
        if chance.random() < 0.5:
            report = changed_value(chance, chance.choice(([1, 2], {"picked": [1, 2, 3, 4]}, [0, 7])))
            found = picked_head(report, 2, 4)
            assert found is None or (0 <= found[0] < 2 and 0 <= found[1] < 4)
            return
        kind = chance.choice(("cookie", "header:X-User"))
        monkeypatch.setenv(IDENTITY, kind)
        sent = {
            "cookie": changed_text(chance, cookies),
            "x-user": changed_text(chance, headers),
            HEADER: changed_text(chance, headers),
        }
        encoded = [(name.encode(), value.encode("utf-8", "surrogatepass")) for name, value in sent.items()]
        path = chance.choice(("/", "/media/" + changed_text(chance, ["c0ffee.csv"]), "/attention"))
        status = answer(whole, path, encoded)
        assert status in (200, 404)

    run_cases("messages", case)


def answer(app, path, headers) -> int:
    """Returns the status with which an application answers."""
    sent = []

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": headers}
    answering = app({**scope, "client": ("127.0.0.1", 9), "scheme": "http"}, None, send)
    with pytest.raises(StopIteration):  # it awaits nothing; asyncio.run refuses beside the loop of a browser test
        answering.send(None)
    return sent[0]["status"]
