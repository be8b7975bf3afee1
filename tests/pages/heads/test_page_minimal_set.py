"""The search for the smallest set of heads on the Heads page: its answers, its controls, its progress."""

import threading
import time

import pytest
from page_models import CLASSIC, REVERSE, checked, heads, texts

from pages.shared import waiting
from pages.shared.wording import bare
from transformer.analysis.heads.addresses import heads_of
from transformer.analysis.heads.minimal_set import Ablation, Goal, MinimalSets, minimal_set
from transformer.checkpoints.settings import SHIPPED_FOLDER
from transformer.interventions import parse_intervention
from transformer.lab import load

pytestmark = pytest.mark.usefixtures("untrained_models")


def test_the_smallest_set_is_searched_and_what_it_writes_is_shown():
    at = heads(section="smallest", text="a b c", goal="any")
    lab = load(REVERSE)
    seen = lab.inspect("a b c")
    found = minimal_set(lab.model, seen.source_ids, seen.target_ids, Goal(), heads_of(lab.model))
    assert found.sets
    said = texts(at)
    assert f"{found.n_sets:,} sets of that size do" in said or "only set of that size" in said
    links = [link for link in at.get("page_link") if "switch=off" in link.proto.query_string]
    assert len(links) == len(found.sets)


@pytest.mark.skipif(not (SHIPPED_FOLDER / "pronouns-en-fr").exists(), reason="the shipped model is not there")
def test_the_smallest_set_that_turns_il_into_elle_is_what_the_page_begins_with():
    at = heads("pronouns-en-fr", section="smallest", text=CLASSIC, most="3")
    lab = load("pronouns-en-fr")
    seen = lab.inspect(CLASSIC)
    step = [bare(token) for token in seen.target_tokens].index("il")
    (elle,) = lab.tokenizer.encode_target("elle")
    assert "of the sets of heads that were tried, none would turn *il* into *elle*".lower() in texts(at).lower()
    # What the page finds with the 8 heads that it allows at first, in some 20 seconds.
    six = ("off:decoder.0.cross:0,1,2", "off:decoder.1.cross:3", "off:decoder.0.self:1", "off:decoder.1.self:0")
    assert lab.inspect(CLASSIC, list(map(parse_intervention, six))).target_ids[step] == elle


def test_none_found_is_an_answer():
    at = heads(section="smallest", text="a b c", goal="token", step="0", exact="1", most="1", heads="encoder_self")
    box = at.selectbox(key="heads-into")
    lab = load(REVERSE)
    seen = lab.inspect("a b c")
    heads_there = [head for head in heads_of(lab.model) if head.kind == "encoder_self"]

    def unreachable(token):
        goal = Goal(0, token)
        return not minimal_set(lab.model, seen.source_ids, seen.target_ids, goal, heads_there, exact=1, most=1).sets

    others = (token for token in range(4, lab.tokenizer.vocab_size) if token != seen.target_ids[0])
    option = next(filter(unreachable, others))
    checked(box.set_value(option).run())
    assert "None found up to 1 head" in texts(at) and "Every set of these sizes was tried" in texts(at)
    assert at.query_params["into"] == str(option)
    at = checked(next(b for b in at.button if b.label == "Search all heads").click().run())
    assert "heads" not in at.query_params and not [b for b in at.button if b.label == "Search all heads"]


def test_every_set_of_one_head_more_is_offered_where_the_search_was_not_exact(monkeypatch):
    places = heads_of(load(REVERSE).model)
    unproved = MinimalSets((), 0, 3, False, (12, 66, 10), Ablation(places[:3], 0.25))
    monkeypatch.setattr("pages.heads.minimal_set.minimal_set", lambda *_, **__: unproved)
    at = heads(section="smallest", text="b c d", goal="any", exact="2", most="3")
    said = texts(at)
    assert (
        "None found up to 3 heads" in said and "all 12 single heads and all 66 pairs" in said and "0.250 nats" in said
    )
    assert "one more head at a time was added to the nearest sets (10 more)" in said
    more = at.button(key="heads-more")
    assert more.label == "Also try all 220 sets of 3 heads"
    checked(more.click().run())
    assert at.selectbox(key="heads-exact").value == 3


def test_an_output_that_was_cut_off_is_marked(monkeypatch):
    lab = load(REVERSE)
    (head, *_) = heads_of(lab.model)
    endless = Ablation((head,), -0.5, (5,) * 16, ended=False)
    monkeypatch.setattr(
        "pages.heads.minimal_set.minimal_set", lambda *_, **__: MinimalSets((endless,), 1, 1, True, (12,), endless)
    )
    at = heads(section="smallest", text="c b d", goal="any")
    assert "No end mark was written: it was cut off at 16 tokens" in texts(at)
    (link,) = [link for link in at.get("page_link") if "switch=off" in link.proto.query_string]
    assert link.proto.label.endswith("cut off at 16 tokens, no end mark")


def test_every_control_of_the_search_travels_in_the_link():
    at = heads(section="smallest", text="a b c", goal="any")
    checked(at.segmented_control(key="heads-goal").set_value("token").run())
    checked(at.selectbox(key="heads-step").set_value(1).run())
    checked(at.selectbox(key="heads-exact").set_value(2).run())
    checked(at.selectbox(key="heads-most").set_value(3).run())
    checked(at.segmented_control(key="heads-heads").set_value("cross").run())
    assert [at.query_params[name] for name in ("goal", "step", "exact", "most", "heads")] == [
        "token",
        "1",
        "2",
        "3",
        "cross",
    ]


def test_heads_that_are_off_leave_nothing_to_search():
    switches = ["off:decoder.0.cross:0,1,2,3"]
    at = heads(section="smallest", heads="cross", switch=switches)
    assert "All of these heads are off already" in texts(at)


def test_a_search_under_way_shows_its_progress_and_can_be_cancelled_and_taken_up_again(monkeypatch):
    """The same text as no other test, so that nothing is known of it yet."""
    monkeypatch.setattr(waiting, "FIRST_WAIT_S", 0.0)
    held = threading.Event()

    def slow(*arguments, tell, **settings):
        while not held.is_set():
            tell(0.25)
            time.sleep(0.002)
        return minimal_set(*arguments, tell=tell, **settings)

    monkeypatch.setattr("pages.heads.minimal_set.minimal_set", slow)
    try:
        at = heads(section="smallest", text="q r s t", goal="any")
        checked(at.button(key="heads-cancel").click().run())
        checked(at.run())
        assert "cancelled" in texts(at)
        held.set()
        monkeypatch.setattr(waiting, "FIRST_WAIT_S", 60.0)
        checked(at.button(key="heads-go-on").click().run())
        assert "of that size" in texts(at)
    finally:
        held.set()


def test_a_long_search_waits_to_be_asked_for(monkeypatch):
    monkeypatch.setattr("pages.heads.minimal_set.UNASKED_S", 0.0)
    at = heads(section="smallest", text="s r q", goal="any")
    assert "sets to try" in texts(at) and "of that size" not in texts(at)
    checked(at.button(key="heads-search").click().run())
    assert "of that size" in texts(at)
