"""Scores of translations, and of attention against gold alignments. Strings and NumPy arrays in, numbers out.

Not here: perplexity, which needs a model (step.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from transformer.text.scripts import unspaced_script

NO_BLEU = "BLEU counts runs of up to four words, and no reference has four"
"""The reason where there is no BLEU."""


@dataclass(frozen=True)
class Score:
    """A score of a whole corpus, 0..100, with the sacrebleu signature that says how it was computed."""

    value: float
    signature: str


def exact_match(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """The fraction, 0..1, of hypotheses equal to their reference; ValueError for none, or unequal numbers."""
    _check_counts(hypotheses, references)
    return sum(map(str.__eq__, hypotheses, references)) / len(references)


def bleu(hypotheses: Sequence[str], references: Sequence[str]) -> Score | None:
    """sacrebleu's BLEU (exponential smoothing), one reference each; ValueError as `exact_match`.

    In words (13a), where most of the references is Chinese in sacrebleu's tokens of Chinese (zh), and in other scripts
    without spaces in characters (char). None, for the reason NO_BLEU, where no reference has four of them: without any
    4-gram to find, BLEU says 0 of perfect translations.
    """
    _check_counts(hypotheses, references)
    script = unspaced_script(references)
    tokens = "13a" if script is None else "zh" if script == "Chinese" else "char"
    metric = BLEU(tokenize=tokens, force=True)  # force: no warning of text that looks tokenized, as "reverse" does
    if not any(len(metric.tokenizer(text.rstrip()).split()) >= metric.max_ngram_order for text in references):
        return None
    return _scored(metric, hypotheses, references)


def chrf(hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """sacrebleu's chrF2 (character 6-grams, no word n-grams), one reference each; ValueError as `exact_match`."""
    return _scored(CHRF(), hypotheses, references)


def attention_entropy(weights: Float[ndarray, "*rows key"]) -> Float[ndarray, "*rows"]:
    """The entropy of each row in nats: 0 looks at one key, ln(keys) at all alike. NaN for a fully masked row.

    Computed in float64; a row is read as a distribution, whatever it sums to.
    """
    weights = weights.astype(np.float64)
    total = weights.sum(axis=-1, keepdims=True)
    shares = np.divide(weights, total, out=np.full_like(weights, np.nan), where=total > 0)
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)  # 0 ln 0 = 0
    return -(shares * logs).sum(axis=-1) + 0.0  # + 0.0 turns -0.0 into 0.0


def merge_to_words(
    weights: Float[ndarray, "*rows query key"], query_words: Sequence[int], key_words: Sequence[int]
) -> Float[ndarray, "*rows query_word key_word"]:
    """Attention between words: summed over the tokens of a key word, averaged over those of a query word.

    `query_words` and `key_words` give each token its word (`Sentence.words`), -1 for one that belongs to none,
    which is left out: what went to an end mark is then missing from the row.
    """
    queries, keys = _membership(query_words), _membership(key_words)
    counts = np.maximum(queries.sum(axis=0), 1)
    return np.swapaxes(queries / counts, 0, 1) @ weights.astype(np.float64) @ keys


def _scored(metric: BLEU | CHRF, hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    _check_counts(hypotheses, references)
    result = metric.corpus_score(list(hypotheses), [list(references)])
    return Score(result.score, str(metric.get_signature()))


def _check_counts(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    if not references or len(hypotheses) != len(references):
        raise ValueError(f"{len(hypotheses)} translations cannot be scored against {len(references)} references")


def _membership(words: Sequence[int]) -> Float[ndarray, "token word"]:
    """1 where a token belongs to a word."""
    members = np.zeros((len(words), max(words, default=-1) + 1))
    for token, word in enumerate(words):
        if word >= 0:
            members[token, word] = 1
    return members
