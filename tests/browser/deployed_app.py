"""The app as `deploy/` installs it: its files in a clean read-only folder, another user, nginx before it."""

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from app_server import ROOT, Server, free_port, running_app

DEPLOY = ROOT / "deploy"
BASE = "/lab"
_NOBODY = "65534"
_READS = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")
"""Lets that user reach the interpreter of these tests, which may lie in the home of another; not write there."""


def container_steps(word: str) -> list[str]:
    """Returns what follows a word at the beginning of a line of the Containerfile, each with its continued lines."""
    text = (DEPLOY / "Containerfile").read_text().replace("\\\n", " ")
    return [line.removeprefix(word).strip() for line in text.splitlines() if line.startswith(f"{word} ")]


def container_settings() -> dict[str, str]:
    """Returns the environment variables that the Containerfile sets."""
    pairs = (pair.partition("=") for step in container_steps("ENV") for pair in step.split())
    return {name: value.strip('"') for name, _, value in pairs}


def container_sources() -> list[str]:
    """Returns the files and folders that the Containerfile copies."""
    return [source.rstrip("/") for step in container_steps("COPY") for source in step.split()[:-1]]


def install(folder: Path) -> None:
    """Copies what the container holds into a folder, and takes everybody's right to write there."""
    for source in container_sources():
        path = ROOT / source
        copied = folder / source
        if path.is_dir():
            shutil.copytree(path, copied, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copied)
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)


@contextlib.contextmanager
def deployed(fill: Callable[[Path], object], identity: str = "cookie") -> Iterator[Server]:
    """The installed app under its base path, as another user where this one may change it; `fill` makes its runs."""
    with tempfile.TemporaryDirectory(prefix="attention-lab-deployed-") as found:
        folder = Path(found)
        folder.chmod(0o755)
        install(source := folder / "source")
        for name in ("runs", "home"):
            (folder / name).mkdir()
        fill(folder / "runs")
        as_user: list[str] = []
        if os.geteuid() == 0 and shutil.which("setpriv"):
            as_user = ["setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups", *_READS]
            subprocess.run(["chown", "-R", f"{_NOBODY}:{_NOBODY}", folder / "runs", folder / "home"], check=True)
        settings = {k: v for k, v in container_settings().items() if not k.startswith("STREAMLIT_SERVER_")}
        settings |= {"HOME": str(folder / "home"), "ATTENTION_LAB_MEASURE": "ask", "ATTENTION_LAB_IDENTITY": identity}
        log = folder / "server.log"
        try:
            with running_app(
                folder / "runs", log, base=BASE, folder=source, environment=settings, as_user=as_user
            ) as server:
                yield server
        finally:
            for path in [source, *source.rglob("*")]:
                path.chmod(0o755 if path.is_dir() else 0o644)  # or it could not be removed


@contextlib.contextmanager
def behind_nginx(server: Server, folder: Path, changed: Mapping[str, str] | None = None) -> Iterator[str]:
    """nginx with the file of `deploy/`, its addresses and certificate alone replaced; yields the address of the app.

    `changed` are further lines that an administrator would change.
    """
    port, plain = free_port(), free_port()
    certificate, key = folder / "fullchain.pem", folder / "privkey.pem"
    names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *names, *files],
        check=True,
        capture_output=True,
    )
    config = (DEPLOY / "nginx.conf").read_text()
    upstream = re.search(r"://([^/]+)", server.url)
    assert upstream is not None
    for old, new in {
        "server app:8501;": f"server {upstream[1]};",
        "listen 80 default_server;": f"listen 127.0.0.1:{plain};",
        "listen 443 ssl default_server;": f"listen 127.0.0.1:{port} ssl;",
        "/etc/nginx/certs/fullchain.pem": str(certificate),
        "/etc/nginx/certs/privkey.pem": str(key),
        **(changed or {}),
    }.items():
        assert old in config, f"deploy/nginx.conf has no {old!r}"
        config = config.replace(old, new)
    (folder / "site.conf").write_text(config)
    scratch = [f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")]
    user = "root" if os.geteuid() == 0 else "nobody"
    (folder / "nginx.conf").write_text(
        f"user {user}; daemon off; pid {folder}/pid; error_log {folder}/error.log;\n"
        f"events {{ worker_connections 2048; }}\nhttp {{ include /etc/nginx/mime.types; access_log off; "
        f"{' '.join(scratch)} include {folder}/site.conf; }}\n"
    )
    nginx = shutil.which("nginx") or "/usr/sbin/nginx"
    process = subprocess.Popen([nginx, "-p", str(folder), "-c", str(folder / "nginx.conf")])
    try:
        _wait_for(f"http://127.0.0.1:{plain}/", process)
        yield f"https://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


def _wait_for(address: str, process: subprocess.Popen) -> None:
    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_: object) -> None:
            return None

    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and process.poll() is None:
        try:
            urllib.request.build_opener(Stay).open(address, timeout=5)
        except urllib.error.HTTPError:
            return  # it answers: with a redirection
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.05)
    raise RuntimeError("nginx did not start")
