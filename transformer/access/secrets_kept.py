"""Signatures that only this installation can make: the key lies in the folder of runs, readable by the server alone."""

import hashlib
import hmac
import os
import secrets
from contextlib import suppress
from pathlib import Path

from transformer.files import runs_folder

KEY_FILE = ".secret"
_BYTES = 32


def signature(text: str, purpose: str) -> str:
    """Returns the signature of a text for a purpose, in hexadecimal."""
    return hmac.new(_key(runs_folder() / KEY_FILE), f"{purpose}\n{text}".encode(), hashlib.sha256).hexdigest()


def is_signed(text: str, purpose: str, claimed: str) -> bool:
    """Tells whether a signature is that of the text, in a time that does not depend on where it differs."""
    return hmac.compare_digest(signature(text, purpose).encode(), claimed.encode())


def _key(path: Path) -> bytes:
    """Returns the key of this installation, which the first one who needs it makes."""
    with suppress(FileNotFoundError):
        return path.read_bytes()
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{KEY_FILE}.{secrets.token_hex(8)}.tmp")
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(_BYTES))
        with suppress(FileExistsError):  # another process was first: its key holds
            os.link(fresh, path)
    finally:
        fresh.unlink()
    return path.read_bytes()
