"""Every view of a decoding under every intervention: its checks hold, or it says why there is nothing to show."""

import pytest
from random_models import SWITCH_OF_EACH_KIND
from view_examples import EXAMPLES, TEXT, checks_of, data_of, decoding

from transformer.views.subjects import Decoding

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("switch", SWITCH_OF_EACH_KIND)
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
