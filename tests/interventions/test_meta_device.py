"""Every intervention on torch's meta device, which has shapes but no numbers: one that makes a tensor on the wrong
device, or reads a number back, is found on any machine."""

from copy import deepcopy

import pytest
import torch
from random_models import SWITCH_OF_EACH_KIND

from transformer.interventions import INTERVENTIONS, compile_interventions, parse_intervention
from transformer.lab import load
from transformer.model.taps import Recorder, chain


def test_there_is_a_switch_of_every_kind():
    assert {switch.partition(":")[0] for switch in SWITCH_OF_EACH_KIND} == {kind.prefix for kind in INTERVENTIONS}


@pytest.mark.parametrize("switch", SWITCH_OF_EACH_KIND)
def test_a_recorded_pass_under_a_switch_stays_on_its_device(switch):
    lab = load("reverse")
    specs = lab.inspect("a b c d e", [parse_intervention(switch)]).interventions
    model, recorder = deepcopy(lab.model).to("meta"), Recorder()
    source = target = torch.ones(2, 7, dtype=torch.long, device="meta")
    model(source, target, tap=chain(compile_interventions(specs, model), recorder))
    assert recorder.recording and all(tensor.is_meta for tensor in recorder.recording.values())
