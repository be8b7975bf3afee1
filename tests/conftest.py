"""Set-up of all tests: shapes are checked, nothing asks the network, and every test starts from the same seed."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import settings
from jaxtyping import install_import_hook
from torch import Tensor

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", HF_HUB_DISABLE_TELEMETRY="1")
os.environ["ATTENTION_LAB_MEASURE"] = "ask"  # a visit to Train else begins to measure in the background

# Before the library is imported: every public signature is then checked at each call. The app pays nothing for it.
install_import_hook("transformer", "shape_checks.checked")

torch.set_num_threads(1)  # the models are tiny, and pytest may run one process per core

settings.register_profile("lab", max_examples=50, deadline=None, derandomize=True)
settings.load_profile("lab")


def pytest_make_parametrize_id(val: object) -> str | None:
    """Names a parameter of bytes by its length: packed bytes hold the time, and every worker must give equal names."""
    return f"{len(val)} bytes" if isinstance(val, bytes) else None


@pytest.fixture(autouse=True)
def seed() -> int:
    """The seed from which torch starts in every test."""
    torch.manual_seed(0)
    return 0


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
    monkeypatch.setattr("transformer.corpora.TOKENIZER_PAIRS_OF_TASK", 50)
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
