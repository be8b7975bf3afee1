"""The Lessons page: predict, see, compare; progress in the link; a teacher's locked link; nonsense in links."""

import pytest
from page_models import checked, component, open_page, texts

from pages.learn.lessons import LESSONS
from pages.learn.progress import LONGEST, Progress, read_progress

FIRST = LESSONS[0]
PLANE = "query-key-value"


def written(slug: str, *answers: int | None) -> str:
    return str(Progress({slug: answers}))


def test_the_list_shows_every_lesson_and_starts_the_first():
    at = open_page("learn")
    assert all(lesson.title in texts(at) and lesson.question in texts(at) for lesson in LESSONS)
    at = checked(at.button(key=f"lesson-{FIRST.slug}").click().run())
    assert at.query_params["lesson"] == FIRST.slug
    assert FIRST.steps[0].question in texts(at)


def test_the_answer_cannot_be_seen_before_the_prediction_and_stands_beside_it_afterwards():
    at = open_page("learn", lesson=PLANE)
    step = next(lesson for lesson in LESSONS if lesson.slug == PLANE).steps[0]
    assert step.question in texts(at)
    assert step.keep not in texts(at) and "The weights are" not in texts(at)
    assert at.button(key=f"commit-{PLANE}-0").disabled
    at = checked(at.radio(key=f"guess-{PLANE}-0").set_value(2).run())
    assert step.keep not in texts(at), "choosing is not committing"
    at = checked(at.button(key=f"commit-{PLANE}-0").click().run())
    assert "You said **C**. The answer is **A**." in texts(at) and step.keep in texts(at)
    assert at.query_params["answers"] == f"{PLANE}.2.n.n.n"
    at = checked(at.button(key="lesson-next").click().run())
    assert at.query_params["step"] == "2"


def test_a_slider_moved_just_before_the_button_is_pressed_counts_as_it_stands():
    at = open_page("learn", lesson=PLANE, step="3")
    at.slider(key=f"guess-{PLANE}-2").set_value(71)
    at = checked(at.button(key=f"commit-{PLANE}-2").click().run())
    assert "You said **71 %**" in texts(at)


def test_an_estimate_that_is_close_counts_and_is_told_the_number():
    at = open_page("learn", lesson=PLANE, step="3", answers=written(PLANE, 0, 0, 36))
    assert "You said **36 %**, which is close: it is **33.3 %**." in texts(at)


def test_a_link_opens_a_step_with_what_was_answered_before():
    at = open_page("learn", lesson=PLANE, step="3", answers=written(PLANE, 0, 0, 33))
    assert "You said **33 %**, and that is right." in texts(at)


def test_a_lesson_that_is_done_leads_to_the_next_one():
    steps = {lesson.slug: len(lesson.steps) for lesson in LESSONS}
    done = written(PLANE, *[0] * steps[PLANE])
    at = open_page("learn", lesson=PLANE, step=str(steps[PLANE]), answers=done)
    following = LESSONS[[*steps].index(PLANE) + 1]
    button = at.button(key="lesson-following")
    assert button.label == f"Next lesson: {following.title}"
    at = checked(button.click().run())
    assert (at.query_params["lesson"], at.query_params.get("step", "1")) == (following.slug, "1")
    assert following.steps[0].question in texts(at)


def test_what_was_found_stands_on_one_page_and_can_be_kept():
    assert "lesson-summary" not in [button.key for button in open_page("learn").button]
    wrong, open_, right = LESSONS[1].steps[0], LESSONS[1].steps[1], LESSONS[1].steps[2]
    at = open_page("learn", answers=written(PLANE, 2, None, 33))
    at = checked(at.button(key="lesson-summary").click().run())
    assert at.query_params["lesson"] == "summary"
    said = texts(at)
    assert f"{wrong.keep}\n\n{wrong.question} You said **C**. The answer is **A**." in said
    assert f"{right.question} You said **33 %**, and that is right." in said
    assert "The weights are" not in said
    assert wrong.keep in said and right.keep in said
    assert open_.question not in said and open_.keep not in said
    assert "1 of 2 predictions were right." in said and LESSONS[0].title not in said
    (file,) = at.get("download_button")
    assert file.label == "Keep it as a file"
    at = checked(at.button(key="lesson-list").click().run())
    assert "lesson" not in at.query_params and LESSONS[0].title in texts(at)


