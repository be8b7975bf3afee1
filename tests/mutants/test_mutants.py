"""Plausible faults of the library, put in one at a time: for each a test that fails, and without any none does."""

import contextlib
import io
from collections import defaultdict
from collections.abc import Sequence

import pytest
from _pytest.runner import runtestprotocol
from faults import FAULTS, Fault
from mutation import ROOT, mutated

PARTS = 4
"""The parts into which the faults are cut, so that several workers share them."""
OPTIONS = ("-q", "-m", "not slow", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=line", "--assert=plain")


class Trials:
    """Runs the tests of one session without a fault, then those of each fault with it; fixtures are set up anew."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = faults
        self.failing: list[str] = []
        self.survivors: list[str] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Takes the place of the loop over all tests."""
        items = defaultdict(list)
        for item in session.items:
            items[item.nodeid.split("[")[0]].append(item)
        self.failing = [name for fault in self.faults if not items[name := fault.test]]
        self.failing += [item.nodeid for of_test in items.values() for item in of_test if not _passes(item)]
        for fault in self.faults:
            with mutated(fault.file, fault.old, fault.new):
                if all(map(_passes, items[fault.test])):
                    self.survivors.append(fault.name)
        return True


def _passes(item: pytest.Item) -> bool:
    return all(report.outcome != "failed" for report in runtestprotocol(item, log=False, nextitem=None))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_every_fault_is_caught_by_a_test_that_passes_without_it(part):
    faults = sorted(FAULTS, key=lambda fault: fault.test)[
        part * len(FAULTS) // PARTS : (part + 1) * len(FAULTS) // PARTS
    ]
    trials, said = Trials(faults), io.StringIO()
    tests = [f"{ROOT}/{test}" for test in dict.fromkeys(fault.test for fault in faults)]
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = pytest.main([*tests, *OPTIONS], plugins=[trials])
    assert code == pytest.ExitCode.OK, said.getvalue()
    assert trials.failing == [] and trials.survivors == []


def test_the_text_that_a_fault_replaces_stands_in_its_file_once():
    sources = {file: (ROOT / file).read_text(encoding="utf-8") for file in {fault.file for fault in FAULTS}}
    assert [fault.name for fault in FAULTS if sources[fault.file].count(fault.old) != 1] == []


def test_faults_are_many_and_each_is_another():
    assert len({(fault.file, fault.old, fault.new) for fault in FAULTS}) == len(FAULTS) >= 60
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)


def test_a_text_that_is_gone_or_changes_nothing_is_an_error():
    with pytest.raises(ValueError, match="0 times instead of once"), mutated("transformer/files.py", "no such", ""):
        pass
    with pytest.raises(ValueError, match="no function is another"), mutated("transformer/files.py", "forgive", ""):
        pass
