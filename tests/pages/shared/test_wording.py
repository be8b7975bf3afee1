"""Numbers and switches in words: a difference is that of the two numbers beside it; what does nothing says why."""

from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from page_models import CLASSIC, PRONOUNS, open_page, texts

from pages.shared.context import left_out_text
from pages.shared.wording import (
    NEGLIGIBLE,
    change,
    effect,
    isolated,
    listed,
    plain,
    size,
    smoothed,
    unseen,
)
from transformer.inspection.inspection import idle_notes
from transformer.interventions import parse_intervention
from transformer.lab import Comparison, load
from transformer.text.token_ids import SPECIALS
from transformer.text.tokenizer import train_tokenizer
from transformer.text.two_sided_tokenizer import SOURCE_FILE, TARGET_FILE, read_two_sided

_DIGITS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹−", "-0123456789-")
probabilities = st.floats(1e-9, 1.0)


def read(shown: str) -> Decimal:
    """A number as a reader takes it."""
    mantissa, *power = shown.translate(_DIGITS).split(" × 10")
    return Decimal(mantissa).scaleb(int(power[0]) if power else 0)


def output(length: int, *switches: str) -> Any:
    """Returns a stand-in for an output of this many steps, with these switches."""
    return SimpleNamespace(target_ids=range(length), interventions=list(map(parse_intervention, switches)))


SENTENCES = [f"the {noun} is {adjective}" for noun in ("cat", "dog", "train") for adjective in ("small", "late", "red")]


@pytest.mark.parametrize("kind", ["words", "char", "bpe", "unigram", "two-sided"])
def test_of_a_word_that_was_never_seen_it_is_said_what_the_model_reads_there(kind, tmp_path):
    learned = train_tokenizer("unigram" if kind == "two-sided" else kind, SENTENCES)
    if kind == "two-sided":  # as in Marian checkpoints: pieces of bytes have no entry
        for name in (SOURCE_FILE, TARGET_FILE):
            (tmp_path / name).write_bytes(learned.model)
        known = [piece for piece in learned.vocabulary()[len(SPECIALS) :] if not piece.startswith("<0x")]
        learned = read_two_sided(tmp_path / SOURCE_FILE, tmp_path / TARGET_FILE, [*SPECIALS, *known])
    for text in ("the cat is 猫", "猫 it 犬"):
        sentence = learned.sentence(text)
        read, said = set(sentence.tokens), unseen(learned, sentence, markdown=False)
        assert ("<unk>" in said) == ("<unk>" in read) == (kind not in ("bpe", "unigram"))
        assert (
            ("single bytes" in said) == any(piece.startswith("<0x") for piece in read) == (kind in ("bpe", "unigram"))
        )
        assert "“猫”" in said and plain("<unk>") in unseen(learned, sentence) + plain("<unk>") * ("bytes" in said)
        assert kind != "char" or "“猫”" in unseen(learned, learned.sentence("a c猫at"), markdown=False)
    known = learned.sentence("the cat is red")
    assert unseen(learned, known) == unseen(learned, known, markdown=False) == ""


@given(probabilities, probabilities)
def test_what_is_shown_subtracts_to_the_difference_shown_and_that_is_the_exact_one(before, after):
    assume(abs(after - before) > NEGLIGIBLE)
    move, difference = change(before, after)
    p, q = map(read, move.removeprefix("from ").split(" to "))
    d = read(difference)
    place = Decimal(1).scaleb(int(d.as_tuple().exponent))
    assert p != q and 2 * abs(q - p - d) <= place
    assert abs(d - (Decimal(after) - Decimal(before))) <= place / 2 * (1 + Decimal("1e-6"))


@pytest.mark.parametrize(
    ("names", "said"), [((), ""), (("a",), "a"), (("a", "b"), "a and b"), (("a", "b", "c", "d"), "a, b, c and d")]
)
def test_names_are_listed_as_a_sentence_has_them(names, said):
    assert listed(names) == said


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (0.90012, 0.20745, ("from 0.900 to 0.207", "−0.693")),
        (0.8996, 0.2074, ("from 0.8996 to 0.2074", "−0.692")),
        (0.98, 0.0141, ("from 0.980 to 0.0141", "−0.966")),
        (0.25, 0.25, ("from 0.250 to exactly the same", "0")),
    ],
)
def test_as_few_digits_as_do(before, after, said):
    assert change(before, after) == said


@pytest.mark.parametrize("positions", ["all", "0>1"])
def test_the_text_of_another_sentence_is_no_markup_where_a_label_is_escaped(positions):
    spec = parse_intervention(f"copy:encoder.0.ffn.output:{positions}:*a* <b>\u202e")
    assert "of “*a* <b>" in spec.label() and "\u202e" not in spec.label()
    assert ("all tokens of" in spec.label()) == (positions == "all")
    assert left_out_text(spec, ValueError("no.")).endswith("is left out: no.")
    assert r"\*a\* \<b\>" in plain(spec.label())


