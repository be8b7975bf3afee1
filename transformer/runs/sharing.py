"""Links that show a run to others, and runs pinned for the class: both are kept in the run's folder and go with it."""

import secrets
from hmac import compare_digest

from transformer.access import audit
from transformer.access.classroom import check_teacher
from transformer.access.known_people import take_share
from transformer.access.ownership import AUDIENCE_FILE, is_pinned, token_of
from transformer.access.people import acting
from transformer.files import runs_folder, write_json
from transformer.runs.status import RunError, own_folder, run_ids, writing_to

_TOKEN_BYTES = 24


def share(run_id: str) -> str:
    """Returns the token of the link that shows a run to whoever follows it, made if there is none yet."""
    folder = own_folder(run_id)
    if token := token_of(folder):
        return token
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    _write(run_id, token=token)
    audit.record("share", folder)
    return token


def unshare(run_id: str) -> None:
    """Makes the link of a run void, for those who followed it too."""
    _write(run_id, token="")
    audit.record("unshare", own_folder(run_id))


def follow_link(token: str) -> str:
    """Returns the run that a link shows, which the person may look at from now on; RunError for a void link."""
    for run_id in run_ids(runs_folder()):
        known = token_of(runs_folder() / run_id)
        if known and compare_digest(known.encode(), token.encode()):
            if acting().id:
                take_share(acting().id, token)
            return run_id
    raise RunError("this link shows nothing any more: its owner withdrew it, or deleted the run")


def pin(run_id: str, *, pinned: bool = True) -> None:
    """Pins a run, which everybody may then look at, or takes the pin away; TeachersOnly for anybody but a teacher."""
    check_teacher()
    _write(run_id, pinned=pinned)
    audit.record("pin" if pinned else "unpin", own_folder(run_id))


def _write(run_id: str, **changes: object) -> None:
    folder = own_folder(run_id)
    with writing_to(run_id):
        write_json(folder / AUDIENCE_FILE, {"token": token_of(folder), "pinned": is_pinned(folder)} | changes)
