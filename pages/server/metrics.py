"""The server's state as metrics for Prometheus, on a port of this machine alone; read when asked for."""

import os
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from pages.server.readings import Readings, read
from transformer.access.server_settings import ServerSettingError

METRICS_PORT = "ATTENTION_LAB_METRICS_PORT"
_PREFIX = "attention_lab"


class ServerMetrics(Collector):
    """Yields the readings of this server under Prometheus's names: seconds and bytes, nothing scaled."""

    def collect(self) -> Iterator[Metric]:
        """Reads the server and yields each metric."""
        now = read()
        for name, (value, said) in _gauges(now).items():
            yield GaugeMetricFamily(f"{_PREFIX}_{name}", said, value=value)
        runs = GaugeMetricFamily(f"{_PREFIX}_runs", "Runs by state.", labels=["state"])
        for state, count in now.runs.items():
            runs.add_metric([state], count)
        yield runs
        yield CounterMetricFamily(f"{_PREFIX}_errors", "Errors logged since the start.", value=now.errors)


def _gauges(now: Readings) -> dict[str, tuple[float, str]]:
    return {
        "visitors": (now.visitors, "Pages open in a browser."),
        "to_be_cleared": (now.to_be_cleared, "Runs and uploads announced to be cleared."),
        "memory_bytes": (now.memory_bytes, "Memory of the server and its processes."),
        "results_bytes": (now.results_bytes, "Memory of the results held for all visitors."),
        "memory_left_bytes": (now.memory_left_bytes, "Memory left on the machine."),
        "disk_free_bytes": (now.disk_free_bytes, "Bytes free on the disk of the runs."),
        "runs_bytes": (now.runs_bytes, "Bytes of all runs."),
        "uploads_bytes": (now.uploads_bytes, "Bytes of all uploads."),
        "up_seconds": (now.up_s, "Seconds since the start."),
    }


def serve_metrics() -> None:
    """Serves metrics on the port that is set, to this machine alone; nothing where none is set.

    ServerSettingError for a port that is none, or is taken.
    """
    text = os.environ.get(METRICS_PORT, "").strip()
    if not text:
        return
    if not (text.isdecimal() and 0 < int(text) < 65536):
        raise ServerSettingError(f"{METRICS_PORT} ({text[:20]!r}) must be a port from 1 to 65535, or not be set")
    registry = CollectorRegistry()
    registry.register(ServerMetrics())
    try:
        start_http_server(int(text), addr="127.0.0.1", registry=registry)
    except OSError as error:
        raise ServerSettingError(f"{METRICS_PORT} ({text}) cannot be used: {error.strerror or error}") from error