@pytest.mark.parametrize(
    ("switch", "said"),
    [
        ("forbid:decoder.0.self:2,5", "the key comes after the query"),
        (
            "forbid:decoder.0.self:50,3",
            "nothing happens at step 50, which this output never reaches: it has steps 0 to 7.",
        ),
        ("forbid:decoder.0.cross:8,3", "nothing happens at step 8"),
        ("row:decoder.0.self.0:60:uniform", "nothing happens at step 60"),
        ("row:decoder.0.self.0:0:uniform", "row 0 has a single key"),
        ("copy:decoder.0.ffn.output:1>60,0>1,1>9:a", "nothing happens at steps 9, 60"),
        ("positions:decoder:same:1,50", "nothing happens at step 50"),
        ("forbid:decoder.0.self:7,3", ""),
        ("forbid:decoder.0.cross:7,3", ""),
        ("forbid:encoder.0.self:3,50", ""),
        ("copy:encoder.0.ffn.output:1>60:a", ""),
        ("off:decoder.0.self:1", ""),
    ],
)
def test_a_switch_with_nothing_to_act_on_says_why(switch, said):
    notes = idle_notes(output(8, switch), causal_mask=True)
    assert len(notes) == bool(said) and said in "".join(notes)


def test_without_the_causal_mask_no_cell_is_closed_already():
    switches = "forbid:decoder.0.self:2,5", "row:decoder.0.self.0:0:uniform"
    assert len(idle_notes(output(8, *switches), causal_mask=True)) == 2
    assert not idle_notes(output(8, *switches), causal_mask=False)
    assert not idle_notes(output(8, *switches, "mask:causal"), causal_mask=True)
    assert "step 5" in idle_notes(output(4, *switches, "mask:causal"), causal_mask=True)[0]


@pytest.mark.usefixtures("untrained_models")
@pytest.mark.parametrize("switch", ["forbid:decoder.0.self:2,5", "row:decoder.1.self.0:0:uniform"])
def test_the_page_keeps_the_chip_and_the_number_and_says_why_nothing_moved(switch):
    comparison = load(PRONOUNS).compare(CLASSIC, [parse_intervention(switch)])
    assert abs(comparison.largest_shift[1]) < NEGLIGIBLE and not comparison.output_changed
    at = open_page("attention", model=PRONOUNS, text=CLASSIC, switch=switch)
    (note,) = idle_notes(comparison.after, causal_mask=True)
    said, measures = effect(comparison)
    assert plain(note) in texts(at) and any(said in text.value and measures in text.help for text in at.markdown)
    assert [b.label for b in at.button if b.key == f"remove-{switch}"] == [plain(parse_intervention(switch).label())]


def test_label_smoothing_is_said_to_set_the_aim_of_training_not_the_probability_of_a_sure_token():
    said = smoothed(0.1)
    assert "aimed at about 0.9 for the right token instead of 1" in said and "may lie above or below" in said
    assert "sure token" not in said and smoothed(0.0) == ""


def test_right_to_left_words_are_isolated_so_that_a_list_keeps_its_order():
    tokenizer = train_tokenizer("words", SENTENCES)
    hebrew, arabic = "\u05e9\u05dc\u05d5\u05dd", "\u0633\u0644\u0627\u0645"
    for markdown in (True, False):
        listed = unseen(tokenizer, tokenizer.sentence(f"the {hebrew} {arabic} zebra"), markdown=markdown)
        assert f"\u2068{hebrew}\u2069" in listed and f"\u2068{arabic}\u2069" in listed
        assert listed.index(hebrew) < listed.index(arabic) < listed.index("zebra") and "\u2068zebra" not in listed
    assert plain(f"{hebrew}.") == f"\u2068{hebrew}\\.\u2069" and isolated("cat") == "cat"


@pytest.mark.parametrize(
    ("after", "said"),
    [
        ("la rue .", "2 of 3 tokens changed: *le* *chat* → *la* *rue*."),
        ("le chien gris .", "1 of 3 tokens changed: *chat* → *chien* *gris*."),
        ("le chat gris .", "All 3 tokens are kept, and 1 is added."),
        ("le .", "1 of 3 tokens is lost, none is added."),
        ("la rue le matin tôt", "2 of 3 tokens were replaced by 4 others."),
    ],
)
def test_a_few_changed_tokens_are_named_and_many_are_counted(after, said):
    outputs = (
        SimpleNamespace(target_ids=words, target_tokens=words, ended=True, interventions=())
        for words in ("le chat .".split(), after.split())
    )
    still = np.full(3, 0.5)
    assert f"**The output changed.** {said} " in effect(Comparison(*outputs, still, still, still))[0]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("n_bytes", "said"),
    [
        (0, "0 kB"),
        (27, "1 kB"),
        (27_400, "28 kB"),
        (2_440_000, "2.4 MB"),
        (310_400_000, "310 MB"),
        (9_800_000_000, "9,800 MB"),
        (12_300_000_000, "12 GB"),
    ],
)
def test_an_amount_of_data_is_said_in_the_unit_that_fits(n_bytes, said):
    assert size(n_bytes) == said
