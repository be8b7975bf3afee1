"""Set-up of all tests: nothing asks the network, every test starts from the same seed, shapes are checked if asked."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import settings
from jaxtyping import install_import_hook
from torch import Tensor

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", HF_HUB_DISABLE_TELEMETRY="1")
os.environ["OMP_WAIT_POLICY"] = "PASSIVE"  # threads that spin while they wait take the cores of other tests
os.environ["ATTENTION_LAB_MEASURE"] = "ask"  # a visit to Train else begins to measure in the background

torch.set_num_threads(1)  # the models are tiny, and pytest may run one process per core

_BROWSER = Path(__file__).parent / "browser"
_PAGES = {Path(__file__).parent / "pages", _BROWSER}
RETRIES = 2
"""The most retries of a test that drives a browser or starts servers: their timing is not ours alone."""

settings.register_profile("lab", max_examples=50, deadline=None, derandomize=True)
settings.load_profile("lab")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option of the slow tier."""
    parser.addoption(
        "--check-shapes",
        action="store_true",
        help="check types and tensor shapes at each call of a public function of the library (about twice as slow)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Installs the shape checks before any test imports the library; the app never pays for them."""
    if config.getoption("--check-shapes"):
        install_import_hook("transformer", "shape_checks.checked")


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses by these marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks as slow all cases but the first of a test whose variants are, and of every test that opens a page, and what
    drives a browser without being a smoke test; and the tests that may be retried."""
    met = set()
    for item in items:
        in_browser = item.get_closest_marker("browser") or _BROWSER in item.path.parents
        if in_browser or item.get_closest_marker("processes"):
            item.add_marker(pytest.mark.flaky(reruns=RETRIES))
        if in_browser and not item.get_closest_marker("smoke"):
            item.add_marker("slow")
        if not isinstance(item, pytest.Function):
            continue
        test = (item.path, item.cls, item.originalname)
        if test in met and (_PAGES.intersection(item.path.parents) or item.get_closest_marker("slow_variants")):
            item.add_marker("slow")
        met.add(test)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says at the end which tests needed a retry, and why: each is a fault to mend."""
    retried = terminalreporter.stats.get("rerun", [])
    if retried:
        terminalreporter.section(f"{len(retried)} retries, each a fault to mend", red=True)
    for report in retried:
        terminalreporter.write_line(f"RETRIED {report.nodeid}", red=True)
        terminalreporter.write_line(report.longreprtext)
        for title, text in report.sections:
            terminalreporter.write_line(f"{title}:\n{text}")
    for report in retried:  # once more, where they are still seen in a log that was cut
        why = next((line for line in report.longreprtext.splitlines() if line.startswith("E ")), "")
        terminalreporter.write_line(f"RETRIED {report.nodeid}: {why[2:].strip()[:200]}", red=True)


def pytest_make_parametrize_id(val: object) -> str | None:
    """Names a parameter of bytes by its length: packed bytes hold the time, and every worker must give equal names."""
    return f"{len(val)} bytes" if isinstance(val, bytes) else None


@pytest.fixture(autouse=True)
def seed() -> int:
    """The seed from which torch starts in every test."""
    torch.manual_seed(0)
    return 0


@pytest.fixture(scope="module", autouse=True)
def nothing_remembered() -> None:
    """Pages remember nothing of the test files before: which ones ran in the same process is chance."""
    if streamlit := sys.modules.get("streamlit"):
        streamlit.cache_resource.clear()
    if cache := sys.modules.get("pages.shared.cache"):
        cache.RESULTS.clear()
    if corpora := sys.modules.get("transformer.data.corpus_cache"):
        corpora._learned.cache_clear()  # from the few pairs of `room`, pieces are others


@pytest.fixture
def within(request: pytest.FixtureRequest) -> Iterator[Callable[..., float]]:
    """Asserts that two tensors differ by at most a tolerance in every cell; the deviation goes into the report."""
    largest = 0.0

    def assert_within(actual: Tensor, expected: Tensor, tolerance: float) -> float:
        nonlocal largest
        assert actual.shape == expected.shape
        assert torch.isfinite(actual).all() and torch.isfinite(expected).all()
        deviation = (actual.double() - expected.double()).abs().max().item()
        largest = max(largest, deviation)
        assert deviation <= tolerance, f"deviates by {deviation:.3g}, more than {tolerance:.3g}"
        return deviation

    yield assert_within
    request.node.user_properties.append(("max_deviation", largest))


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of runs; corpora of tasks are counted on a few pairs, as they name their whole vocabulary."""
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path / "runs"))
    monkeypatch.setattr("transformer.data.corpora.TOKENIZER_PAIRS_OF_TASK", 50)
    return tmp_path / "runs"


@pytest.fixture(scope="session")
def untrained_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs with two untrained models, to be read alone."""
    from page_models import save_untrained

    folder = tmp_path_factory.mktemp("untrained")
    save_untrained(folder)
    return folder


@pytest.fixture
def untrained_models(untrained_runs: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same, for pages to open."""
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(untrained_runs))
    return untrained_runs


@pytest.fixture
def own_models(untrained_runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of them for one test, which may change it or what is computed from it: pages remember nothing of it."""
    folder = tmp_path / "models"
    # With new times of its files, by which pages tell models of one name apart.
    shutil.copytree(untrained_runs, folder, copy_function=shutil.copyfile)
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(folder))
    return folder


@pytest.fixture
def work_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets pages wait for the work beside them however long it takes: an AppTest looks once."""
    monkeypatch.setattr("pages.shared.waiting.FIRST_WAIT_S", 60.0)


@pytest.fixture(scope="session")
def two_seed_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs with models of one corpus from two seeds, the second with two snapshots, and one of another
    corpus, all untrained; to be read alone."""
    from page_models import save_other_seed, save_untrained

    folder = tmp_path_factory.mktemp("two-seeds")
    save_untrained(folder)
    save_other_seed(folder, tmp_path_factory.mktemp("second"))
    return folder


@pytest.fixture
def two_seeds(two_seed_runs: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same, for pages to open."""
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(two_seed_runs))
    return two_seed_runs


@pytest.fixture
def no_shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hides the shipped models."""
    monkeypatch.setattr("transformer.checkpoints.settings.SHIPPED_FOLDER", tmp_path / "shipped")


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The runs that a page starts: noted, not started."""
    found: list[str] = []
    monkeypatch.setattr("transformer.runs.run_folder.start", lambda run_id, **_: found.append(run_id))
    return found


@pytest.fixture
def queued(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The runs that a page starts: noted, and left to wait in the queue."""
    from page_runs import put_status

    found: list[str] = []

    def start(run_id: str, *, owner: str = "") -> None:
        found.append(run_id)
        put_status(run_id, state="queued", phase="waiting")

    monkeypatch.setattr("transformer.runs.run_folder.start", start)
    monkeypatch.setattr("pages.training.run_status.start_waiting", list)  # each visit would start them
    return found


@pytest.fixture
def measurements(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets `page_train.Measurements` stand for those of the server, with nothing measured or asked for yet."""
    from page_train import Measurements

    from pages.train import measuring

    monkeypatch.setenv(measuring.MEASURE, "ask")
    monkeypatch.setattr(measuring, "find", Measurements.find)
    monkeypatch.setattr(measuring, "begin", Measurements.begin)
    Measurements.found, Measurements.begun = None, []


@pytest.fixture(scope="module")
def archive_room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of runs for the archives of one test file."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("runs")
        patch.setenv("ATTENTION_LAB_RUNS", str(folder))
        patch.setattr("transformer.data.corpora.TOKENIZER_PAIRS_OF_TASK", 50)
        yield folder


@pytest.fixture(scope="module")
def origin(archive_room: Path) -> str:
    """The run there that archives are made of."""
    from page_runs import trained_run

    from transformer.runs.labels import set_note

    run_id = trained_run("origin")
    set_note(run_id, "the first one")
    return run_id


@pytest.fixture(scope="module")
def packed(origin: str) -> bytes:
    """Its archive."""
    from archives import archive_of

    return archive_of(origin)


@pytest.fixture
def only_the_origin(archive_room: Path, origin: str) -> Iterator[None]:
    """Removes the runs a test loaded, and fails if it left a temporary folder behind."""
    yield
    left = [path.name for path in archive_room.iterdir() if path.name.startswith(".")]
    for path in archive_room.iterdir():
        if path.name != origin:
            shutil.rmtree(path)
    assert not left


@pytest.fixture(scope="module")
def film_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A finished run of 20 steps, in a folder of runs of its own."""
    from page_runs import trained_run

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTENTION_LAB_RUNS", str(tmp_path_factory.mktemp("runs")))
        patch.setattr("transformer.data.corpora.TOKENIZER_PAIRS_OF_TASK", 50)
        yield trained_run()


@pytest.fixture
def own_film_run(room: Path) -> str:
    """Another such run, to be damaged."""
    from page_runs import trained_run

    return trained_run()


@pytest.fixture
def any_fall_is_sudden(monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest fall of an entropy is announced however small, as in a run of a few steps."""
    monkeypatch.setattr("transformer.analysis.training.timeline.MIN_SHARE", 0.0)
    monkeypatch.setattr("transformer.analysis.training.timeline.TIMES_USUAL", 0)


@pytest.fixture
def whole_films(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every frame is computed in the first run of a page, so that a test needs no second."""
    monkeypatch.setattr("pages.training.timeline.panel.BUDGET_S", 1e9)
