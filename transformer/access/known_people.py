"""What a server remembers of each person: the links that they were given, and whether they showed the teacher's secret.

One small file a person, in `.people` of the folder of runs, named by a hash of their id.
"""

import hashlib
from hmac import compare_digest
from pathlib import Path
from typing import Any

from transformer.access.people import Person
from transformer.access.secrets_kept import is_signed, signature
from transformer.access.server_settings import teacher_token, teachers
from transformer.files import read_json, runs_folder, write_json
from transformer.locks import holding

PEOPLE = ".people"
LONGEST_ID = 200
MOST_SHARES = 500
_TEACHER = "teacher"


def person_called(person_id: str) -> Person:
    """Returns the person of an id, with what is known of them."""
    known = read_known(person_id)
    return Person(
        id=person_id,
        is_teacher=person_id.lower() in teachers() or _showed_token(person_id, known),
        shares=frozenset(_shares(known)),
    )


def read_known(person_id: str) -> dict[str, Any]:
    """Returns what is kept of a person; empty where nothing is."""
    return read_json(_file(person_id))


def remember(person_id: str, **changes: object) -> None:
    """Keeps more of a person; a value of None is forgotten."""
    path = _file(person_id)
    with holding(path.parent / ".lock"):
        kept = read_json(path) | {"id": person_id} | changes
        write_json(path, {name: value for name, value in kept.items() if value is not None})


def take_share(person_id: str, token: str) -> None:
    """Remembers the token of a link that a person followed; the oldest go where there are too many."""
    kept = [known for known in _shares(read_known(person_id)) if known != token]
    remember(person_id, shares=[*kept, token][-MOST_SHARES:])


def become_teacher(person_id: str, secret: str) -> bool:
    """Makes a teacher of a person who knows the secret, for as long as the secret stays the same; False else."""
    token = teacher_token()
    if not token or not compare_digest(token.encode(), secret.strip().encode()):
        return False
    remember(person_id, teacher=signature(f"{person_id}\n{token}", _TEACHER))
    return True


def _shares(known: dict[str, Any]) -> list[str]:
    found = known.get("shares")
    return [token for token in found if isinstance(token, str)] if isinstance(found, list) else []


def _showed_token(person_id: str, known: dict[str, Any]) -> bool:
    token, shown = teacher_token(), known.get("teacher")
    return bool(token) and isinstance(shown, str) and is_signed(f"{person_id}\n{token}", _TEACHER, shown)


def _file(person_id: str) -> Path:
    return runs_folder() / PEOPLE / f"{hashlib.sha256(person_id.encode()).hexdigest()[:32]}.json"
