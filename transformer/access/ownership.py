"""The one place that decides who may look at a run, take from it, and change it.

A run belongs to whoever asked for it, as its ticket.json says; one without an owner, as of the command line, belongs to
the operator. Its owner and teachers may do everything. Others may look at it, and no more, if a teacher pinned it for
the class or its owner gave them a link that holds (audience.json): at its settings, curves and model, not at what
somebody brought or typed for it, its file, sentences and note; nor may they download or repeat it. For everybody else
it does not exist.
"""

from collections.abc import Iterable
from hmac import compare_digest
from pathlib import Path

from transformer.access.people import Person, acting
from transformer.files import read_json, read_rows, runs_folder

TICKET_FILE = "ticket.json"
"""Who asked for a run, and when."""
AUDIENCE_FILE = "audience.json"
"""Who else may look at a run: the token of its link, and whether it is pinned for the class."""
UPLOADS, UPLOAD_OWNERS = ".uploads", ".owners.jsonl"
"""The folder of uploaded files in the folder of runs, and who brought each one."""


def owner_of(folder: Path) -> str:
    """Returns the id of the person to whom the run in a folder belongs; empty for the operator."""
    owner = read_json(folder / TICKET_FILE).get("owner")
    return owner if isinstance(owner, str) else ""


def may_change(folder: Path, person: Person | None = None) -> bool:
    """Tells whether a person, by default the one for whom the code runs, may change the run in a folder."""
    person = person or acting()
    return person.is_teacher or (person.id != "" and owner_of(folder) == person.id)


def may_see(folder: Path, person: Person | None = None) -> bool:
    """Tells whether a person, by default the one for whom the code runs, may look at the run in a folder."""
    person = person or acting()
    return may_change(folder, person) or is_pinned(folder) or _has_link(folder, person)


def may_take(folder: Path, person: Person | None = None) -> bool:
    """Tells whether a person, by default the one for whom the code runs, may do more than look at a run or a shipped
    model: copy it, and read what was brought and typed for it. Everybody may where it is no run."""
    is_run = runs_folder().resolve() in folder.resolve().parents
    return not is_run or may_change(folder, person)


def visible(folders: Iterable[Path]) -> list[Path]:
    """Returns the folders of runs that the person for whom the code runs may look at, in their order."""
    person = acting()
    return [folder for folder in folders if may_see(folder, person)]


def may_use_file(path: Path) -> bool:
    """Tells whether the person may read a file: an upload of their own, or that of a run from which they may take.

    Files outside the folder of runs are the affair of whoever named them.
    """
    root, path = runs_folder().resolve(), path.resolve()
    if root not in path.parents:
        return True
    first, second, *_ = (*path.relative_to(root).parts, "")
    return may_use_upload(root / first / second) if first == UPLOADS else may_take(root / first)


def may_use_upload(folder: Path) -> bool:
    """Tells whether the person for whom the code runs may use the uploaded file in a folder."""
    person = acting()
    return person.is_teacher or person.id in upload_owners(folder)


def upload_owners(folder: Path) -> frozenset[str]:
    """Returns the ids of those who brought the uploaded file in a folder."""
    found = (row.get("owner") for row in read_rows(folder / UPLOAD_OWNERS))
    return frozenset(owner for owner in found if isinstance(owner, str) and owner)


def refusal(folder: Path, act: str) -> str:
    """Returns why the person may not do to a run what only its owner does, as a sentence without its full stop; empty
    if they may. `act` is the end of that sentence: "download it"."""
    if may_take(folder):
        return ""
    if not may_see(folder):
        return f"there is no run {folder.name!r} here"
    return f"{folder.name} belongs to somebody else: you may look at it, but not {act}"


def is_pinned(folder: Path) -> bool:
    """Tells whether a teacher pinned the run in a folder for the class."""
    return read_json(folder / AUDIENCE_FILE).get("pinned") is True


def token_of(folder: Path) -> str:
    """Returns the token of the link with which the run in a folder is shared; empty if it is not."""
    token = read_json(folder / AUDIENCE_FILE).get("token")
    return token if isinstance(token, str) else ""


def _has_link(folder: Path, person: Person) -> bool:
    if not person.shares:
        return False
    token = token_of(folder).encode()
    return token != b"" and any(compare_digest(token, share.encode()) for share in person.shares)
