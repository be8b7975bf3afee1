"""Headers with which browsers keep a page to itself: nothing from other servers, in no other site's frame.

One cookie cannot be HttpOnly: Streamlit's script reads `_streamlit_xsrf` and sends it back with uploads.
"""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_SOURCES = {
    "default-src": "'self'",
    # Streamlit and Plotly compile functions, components are small scripts of their own, workers come as blobs.
    "script-src": "'self' 'unsafe-inline' 'unsafe-eval' 'wasm-unsafe-eval' blob:",
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data: blob:",
    "media-src": "'self' data: blob:",
    "font-src": "'self' data:",
    "connect-src": "'self' ws: wss: data: blob:",
    "worker-src": "'self' blob:",
    "frame-src": "'self' data: blob:",
    "object-src": "'none'",
    "base-uri": "'self'",
    "form-action": "'self'",
    "frame-ancestors": "'self'",
}
HEADERS = {
    b"content-security-policy": "; ".join(f"{name} {what}" for name, what in _SOURCES.items()).encode(),
    b"x-frame-options": b"SAMEORIGIN",
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"same-origin",  # the address of a page may hold a link's token
    b"permissions-policy": b"camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}


class SecureHeaders:
    """Adds the headers to each answer that has none of the name; cookies of a page that came by HTTPS stay there."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        secure = scope.get("scheme") in ("https", "wss")

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [(name, _secured(name, value) if secure else value) for name, value in message.get("headers", ())]
                present = {name.lower() for name, _ in own}
                message = {**message, "headers": [*own, *(pair for pair in HEADERS.items() if pair[0] not in present)]}
            await send(message)

        await self._app(scope, receive, send_with_headers if scope["type"] == "http" else send)


def _secured(name: bytes, value: bytes) -> bytes:
    if name.lower() != b"set-cookie" or b"secure" in value.lower().split(b";", 1)[-1]:
        return value
    return value + b"; Secure"
