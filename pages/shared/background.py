"""Long work beside the pages: each thing done once for all visitors who want it, with progress, a stop and a result.

    SEARCHES = Background("searches", at_once=1, kept=60)

    work = SEARCHES.submit(key, lambda tell: search(..., tell=tell), watcher)   # begins it, or joins it
    work.over.wait(1.0); work.share; work.left_s                                # how far it is
    work.result()                                                               # what was found; raises what it raised
    SEARCHES.leave(key, watcher)                                                # this visitor waits no longer

The key says all that the work depends on. Work goes on while one of its watchers is there: a watcher belongs to a
visitor's session and is gone with it, or soon after its connection. Work without a watcher goes on to its end. Whatever
work dies of, those who wait for it go on. When the server ends, all work is stopped and its threads are joined. Work is
done for the person who first asked. No Streamlit here.
"""

import atexit
import logging
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar
from weakref import WeakSet

from pages.shared.serving.sizes import size_of
from transformer.access.people import for_this_person

_log = logging.getLogger(__name__)
Found = TypeVar("Found")
Tell = Callable[..., object]
"""Takes the share of the work that is done, and where there is something to look at already a function that makes it;
raises Stopped if nobody waits for the rest."""
_SOONEST = 0.02
"""The share of the work from which on the time left can be said."""
_IDLE_S = 60.0
"""Seconds that a thread waits for more work: starting one takes longer than finding a decoding that is cached."""
_MAX_BYTES = 100_000_000
"""The most bytes that the results kept by one background hold together; the newest stays whatever its size."""
GRACE_S = 10.0
"""Seconds after which a watcher without a connection is taken for gone: a network may fail for a moment."""
_PATIENCE_S = 5.0
"""The longest wait at the end of the server for work that does not tell how far it is."""


class Stopped(Exception):
    """Nobody waits for the work any more."""


class Died(ValueError):
    """The work ended without an answer; the message is for its visitors. Whoever asks again begins it anew."""


class Watcher:
    """One visitor's session, which waits for work."""

    def __init__(self, is_connected: Callable[[], bool] = lambda: True) -> None:
        """`is_connected` tells, in any thread, whether the visitor's page is still open."""
        self.wanted: dict[str, Hashable] = {}
        """The key of the work that the session last asked for, by purpose."""
        self._is_connected, self._seen = is_connected, time.monotonic()

    def is_here(self) -> bool:
        """Tells whether the session is connected, or was a moment ago."""
        now = time.monotonic()
        if self._is_connected():
            self._seen = now
        return now - self._seen < GRACE_S


class Work(Generic[Found]):
    """One piece of work: waiting for its turn, begun, or over."""

    def __init__(self, compute: Callable[[Tell], Found]) -> None:
        self.share = 0.0
        """The share of the work that is done."""
        self.so_far: Callable[[], Found] | None = None
        """Makes the result as far as it is found; None where the work does not offer that."""
        self.begun: float | None = None
        """The time of its start by `time.monotonic`; None while it waits for its turn."""
        self.over = threading.Event()
        self.error: Exception | None = None
        self.to_the_end = False
        """True if it goes on without a watcher."""
        self.cancelled = False
        """True if it is to end, whoever may still wait for it."""
        self.size = 0
        """The bytes of its result; 0 until it is over."""
        self._compute: Callable[[Tell], Found] | None = compute
        self._found: Any = None
        self._watchers: WeakSet[Watcher] = WeakSet()
        self._lock = threading.Lock()

    @property
    def since_s(self) -> float:
        """Seconds since it was begun; 0 while it waits."""
        return 0.0 if self.begun is None else time.monotonic() - self.begun

    @property
    def left_s(self) -> float | None:
        """Seconds left by what was done so far; None where that cannot be said yet."""
        if self.begun is None or self.share < _SOONEST:
            return None
        return self.since_s * (1 - self.share) / self.share

    @property
    def stopped(self) -> bool:
        """Tells whether it ended because nobody waited for it."""
        return isinstance(self.error, Stopped)

    @property
    def died(self) -> bool:
        """Tells whether it ended by something that is no answer."""
        return isinstance(self.error, Died)

    def join(self, watcher: Watcher) -> None:
        """Lets a session wait for the work too."""
        with self._lock:
            self._watchers.add(watcher)

    def leave(self, watcher: Watcher) -> None:
        """Takes a session off those who wait."""
        with self._lock:
            self._watchers.discard(watcher)

    def is_awaited_by(self, watcher: Watcher) -> bool:
        """Tells whether a session waits for the work."""
        with self._lock:
            return watcher in self._watchers

    def cancel(self) -> None:
        """Ends the work for everyone, the next time that it tells how far it is; a result that is there stays."""
        self.cancelled = not self.over.is_set()

    def result(self) -> Found:
        """Waits for the result and returns it; raises what the work raised."""
        self.over.wait()
        if self.error is not None:
            raise self.error
        return self._found

    def run(self) -> None:
        """Does the work; what it raises is kept, and whatever that is, those who wait go on."""
        self.begun = time.monotonic()
        compute, self._compute = self._compute, None  # what it holds is free again afterwards
        assert compute is not None
        try:
            self.tell(0.0)
            found = compute(self.tell)
            self.size, self._found = size_of(found), found
        except MemoryError:
            self.error = Died("there was not enough memory for this computation: try again later, or something smaller")
        except Exception as error:
            self.error = error
        except BaseException as error:  # an exit or an interrupt in this thread ends this work alone
            _log.exception("work was ended")
            self.error = Died(f"this computation was ended ({type(error).__name__}): try again")
        finally:
            self._end()

    def fail(self, sentence: str) -> None:
        """Ends work that was never begun."""
        self._compute, self.error = None, Died(sentence)
        self._end()

    def _end(self) -> None:
        self.so_far = None
        self.over.set()

    def tell(self, share: float, so_far: Callable[[], Found] | None = None) -> None:
        """Takes over how far the work is; raises Stopped if nobody waits for the rest."""
        self.share, self.so_far = share, so_far
        with self._lock:
            is_wanted = self.to_the_end or any(watcher.is_here() for watcher in self._watchers)
        if self.cancelled or not is_wanted:
            raise Stopped


