"""Recipes for files: each size has its own, a file that has changed is looked at again, and the reasons are true."""

from dataclasses import replace

import pytest

from transformer.config import CorpusConfig
from transformer.data.corpora import corpus_tokenizer, file_corpus, load_corpus
from transformer.data.file_recipes import SIZES, file_recipe, recipe_for
from transformer.text.pairs import Pair
from transformer.training.schedule import paper_peak


def corpus_of(n_pairs, source="A cat sleeps here .", target="Un chat dort ici ."):
    return replace(load_corpus("reverse"), train=[Pair(source, target)] * n_pairs)


@pytest.mark.parametrize(
    ("n_pairs", "preset"),
    [(1, "tiny"), (1_000, "tiny"), (1_001, "small"), (60_000, "small"), (60_001, "medium"), (1_000_001, "paper-base")],
)
def test_the_more_pairs_the_larger_the_model(n_pairs, preset):
    recipe = file_recipe(corpus_of(n_pairs))
    assert recipe.preset == preset and recipe.why[0].startswith(f"{n_pairs:,} pairs: ")


def test_dropout_falls_and_batches_grow_with_the_size_of_the_file():
    assert list(SIZES) == sorted(SIZES, key=lambda size: (size.pairs, -size.dropout, size.batch_tokens, -size.epochs))
    assert [size.dropout for size in SIZES] == sorted((size.dropout for size in SIZES), reverse=True)


def test_longer_sentences_take_more_steps_and_more_room():
    short, long = (file_recipe(corpus_of(20_000, source="word " * n)) for n in (6, 80))
    assert long.train.max_steps > 5 * short.train.max_steps
    assert (short.model.max_length, long.model.max_length) == (64, 256)


def test_text_without_spaces_is_not_taken_for_one_word_a_sentence():
    chinese, english = (
        file_recipe(corpus_of(20_000, target=text)) for text in ("他昨天没有来上班，因为他病了。" * 4, "ill")
    )
    assert chinese.train.max_steps > 3 * english.train.max_steps


def test_the_reasons_name_the_settings():
    recipe = file_recipe(corpus_of(20_000))
    steps, dropout = recipe.train.max_steps, recipe.model.dropout
    for said in (f"Dropout {dropout:g}", f"{steps:,} steps", "d_model 128, 2 + 2 layers"):
        assert said in " ".join(recipe.why)


def test_millions_of_pairs_take_the_papers_recipe():
    recipe = file_recipe(corpus_of(1_000_001))
    assert recipe.train.learning_rate == pytest.approx(paper_peak(512, recipe.train.warmup_steps), rel=0.01)
    assert (recipe.train.optimizer, recipe.train.schedule) == ("adamw", "paper")


def test_a_file_that_has_changed_gets_another_recipe(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"the word{i} is here\tle mot{i} est ici\n" for i in range(300)))
    few = recipe_for(str(path))
    path.write_text("".join(f"the word{i} is here\tle mot{i} est ici\n" for i in range(6_000)))
    assert (few.preset, recipe_for(str(path)).preset) == ("tiny", "small")


def test_a_file_that_cannot_be_read_has_a_recipe_without_reasons():
    assert recipe_for("nowhere.tsv").why == () and recipe_for("nowhere.tsv").preset == "tiny"


def test_the_vocabulary_grows_with_the_file_and_has_room_for_every_character(tmp_path):
    """A thousand pieces suit so few pairs, but not two thousand different characters."""
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"word{i} is here\t{chr(0x4E00 + 5 * i) * 3}是\n" for i in range(2_000)))
    corpus = file_corpus(path)
    assert corpus.vocab_size == 1_000
    assert corpus_tokenizer(corpus, CorpusConfig(name=str(path))).vocab_size > 1_800
