"""A process that has imported everything a trainer needs, and becomes one by forking whenever it is asked to.

    python -m transformer.runs.warm_worker    (a socket as standard input; launch.py is at its other end)

It computes nothing itself: a fork of a process with threads, or with a device in use, would not work. It ends when the
socket's other end is gone. The trainers that it became lead sessions of their own, and outlive it.
"""

import contextlib
import gc
import json
import os
import signal
import socket
import sys
import traceback
from pathlib import Path
from typing import Any

from transformer.runs.launch import READY, lower_priority

ORPHAN_CHECK_S = 30.0
_LARGEST_REQUEST = 65_536


def main() -> int:
    """Imports, says so, and serves requests until nobody is left to make any."""
    lower_priority()
    line = socket.socket(fileno=0)
    import_trainer()
    gc.collect()
    gc.freeze()  # a collection in a fork would otherwise copy every page that it shares with this process
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no zombies: the system reaps the trainers
    line.send(READY)
    _serve(line)
    return 0


def import_trainer() -> None:
    """Imports what a trainer needs, and makes the one shipped corpus that takes a moment to make."""
    import torch._dynamo  # noqa: F401 - the first torch optimiser imports it: three quarters of a second

    import transformer.runs.trainer
    import transformer.runs.worker  # noqa: F401
    from transformer.data.corpora import PRONOUNS, load_corpus

    load_corpus(PRONOUNS)


def _serve(line: socket.socket) -> None:
    parent = os.getppid()
    line.settimeout(ORPHAN_CHECK_S)
    while True:
        try:
            request, handles, _, _ = socket.recv_fds(line, _LARGEST_REQUEST, 1)
        except TimeoutError:
            if os.getppid() != parent:
                return
            continue
        except OSError:
            return
        if not request:
            return
        if os.fork() == 0:
            _become_trainer(line, json.loads(request), handles[0])
        os.close(handles[0])


def _become_trainer(line: socket.socket, request: dict[str, Any], lock: int) -> None:
    """Trains in this forked process and never returns; the fork itself reports its process id to launch.py."""
    status = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.setsid()
        log = Path(request["log"]).open("ab")
        line.send(str(os.getpid()).encode())
        line.detach()
        with Path(os.devnull).open("rb") as nothing:
            os.dup2(nothing.fileno(), 0)
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
        os.environ.update(request["environment"])
        from transformer.runs.worker import train_claimed

        status = train_claimed(Path(request["folder"]), int(request["threads"]), lock)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    sys.exit(main())