class Background:
    """The work of one sort on this server: a few pieces at once, in the order in which they were asked for."""

    def __init__(self, name: str, *, at_once: int = 1, kept: int = 60) -> None:
        """`kept` results stay for whoever asks for the same later; 0 where something else remembers them."""
        self._name, self._at_once, self._kept = name, at_once, kept
        self._lock = threading.Condition()
        self._idle, self._is_over = 0, False
        self._known: OrderedDict[Hashable, Work] = OrderedDict()
        self._waiting: deque[tuple[Hashable, Work]] = deque()
        self._threads: set[threading.Thread] = set()
        _ALL.add(self)

    def submit(self, key: Hashable, compute: Callable[[Tell], Found], watcher: Watcher | None = None) -> Work[Found]:
        """Returns the work of this key, begun if it is new, was stopped, cancelled or died. Without a watcher it goes
        on to its end."""
        with self._lock:
            work = self._known.get(key)
            if work is None or work.stopped or work.cancelled or work.died:
                work = self._known[key] = Work(for_this_person(compute))
                self._waiting.append((key, work))
            if watcher is None:
                work.to_the_end = True
            else:
                work.join(watcher)
            self._known.move_to_end(key)
            self._forget_oldest()
            if len(self._waiting) <= self._idle:
                self._lock.notify()
            elif len(self._threads) < self._at_once:
                self._start_thread()
            return work

    def submit_instead(
        self, purpose: str, key: Hashable, compute: Callable[[Tell], Found], watcher: Watcher
    ) -> Work[Found]:
        """`submit` for a watcher who leaves the work that it wanted before for the same purpose."""
        if (earlier := watcher.wanted.get(purpose)) not in (None, key):
            self.leave(earlier, watcher)
        watcher.wanted[purpose] = key
        return self.submit(key, compute, watcher)

    def find(self, key: Hashable) -> Work | None:
        """Returns the work of this key, None if there is none."""
        with self._lock:
            return self._known.get(key)

    def leave(self, key: Hashable, watcher: Watcher) -> None:
        """Takes a visitor off the watchers of the work."""
        with self._lock:
            if (work := self._known.get(key)) is not None:
                work.leave(watcher)

    def cancel(self, key: Hashable) -> None:
        """Ends the work for everyone, the next time that it tells how far it is."""
        with self._lock:
            if (work := self._known.get(key)) is not None:
                work.cancel()

    def cancel_all(self) -> None:
        """Ends all work for everyone."""
        with self._lock:
            keys = list(self._known)
        for key in keys:
            self.cancel(key)

    def join(self) -> None:
        """Stops all work and waits for its threads, but not for long."""
        self.cancel_all()
        with self._lock:
            self._is_over = True
            self._lock.notify_all()
        for thread in list(self._threads):
            thread.join(_PATIENCE_S)

    def _start_thread(self) -> None:
        thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the system has no more threads: without any here, nobody would ever do what waits
            while not self._threads and self._waiting:
                self._waiting.popleft()[1].fail("this server is too busy to compute anything more: try again later")
            return
        self._threads.add(thread)

    def _serve(self) -> None:
        while True:
            with self._lock:
                self._idle += 1
                self._lock.wait_for(lambda: self._waiting or self._is_over, _IDLE_S)
                self._idle -= 1
                if not self._waiting:
                    self._threads.discard(threading.current_thread())
                    return
                key, work = self._waiting.popleft()
            work.run()
            with self._lock:
                if not self._kept and self._known.get(key) is work:
                    del self._known[key]
            del work  # or it would be held, with its result, until the next one comes

    def _forget_oldest(self) -> None:
        over = [key for key, work in self._known.items() if work.over.is_set()]
        held = sum(self._known[key].size for key in over)
        while len(over) > self._kept or (held > _MAX_BYTES and len(over) > 1):
            held -= self._known.pop(over.pop(0)).size


_ALL: WeakSet[Background] = WeakSet()


@atexit.register
def _join_all() -> None:
    for background in list(_ALL):
        background.join()
