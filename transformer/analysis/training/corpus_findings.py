"""What a run's corpus says of it: entries too rare to be learned, lengths that do not fit."""

from transformer.analysis.proportions import Proportions
from transformer.analysis.training.findings import Finding, number
from transformer.config import ModelConfig

RARE_ENTRY = 10
"""Occurrences of an average vocabulary entry below which it can hardly be learned."""


def vocabulary(corpus: Proportions) -> Finding | None:
    """Entries of the vocabulary are too rare to be learned."""
    if corpus.tokens_an_entry >= RARE_ENTRY:
        return None
    fitting = max(8, round(corpus.n_pairs * corpus.tokens_a_pair / 50, -1))
    return Finding(
        "vocabulary",
        "warning",
        f"The vocabulary has {corpus.vocab_size:,} entries for {corpus.n_pairs:,} pairs: each occurs "
        f"{number(corpus.tokens_an_entry)} times on average, too seldom to be learned.",
        f"A vocabulary of about {fitting:,.0f}, characters as tokens, or more pairs.",
    )


def length(corpus: Proportions, model: ModelConfig) -> Finding | None:
    """Pairs are longer than the model, or its learned positions much longer than the pairs."""
    if corpus.too_long > 0.01:
        return Finding(
            "length",
            "warning",
            f"{100 * corpus.too_long:.3g} % of the training pairs are longer than max_length ({corpus.max_length} "
            f"tokens) and are left out; the longest seen has {corpus.longest}.",
            f"max_length {corpus.longest}, or a larger vocabulary, whose tokens are longer.",
        )
    if model.positions == "learned" and corpus.max_length > 8 * corpus.longest:
        return Finding(
            "length",
            "note",
            f"The learned position table has {corpus.max_length} rows, the longest pair {corpus.longest} tokens: the "
            "other rows are never trained.",
            f"max_length {corpus.longest}.",
        )
    return None
