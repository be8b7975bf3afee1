import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer.data.tasks import (
    MAX_SYMBOLS,
    N_TRAIN,
    SYMBOLS,
    TASKS,
    GeneratedPairs,
    addition,
    dates,
    held_out_pairs,
    random_bits,
)
from transformer.text.pairs import join_words, words

WORD_TASKS = ("copy", "reverse", "sort")
all_bits = st.integers(0, 2**32).map(lambda key: random_bits("test", key))


def train(name, seed=0):
    return GeneratedPairs(TASKS[name], seed, "train", N_TRAIN)


@given(all_bits)
def test_word_tasks_give_the_right_answer(bits):
    for name, answer in (("copy", list), ("reverse", lambda s: s[::-1]), ("sort", sorted)):
        pair = TASKS[name].generate(bits)
        assert words(pair.target) == list(answer(words(pair.source)))
        assert 1 <= len(words(pair.source)) <= MAX_SYMBOLS


@given(all_bits)
def test_word_alignments_are_one_to_one_and_link_equal_symbols(bits):
    for name in WORD_TASKS:
        pair = TASKS[name].generate(bits)
        source, target = words(pair.source), words(pair.target)
        assert all(source[i] == target[j] for i, j in pair.alignment)
        everything = list(range(len(source)))
        assert sorted(i for i, _ in pair.alignment) == sorted(j for _, j in pair.alignment) == everything


def test_sorting_keeps_the_order_of_equal_symbols():
    pairs = (train("sort")[i] for i in range(200))
    for pair in pairs:
        target = words(pair.target)
        origin = dict((j, i) for i, j in pair.alignment)
        assert all(origin[j] < origin[j + 1] for j in range(len(target) - 1) if target[j] == target[j + 1])


@given(all_bits)
def test_sums_are_right_and_each_digit_is_aligned_by_place(bits):
    pair = addition(bits)
    left, _, right = words(pair.source)
    assert int(left) + int(right) == int(pair.target)
    for j in range(len(pair.target)):
        place = min(len(pair.target) - 1 - j, max(len(left), len(right)) - 1)
        expected = {number[-1 - place] for number in (left, right) if place < len(number)}
        assert {pair.source[i] for i, target in pair.alignment if target == j} == expected


def test_a_sum_is_aligned_as_on_paper():
    pair = next(p for p in train("addition")[:20_000] if p.source.startswith("95 + 7") and len(p.source) == 7)
    # "95 + 7x" -> 1yz: the leading 1 is the carry of the tens, which are characters 0 and 5.
    assert pair.alignment == ((0, 0), (0, 1), (1, 2), (5, 0), (5, 1), (6, 2))


@given(all_bits)
def test_dates_are_right_whatever_their_form(bits):
    pair = dates(bits)
    day = datetime.date.fromisoformat(pair.target)
    month = day.strftime("%B")
    suffix = {1: "st", 2: "nd", 3: "rd", 21: "st", 22: "nd", 23: "rd", 31: "st"}.get(day.day, "th")
    assert pair.source in {
        f"{day.day} {month} {day.year}",
        f"{month} {day.day}, {day.year}",
        f"{day:%A}, {day.day} {month} {day.year}",
        f"the {day.day}{suffix} of {month} {day.year}",
    }
    linked = {j: "".join(pair.source[i] for i, target in pair.alignment if target == j) for j in range(10)}
    assert [linked[j] for j in range(4)] == list(pair.target[:4])
    assert linked[4] == linked[7] == ""
    assert linked[5] == linked[6] == month
    assert linked[8] + linked[9] == (str(day.day) if day.day > 9 else str(day.day) * 2)


def test_every_date_form_occurs():
    sources = [pair.source for pair in train("dates")[:200]]
    assert any(s[0].isdigit() for s in sources) and any(s.startswith("the ") for s in sources)
    assert any(s.split()[0] in ("May", "June", "July") for s in sources)
    assert any(s.split()[0].endswith("day,") for s in sources)


@pytest.mark.parametrize("name", TASKS)
def test_a_pair_depends_on_seed_and_index_alone(name):
    first, second = train(name), train(name)
    assert [first[i] for i in (5, 3, 5)] == [second[5], second[3], first[5]]
    assert first[:3] == (first[0], first[1], first[2]) and first[-1] == first[N_TRAIN - 1]
    assert train(name, seed=1)[:20] != first[:20]
    with pytest.raises(IndexError, match=f"pair {N_TRAIN} of {N_TRAIN}"):
        first[N_TRAIN]


def test_generated_pairs_are_pinned_for_checkpoints_already_trained():
    assert [train("reverse")[i].source for i in range(3)] == ["b o j", "q c s", "b g i g e"]
    assert train("addition")[0].source == "9 + 2"


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("seed", [0, 1])
def test_no_source_is_in_two_splits(name, seed):
    seen = {pair.source for pair in train(name, seed)[:5_000]}
    validation, random = (held_out_pairs(TASKS[name], seed, split) for split in ("validation", "random"))
    assert len({pair.source for pair in validation}) == len({pair.source for pair in random}) == len(random) == 1_000
    assert not seen & {pair.source for pair in validation} and not seen & {pair.source for pair in random}
    assert not {pair.source for pair in validation} & {pair.source for pair in random}


def test_a_held_out_day_is_held_out_in_every_form():
    seen = {pair.target for pair in train("dates")[:5_000]}
    assert not seen & {pair.target for pair in held_out_pairs(TASKS["dates"], 0, "random")}


@pytest.mark.parametrize("name", WORD_TASKS)
def test_training_holds_every_length_and_every_symbol(name):
    pairs = train(name)[:5_000]
    assert {len(words(pair.source)) for pair in pairs} == set(range(1, MAX_SYMBOLS + 1))
    assert {symbol for pair in pairs for symbol in words(pair.source)} == set(SYMBOLS)


@pytest.mark.parametrize("name", TASKS)
def test_the_vocabulary_covers_everything_a_task_shows(name):
    task = TASKS[name]
    unit = words if task.tokenizer == "words" else list
    known = {u for text in task.vocabulary for u in unit(text)}
    shown = {u for pair in train(name)[:3_000] for text in (pair.source, pair.target) for u in unit(text)}
    assert shown | {u for text in task.examples for u in unit(text)} <= known


@pytest.mark.parametrize("name", WORD_TASKS)
def test_words_of_generated_text_join_back_to_it(name):
    for pair in train(name)[:200]:
        assert join_words(words(pair.source)) == pair.source and join_words(words(pair.target)) == pair.target
