"""The operator's page and metrics: what they say is what is there, and visitors do not see it."""

import logging
import os
import socket
import time
import urllib.request
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from tiny_runs import create

from pages.server import metrics, readings
from pages.server.errors import ErrorLog, listen
from pages.server.metrics import METRICS_PORT, serve_metrics
from pages.shared.cache import RESULTS
from transformer.access.people import Person, acting_as
from transformer.access.server_settings import ServerSettingError
from transformer.files import runs_folder
from transformer.runs.limits import quota
from transformer.runs.status import Status, write_status

PAGE = Path(__file__).parents[3] / "pages" / "server" / "page.py"

pytestmark = pytest.mark.usefixtures("room")


@pytest.fixture
def room(tmp_path, monkeypatch):
    """A folder with a run that trains, one whose trainer was killed, one that waits, and one that is old."""
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path / "runs"))
    day = time.time() - 400 * 24 * 3600.0
    for name, status in {
        "now": Status(state="running", phase="training", heartbeat=time.time(), pid=os.getpid()),
        "killed": Status(state="running", phase="training", heartbeat=time.time(), pid=os.getpid(), create_time=1.0),
        "next": Status(state="queued", phase="waiting", heartbeat=time.time()),
        "old": Status(state="finished", heartbeat=day),
    }.items():
        with acting_as(Person(id="ada")):
            write_status(runs_folder() / create(name=name), status)
    return runs_folder()


def open_server_page() -> AppTest:
    return AppTest.from_file(PAGE, default_timeout=60).run()


def test_readings_count_runs_bytes_and_what_will_go(monkeypatch):
    monkeypatch.setenv(quota.KEEP_DAYS, "90")
    now = readings.read()
    assert now.runs == {"running": 1, "failed": 1, "waiting": 1, "finished": 1} and now.to_be_cleared == 1
    assert now.runs_bytes == sum(quota.size_of(runs_folder() / name) for name in ("now", "killed", "next", "old"))
    assert now.memory_bytes > 50e6 and now.disk_free_bytes > 0 and now.up_s > 0


def test_results_held_for_all_count_by_themselves():
    before = readings.read().results_bytes
    RESULTS.get("a test", "a key", lambda: bytes(100_000), max_entries=1)
    assert 100_000 <= readings.read().results_bytes - before < 110_000


def test_errors_are_counted_once_and_the_newest_stands_first():
    log, logger = ErrorLog(), logging.getLogger("a test of errors")
    logger.propagate = False
    logger.addHandler(log)
    logger.warning("no error")
    for i in range(60):
        logger.error("error %d", i)
    assert log.count == 60 and len(log.newest) == 50 and log.newest[0].text == "error 59"
    try:
        raise ValueError("of a page")
    except ValueError:
        logger.exception("Uncaught")
    assert log.newest[0].text == "Uncaught: ValueError: of a page"


def test_what_is_counted_is_also_printed_with_its_traceback(monkeypatch, capsys):
    monkeypatch.setattr(logging.root, "handlers", [])
    listen()
    listen()
    try:
        raise ValueError("of a figure")
    except ValueError:
        logging.getLogger("pages.shared.guard").exception("This figure could not be shown")
    printed = capsys.readouterr().err
    assert printed.count("ERROR pages.shared.guard: This figure could not be shown") == 1
    assert printed.count("Traceback") == 1 and "ValueError: of a figure" in printed


def test_prometheus_reads_the_same_numbers_on_a_port_of_this_machine(monkeypatch):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    monkeypatch.setenv(METRICS_PORT, str(port))
    serve_metrics()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    assert 'attention_lab_runs{state="waiting"} 1.0' in lines
    assert f"attention_lab_runs_bytes {float(readings.read().runs_bytes)}" in lines
    with pytest.raises(ServerSettingError, match="cannot be used"):
        serve_metrics()


@pytest.mark.parametrize("text", ["http", "0", "70000"])
def test_a_port_that_is_none_is_refused(monkeypatch, text):
    monkeypatch.setenv(METRICS_PORT, text)
    with pytest.raises(ServerSettingError, match="must be a port from 1 to 65535"):
        metrics.serve_metrics()


def test_the_page_shows_the_operator_what_will_be_cleared_and_others_nothing(monkeypatch):
    monkeypatch.setenv(quota.KEEP_DAYS, "90")
    at = open_server_page()
    assert not at.exception and {metric.label: metric.value for metric in at.metric}["Runs waiting"] == "1"
    assert list(at.dataframe[0].value["what"]) == ["old"]
    with acting_as(Person(id="ada")):
        monkeypatch.setattr("transformer.access.people._find", lambda: Person(id="ada"))
        at = open_server_page()
    assert not at.metric and "for teachers and for whoever runs the server" in at.markdown[-1].value
