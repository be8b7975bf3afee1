"""Periodic upkeep by the server: the run queue, and what is old. Everything here may fail without harm to a run."""

import contextlib
import logging
import time

from transformer.access.people import for_the_operator
from transformer.access.server_settings import check_server_settings
from transformer.files import disk_refusal, remove_leftovers, runs_folder
from transformer.runs.launch import WARM
from transformer.runs.limits.quota import check_limits
from transformer.runs.limits.retention import clear_old
from transformer.runs.queue import max_runs, start_waiting
from transformer.runs.status import RunError, check_runs_folder

_AN_HOUR_S = 3600.0
_log = logging.getLogger(__name__)


def begin() -> None:
    """Removes what a killed server left and warms a worker up.

    RunError for limits that are not numbers, or a file in the place of the runs folder; ServerSettingError for settings
    that leave a door open.
    """
    check_server_settings()
    check_runs_folder()
    max_runs()
    check_limits()
    remove_leftovers(runs_folder(), older_than_s=_AN_HOUR_S)
    from transformer.runs.benchmark import remove_abandoned_folders  # with torch, which only servers have loaded

    remove_abandoned_folders()
    WARM.keep()


@for_the_operator
def do_upkeep() -> None:
    """Starts the runs whose turn it is, and replaces a warm worker that died; quick where there is nothing to do."""
    try:
        WARM.keep()
        start_waiting()
    except (OSError, RunError) as error:
        _log.warning("the queue could not be served: %s", error)
    except Exception:  # whatever one folder holds, the next round looks at all of them again
        _log.exception("the queue could not be served")


@for_the_operator
def clear() -> None:
    """Clears runs and uploads whose time has come, and logs a disk that is almost full."""
    try:
        for cleared in clear_old(time.time()):
            _log.info("cleared %s: %s", cleared.name, cleared.reason)
        if refusal := disk_refusal():
            _log.error("%s", refusal)
    except (OSError, RunError) as error:
        _log.warning("old runs could not be cleared: %s", error)


def end() -> None:
    """Ends the warm worker. Trainers go on."""
    with contextlib.suppress(OSError):
        WARM.end()
