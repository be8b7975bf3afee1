"""Recipes: one for every corpus that comes with the lab, and none that its corpus would refuse."""

from dataclasses import replace

import pytest

from transformer.config import PRESETS, CorpusConfig
from transformer.data.batches import fits
from transformer.data.corpora import CORPORA, corpus_tokenizer, load_corpus
from transformer.data.recipes import RECIPES


def test_every_corpus_of_the_lab_has_a_recipe():
    assert RECIPES.keys() == CORPORA.keys()


@pytest.mark.parametrize("recipe", RECIPES.values())
def test_a_recipe_departs_from_its_preset_in_dropout_alone(recipe):
    preset = PRESETS[recipe.preset]
    kept = replace(recipe.model, dropout=preset.dropout, embedding_dropout=preset.embedding_dropout)
    assert kept == preset


@pytest.mark.parametrize("name", RECIPES)
def test_every_held_out_pair_fits_into_the_recipes_model(name):
    corpus = load_corpus(name)
    tokenizer = corpus_tokenizer(corpus, CorpusConfig(name=name))
    pairs = [*corpus.validation[:300], *(pair for split in corpus.held_out.values() for pair in split[:300])]
    assert all(fits(pair, tokenizer, RECIPES[name].model.max_length) for pair in pairs)
