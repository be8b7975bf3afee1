"""Plain Python cuts text as the tokenizers do: the references of checks."""

import pytest

from transformer.analysis.tokens.reference import most_probable, pieces_again
from transformer.analysis.tokens.vocabulary_sizes import both_sides, learned
from transformer.data.corpora import load_corpus
from transformer.text.tokenizer import train_nearest

ODD = ("a  b ", " 🦔🦔 x", "", " ", "àé…", "don't, l'animal", "x\ty", "12,5 ▁ 3")


@pytest.mark.parametrize("kind", ["words", "char", "bpe", "unigram"])
@pytest.mark.parametrize("corpus", ["pronouns-en-fr", "emoji-en-de", "emoji-en-ko"])
def test_the_reference_cuts_every_text_as_the_tokenizer_does(corpus, kind):
    pairs = load_corpus(corpus)
    texts, held_out = both_sides(pairs, 500, "train"), both_sides(pairs, 50, "random")
    for size in (100, 400, 1000):
        tokenizer = train_nearest(kind, texts, size)
        cut = pieces_again(tokenizer)
        for text in (*held_out, *ODD):
            assert cut(text) == [tokenizer.piece(token) for token in tokenizer.encode(text)]


def test_the_most_probable_pieces_are_those_of_all_ways_to_cut():
    scores = {"a": -2.0, "b": -2.0, "c": -3.0, "ab": -3.5, "bc": -4.6, "abc": -6.7}
    assert most_probable(scores, "abc") == ["ab", "c"] and most_probable(scores, "bc") == ["bc"]
    assert most_probable(scores, "axb") == ["a", "x", "b"]


def test_sizes_that_the_text_does_not_allow_are_the_nearest_ones_each_once():
    texts = both_sides(load_corpus("emoji-en-de"), 60, "train")
    most = [tokenizer.vocab_size for tokenizer in learned("bpe", texts, (5, 90, 400, 9_000, 20_000))]
    assert most[1] == 400 and len(most) == 3 and 256 < most[0] < 400 < most[2] < 9_000
    assert len(learned("char", texts, (100, 200))) == 1
