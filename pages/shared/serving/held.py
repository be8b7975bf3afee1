"""Results held for all visitors: the newest of them, as many as fit into a number of bytes. No Streamlit here."""

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from pages.shared.serving.sizes import size_of


@dataclass
class _Entry:
    value: Any
    size: int
    uses: int = 0
    next_weighing: int = 1
    """The use at which it is weighed anew."""


class Held:
    """Results by the function that made them and a key; each is made once, however many ask for it at a time.

    Together they hold at most `max_bytes`: the one that was longest not asked for goes first. A result that is larger
    on its own is handed out and not kept. What a result computes later, when it is looked at, counts too: it is weighed
    anew at its first use, and each time that its uses have quadrupled.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._lock = threading.Lock()
        self._entries: OrderedDict[tuple[Hashable, str], _Entry] = OrderedDict()
        self._counts: Counter[Hashable] = Counter()
        self._making: dict[tuple[Hashable, str], threading.Event] = {}
        self._bytes = 0

    @property
    def bytes(self) -> int:
        """Returns the bytes that are held."""
        return self._bytes

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, function: Hashable, key: str, make: Callable[[], Any], max_entries: int) -> Any:
        """Returns the function's result under this key, made if it is not held; raises what `make` raises."""
        where = function, key
        while True:
            with self._lock:
                if (entry := self._entries.get(where)) is not None:
                    return self._used(where, entry).value
                if (others := self._making.get(where)) is None:
                    self._making[where] = ready = threading.Event()
                    break
            others.wait()
        try:
            value = make()
            self._keep(where, value, max_entries)
            return value
        finally:
            with self._lock:
                del self._making[where]
            ready.set()

    def clear(self) -> None:
        """Forgets all results."""
        with self._lock:
            self._entries.clear()
            self._counts.clear()
            self._bytes = 0

    def _used(self, where: tuple[Hashable, str], entry: _Entry) -> _Entry:
        self._entries.move_to_end(where)
        entry.uses += 1
        if entry.uses == entry.next_weighing:
            entry.next_weighing *= 4
            size = size_of(entry.value)
            self._bytes += size - entry.size
            entry.size = size
            self._shrink()
        return entry

    def _keep(self, where: tuple[Hashable, str], value: Any, max_entries: int) -> None:
        size = size_of(value)
        if size > self.max_bytes:
            return
        with self._lock:
            self._entries[where] = _Entry(value, size)
            self._bytes += size
            self._counts[where[0]] += 1
            if self._counts[where[0]] > max_entries:
                self._forget(next(other for other in self._entries if other[0] == where[0]))
            self._shrink()

    def _shrink(self) -> None:
        while self._bytes > self.max_bytes and self._entries:
            self._forget(next(iter(self._entries)))

    def _forget(self, where: tuple[Hashable, str]) -> None:
        self._bytes -= self._entries.pop(where).size
        self._counts[where[0]] -= 1
