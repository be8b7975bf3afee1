"""News of a run for its watchers: looked at and drawn once for all of them, then sent to each.

A feed lives while somebody follows its run. It looks at the files of the run, asks the trainer for the sentences that
are watched, and draws a part anew when what it depends on has changed, no more often than its cost allows.
"""

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pages.shared.live.watches import LivePart, Look, Source, Watch
from transformer.access.ownership import may_see
from transformer.access.people import acting_as, operator
from transformer.checkpoints.settings import METRICS_FILE, SAMPLES_FILE, CheckpointError
from transformer.runs.live.watched import LIVE_FILE, LiveOutput, forget, live_outputs, want
from transformer.runs.run_folder import Run, get_run
from transformer.runs.status import STATUS_FILE, RunError

LOOK_EVERY_S = 0.05
STATUS_EVERY_S = 0.5
"""A trainer that died says nothing: its process is looked for this often."""
LINGER_S = 3.0
"""The seconds for which a feed stays after the last connection."""
WANT_EVERY_S = 2.0
"""The seconds between two words to the trainer that sentences are still watched, and two looks at who may see a run."""
CURVES_EVERY_S = 0.3
"""The least seconds between two drawings of a part that follows metrics: curves grow slowly, and are long."""
SHARE = 0.05
"""The largest share of a core that drawing one part may take."""
_log = logging.getLogger(__name__)


