"""Sentences of the library in another language: each is found as itself, with its values in their places."""

from string import Formatter

import pytest

from pages.shared.texts.catalogue import ORIGINAL, leaves, read_texts
from pages.shared.texts.phrases import Phrases

SAID = {".".join(path): text for path, text in leaves(read_texts(ORIGINAL)["library"]).items()}


@pytest.fixture
def server_that_says(server_in, tmp_path):
    """Lets the server speak a language whose texts of the library are these, by their names."""

    def speak(texts):
        path = tmp_path / "zz.toml"
        tables = ["[{}]\n{} = '{}'".format(*f"library.{name}".rsplit(".", 1), text) for name, text in texts.items()]
        path.write_text("\n".join(_together(tables)), encoding="utf-8")
        server_in(path)

    return speak


def _together(tables):
    """Joins the tables of one name: TOML takes each once."""
    found = {}
    for table in tables:
        head, line = table.split("\n", 1)
        found.setdefault(head, []).append(line)
    return [line for head, lines in found.items() for line in (head, *lines)]


def test_every_sentence_is_found_as_itself_and_not_as_another(server_that_says):
    server_that_says({name: name for name in SAID})
    for name, text in SAID.items():
        values = {value: "7" for _, value, _, _ in Formatter().parse(text) if value}
        assert Phrases(f"library.{name.partition('.')[0]}").find(text.format(**values)) == name


def test_values_stand_where_the_language_has_them(server_that_says):
    server_that_says({"refusals.too_long": "At most {most}; these are {n}", "checks.how.cells": "cells: {n}"})
    said = "The sentence has 1,234 tokens, its end mark included, where the model takes at most 20: shorten it"
    assert Phrases("library.refusals")(said) == "At most 20; these are 1,234"
    assert Phrases("library.checks")("1,234 cells looked at one by one") == "cells: 1,234"


def test_a_number_is_nothing_else(server_that_says):
    """The pattern of "{n} weights" once took "The attention is that of these weights" for one of its own."""
    server_that_says({"checks.how.weights": "weights: {n}"})
    assert Phrases("library.checks")("The output has three weights") == "The output has three weights"
    assert Phrases("library.checks")("392 weights") == "weights: 392"


@pytest.mark.parametrize("text", ["no such words", "", "{n} weights", "layer 0, head 1 of 4\n"])
def test_what_is_not_in_the_catalogue_stays_as_it_is(text):
    assert Phrases("library.checks")(text) == text and Phrases("library.checks").find(text) is None


def test_in_english_every_sentence_stays_as_it_is():
    for name, text in SAID.items():
        said = text.format(**{value: "1,234" for _, value, _, _ in Formatter().parse(text) if value})
        assert Phrases(f"library.{name.partition('.')[0]}")(said) == said
