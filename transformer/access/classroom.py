"""What teachers set for the class: shipped models and the lesson that stand first, and quotas. One file, class.json.

A pinned run says so in its own folder (runs/sharing.py): a new run that gets the name of a deleted one is not pinned.
"""

from dataclasses import asdict, dataclass, replace
from typing import Any

from transformer.access import audit
from transformer.access.known_people import read_known, remember
from transformer.access.people import acting
from transformer.access.server_settings import identity
from transformer.files import read_json, runs_folder, write_json
from transformer.locks import holding

CLASS_FILE = ".class.json"
_LOCK = ".class.lock"
_QUOTA = "quota"


class TeachersOnly(Exception):
    """Only a teacher may do this."""


@dataclass(frozen=True, kw_only=True)
class Quota:
    """What a visitor may use; None where the next more general one counts: the class's, then the server's."""

    megabytes: float | None = None
    minutes: float | None = None
    """Of training in 24 hours."""


@dataclass(frozen=True, kw_only=True)
class Classroom:
    """The content of the file."""

    models: tuple[str, ...] = ()
    """The shipped models that are pinned."""
    lesson: str = ""
    """The pinned lesson, by its name in links."""
    lesson_title: str = ""
    quota: Quota = Quota()
    """The quota of each visitor who has none of their own."""


def classroom() -> Classroom:
    """Returns what teachers set; all empty where they set nothing."""
    content = read_json(runs_folder() / CLASS_FILE)
    models = content.get("models")
    lesson, title = (text if isinstance(text := content.get(name), str) else "" for name in ("lesson", "lesson_title"))
    return Classroom(
        models=tuple(name for name in models if isinstance(name, str)) if isinstance(models, list) else (),
        lesson=lesson,
        lesson_title=title,
        quota=_quota(content.get(_QUOTA)),
    )


def set_classroom(**changes: Any) -> None:
    """Changes what is set for the class; TeachersOnly for anybody else."""
    check_teacher()
    path = runs_folder() / CLASS_FILE
    with holding(runs_folder() / _LOCK):
        write_json(path, asdict(replace(classroom(), **changes)))
    for name, value in changes.items():
        audit.record(f"set {name}", to=asdict(value) if isinstance(value, Quota) else value)


def quota_of(person_id: str) -> Quota:
    """Returns the quota that teachers set for a person: their own, else the class's."""
    own, general = _quota(read_known(person_id).get(_QUOTA)), classroom().quota
    return Quota(
        megabytes=general.megabytes if own.megabytes is None else own.megabytes,
        minutes=general.minutes if own.minutes is None else own.minutes,
    )


def set_quota(person_id: str, quota: Quota) -> None:
    """Gives a person a quota of their own; TeachersOnly for anybody else than a teacher."""
    check_teacher()
    remember(person_id, quota=asdict(quota))
    audit.record("set quota", of=person_id, to=asdict(quota))


def may_pin() -> bool:
    """Tells whether to offer a person the buttons of teachers: not on a server where there is no class."""
    return acting().is_teacher and not identity().is_one_person


def check_teacher() -> None:
    """Refuses everybody but teachers, with TeachersOnly."""
    if not acting().is_teacher:
        raise TeachersOnly("only a teacher may do this")


def _quota(content: object) -> Quota:
    found = content if isinstance(content, dict) else {}
    return Quota(megabytes=_number(found.get("megabytes")), minutes=_number(found.get("minutes")))


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 else None