@dataclass
class Follower:
    """One connection: what it has been sent, and the newest of what it has not."""

    watch: Watch
    refused: bool = False
    """True once its person may not look at the run any more."""
    is_new: bool = True
    """True until it has been told what was drawn before it came."""
    _pending: dict[str, Any] = field(default_factory=dict)
    _sent: dict[str, dict[str, Any]] = field(default_factory=dict)
    _ready: asyncio.Event = field(default_factory=asyncio.Event)

    def offer(self, news: dict[str, Any]) -> None:
        """Takes news, which replace older ones that could not be sent yet."""
        if news:
            self._pending.update(news)
            self._ready.set()

    def refuse(self) -> None:
        """Ends it."""
        self.refused = True
        self._ready.set()

    async def message(self) -> str:
        """Waits for news and returns them as JSON: of each part what differs from what was sent; empty once refused."""
        await self._ready.wait()
        self._ready.clear()
        if self.refused:
            return ""
        news, self._pending = self._pending, {}
        return json.dumps({name: self._changes(name, value) for name, value in news.items()})

    def _changes(self, name: str, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        before, self._sent[name] = self._sent.get(name, {}), value
        return {key: one for key, one in value.items() if key not in before or before[key] != one}


@dataclass
class _Drawn:
    value: dict[str, Any] | None = None
    next_s: float = 0.0
    """The time before which it is not drawn again."""
    stale: bool = True


class Feed:
    """One run, and those who follow it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.followers: list[Follower] = []
        self._stamps: dict[Path, tuple[int, int]] = {}
        self._drawn: dict[tuple[LivePart, str], _Drawn] = {}
        self._memories: dict[str, dict[str, Any]] = {}
        self._outputs: dict[str, LiveOutput] = {}
        self._run: Run | None = None
        self._looked_s = self._wanted_s = 0.0
        self._texts: tuple[str, ...] = ()
        self._was_active = True

    async def work(self) -> None:
        """Tells the followers what is new until the last of them has been gone for a while."""
        left_s = time.monotonic()
        while self.followers or time.monotonic() - left_s < LINGER_S:  # a page that is loaded again comes back at once
            if self.followers:
                left_s = time.monotonic()
            try:
                news = await asyncio.to_thread(self._news, tuple({follower.watch for follower in self.followers}))
            except Exception:
                _log.exception("the feed of %s", self.folder.name)
                news = {}
            for follower in self.followers:  # some came meanwhile
                self._tell(follower, news)
            await asyncio.sleep(LOOK_EVERY_S)
        if not self._was_active:
            await asyncio.to_thread(forget, self.folder)

    def _tell(self, follower: Follower, news: Mapping[Watch, dict[str, Any] | None]) -> None:
        watch = follower.watch
        if watch in news and news[watch] is None:
            follower.refuse()
            return
        if follower.is_new and watch in news:
            follower.is_new = False
            for part in watch.parts:
                if (drawn := self._drawn[_key(part, watch.text)].value) is not None:
                    follower.offer({part.name: drawn})
            if not self._was_active:
                follower.offer({"over": self._state})
        follower.offer(news.get(watch) or {})

    @property
    def _state(self) -> str:
        return "gone" if self._run is None else self._run.status.state

    def _news(self, watches: tuple[Watch, ...]) -> dict[Watch, dict[str, Any] | None]:
        """Returns what is new for each watch; None for one whose person may not look any more."""
        now, refused = time.monotonic(), set[Watch]()
        with acting_as(operator()):
            over = self._look(now)
            if now - self._wanted_s > WANT_EVERY_S or self._texts != _texts(watches):
                refused = {watch for watch in watches if not _may_follow(watch)}
                self._want(now, [watch for watch in watches if watch not in refused])
            drawn = self._draw({(part, watch.text) for watch in watches for part in watch.parts}, now)
        news: dict[Watch, dict[str, Any] | None] = {}
        for watch in watches:
            told = {part.name: drawn[part, watch.text] for part in watch.parts if (part, watch.text) in drawn}
            news[watch] = None if watch in refused else told | over
        return news

    def _want(self, now: float, watches: Iterable[Watch]) -> None:
        self._wanted_s, self._texts = now, _texts(watches)
        if self._run is not None and self._run.status.active:
            with suppress(OSError):  # a folder that is read-only or gone: there is nothing to ask for
                want(self.folder, filter(None, self._texts))

    def _look(self, now: float) -> dict[str, Any]:
        """Reads what has changed; returns {"over": STATE} when the run has ended or paused, else nothing."""
        files: dict[Source, str] = {
            "output": LIVE_FILE,
            "metrics": METRICS_FILE,
            "samples": SAMPLES_FILE,
            "status": STATUS_FILE,
        }
        changed = {source for source, name in files.items() if self._has_changed(self.folder / name)}
        others = {folder for part, _ in self._drawn for folder in part.beside}
        grown = {folder for folder in others if self._has_changed(folder / METRICS_FILE)}
        if "output" in changed:
            self._outputs = live_outputs(self.folder)
        if "status" in changed or now - self._looked_s > STATUS_EVERY_S:
            self._looked_s = now
            before, self._run = self._run, self._get_run()
            if self._run != before:
                changed.add("status")
        for (part, _), drawn in self._drawn.items():
            drawn.stale |= not (changed.isdisjoint(part.on) and grown.isdisjoint(part.beside))
        was_active, self._was_active = self._was_active, self._run is not None and self._run.status.active
        if was_active and not self._was_active:
            return {"over": self._state}
        return {}

    def _get_run(self) -> Run | None:
        try:
            return get_run(self.folder.name)
        except (RunError, CheckpointError):
            return None

    def _has_changed(self, path: Path) -> bool:
        try:
            found = path.stat()
            stamp = found.st_mtime_ns, found.st_size
        except OSError:
            stamp = 0, 0
        before, self._stamps[path] = self._stamps.get(path), stamp
        return stamp != before

    def _draw(self, wanted: Iterable[tuple[LivePart, str]], now: float) -> dict[tuple[LivePart, str], dict[str, Any]]:
        """Returns the parts whose news are due; one of no sentence is drawn once for all."""
        wanted, found = [*wanted], {}
        fresh: dict[tuple[LivePart, str], dict[str, Any] | None] = {}
        keys, texts = {_key(part, text) for part, text in wanted}, {text for _, text in wanted}
        self._drawn = {key: drawn for key, drawn in self._drawn.items() if key in keys}
        self._memories = {text: kept for text, kept in self._memories.items() if text in texts}
        for part, text in wanted:
            key = _key(part, text)
            drawn = self._drawn.setdefault(key, _Drawn())
            if key not in fresh and drawn.stale and now >= drawn.next_s and self._run is not None:
                begin = time.monotonic()
                memory = self._memories.setdefault(text, {})
                shown = self._shown(part, Look(self._run, self._outputs.get(text), memory))
                drawn.stale = False
                drawn.next_s = now + max(
                    CURVES_EVERY_S if "metrics" in part.on else 0.0, (time.monotonic() - begin) / SHARE
                )
                fresh[key] = None
                if shown is not None:
                    drawn.value = fresh[key] = {**shown[1], "step": shown[0]}
            if (value := fresh.get(key)) is not None:
                found[part, text] = value
        return found

    def _shown(self, part: LivePart, look: Look) -> tuple[int, dict[str, Any]] | None:
        try:
            return part.data(look)
        except Exception:  # the other parts go on; this one too, with the next news
            _log.exception("%s of %s could not be drawn", part.name, self.folder.name)
            return None


def _key(part: LivePart, text: str) -> tuple[LivePart, str]:
    return part, text if "output" in part.on else ""


def _may_follow(watch: Watch) -> bool:
    return all(may_see(folder, watch.person) for folder in watch.folders)


def _texts(watches: Iterable[Watch]) -> tuple[str, ...]:
    return tuple(sorted({watch.text for watch in watches}))


class Feeds:
    """The feeds of all runs that somebody follows; of one event loop."""

    def __init__(self) -> None:
        self._feeds: dict[Path, Feed] = {}
        self._tasks: dict[Path, asyncio.Task[None]] = {}

    def count(self) -> int:
        """Returns how many connections there are."""
        return sum(len(feed.followers) for feed in self._feeds.values())

    @asynccontextmanager
    async def following(self, watch: Watch) -> AsyncIterator[Follower]:
        """A block in which a connection is told what is new of a watch."""
        folder = watch.folder
        feed = self._feeds.get(folder)
        if feed is None or self._tasks[folder].done():
            feed = self._feeds[folder] = Feed(folder)
        follower = Follower(watch)
        feed.followers.append(follower)
        if not await asyncio.to_thread(_may_follow, watch):
            follower.refuse()
        if folder not in self._tasks or self._tasks[folder].done():
            self._tasks[folder] = asyncio.create_task(self._work(feed))
        try:
            yield follower
        finally:
            feed.followers.remove(follower)

    async def _work(self, feed: Feed) -> None:
        await feed.work()
        if not feed.followers and self._feeds.get(feed.folder) is feed:
            del self._feeds[feed.folder], self._tasks[feed.folder]


FEEDS = Feeds()
