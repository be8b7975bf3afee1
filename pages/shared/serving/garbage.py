"""Keeps garbage collections short in a server that collects after every rerun.

What pages and models add is frozen once a collection takes long: frozen objects are not looked at. How long one took is
all that is asked for. A list of the objects themselves would hold tuples that other threads are just building, which
then fail to grow: "SystemError: Objects/tupleobject.c: bad argument to internal function", in CPython 3.11.
"""

import gc
import time
from typing import Any

LONG_S = 0.006
"""Processor seconds for about 20,000 objects. Pages drawn for the first time add 200,000."""
_OLDEST = 2
_begun_s = _took_s = 0.0


def watch() -> None:
    """Times every full collection from now on."""
    if _note not in gc.callbacks:
        gc.callbacks.append(_note)


def freeze_if_long() -> None:
    """Collects, and freezes what is left, where the last full collection took longer than LONG_S."""
    global _took_s
    if _took_s > LONG_S:
        gc.collect()
        gc.freeze()
        _took_s = 0.0


def _note(phase: str, collection: dict[str, Any]) -> None:
    global _begun_s, _took_s
    if collection["generation"] != _OLDEST:
        return
    if phase == "start":
        _begun_s = time.thread_time()  # of this thread alone: waiting for a core is no work
    else:
        _took_s = time.thread_time() - _begun_s
