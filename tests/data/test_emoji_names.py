"""Names of emoji: all languages are there, cleaned, and no variant of a held-out name is ever trained on."""

import re

import emoji
import pytest

from transformer.config import CorpusConfig
from transformer.data.corpora import CORPORA, corpus_tokenizer, load_corpus
from transformer.data.emoji_names import LANGUAGES, base_name, cleaned, split_names, split_of_base
from transformer.text.pairs import split_of, words

TONE = re.compile(r"(dark|light|medium) skin tone")


def test_the_languages_are_those_of_the_package():
    assert {"en", *LANGUAGES} == set(emoji.LANGUAGES)
    assert {name for name in CORPORA if name.startswith("emoji")} == {f"emoji-en-{code}" for code in LANGUAGES}


@pytest.mark.parametrize("code", LANGUAGES)
def test_every_language_loads_whole_and_clean(code):
    splits = split_names(code)
    assert len(splits.train) > 3_000 and len(splits.validation) > 50 and len(splits.random) > 150
    for pair in (*splits.train, *splits.validation, *splits.random):
        for text in (pair.source, pair.target):
            assert text and ":" not in text and "_" not in text and text == " ".join(text.split())


@pytest.mark.parametrize("code", ["ko", "de"])
def test_no_variant_of_a_name_is_in_another_split(code):
    splits = split_names(code)
    bases = [{plain(pair.source) for pair in part} for part in (splits.train, splits.validation, splits.random)]
    assert sum(map(len, bases)) == len(set().union(*bases))
    toned = {plain(pair.source) for pair in splits.train if TONE.search(pair.source)}
    assert len(toned) > 200, "variants are trained on"
    assert all(plain(pair.source) == pair.source for pair in (*splits.validation, *splits.random)), "each counts once"


def plain(name):
    """A name without tones (a tone by itself stays), by another way: its words less those of each tone."""
    said = name.split(" ")
    while "tone" in said:
        end = said.index("tone")
        assert said[end - 1] == "skin"
        del said[end - 2 : end + 1]
    return " ".join(said) or name


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("woman dancing dark skin tone", "woman dancing"),
        ("woman medium-light skin tone curly hair", "woman curly hair"),
        ("handshake medium-dark skin tone light skin tone", "handshake"),
        ("light skin tone", "light skin tone"),
        ("dark chocolate", "dark chocolate"),
    ],
)
def test_a_base_name_is_the_name_without_its_tones(name, base):
    assert base_name(name) == base


def test_a_name_is_cleaned_of_colons_and_underscores():
    assert cleaned(":A_button_(blood_type):") == "A button (blood type)"
    assert cleaned(":e\u0301cole:") == "école"


def test_what_the_general_rule_holds_out_is_held_out_here_too():
    for pair in split_names("fr").train:
        base = base_name(pair.source)
        assert split_of_base(base) == "train" == split_of(base)


@pytest.mark.parametrize("code", ["ko", "fr"])
def test_seen_and_unseen_words_divide_the_held_out_names(code):
    corpus = load_corpus(f"emoji-en-{code}")
    known = {word for pair in corpus.train for word in words(pair.source)}
    seen, unseen = corpus.held_out["seen words"], corpus.held_out["unseen words"]
    assert sorted((*seen, *unseen), key=str) == sorted(corpus.held_out["random"], key=str)
    assert len(seen) > 30 and len(unseen) > 30
    assert all(known.issuperset(words(pair.source)) for pair in seen)
    assert not any(known.issuperset(words(pair.source)) for pair in unseen)


def test_the_corpus_says_whose_names_they_are_and_is_judged_by_chrf():
    corpus = load_corpus("emoji-en-ko")
    assert "emoji" in corpus.credit and "Unicode" in corpus.credit
    assert corpus.primary_metric == "chrf" and (corpus.source_name, corpus.target_name) == ("English", "Korean")
    tokenizer = corpus_tokenizer(corpus, CorpusConfig(name=corpus.name))
    assert (tokenizer.kind, tokenizer.vocab_size) == ("bpe", corpus.vocab_size)
