"""The list of models: a line on each with its score, in an order that helps, and a sentence that fits the choice."""

import pytest
from page_models import CLASSIC, PRONOUNS, REVERSE, checked, open_page, texts

from pages.shared.model_picker import _line
from pages.shared.wording import plain
from transformer.checkpoints.settings import list_checkpoints, read_settings
from transformer.data.corpora import load_corpus
from transformer.lab import load

pytestmark = pytest.mark.usefixtures("untrained_models")


def test_each_line_says_what_a_model_does_and_its_score():
    lines = {model.name: _line(model) for model in list_checkpoints()}
    assert (
        lines["reverse"].endswith("· 99.9 % of 1,000 right · “a b c d e”")
        and "from the last to the first" in lines["reverse"]
    )
    assert lines["everyday-en-fr"] == f"Sentence pairs of en\\-fr\\-distilled\\.tsv\\.gz · 50 BLEU · “{plain(CLASSIC)}”"
    assert " · no causal mask · " in lines["reverse-without-mask"]
    assert lines[PRONOUNS].endswith(f"· not tested yet · “{plain(CLASSIC)}”")


def test_what_bleu_means_stands_below_the_list():
    assert "BLEU: Compares the runs of one to four words" in texts(open_page())


def test_own_models_stand_first_and_those_that_lack_a_part_last():
    offered = open_page().radio(key="choose-model").options
    assert set(offered[:2]) == {PRONOUNS, REVERSE} and offered[2] == "pronouns-en-fr"
    assert all("reverse-with" in name for name in offered[-7:])


@pytest.mark.parametrize(
    ("name", "keeps"), [("everyday-en-fr", True), ("reverse", False), ("emoji-en-fr", False), (PRONOUNS, True)]
)
def test_another_model_keeps_a_sentence_that_suits_it_and_else_shows_one_of_its_own(name: str, keeps: bool):
    at = open_page("attention", model="pronouns-en-fr", text=CLASSIC)
    at = checked(at.radio(key="choose-model").set_value(name).run())
    shown = at.text_input(key="choose-text").value
    assert (shown == CLASSIC) is keeps
    lab = load(name)
    assert not lab.unknown(shown)
    if not keeps:
        assert shown in load_corpus(read_settings(lab.checkpoint.folder).corpus.name).examples
