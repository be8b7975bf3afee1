"""Two processes that train one model together, against one process that does all the work."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor

from transformer.checkpoints.store import load_tensors

pytestmark = [pytest.mark.slow, pytest.mark.processes]  # each case starts processes that import torch

HERE = Path(__file__).parents[1] / "support"
NEVER = 0


def trained(
    folder: Path, processes: int, accumulate: int, leave_at: int = NEVER
) -> list[tuple[dict[str, Tensor], dict]]:
    """The final weights and the report of each process."""
    folder.mkdir()
    alone = [sys.executable]
    launched = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    subprocess.run(
        [*(launched if processes > 1 else alone), HERE / "two_trainers.py", folder, str(accumulate), str(leave_at)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join((str(HERE.parents[1]), str(HERE))), "OMP_NUM_THREADS": "1"},
        check=True,
        capture_output=True,
        timeout=300,
    )
    found = [load_tensors(folder / f"{rank}.safetensors") for rank in range(processes)]
    return [(weights, json.loads(notes["report"])) for weights, notes in found]


@pytest.fixture(scope="module")
def together(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("two") / "run", processes=2, accumulate=2)


def test_two_processes_equal_one_that_accumulates_the_same_batches(together, tmp_path, within):
    (expected, alone), (weights, report) = trained(tmp_path / "run", processes=1, accumulate=4)[0], together[0]
    assert (report["size"], alone["size"]) == (2, 1)
    assert len(report["losses"]) == len(alone["losses"]) == 12
    assert report["losses"] == pytest.approx(alone["losses"], abs=1e-5)
    for name, value in expected.items():
        if not name.endswith("key.bias"):  # it moves no softmax: its gradient is rounding, which Adam blows up
            within(weights[name], value, 5e-4)  # Muon's steps of 2e-3 are rounded to bfloat16 where a processor has it


def test_both_processes_end_with_the_same_weights_and_only_the_first_evaluates(together):
    (first, leader), (second, follower) = together
    for name, value in first.items():
        assert torch.equal(second[name], value), name
    assert (leader["evaluated"], follower["evaluated"]) == (2, 0)
    assert leader["losses"] == follower["losses"]


def test_when_the_first_process_leaves_the_other_one_ends_too(tmp_path):
    found = trained(tmp_path / "run", processes=2, accumulate=1, leave_at=5)
    assert [report["step"] for _, report in found] == [5, 5]
