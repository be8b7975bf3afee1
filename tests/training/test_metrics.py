import numpy as np
import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from transformer.training.metrics import (
    attention_entropy,
    bleu,
    chrf,
    exact_match,
    merge_to_words,
)

HYPOTHESES = ["L'animal n'a pas traversé la rue.", "Le chat a dormi trop longtemps.", "Elle était large."]
REFERENCES = ["L'animal n'a pas traversé la rue.", "Le chat dormait depuis longtemps.", "Il était trop fatigué."]

weights = hnp.arrays(
    np.float32, hnp.array_shapes(min_dims=2, max_dims=2, max_side=6), elements=st.floats(0, 1, width=32)
)


def test_exact_match_counts_equal_strings():
    assert exact_match(["a", "b", "c"], ["a", "b", "d"]) == pytest.approx(2 / 3)
    assert exact_match([""], [""]) == 1 and exact_match(["a "], ["a"]) == 0


@pytest.mark.parametrize("score", [exact_match, bleu, chrf])
@pytest.mark.parametrize(("n_hypotheses", "n_references"), [(0, 0), (1, 2), (2, 1)])
def test_unequal_or_no_sentences_are_refused_with_both_numbers(score, n_hypotheses, n_references):
    with pytest.raises(ValueError, match=f"{n_hypotheses} translations .* {n_references} references"):
        score(["a"] * n_hypotheses, ["a"] * n_references)


def test_bleu_and_chrf_are_sacrebleus_own():
    assert bleu(HYPOTHESES, REFERENCES).value == sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score
    assert chrf(HYPOTHESES, REFERENCES).value == sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score
    assert 20 < bleu(HYPOTHESES, REFERENCES).value < 60 and 20 < chrf(HYPOTHESES, REFERENCES).value < 80


def test_scores_carry_the_signature_that_reproduces_them():
    version = sacrebleu.__version__
    assert bleu(HYPOTHESES, REFERENCES).signature == f"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:{version}"
    expected = f"nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:{version}"
    assert chrf(HYPOTHESES, REFERENCES).signature == expected


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("飞行员爱熊，国王也爱。", "zh"),
        ("パイロットはくまが大好きだ。", "char"),
        ("นักบินรักหมีและพระราชา", "char"),
        ("अध्यापक ने बच्चों को कहानी सुनाई", "13a"),
        ("왕은 아주 작은 고양이를 사랑한다", "13a"),
        ("The king loves the bear.", "13a"),
    ],
)
def test_bleu_counts_the_tokens_of_the_script(text, tokens):
    """In words all of a Chinese sentence is one, and a half-right translation scores as a wrong one."""
    score = bleu([text, "x"], [text, text])
    assert f"|tok:{tokens}|" in score.signature and 0 < score.value < 100
    assert bleu([text], [text]).value == pytest.approx(100)
    expected = sacrebleu.corpus_bleu([text, "x"], [[text, text]], tokenize=tokens, force=True).score
    assert score.value == expected


def test_there_is_no_bleu_where_no_reference_has_a_4_gram():
    assert bleu(["a b c", "猫"], ["a b c", "猫"]) is None
    assert bleu(["a b c", ""], ["a b c", "a b c d"]).value == 0
    assert chrf(["a b c"], ["a b c"]).value == pytest.approx(100)


def test_no_warning_of_sacrebleu_reaches_the_user(caplog, capfd):
    tokenized = ["The king , who loves the bear , sleeps ."] * 200
    assert bleu(tokenized, tokenized).value == pytest.approx(100)
    assert not caplog.records and capfd.readouterr() == ("", "")


def test_perfect_translations_score_100():
    assert bleu(REFERENCES, REFERENCES).value == pytest.approx(100)
    assert chrf(REFERENCES, REFERENCES).value == pytest.approx(100)


def test_entropy_is_zero_for_one_key_and_ln_n_for_all_alike():
    entropy = attention_entropy(np.array([[0, 1, 0, 0], [0.25, 0.25, 0.25, 0.25], [0.5, 0.5, 0, 0], [0, 0, 0, 0]]))
    np.testing.assert_allclose(entropy, [0, np.log(4), np.log(2), np.nan], rtol=1e-15)
    assert not np.signbit(entropy[0])


@given(weights)
def test_entropy_lies_between_0_and_ln_of_the_keys(weights):
    entropy = attention_entropy(weights)
    assert entropy.shape == weights.shape[:-1]
    masked = ~weights.any(axis=-1)
    assert np.isnan(entropy[masked]).all()
    assert (entropy[~masked] >= 0).all() and (entropy[~masked] <= np.log(weights.shape[-1]) + 1e-12).all()


def test_merging_sums_over_key_tokens_and_averages_over_query_tokens():
    tokens = np.array([[0.1, 0.2, 0.3, 0.4], [0.3, 0.2, 0.1, 0.4], [0, 0, 1, 0]])
    merged = merge_to_words(tokens, [0, 0, 1], [0, 0, 1, -1])
    np.testing.assert_allclose(merged, [[0.4, 0.2], [0, 1]])
    np.testing.assert_allclose(merge_to_words(tokens[None], [0, 0, 1], [0, 0, 1, -1]), merged[None])


@given(weights)
def test_merging_single_token_words_changes_nothing(weights):
    n_queries, n_keys = weights.shape
    np.testing.assert_array_equal(merge_to_words(weights, range(n_queries), range(n_keys)), weights)
