"""Recognises who sends a request, before Streamlit sees it, and says so in a header that only this process can write.

With `cookie`, a browser gets a random id, signed, in a cookie that no script can read; another id cannot be made up.
With `header:NAME`, the proxy's word is taken, from the addresses in FORWARDED_ALLOW_IPS alone. Whatever a client writes
into the header of this module is thrown away.
"""

import base64
import hashlib
import hmac
import ipaddress
import re
import secrets
from functools import cache
from http.cookies import CookieError, SimpleCookie

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from transformer.access.known_people import LONGEST_ID, person_called
from transformer.access.people import ME, NOBODY, Person
from transformer.access.secrets_kept import is_signed, signature
from transformer.access.server_settings import identity, proxies

HEADER = "x-attention-lab-visitor"
"""Carries the recognised id, sealed, from here to the pages."""
COOKIE = "attention_lab_visitor"
_LOGIN = re.compile(r"_streamlit_user(_+[0-9]+)?")
"""The names of the cookies in which Streamlit keeps who is logged in; a long login has several."""
_PURPOSE = "visitor"
_VALUE = re.compile(r"([0-9a-f]{32})\.([0-9a-f]{64})")
_KEPT_S = 400 * 24 * 3600
"""The longest time for which browsers keep a cookie."""


Headers = list[tuple[bytes, bytes]]


class Recognise:
    """Writes who a visitor is into each request, and gives new browsers their cookie."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = [(name, value) for name, value in scope["headers"] if name.lower() != HEADER.encode()]
        who, fresh = _recognised({**scope, "headers": headers})
        if who:
            headers.append((HEADER.encode(), sealed(who).encode()))
        wants_page = scope["type"] == "http" and b"text/html" in _values(headers, b"accept")
        cookie = _set_cookie(who) if fresh and wants_page else b""

        async def send_with_cookies(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [(b"set-cookie", cookie), (b"cache-control", b"no-store")] if cookie else []
                message = {**message, "headers": [*message.get("headers", ()), *own]}
            await send(message)

        await self._app({**scope, "headers": headers}, receive, send_with_cookies)


def sealed(who: str) -> str:
    """Returns an id as it goes into the header, with a seal of this process."""
    text = base64.urlsafe_b64encode(who.encode()).decode()
    return f"{text}.{_seal(text)}"


def unsealed(value: str) -> str:
    """Returns the id in a header's value; empty where this process did not write it."""
    text, _, seal = value.partition(".")
    if not hmac.compare_digest(_seal(text).encode(), seal.encode()):
        return ""
    return base64.urlsafe_b64decode(text).decode()


def visitor_of(scope: Scope) -> str:
    """Returns the id that `Recognise` wrote into a request; empty where nobody was recognised."""
    return unsealed(_values(scope["headers"], HEADER.encode()).decode("latin-1"))


def browser_of(headers: Headers) -> str:
    """Returns by what two requests of one visitor's browser are known to be so; empty where nobody was recognised.

    `headers` are those that `Recognise` wrote. A login is told from others by its cookies, which Streamlit signs.
    """
    if identity().kind != "oidc":
        return unsealed(_values(headers, HEADER.encode()).decode("latin-1"))
    try:
        cookies = SimpleCookie(_values(headers, b"cookie").decode("latin-1"))
    except CookieError:
        return ""
    return "; ".join(f"{name}={cookies[name].value}" for name in sorted(cookies) if _LOGIN.fullmatch(name))


def request_person(scope: Scope) -> Person:
    """Returns the person who sends a request; of a login nothing is known before its page runs."""
    if identity().is_one_person:
        return ME
    found = visitor_of(scope)
    return person_called(found) if found else NOBODY


def signed_id(person_id: str) -> str:
    """Returns the value of the cookie for an id."""
    return f"{person_id}.{signature(person_id, _PURPOSE)}"


def _recognised(scope: Scope) -> tuple[str, bool]:
    """Returns the id of who sends a request, empty for nobody; and True if it was made for them a moment ago."""
    how = identity()
    match how.kind:
        case "cookie":
            if known := _of_cookie(_values(scope["headers"], b"cookie")):
                return known, False
            return secrets.token_hex(16), True
        case "header":
            return (_of_header(scope, how.header) if _is_from_proxy(scope) else ""), False
    return "", False


def _of_cookie(header: bytes) -> str:
    try:
        value = SimpleCookie(header.decode("latin-1"))[COOKIE].value
    except (CookieError, KeyError):
        return ""
    found = _VALUE.fullmatch(value)
    return found[1] if found and is_signed(found[1], _PURPOSE, found[2]) else ""


def _of_header(scope: Scope, name: str) -> str:
    """Returns the id in the proxy's header; empty where it is missing, there twice, too long or not printable."""
    found = [value for key, value in scope["headers"] if key.lower() == name.encode()]
    if len(found) != 1:
        return ""
    try:
        text = found[0].decode("utf-8").strip().lower()
    except UnicodeDecodeError:
        return ""
    return text if 0 < len(text) <= LONGEST_ID and text.isprintable() else ""


def _is_from_proxy(scope: Scope) -> bool:
    """Tells whether a request came from a trusted proxy.

    Where it did and the proxy named its client, uvicorn has put that client's address in the place of the proxy's, with
    the port 0, which no connection has; it does so for the trusted addresses alone.
    """
    host, port = scope.get("client") or ("", -1)
    return port == 0 or _is_listed(host)


def _is_listed(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
        return any(address in ipaddress.ip_network(proxy, strict=False) for proxy in proxies())
    except ValueError:
        return host in proxies()


def _set_cookie(who: str) -> bytes:
    return f"{COOKIE}={signed_id(who)}; Path=/; Max-Age={_KEPT_S}; HttpOnly; SameSite=Lax".encode()


def _values(headers: Headers, name: bytes) -> bytes:
    return b"; ".join(value for key, value in headers if key.lower() == name)


@cache
def _process_key() -> bytes:
    return secrets.token_bytes(32)


def _seal(text: str) -> str:
    return hmac.new(_process_key(), text.encode(), hashlib.sha256).hexdigest()
