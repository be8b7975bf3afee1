"""Every answer of every lesson, asked of the shipped models anew: the sentences around it must still be true."""

import re
from dataclasses import replace
from itertools import chain, product

import numpy as np
import pytest
from fakes.plain_bench import PlainBench

from pages.learn.lesson import Drawing, Lesson, Options, Step
from pages.learn.lessons import LESSONS
from pages.learn.lessons.learning import AT_ONCE, BY_ADAM, TOO_FAST
from pages.learn.lessons.query_key_value import KEYS, VALUES
from pages.shared.bench.strings import backwards, held_out, long_strings, marked
from pages.shared.texts.catalogue import language_files, leaves, read_texts, wordings
from transformer.checkpoints.settings import list_checkpoints
from transformer.data.corpora import load_corpus
from transformer.lab import load
from transformer.views.attention.plane import AttentionInPlane

BENCH = PlainBench()
STEPS = [
    pytest.param(lesson, step, id=f"{lesson.slug}-{i}") for lesson in LESSONS for i, step in enumerate(lesson.steps, 1)
]


def step_named(name: str) -> Step:
    return next(step for lesson in LESSONS for step in lesson.steps if step.name == name)


@pytest.mark.parametrize(("lesson", "step"), STEPS)
def test_the_model_still_gives_the_answer_that_the_sentences_rely_on(lesson: Lesson, step: Step):
    truth, (least, most) = step.truth(BENCH), step.expects
    assert least <= truth.value <= most, f"{step.question} {truth.told}"
    assert any(character.isdigit() for character in truth.told), "the answer says no measured number"
    if isinstance(step.answer, Options):
        assert 0 <= truth.value < len(step.answer.texts)
        assert least == most, "each option needs sentences of its own"
    elif isinstance(step.answer, Drawing):
        assert step.answer.read(str(int(truth.value))) == truth.value, "the answer cannot be drawn"
        assert not step.answer.is_right(step.answer.number([0] * len(step.answer.rows)), truth.value)
    else:
        assert step.answer.least <= truth.value <= step.answer.most
        wrong = step.answer.least if truth.value - step.answer.least > step.answer.close else step.answer.most
        assert not step.answer.is_right(wrong, truth.value), "every guess would count as right"


@pytest.mark.slow
@pytest.mark.parametrize(("lesson", "step"), STEPS)
def test_every_setting_of_a_step_shows_something_that_its_checks_confirm(lesson: Lesson, step: Step):
    choices = [[(control.name, option) for option in control.options] for control in step.controls if control.options]
    for number, chosen in enumerate(product(*choices)):
        scene = step.scene(BENCH, step.settled(dict(chosen)))
        assert scene.parts or scene.lines
        for part in scene.parts:
            given = vars(part.subject).values()
            data = part.view.data(*given)
            assert part.view.figure(data).data
            if number == 0:
                failing = [check.claim for check in part.view.checks(*given, data) if not check.holds]
                assert not failing


def test_the_last_word_gets_much_weight_in_both_sentences_and_is_needed_in_one():
    step = step_named("explanation.effect")
    left = {}
    for last in step.controls[0].values:
        (part,) = step.scene(BENCH, {"last": last}).parts
        data = part.view.data(*vars(part.subject).values())
        place = data.sources.index(last)
        assert data.weights[:, place].max() > 0.4
        left[last] = data.left[place] / data.whole
    assert left["wide"] < 0.1 and left["tired"] > 0.95
    told = step.truth(BENCH).told
    instead = re.search(r"\*il\* gets ([\d.]+)", told)
    assert instead and float(instead[1]) > 0.8, told


def test_without_the_street_the_model_guesses_as_its_sentences_do():
    told = step_named("explanation.effect").truth(BENCH).told
    share = re.search(r"sentences with \*wide\* ([\d.]+) % have \*elle\*", told)
    counted = [
        re.search(r"\b(il|elle)\b", pair.target.lower()).group()
        for pair in load_corpus("pronouns-en-fr").validation
        if re.search(r"\bwide\b", pair.source)
    ]
    assert share and round(100 * counted.count("elle") / len(counted)) == int(share[1]), told


def test_what_matters_gets_weight_and_most_of_what_gets_weight_does_not_matter():
    told = step_named("explanation.all").truth(BENCH).told
    matter, seen, heavy, idle = (int(n) for n in re.findall(r"(\d+) (?:of these )?times", told))
    assert 5 < matter == seen < heavy / 2 < idle, told


