"""A proxy that says who its visitors are: the real nginx, a password, and people who try to go round both."""

import asyncio
import base64
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from app_server import Server
from deployed_app import BASE, behind_nginx, deployed
from session import Session

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (shutil.which("nginx") or Path("/usr/sbin/nginx").exists()), reason="no nginx: apt-get install nginx-light"
    ),
    pytest.mark.skipif(not shutil.which("openssl"), reason="no openssl to make a certificate"),
]
NO_NAME = 'proxy_set_header X-User "";'
UNKNOWN = "does not know who you are"
OWN_HEADER = "X-Attention-Lab-Visitor"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """The app, told by a header of its proxy who its visitors are."""
    with deployed(lambda runs: None, identity="header:X-User") as server:
        yield server


@pytest.fixture(scope="module")
def shipped(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of nginx with the file as it is shipped, which knows nobody."""
    with behind_nginx(server, tmp_path_factory.mktemp("shipped")) as address:
        yield address + BASE


@pytest.fixture(scope="module")
def with_passwords(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of nginx after its administrator gave it a file of passwords and the name to send."""
    folder = tmp_path_factory.mktemp("passwords")
    hashed = subprocess.run(["openssl", "passwd", "-apr1", "of ada"], check=True, capture_output=True, text=True).stdout
    (folder / "passwords").write_text(f"ada:{hashed}")
    (folder / "passwords").chmod(0o644)
    folder.chmod(0o755)
    login = f'auth_basic "lab"; auth_basic_user_file {folder}/passwords; proxy_set_header X-User $remote_user;'
    with behind_nginx(server, folder, {NO_NAME: login}) as address:
        yield address + BASE


def page_for(address: str, headers: dict[str, str], **options: object) -> str:
    """Returns the text of the page Class, asked for with these headers over a websocket."""
    if address.startswith("https:"):
        options["ssl"] = ssl._create_unverified_context()

    async def ask() -> str:
        session = await Session.open(address, additional_headers=headers, **options)
        try:
            return (await session.show("class")).text
        finally:
            await session.close()

    with ThreadPoolExecutor(1) as thread:  # a test in the browser leaves an event loop in this one
        return thread.submit(asyncio.run, ask()).result()


def password(text: str) -> dict[str, str]:
    return {"Authorization": f"Basic {base64.b64encode(text.encode()).decode()}"}


def test_the_shipped_proxy_drops_every_name_that_a_visitor_sends(shipped: str):
    for forged in ({"X-User": "ada"}, {"x-USER": "ada"}, {"X_User": "ada"}, {OWN_HEADER: "YWRh.0"}):
        assert UNKNOWN in page_for(shipped, forged)
    assert UNKNOWN in page_for(shipped, {"X-User": "ada", "X-Forwarded-For": "127.0.0.1"})


def test_behind_a_password_the_proxys_name_counts_and_the_visitors_does_not(with_passwords: str):
    assert "known here as **ada**" in page_for(with_passwords, password("ada:of ada"))
    said = page_for(with_passwords, password("ada:of ada") | {"X-User": "bob", OWN_HEADER: "Ym9i.0"})
    assert "known here as **ada**" in said and "bob" not in said
    with pytest.raises(Exception, match="401"):
        page_for(with_passwords, password("ada:a guess") | {"X-User": "ada"})


def test_the_header_is_believed_from_the_proxys_address_alone(server: Server):
    assert "known here as **ada**" in page_for(server.url, {"X-User": "ada"}, local_addr=("127.0.0.1", 0))
    for forged in ({"X-User": "ada"}, {"X-User": "ada", "X-Forwarded-For": "127.0.0.1"}):
        assert UNKNOWN in page_for(server.url, forged, local_addr=("127.0.0.2", 0))
