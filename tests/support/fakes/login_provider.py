"""A small OpenID Connect provider for tests: it asks which account, and never for a password."""

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey

CLIENT, SECRET = "attention-lab", "a secret of provider and server"
FORGER = "forger"
"""The account whose tokens are signed with a key that is not the provider's."""


@dataclass
class Provider:
    """Accounts, each with what the provider says of it, and the logins that are under way."""

    accounts: Mapping[str, Mapping[str, object]]
    url: str = ""
    key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "one", "use": "sig"}))
    other_key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "one", "use": "sig"}))
    asked: dict[str, tuple[str, dict[str, str]]] = field(default_factory=dict)
    """The account and the request of each code that was given out and not used yet."""

    def metadata(self) -> dict[str, Any]:
        """Returns the document by which a client finds everything else."""
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "code_challenge_methods_supported": ["S256"],
        }

    def choices(self, request: Mapping[str, str]) -> str:
        """Returns the page that asks which account."""
        links = (
            f'<li><a href="/chosen?{escape(urlencode({**request, "account": name}))}">{escape(name)}</a></li>'
            for name in self.accounts
        )
        return f"<h1>Which account?</h1><ul>{''.join(links)}</ul>"

    def chosen(self, request: dict[str, str]) -> str:
        """Returns the address that leads back to the client, with a code."""
        code = secrets.token_urlsafe()
        self.asked[code] = (request["account"], request)
        return f"{request['redirect_uri']}?{urlencode({'code': code, 'state': request['state']})}"

    def token(self, form: Mapping[str, str], credentials: str) -> dict[str, Any] | None:
        """Returns the tokens for a code; None for a wrong secret, verifier or address, or a code that was used."""
        account, request = self.asked.pop(form.get("code", ""), ("", {}))
        own = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        proof = base64.urlsafe_b64encode(hashlib.sha256(form.get("code_verifier", "").encode()).digest()).decode()
        is_client = credentials == f"Basic {own}" or form.get("client_secret") == SECRET
        is_same = form.get("redirect_uri") == request.get("redirect_uri")
        if not account or not is_client or not is_same or proof.rstrip("=") != request.get("code_challenge"):
            return None
        now = int(time.time())
        claims = {"iss": self.url, "aud": CLIENT, "sub": account, "iat": now, "exp": now + 600}
        claims |= {"nonce": request.get("nonce", ""), **self.accounts[account]}
        key = self.other_key if account == FORGER else self.key
        signed = jwt.encode({"alg": "RS256", "kid": "one"}, claims, key)
        return {"access_token": secrets.token_urlsafe(), "token_type": "Bearer", "expires_in": 600, "id_token": signed}


@contextmanager
def login_provider(accounts: Mapping[str, Mapping[str, object]]) -> Iterator[Provider]:
    """A provider at a port of this machine."""
    provider = Provider(accounts)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            given = {name: values[0] for name, values in parse_qs(parts.query).items()}
            match parts.path:
                case "/.well-known/openid-configuration":
                    self._json(provider.metadata())
                case "/keys":
                    self._json(KeySet([provider.key]).as_dict(private=False))
                case "/authorize" if given.get("client_id") == CLIENT:
                    self._answer(200, provider.choices(given).encode(), "text/html")
                case "/chosen" if given.get("account") in provider.accounts:
                    self._answer(302, b"", "text/plain", {"Location": provider.chosen(given)})
                case _:
                    self._answer(404, b"", "text/plain")

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            form = {name: values[0] for name, values in parse_qs(body).items()}
            found = provider.token(form, self.headers.get("Authorization", ""))
            self._json(found or {"error": "invalid_grant"}, 200 if found else 400)

        def _json(self, content: object, status: int = 200) -> None:
            self._answer(status, json.dumps(content).encode(), "application/json")

        def _answer(self, status: int, body: bytes, kind: str, headers: Mapping[str, str] | None = None) -> None:
            self.send_response(status)
            for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        provider.url = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield provider
        finally:
            server.shutdown()