def test_neither_kind_of_position_goes_far_beyond_training():
    pairs = long_strings(12)
    assert max(sum(BENCH.right(name, pairs)) for name in ("reverse", "reverse-learned")) < 0.1 * len(pairs)


def test_the_length_of_a_query_changes_how_much_and_its_direction_which():
    def weights(query, *keys):
        return AttentionInPlane().data(tuple(query), keys, VALUES[: len(keys)]).weights

    for query in np.random.default_rng(0).normal(size=(100, 2)):
        one, two, three = (weights(length * query, *KEYS) for length in (0.5, 1, 2))
        assert one.argmax() == two.argmax() == three.argmax() and one.max() < two.max() < three.max()
    query, long = (2.0, 0.5), (1.5, 1.5)
    assert weights(query, query, long).argmax() == 0
    assert weights(query, (0.2, 0.05), long).argmax() == 1  # a key in the query's own direction, but a short one


def test_the_head_of_the_story_opens_first():
    step = step_named("explanation.patterns")
    (said,) = step.scene(BENCH, step.settled({})).lines
    assert re.search(r"\*\*[45]\*\* look most", said), said


def test_the_runs_without_warm_up_and_with_too_high_a_rate_differ_in_that_alone():
    train = {name: load(name).checkpoint.settings.train for name in (BY_ADAM, AT_ONCE, TOO_FAST)}
    assert (train[BY_ADAM].max_steps, train[BY_ADAM].learning_rate, train[BY_ADAM].warmup_steps) == (800, 0.01, 100)
    assert train[AT_ONCE] == replace(train[BY_ADAM], warmup_steps=0)
    assert train[TOO_FAST] == replace(train[BY_ADAM], learning_rate=1.0)
    assert load(TOO_FAST).checkpoint.settings.model == load(AT_ONCE).checkpoint.settings.model


def test_the_doctor_says_of_the_run_that_was_made_to_diverge_that_it_has():
    step = step_named("learning.diverged")
    (said,) = step.scene(BENCH, step.settled({})).lines
    assert "the run has diverged. Lower the learning rate" in said


def test_models_that_the_texts_name_are_shipped():
    shipped = {model.name for model in list_checkpoints() if model.shipped}
    texts = chain.from_iterable(map(wordings, leaves(read_texts(language_files()[0])["lessons"]).values()))
    named = set(re.findall(r"\*((?:reverse|pronouns|everyday|emoji)[a-z-]*)\*", " ".join(texts)))
    assert len(named) > 5 and named <= shipped


def test_slugs_and_controls_are_unique_and_fit_into_links():
    slugs = [lesson.slug for lesson in LESSONS]
    assert len(set(slugs)) == len(slugs)
    assert all(slug.replace("-", "").isalpha() and slug.islower() for slug in slugs)
    for lesson in LESSONS:
        for step in lesson.steps:
            names = [control.name for control in step.controls]
            assert len(set(names)) == len(names)


def test_counting_right_answers_agrees_with_decoding_each_string_alone():
    lab, pairs = load("reverse-rnn"), held_out(9, 12)
    alone = tuple(lab.inspect(source).translation == target for source, target in pairs)
    assert BENCH.right(lab.name, pairs) == alone
    assert 0 < sum(alone) < len(alone)


def test_strings_are_of_the_length_asked_for_and_unseen_in_training():
    for pairs, length in ((held_out(6), 6), (long_strings(12), 12)):
        assert len(set(pairs)) == len(pairs)
        assert all(len(source.split()) == length and backwards(source) == target for source, target in pairs)


def test_wrong_letters_are_marked_and_right_ones_are_not():
    right = "`c\u00a0b\u00a0a`"
    assert marked("c b a", "c b a") == f"{right} :green[right]"
    assert marked("c a a d", "c b a") == f"`c` :red[**`a`**] `a` :red[**`d`**] :red[wrong]; right is {right}"


def test_a_missing_letter_is_a_red_dot_and_those_after_it_are_right():
    right = "`d\u00a0c\u00a0b\u00a0a`"
    assert marked("c b a", "d c b a") == f":red[**`•`**] `c` `b` `a` :red[wrong]; right is {right}"
    assert marked("", "b a") == ":red[**`•`**] :red[**`•`**] :red[wrong]; right is `b\u00a0a`"


def test_of_an_output_without_an_end_the_beginning_is_shown():
    shown = marked("b " * 64, "b a")
    assert shown.count("`b`") == 8 and ":red[and 56 more:] :red[wrong]; right is `b\u00a0a`" in shown
    assert "more" not in marked("b " * 8, "b a")
