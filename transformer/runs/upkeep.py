"""Periodic upkeep of the run queue by the server. Everything here may fail without harm to a run."""

import contextlib
import logging

from transformer.files import remove_leftovers, runs_folder
from transformer.runs.launch import WARM
from transformer.runs.queue import max_runs, start_waiting
from transformer.runs.quota import check_limits
from transformer.runs.status import RunError, check_runs_folder

_AN_HOUR_S = 3600.0
_log = logging.getLogger(__name__)


def begin() -> None:
    """Removes what a killed server left and warms a worker up.

    RunError for limits that are not numbers, or a file in the place of the runs folder.
    """
    check_runs_folder()
    max_runs()
    check_limits()
    remove_leftovers(runs_folder(), older_than_s=_AN_HOUR_S)
    from transformer.runs.benchmark import remove_abandoned_folders  # with torch, which only servers have loaded

    remove_abandoned_folders()
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
