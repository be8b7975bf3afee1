"""Every view of a decoding under every intervention: its checks hold, or it says why there is nothing to show."""

import pytest
from view_examples import EXAMPLES, TEXT, decoding

from transformer.interventions import INTERVENTIONS
from transformer.views.subjects import Decoding
from transformer.views.view import checks_of, data_of

pytestmark = pytest.mark.slow

SWITCHES = (
    "off:decoder.0.cross:1",
    "mean:decoder.1.cross:0",
    "scale:encoder.0.self:1:0.5",
    "block:decoder.0.cross",
    "residual:off:decoder.0.self",
    "mask:causal",
    "forbid:decoder.0.cross:2,1",
    "row:encoder.0.self.1:2:uniform",
    "row:decoder.0.cross.2:1:0",
    "copy:encoder.0.self.output:1>2:d e",
    "copy:encoder.0.self.k:1>2:d e",
    "copy:encoder.0.self.input:0>1:d e",
    "copy:encoder.embedding:0>1:d e",
    "positions:encoder:shift:1",
)


def test_there_is_a_switch_of_every_kind():
    assert {switch.partition(":")[0] for switch in SWITCHES} == {kind.prefix for kind in INTERVENTIONS}


@pytest.mark.parametrize("switch", SWITCHES)
def test_every_check_of_a_view_holds_under_a_switch(switch):
    subject, shown, failed = decoding(TEXT, switch)(), 0, []
    for view in {repr(own.view): own.view for own in EXAMPLES if isinstance(own.subject(), Decoding)}.values():
        try:
            data = data_of(view, subject)
        except ValueError:
            continue  # a sentence on the page
        shown += 1
        failed += [f"{view!r}: {check.claim}" for check in checks_of(view, subject, data) if not check.holds]
    assert shown > 20 and failed == []
