"""Links that show a run, what teachers set for the class, and the log of what was done."""

import json

import pytest
from page_models import save_untrained

from transformer.access import audit
from transformer.access.classroom import Quota, TeachersOnly, classroom, set_classroom, set_quota
from transformer.access.known_people import person_called
from transformer.access.ownership import is_pinned, may_change, may_see
from transformer.access.people import NOBODY, Person, acting_as
from transformer.access.server_settings import IDENTITY, TEACHERS
from transformer.files import write_json
from transformer.runs import run_folder
from transformer.runs.labels import rename, set_note
from transformer.runs.limits.quota import DISK, MINUTES, over_quota
from transformer.runs.sharing import follow_link, pin, share, unshare
from transformer.runs.status import RunError, Status, write_status

ADA, BOB, TESS = "ada", "bob", "tess"


@pytest.fixture
def hers(tmp_path, monkeypatch):
    """Ada's run on a server with several visitors and a teacher."""
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path))
    monkeypatch.setenv(IDENTITY, "cookie")
    monkeypatch.setenv(TEACHERS, TESS)
    save_untrained(tmp_path)
    folder = next(path for path in sorted(tmp_path.iterdir()) if (path / "config.json").is_file())
    write_status(folder, Status(state="finished"))
    write_json(folder / "ticket.json", {"owner": ADA})
    return folder


def working_for(person_id):
    return acting_as(person_called(person_id))


def test_a_link_shows_a_run_until_it_is_withdrawn(hers):
    with working_for(ADA):
        token = share(hers.name)
        assert share(hers.name) == token and len(token) == 32
    with working_for(BOB):
        with pytest.raises(RunError, match="there is no run"):
            share(hers.name)
        for wrong in ("", token[:-1], token.swapcase(), "ü"):
            with pytest.raises(RunError, match="this link shows nothing any more"):
                follow_link(wrong)
        assert follow_link(token) == hers.name
    assert may_see(hers, person_called(BOB)) and not may_change(hers, person_called(BOB))
    with working_for(BOB):
        for act in (share, unshare):
            with pytest.raises(RunError, match="you may look at it, but not change it"):
                act(hers.name)
    with working_for(ADA):
        rename(hers.name, "renamed")
        unshare("renamed")
        assert share("renamed") != token, "a new link is another one"
    assert not may_see(hers.with_name("renamed"), person_called(BOB))


def test_a_deleted_runs_name_gives_nobody_a_look_at_the_next_run_of_that_name(hers):
    with working_for(ADA):
        token = share(hers.name)
    with working_for(BOB):
        follow_link(token)
    with working_for(TESS):
        pin(hers.name)
    with working_for(ADA):
        run_folder.delete(hers.name)
    hers.mkdir()
    write_status(hers, Status(state="finished"))
    assert not any(may_see(hers, person) for person in (person_called(BOB), NOBODY))


def test_only_teachers_pin_and_set_quotas(hers, monkeypatch):
    for person in (ADA, BOB):
        with working_for(person):
            for act in (lambda: pin(hers.name), lambda: set_classroom(lesson="x"), lambda: set_quota(BOB, Quota())):
                with pytest.raises(TeachersOnly, match="only a teacher may do this"):
                    act()
    with working_for(TESS):
        pin(hers.name)
        set_classroom(models=("reverse",), lesson="masks", lesson_title="Masks")
    assert is_pinned(hers) and classroom().models == ("reverse",) and classroom().lesson == "masks"
    monkeypatch.setenv(DISK, "1000")
    assert over_quota(ADA) == ""
    with working_for(TESS):
        set_classroom(quota=Quota(megabytes=0))
        assert "a visitor may use 0 MB" in over_quota(ADA)
        set_quota(ADA, Quota(megabytes=500, minutes=0))
    assert "have trained for 0 minutes" in over_quota(ADA)
    monkeypatch.setenv(MINUTES, "30")
    assert "have trained for 0 minutes" in over_quota(ADA) and "0 MB" in over_quota(BOB)


def test_the_log_says_who_did_what_to_whose_run_and_is_only_appended_to(hers):
    with working_for(ADA):
        set_note(hers.name, "mine")
    before = (hers.parent / audit.AUDIT_FILE).read_text()
    with working_for(TESS):
        pin(hers.name)
        run_folder.delete(hers.name)
    text = (hers.parent / audit.AUDIT_FILE).read_text()
    assert text.startswith(before)
    rows = [json.loads(line) for line in text.splitlines()]
    assert [(row["who"], row["as"], row["did"], row["owner"]) for row in rows] == [
        (ADA, "owner", "note", ADA),
        (TESS, "teacher", "pin", ADA),
        (TESS, "teacher", "delete", ADA),
    ]
    assert [row["did"] for row in audit.latest(2)] == ["delete", "pin"]


def test_a_server_for_one_keeps_no_log(hers, monkeypatch):
    monkeypatch.delenv(IDENTITY)
    with acting_as(Person(id="me", is_teacher=True)):
        set_note(hers.name, "mine")
    assert not (hers.parent / audit.AUDIT_FILE).exists()
