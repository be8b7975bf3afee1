"""Periodic upkeep of the run queue. Everything here may fail without harm to a run."""

import contextlib
import logging

from transformer.files import remove_leftovers, runs_folder
from transformer.runs.launch import WARM
from transformer.runs.queue import max_runs, start_waiting
from transformer.runs.quota import check_limits
from transformer.runs.status import RunError

_AN_HOUR_S = 3600.0
_log = logging.getLogger(__name__)


def begin() -> None:
    """Refuses limits that are no numbers with a RunError, removes what a killed server left, warms a worker up."""
    max_runs()
    check_limits()
    remove_leftovers(runs_folder(), older_than_s=_AN_HOUR_S)
    WARM.keep()


def do_upkeep() -> None:
    """Starts the runs whose turn it is, and replaces a warm worker that died; quick where there is nothing to do."""
    try:
        WARM.keep()
        start_waiting()
    except (OSError, RunError) as error:
        _log.warning("the queue could not be served: %s", error)
    except Exception:  # whatever one folder holds, the next round looks at all of them again
        _log.exception("the queue could not be served")


def end() -> None:
    """Ends the warm worker. Trainers go on."""
    with contextlib.suppress(OSError):
        WARM.end()