def test_a_drawing_counts_once_every_row_has_a_mark():
    lesson = next(lesson for lesson in LESSONS if lesson.slug == "one-head")
    matrix, key = lesson.steps[0].answer, "guess-one-head-0"
    at = open_page("learn", lesson=lesson.slug)
    for drawn in ([5, 4, 3, None, 1, 0], [5, 4, 3, 9, 1, 0], "magic"):
        at.session_state[key] = {"drawn": drawn}
        at = checked(at.run())
        assert at.button(key="commit-one-head-0").disabled
    at.session_state[key] = {"drawn": [0, 1, 2, 3, 4, 5]}
    at = checked(at.run())
    at.session_state[key] = {"drawn": [0, 1, 2, 3, 4, 5]}
    at = checked(at.button(key="commit-one-head-0").click().run())
    said = "You drew **a b c d e f**. The answer is **f e d c b a**. The head looks at"
    assert said in texts(at).replace("\u00a0", " ")
    assert at.query_params["answers"] == "one-head.123456.n.n.n"
    assert [picture["label"] for picture in component(at, "pictures")["pictures"]] == ["your drawing", "the head"]
    again = open_page("learn", lesson=lesson.slug, answers="one-head.654321")
    assert "You drew **f e d c b a**, and that is right." in texts(again).replace("\u00a0", " ")
    assert matrix.is_right(654_321, 654_321) and not matrix.is_right(654_322, 654_321)


@pytest.mark.parametrize("answer", ["1", "65432", "6543210", "754321", "054321"])
def test_a_link_with_no_drawing_is_answered_in_a_sentence(answer):
    assert "no lesson takes" in texts(open_page("learn", lesson="one-head", answers=f"one-head.{answer}"))


def test_a_summary_of_nothing_says_so():
    assert "Nothing yet" in texts(open_page("learn", lesson="summary"))


def test_a_teachers_link_locks_the_controls_as_chosen():
    open_ = open_page("learn", lesson=PLANE, step="2", answers=written(PLANE, None, 0), set="scaled=no")
    assert open_.segmented_control(key="lesson-control-scaled").value == "no"
    locked = open_page("learn", lesson=PLANE, step="2", answers=written(PLANE, None, 0), set="scaled=no", locked="yes")
    assert not locked.segmented_control
    assert "Scores: **not divided**" in texts(locked)
    assert component(locked, "divisor")["locked"]


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"lesson": "magic"}, "“magic”"),
        ({"lesson": PLANE, "step": "99"}, "The link says step “99”, but here it goes from 1 to 4; 4 is used."),
        ({"lesson": PLANE, "step": "none"}, "“none”"),
        ({"lesson": PLANE, "answers": "magic.1"}, "no lesson takes"),
        ({"lesson": PLANE, "answers": f"{PLANE}.7.n.n.n"}, "no lesson takes"),
        ({"lesson": PLANE, "answers": f"{PLANE}.0.0.0.0.0.0"}, "no lesson takes"),
        ({"lesson": PLANE, "locked": "perhaps"}, "“perhaps”"),
    ],
)
def test_nonsense_in_a_link_is_said(parameters, said):
    assert said in texts(open_page("learn", **parameters)).replace("\\", "")


@pytest.mark.parametrize("setting", ["points=nonsense", "points=9,9;0,0;0,0;0,0;0,0;0,0;0,0", "scaled=maybe", "=", "x"])
def test_settings_that_make_no_sense_leave_the_figure_as_it_opens(setting):
    at = open_page("learn", lesson=PLANE, step="2", answers=written(PLANE, None, 0), set=["scaled=yes", setting])
    assert at.segmented_control(key="lesson-control-scaled").value == "yes"
    assert f"The link sets “{setting}”, which this step does not have; it is left out." in texts(at).replace("\\", "")
    assert at.query_params["set"] == "scaled=yes"


def test_progress_survives_its_link_and_two_places_join():
    slugs = [lesson.slug for lesson in LESSONS[:2]]
    own = Progress({slugs[0]: (None, 1), slugs[1]: (0,)})
    assert read_progress(str(own), LESSONS) == (own, True)
    other = Progress({slugs[0]: (40, 0, 1)})
    assert own.joined(other).answers == {slugs[0]: (40, 1, 1), slugs[1]: (0,)}
    full = Progress({lesson.slug: tuple(99 for _ in lesson.steps) for lesson in LESSONS})
    assert len(str(full)) <= LONGEST
