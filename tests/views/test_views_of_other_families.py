"""Every view of a decoding, a search or two sides at once, of recurrent and convolutional models: its checks hold, or
it says what the model lacks. Pages offer no heads and layers that a model has not: views that want them are left out.
"""

from functools import cache

import pytest
from view_examples import EXAMPLES, checks_of, data_of, lab

from transformer.analysis.steps.search_tree import search_tree
from transformer.interventions import parse_intervention
from transformer.lab import load
from transformer.views.steps.subjects import Search
from transformer.views.subjects import Compared, Decoding, SideBySide

TEXT = "a b c d"
SWITCHES = ((), ("off:decoder.0.cross:0",), ("scale:decoder.0.cross:0:0.5",), ("forbid:decoder.0.cross:1,1",))
SWITCHES += (("row:decoder.0.cross.0:2:uniform",),)


@cache
def subjects(name, switches):
    """The sentence through this model under the switches: alone, searched, beside a Transformer, and compared."""
    model, specs = load(name), [parse_intervention(text) for text in switches]
    seen = model.inspect(TEXT, specs)
    tree = search_tree(model.model, seen.source_ids, specs, size=3, alpha=0.6, norm="paper")
    found = [Decoding(model, seen), Search(model, seen, tree, None)]
    if not switches:
        return [*found, SideBySide(lab(), lab().inspect(TEXT), model, seen)]
    return [*found, Compared(model, model.compare(TEXT, specs))]


def views_of(subject, n_heads):
    """The example views of this kind of subject that ask for heads and layers which the model may have."""
    same = {repr(own.view): own.view for own in EXAMPLES if type(own.subject()) is type(subject)}
    return [view for view in same.values() if all(n < n_heads for n in _named_heads(view))]


def _named_heads(view):
    view = getattr(view, "of", view)
    heads = (*getattr(view, "heads", ()), getattr(view, "head", None), getattr(view, "layer", None))
    return [head for head in heads if isinstance(head, int)]


@pytest.mark.slow_variants
@pytest.mark.parametrize("switches", SWITCHES, ids=str)
@pytest.mark.parametrize("name", ["reverse-rnn-attention", "reverse-conv"])
def test_every_check_holds_with_attention(name, switches):
    shown, failed = 0, []
    for subject in subjects(name, switches):
        for view in views_of(subject, 1):
            try:
                data = data_of(view, subject)
            except ValueError:
                continue  # a sentence on the page
            shown += 1
            failed += [f"{view!r}: {check.claim}" for check in checks_of(view, subject, data) if not check.holds]
    assert shown >= 10 and failed == []


def test_every_check_holds_without_attention():
    shown, failed = 0, []
    for subject in subjects("reverse-rnn", ()):
        for view in views_of(subject, 1):
            try:
                data = data_of(view, subject)
            except ValueError as error:
                assert str(error)
                continue
            shown += 1
            failed += [f"{view!r}: {check.claim}" for check in checks_of(view, subject, data) if not check.holds]
    assert shown >= 5 and failed == []
