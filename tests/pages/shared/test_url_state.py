"""State in the URL: read, written, limited, fitted and reset by what its fields say."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pages.shared.url.url_state import (
    Form,
    Problem,
    Refused,
    UrlState,
    decimal,
    nested,
    param,
    several,
    text,
    whole,
    words,
)


def _pair(given: str) -> tuple[int, int]:
    first, _, second = given.partition(",")
    if not (first.isdecimal() and second.isdecimal()):
        raise Refused("must be two numbers, like 2,5")
    return int(first), int(second)


@dataclass(frozen=True, kw_only=True)
class Choices(UrlState):
    """One field of each sort."""

    model: str = param("", text(20), always=True)
    look: str = param("steps", words("steps", "beam", 3))
    size: int = param(4, whole(1, 10, clamp=True))
    width: int | None = param(None, whole(2, 64, multiple_of=2))
    share: float = param(0.5, decimal(0, 1))
    cell: tuple[int, int] | None = param(
        None, Form(_pair, lambda cell: f"{cell[0]},{cell[1]}"), resets=("model", "text"), beside="matrix"
    )
    roads: tuple[str, ...] = param((), text(5), name="road", many=tuple)
    at: int = param(0, whole(0, 99), among=lambda state: range(len(state.roads) + 1), resets=("roads",))
    token: int | None = param(
        None,
        whole(0, 99),
        offered=lambda _, length: range(length),
        usual=lambda _, length: length // 2,
        resets=("text",),
        absent="branch",
    )
    note: str = ""
    """Not in the URL."""


EVERYTHING = Choices(
    model="m",
    look="beam",
    size=7,
    width=8,
    share=0.25,
    cell=(1, 2),
    roads=("a", "b"),
    at=2,
    token=3,
)


def test_a_state_comes_back_from_its_parameters_and_defaults_stay_out():
    assert EVERYTHING.parameters() == {
        "model": "m",
        "look": "beam",
        "size": "7",
        "width": "8",
        "share": "0.25",
        "cell": "1,2",
        "road": ["a", "b"],
        "at": "2",
        "token": "3",
    }
    assert Choices.read(EVERYTHING.parameters()) == (EVERYTHING, ())
    assert Choices().parameters() == {"model": ""} and Choices.read({}) == (Choices(), ())
    assert Choices.names() == ("model", "look", "size", "width", "share", "cell", "road", "at", "token")


@pytest.mark.parametrize(
    ("name", "given", "value", "sentence"),
    [
        ("look", "film", "steps", "The link says look “film”, which must be one of: steps, beam, 3; steps is used."),
        ("look", "3", 3, ""),
        ("size", "99", 10, "The link says size “99”, which must be a whole number from 1 to 10; 10 is used."),
        ("size", "2.5", 2, "The link says size “2.5”, which must be a whole number from 1 to 10; 2 is used."),
        ("size", "٣", 4, "The link says size “٣”, which must be a whole number from 1 to 10; 4 is used."),
        ("width", "65", None, "The link says width “65”, which must be a whole number from 2 to 64; it is left out."),
        ("width", "9", 8, "The link says width “9”, which must be a multiple of 2; 8 is used."),
        ("share", "nan", 0.5, "The link says share “nan”, which must lie between 0 and 1; 0.5 is used."),
        ("at", "1", 0, "The link says at “1”, but here it goes from 0 to 0; 0 is used."),
        (
            "cell",
            "x" * 60,
            None,
            f"The link says cell “{'x' * 40}…”, which must be two numbers, like 2,5; it is left out.",
        ),
    ],
)
def test_nonsense_gets_a_sentence_and_the_nearest_or_the_default(name, given, value, sentence):
    state, problems = Choices.read({name: given})
    assert getattr(state, name) == value and [problem.sentence for problem in problems] == [sentence] * bool(sentence)
    assert all(problem.place == {"cell": "matrix"}.get(name, name) for problem in problems)


def test_a_sentence_repeats_only_the_beginning_of_a_long_text():
    _, (problem,) = Choices.read({"look": "x" * 60})
    assert f"“{'x' * 40}…”" in problem.sentence


def test_of_a_parameter_that_may_occur_often_the_readable_ones_are_kept():
    state, (problem,) = Choices.read({"road": ["a", "too long", "b"]})
    assert state.roads == ("a", "too l", "b") and problem.place == "road"
    assert Choices.read({"look": ["steps", "beam"]})[0].look == "beam"


def test_too_long_a_text_is_cut_when_read_and_not_written():
    state, (problem,) = Choices.read({"model": "m" * 30})
    assert state.model == "m" * 20 and "has 30 characters, but a link carries only 20" in problem.sentence
    assert Choices(model="m" * 30).parameters() == {}


def test_a_state_fits_its_context():
    assert Choices().fit(8)[0].token == 4 and Choices(token=7).fit(8) == (Choices(token=7), ())
    fitted, problems = Choices(token=8).fit(8)
    assert fitted.token == 4 and problems == (
        Problem("token", "There is no branch 8: there are branches 0 to 7; 4 is used."),
    )


def test_changes_put_back_what_they_reset_and_nothing_else():
    assert EVERYTHING.changed(size=3).at == 2
    assert EVERYTHING.changed(roads=("c",)) == EVERYTHING.changed(roads=("c",), at=0)
    assert EVERYTHING.changed(roads=("c",), at=1).at == 1
    after = EVERYTHING.reset_by("text")
    assert (after.cell, after.token, after.size) == (None, None, 7) and EVERYTHING.reset_by("nothing") is EVERYTHING


@given(st.dictionaries(st.sampled_from(Choices.names()), st.text(max_size=12) | st.lists(st.text(max_size=3))))
def test_anything_at_all_leads_to_a_state_that_its_own_link_leads_back_to(parameters):
    state, problems = Choices.read(parameters)
    assert Choices.read(state.parameters()) == (state, ())
    assert all(isinstance(problem.sentence, str) for problem in problems)


def test_an_empty_text_is_a_value_too():
    @dataclass(frozen=True, kw_only=True)
    class Named(UrlState):
        steps: str = param("400", text(9))

    for parameters in ({"steps": ""}, {"steps": [""]}):
        state, problems = Named.read(parameters)
        assert state == Named(steps="") and not problems and Named.read(state.parameters())[0] == state
    assert Named.read({"steps": []})[0] == Named()


@dataclass(frozen=True, kw_only=True)
class Inner(UrlState):
    size: int = param(2, whole(1, 3))
    letters: tuple[str, ...] = param((), several(words("a", "b")))


@dataclass(frozen=True, kw_only=True)
class Outer(UrlState):
    one: Inner = param(Inner(), nested(Inner, "plain"))
    two: Inner = param(Inner(size=1), nested(Inner, "plain"))


def test_a_state_within_a_state_is_one_parameter():
    state = Outer(one=Inner(size=3, letters=("a", "b")), two=Inner())
    assert state.parameters() == {"one": "size:3;letters:a,b", "two": "plain"}
    assert Outer.read(state.parameters()) == (state, ()) and Outer().parameters() == {}


@pytest.mark.parametrize("said", ["size:9", "what:1", "size", "plain;size:x", ":", "size:3;letters:z"])
def test_what_a_state_within_a_state_cannot_have_is_told(said):
    state, (problem,) = Outer.read({"one": said})
    assert problem.place == "one" and "has settings that do not exist" in problem.sentence
    assert state.one == (Inner(size=3) if "3" in said else Inner())


@given(st.text(max_size=30))
def test_any_state_within_a_state_leads_back_to_itself(said):
    state, _ = Outer.read({"two": said})
    assert Outer.read(state.parameters()) == (state, ())
