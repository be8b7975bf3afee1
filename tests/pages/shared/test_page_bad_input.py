"""Whatever stands in a link or in a field: a sentence, never a traceback, never markup that the page takes for its own.

The app runs with the hardest of it; what comes before the page (reading, fitting, checking) runs with anything at all.
"""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from page_models import CLASSIC, PRONOUNS, checked, open_page, texts

from pages.shared.context import with_usable_switches
from pages.shared.url.view_state import View
from pages.shared.wording import plain
from transformer.checkpoints.settings import SHIPPED_FOLDER
from transformer.interventions import compile_interventions, parse_intervention
from transformer.lab import Lab, load

pytestmark = pytest.mark.usefixtures("untrained_models")

HOSTILE = {
    "emoji": "👩‍👩‍👧 slept 🏳️‍🌈",
    "right to left": "הכלב ישן \u202eevil\u202c",
    "control characters": "a\x00b\x07c\u2028d\x1b[31m",
    "markup": "<img src=x onerror=alert(1)> <b>it</b>",
    "closing script": "</script><script>alert(1)</script>",
    "markdown": "**it** [x](javascript:alert(1)) $x$ :red[x] `x` # x",
    "unseen": "zebra quux",
    "surrogates and astral": "\U0001f600\U000e0001\ufeff",
    "very long word": "x" * 400,
    "nothing": "   ",
}


@pytest.fixture(scope="module")
def lab(untrained_runs) -> Lab:
    return load(str(untrained_runs / PRONOUNS))


sublayers = st.builds(
    "{}.{}.{}".format,
    st.sampled_from(["encoder", "decoder", "middle"]),
    st.integers(0, 12) | st.sampled_from(["٣", "9" * 5000, "-1", "x"]),
    st.sampled_from(["self", "cross", "ffn", "final"]),
)
numbers = st.lists(st.integers(-2, 30).map(str) | st.sampled_from(["1e9", "nan", "0.5", "²"]), max_size=4).map(",".join)
forms = st.one_of(
    st.builds("{}:{}:{}".format, st.sampled_from(["off", "mean", "forbid"]), sublayers, numbers),
    st.builds("row:{}.{}:{}:{}".format, sublayers, st.integers(0, 6), st.integers(0, 30), numbers | st.just("uniform")),
    st.builds("block:{}".format, sublayers),
    st.builds("residual:off:{}".format, sublayers),
    st.builds("mask:{}".format, st.sampled_from(["causal", "padding", "cross", "all"])),
    st.builds(
        "copy:{}.{}:{}:{}".format,
        sublayers,
        st.sampled_from(["output", "heads", "heads.1", "q.9", "weights", "normed"]),
        st.sampled_from(["all", "0>0", "1>2,3>2", "9>9", "5>1", ">"]),
        st.sampled_from(["The cat slept.", "", "</script>", "a:b:c", CLASSIC]) | st.text(max_size=12),
    ),
    st.builds("positions:{}:{}".format, st.sampled_from(["encoder", "decoder"]), st.text(max_size=8)),
    st.text(max_size=20),
)
hostile_values = st.text(max_size=12) | st.integers(-3, 10**7).map(str) | st.sampled_from(list(HOSTILE.values()))
parameters = st.fixed_dictionaries(
    {},
    optional={
        **{name: st.lists(hostile_values, min_size=1, max_size=2) for name in View.names() if name != "switch"},
        "switch": st.lists(forms, max_size=5),
    },
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(found=parameters)
def test_any_link_is_read_into_a_view_that_can_be_shown_and_sentences_for_the_rest(lab, found):
    view, unread = View.read(found)
    view, misfits = View(**{**vars(view), "model": lab.name, "text": CLASSIC}).fit(lab)
    view, unusable = with_usable_switches(view, lab)
    for problem in (*unread, *misfits, *unusable):
        assert problem.sentence and "Traceback" not in problem.sentence and "\u202e" not in plain(problem.sentence)
    assert view.layer is None or view.layer < 2
    assert view.head is None or view.head < 4
    compile_interventions(view.switches, lab.model)
    again, complaints = View.read(view.parameters())
    assert again.switches == view.switches and not complaints
    assert all(spec.label() for spec in view.switches)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(forms, min_size=1, max_size=4))
def test_switches_that_are_accepted_decode(lab, switches):
    view, _ = View.read({"switch": switches})[0].fit(lab)
    view, _ = with_usable_switches(View(model=lab.name, text=CLASSIC, switches=view.switches), lab)
    seen = lab.inspect(CLASSIC, view.switches)
    assert len(seen.target_ids) >= 1 and seen.interventions == view.switches


@settings(max_examples=300, deadline=None)
@given(forms)
def test_a_switch_is_read_and_printed_back_or_refused_with_a_sentence(text):
    try:
        spec = parse_intervention(text)
    except ValueError as error:
        assert "is not a" in str(error)
    else:
        assert parse_intervention(str(spec)) == spec


def shown(at):
    """All that the page says but for escaped signs; raw markup in it would have to be the page's own."""
    said = texts(at).replace("\\<", "")
    assert "<script" not in said and "onerror=alert(1)>" not in said and "\u202e" not in said and "\x00" not in said
    return said


@pytest.mark.parametrize("name", HOSTILE)
def test_a_sentence_of_anything_is_shown_or_refused_in_a_sentence(name):
    at = checked(open_page("attention", model=PRONOUNS, text=HOSTILE[name], switch="off:decoder.1.cross:0"))
    shown(at)
    assert [button for button in at.button if (button.key or "").startswith("remove-")]


@pytest.mark.parametrize("page", ["masks", "steps", "positions", "home", "compare", "walkthrough", "heads"])
@pytest.mark.parametrize("name", ["right to left", "closing script", "control characters"])
def test_other_pages_stand_it_too(page, name):
    shown(checked(open_page(page, model=PRONOUNS, text=HOSTILE[name], switch="mask:causal")))


def test_another_sentence_of_markup_is_copied_from_and_its_chip_stays_text():
    hostile = HOSTILE["closing script"]
    at = open_page("attention", model=PRONOUNS, text=CLASSIC, switch=f"copy:encoder.0.ffn.output:0>1:{hostile}")
    shown(at)
    (chip,) = [b.label for b in at.button if (b.key or "").startswith("remove-")]
    assert r"\<\/script\>" in chip or r"\</script\>" in chip
    assert not [b for b in at.button if b.label.startswith("<")]


@pytest.mark.skipif(not (SHIPPED_FOLDER / "everyday-en-fr").exists(), reason="the shipped model is not there")
@pytest.mark.parametrize("name", ["emoji", "closing script", "markup"])
def test_a_model_of_subwords_reads_markup_as_text(name):
    shown(checked(open_page("attention", model="everyday-en-fr", text=HOSTILE[name], switch="mean:decoder.0.cross:1")))
