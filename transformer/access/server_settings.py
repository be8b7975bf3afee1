"""The settings of a server: every environment variable that the lab reads, in one list; and who its visitors are."""

import ipaddress
import os
import re
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal

IDENTITY, TEACHERS, TEACHER_TOKEN = (
    "ATTENTION_LAB_IDENTITY",
    "ATTENTION_LAB_TEACHERS",
    "ATTENTION_LAB_TEACHER_TOKEN",
)
LANGUAGE = "ATTENTION_LAB_LANGUAGE"
PROXIES = "FORWARDED_ALLOW_IPS"
"""uvicorn's own variable: the addresses whose X-Forwarded headers it believes."""
_LOOPBACK = "127.0.0.1,::1"
_HEADER = re.compile(r"header:([A-Za-z0-9-]{1,80})")
_SHORTEST_TOKEN = 12


_unset: Literal["none", "cookie"] = "none"
"""How visitors are told apart where nothing is set."""


class ServerSettingError(Exception):
    """A setting of the server cannot be used; the message says why and what it may be."""


@dataclass(frozen=True)
class ServerSetting:
    """One environment variable."""

    name: str
    default: str
    """The value that counts where it is not set, in words."""
    says: str
    """What it does, in a sentence."""


SERVER_SETTINGS = (
    ServerSetting("ATTENTION_LAB_RUNS", "runs/ beside the library", "The folder of runs, uploads and all else kept."),
    ServerSetting(
        IDENTITY,
        "none on this machine alone, else cookie",
        "How visitors are told apart: none, cookie, header:NAME or oidc.",
    ),
    ServerSetting(TEACHERS, "nobody", "The ids or e-mail addresses of teachers, separated by commas."),
    ServerSetting(TEACHER_TOKEN, "no token", "With cookie: the secret of at least 12 characters that makes a teacher."),
    ServerSetting(PROXIES, _LOOPBACK, "With header:NAME: the addresses of the proxy whose header is believed."),
    ServerSetting("ATTENTION_LAB_MAX_RUNS", "one for each CPU", "The number of runs that train at once."),
    ServerSetting("ATTENTION_LAB_QUOTA_MB", "no limit", "Megabytes of runs and uploads that a visitor may keep."),
    ServerSetting("ATTENTION_LAB_QUOTA_MINUTES", "no limit", "Minutes that a visitor may train in 24 hours."),
    ServerSetting(
        "ATTENTION_LAB_MAX_WAITING",
        "24 where visitors are told apart",
        "Runs that a visitor may have in the queue at a time.",
    ),
    ServerSetting("ATTENTION_LAB_KEEP_DAYS", "for ever", "Days after its last training for which a run is kept."),
    ServerSetting("ATTENTION_LAB_STORE_MB", "no limit", "Megabytes of all runs and uploads; the oldest go first."),
    ServerSetting("ATTENTION_LAB_METRICS_PORT", "no metrics", "Local port that serves metrics for Prometheus."),
    ServerSetting(
        "ATTENTION_LAB_MAX_SESSIONS", "by cores and memory", "Visitors at a time; others wait in a queue at the door."
    ),
    ServerSetting(
        "ATTENTION_LAB_CACHE_MB", "an eighth of the memory, 1000 at most", "Megabytes of results held for all visitors."
    ),
    ServerSetting("ATTENTION_LAB_MEASURE", "measured", "ask: no speed is measured until a visitor asks for it."),
    ServerSetting(
        LANGUAGE, "en", "The language of the texts: the name of a file in pages/shared/texts, or a file's path."
    ),
    ServerSetting("ATTENTION_LAB_WARM_WORKER", "on", "off: no process is kept warm, which saves 300 MB."),
)
"""All settings, in the order in which a document lists them."""


@dataclass(frozen=True)
class Identity:
    """How visitors are told apart."""

    kind: Literal["none", "cookie", "header", "oidc"]
    header: str = ""
    """The name of the proxy's header, in lower case."""

    @property
    def is_one_person(self) -> bool:
        """Tells whether everybody who reaches the server is taken for the same person."""
        return self.kind == "none"


def serve_at(address: str | None) -> None:
    """Makes a server for one person of one that nothing but its own machine can reach, and tells the visitors of any
    other apart by their cookie, unless the setting says it. None, or an empty address, stands for all networks."""
    global _unset
    try:
        is_own = address == "localhost" or ipaddress.ip_address(address or "").is_loopback
    except ValueError:
        is_own = False
    _unset = "none" if is_own else "cookie"


def identity() -> Identity:
    """Returns how visitors are told apart; ServerSettingError for a setting that says nothing known."""
    text = os.environ.get(IDENTITY, "").strip() or _unset
    if found := _HEADER.fullmatch(text):
        return Identity("header", found[1].lower())
    match text:
        case "none" | "cookie" | "oidc":
            return Identity(text)
    raise ServerSettingError(f"{IDENTITY} ({text[:60]!r}) must be none, cookie, oidc or header:NAME, as header:X-User")


def teachers() -> frozenset[str]:
    """Returns the ids of teachers, in lower case."""
    return frozenset(filter(None, (name.strip().lower() for name in os.environ.get(TEACHERS, "").split(","))))


def teacher_token() -> str:
    """Returns the secret that makes a teacher of who knows it; empty where there is none."""
    return os.environ.get(TEACHER_TOKEN, "").strip()


def proxies() -> frozenset[str]:
    """Returns the addresses from which a proxy's header is believed."""
    return frozenset(filter(None, (part.strip() for part in os.environ.get(PROXIES, _LOOPBACK).split(","))))


def check_server_settings() -> None:
    """Refuses settings that contradict each other or leave a door open, with a ServerSettingError."""
    how, token = identity(), teacher_token()
    if token and how.kind != "cookie":
        raise ServerSettingError(f"{TEACHER_TOKEN} is for {IDENTITY}=cookie: name the teachers in {TEACHERS} instead")
    if token and len(token) < _SHORTEST_TOKEN:
        raise ServerSettingError(
            f"{TEACHER_TOKEN} has {len(token)} characters and needs at least {_SHORTEST_TOKEN}: take a longer one"
        )
    if how.kind == "oidc" and find_spec("authlib") is None:
        raise ServerSettingError(f"{IDENTITY}=oidc needs the package Authlib: install it beside Streamlit")
    if how.kind == "header" and "*" in proxies():
        raise ServerSettingError(
            f"{PROXIES} is *, so that anybody could send the header {how.header}: name the proxy's addresses"
        )
