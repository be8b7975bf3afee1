"""A visitor without a browser: one websocket to the app, which speaks Streamlit's protocol as a browser does."""

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect


@dataclass
class Shown:
    """The messages of one run of the page's script."""

    seconds: float
    text: str
    """All that was sent, as text that can be searched."""
    failed: bool
    """True if the script raised or was not run to its end."""
    buttons: dict[str, str] = field(default_factory=dict)
    """The id of each button, by its label."""


class Session:
    """One open page. `show` runs its script once and waits for its end."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._page_hashes: dict[str, str] = {}

    @classmethod
    async def open(cls, server: str, **options: Any) -> "Session":
        """Opens a session at a server's address, such as http://127.0.0.1:8501.

        `options` are those of the websocket.
        """
        parts = urlsplit(server)
        address = f"ws{'s' * (parts.scheme == 'https')}://{parts.netloc}{parts.path.rstrip('/')}/_stcore/stream"
        # As a browser names its page: the server checks it.
        options |= {"origin": f"{parts.scheme}://{parts.netloc}", "subprotocols": ["streamlit"]}
        return cls(await connect(address, max_size=None, open_timeout=60, **options))

    async def close(self) -> None:
        await self._connection.close()

    async def show(self, page: str, pressed: str = "", limit_s: float = 120.0, **parameters: object) -> Shown:
        """Opens a page with these query parameters; `pressed` is the id of a button that is pressed there.

        TimeoutError where its script has not ended after `limit_s`, however much it still sends.
        """
        begun = time.perf_counter()
        async with asyncio.timeout(limit_s):
            await self.ask(page, pressed, **parameters)
            return await self._until_finished(page, begun)

    async def ask(self, page: str, pressed: str = "", **parameters: object) -> None:
        """Asks for a page without waiting for it, as a visitor does who goes on typing."""
        message = BackMsg()
        asked = message.rerun_script
        asked.query_string = urlencode(parameters, doseq=True)
        asked.page_name = "" if page in self._page_hashes else page
        asked.page_script_hash = self._page_hashes.get(page, "")
        asked.context_info.url = f"http://127.0.0.1/{page}?{asked.query_string}"
        if pressed:
            asked.widget_states.widgets.add(id=pressed, trigger_value=True)
        await self._connection.send(message.SerializeToString())

    async def _until_finished(self, page: str, begun: float) -> Shown:
        said: list[str] = []
        buttons: dict[str, str] = {}
        failed = False
        while True:
            got = ForwardMsg()
            got.ParseFromString(await self._connection.recv(decode=False))
            await asyncio.sleep(0)  # a message that is there already is received without a pause: no limit would hold
            match got.WhichOneof("type"):
                case "navigation":
                    self._page_hashes[page] = got.navigation.page_script_hash
                case "delta":
                    element = got.delta.new_element
                    failed |= element.HasField("exception")
                    if element.HasField("button"):
                        buttons[element.button.label] = element.button.id
                    said.append(str(got.delta))
                case "script_finished" if got.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN:
                    if got.script_finished == ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY:
                        continue
                    failed |= got.script_finished != ForwardMsg.FINISHED_SUCCESSFULLY
                    return Shown(time.perf_counter() - begun, "\n".join(said), failed, buttons)
                case _:
                    pass
