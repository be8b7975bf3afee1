"""Home: the sentence, its translation, and the controls that every page shares."""

import re
from html import unescape
from urllib.parse import parse_qs

import pytest
from page_exports import with_menus
from page_models import CLASSIC, PRONOUNS, REVERSE, WIDE, checked, open_page, save_untrained, texts

from pages.home.said import change_of
from pages.shared.url.view_state import View
from pages.shared.wording import plain
from transformer.checkpoints.settings import SHIPPED_FOLDER
from transformer.lab import AttentionKind, load

pytestmark = pytest.mark.usefixtures("untrained_models")


def home(**parameters):
    return open_page(**{"model": PRONOUNS, "text": CLASSIC, **parameters})


def french(at) -> str:
    """Returns the translation that stands over its English."""
    return re.sub(r"<[^>]*>", "", re.sub(r"<rt.*?</rt>", "", _glossed(at)))


def glossed_words(at) -> dict[str, str]:
    """Returns the English beneath each French word."""
    return dict(re.findall(r"<ruby>(.*?)<rt[^>]*>(.*?)</rt>", _glossed(at)))


def _glossed(at) -> str:
    bodies = [element.proto.body for element in at.get("html") if '<p class="home-translation"' in element.proto.body]
    return unescape(re.sub(r".*<p class=\"home-translation\"[^>]*>(.*)</p>", r"\1", bodies[0])) if bodies else ""


def test_the_translation_on_the_page_is_the_models():
    assert french(home()) == load(PRONOUNS).translate([CLASSIC])[0]


def test_the_first_sentence_says_what_this_is_and_what_to_do():
    kinds = ("markdown", "button", "radio", "text_input", "selectbox")
    first = next(element for element in home().main if element.type in kinds)
    assert first.value.startswith("# Look inside a Transformer") and "change one word" in first.value


@pytest.mark.skipif(not (SHIPPED_FOLDER / "pronouns-en-fr").exists(), reason="the shipped model is not there")
def test_each_french_word_stands_over_its_english_and_nouns_over_their_gender():
    at = open_page(model="pronouns-en-fr", text=CLASSIC)
    words = glossed_words(at)
    assert words["animal"] == "animal (m)" and words["rue"] == "street (f)" and words["il"] == "it (m)"
    assert words["fatigué"] == "tired" and words["parce qu'"] == "because"
    words = glossed_words(open_page(model="pronouns-en-fr", text="The dog sees the bridge."))
    assert words == {"Le": "the", "chien": "dog", "voit": "sees", "le": "the", "pont": "bridge"}  # no "it", no gender


def test_a_model_of_another_corpus_has_no_french_beneath_its_sentence():
    at = open_page(model=REVERSE)
    assert not french(at)
    assert plain(load(REVERSE).translate([at.text_input(key="choose-text").value])[0]) in texts(at)


@pytest.mark.skipif(not (SHIPPED_FOLDER / "pronouns-en-fr-rnn").exists(), reason="the shipped model is not there")
def test_a_model_without_attention_tells_of_il_and_elle_too():
    at = open_page(model="pronouns-en-fr-rnn", text="The cat caught the mouse because it was very slow.")
    assert "*chat* (cat) is masculine (*il*), *souris* (mouse) is feminine (*elle*)" in texts(at)
    assert glossed_words(at)["souris"] == "mouse (f)"


def test_the_classic_sentence_is_there_on_first_paint(own_models):
    (own_models / PRONOUNS).rename(own_models / "pronouns-en-fr")
    at = open_page()
    assert at.text_input(key="choose-text").value == CLASSIC
    assert at.query_params["text"] == CLASSIC


@pytest.mark.skipif(not (SHIPPED_FOLDER / "pronouns-en-fr").exists(), reason="the shipped model is not there")
def test_the_shipped_model_turns_il_into_elle():
    at = open_page()
    assert at.radio(key="choose-model").value == "pronouns-en-fr"
    assert "translated as **il**" in texts(at) and "*the animal*" in texts(at)
    assert "*animal* is masculine (*il*), *rue* (street) is feminine (*elle*)" in texts(at)
    at = checked(at.button(key="try").click().run())
    assert at.text_input(key="choose-text").value == WIDE
    assert "translated as **elle**" in texts(at) and "*the street*" in texts(at)


def test_the_invited_change_is_made_and_can_be_taken_back():
    at = home()
    assert at.button(key="try").label == "Change *tired* to *wide*"
    at = checked(at.button(key="try").click().run())
    assert at.text_input(key="choose-text").value == WIDE
    assert at.query_params["text"] == WIDE
    assert at.button(key="try").label == "Change *wide* to *tired*"


def test_became_is_only_said_of_a_small_aligned_change():
    before = ("L'", "animal", "a", "suivi", "le", "chat", "parce", "qu'", "il", "était", "fatigué", ".")
    after = ("L'", "animal", "a", "suivi", "le", "chat", "parce", "qu'", "elle", "était", "large", ".")
    assert change_of(before, after) == "*il* became *elle*, *fatigué* became *large*."
    assert change_of(before, before) == "The output stayed the same."
    assert change_of(before, (*before[:2], "n'", "a", "pas", *before[3:])) == (
        "All 12 tokens are kept, and 2 are added."
    )
    assert change_of(before, ("Le", "cheval", "dépassé", ".")) == ""


def test_an_unrelated_sentence_is_not_called_a_change():
    at = home()
    at = checked(at.text_input(key="choose-text").set_value("horse horse red").run())
    assert "became" not in texts(at) and "tokens are kept" not in texts(at)


def test_no_button_stands_where_no_change_is_on_offer():
    assert [button for button in home(text="The street was wide.").button if button.key == "try"]
    at = home(text="</script><script>alert(1)</script>")
    assert not [button for button in at.button if button.key == "try"]


@pytest.mark.skipif(not (SHIPPED_FOLDER / "pronouns-en-fr").exists(), reason="the shipped model is not there")
def test_the_first_links_lead_to_the_pages_that_need_no_knowledge():
    at = open_page(model="pronouns-en-fr", text=CLASSIC)
    assert [link.proto.page for link in at.get("page_link")][:2] == ["playground", "lessons"]


@pytest.mark.skipif(not (SHIPPED_FOLDER / "pronouns-en-fr").exists(), reason="the shipped model is not there")
def test_three_links_stand_open_and_the_others_are_folded():
    at = open_page(model="pronouns-en-fr", text=CLASSIC)
    (folded,) = at.expander
    inside = [link.proto.page for link in folded.get("page_link")]
    assert inside == ["attention", "attention", "heads", "before-attention", "train"]
    every = [link.proto.page for link in at.get("page_link")]
    assert every == ["playground", "lessons", "attention", *inside, "attention"], "the last is the next question's"


@pytest.mark.skipif(not (SHIPPED_FOLDER / "pronouns-en-fr").exists(), reason="the shipped model is not there")
def test_the_first_link_with_a_switch_takes_a_head_that_is_seen_to_matter():
    at = open_page(model="pronouns-en-fr", text=CLASSIC)
    links = [(link.proto.label, link.proto.query_string) for link in at.get("page_link")]
    label, query = next(link for link in links if link[1])
    (switch,) = View.read(parse_qs(query))[0].switches
    comparison = load("pronouns-en-fr").compare(CLASSIC, [switch])
    assert comparison.output_changed and len(switch.heads) == 1
    kind = AttentionKind.at(switch.stack, switch.sublayer)
    assert f"head {switch.heads[0]} of layer {switch.layer}'s {kind.phrase}" in label


def test_an_example_is_taken_by_its_button():
    at = home()
    example = next(button for button in at.button if (button.key or "").startswith("example-The cat"))
    at = checked(example.click().run())
    assert plain(at.text_input(key="choose-text").value) == example.label


@pytest.mark.parametrize(("text", "said"), [("", "is empty"), ("word " * 2_000, "2,001 tokens")])
def test_a_sentence_that_cannot_be_read_stays_in_the_field_with_a_reason(text, said):
    at = home()
    at = checked(at.text_input(key="choose-text").set_value(text).run())
    assert said in texts(at)
    assert at.text_input(key="choose-text").value == text.strip()
    assert at.query_params["text"] == CLASSIC  # the last sentence is still what is shown
    at = checked(at.text_input(key="choose-text").set_value(WIDE).run())
    assert said not in texts(at)
    assert at.query_params["text"] == WIDE


def test_ten_thousand_letters_are_one_unknown_word():
    at = home()
    at = checked(at.text_input(key="choose-text").set_value("x" * 10_000).run())
    assert "never seen in training" in texts(at)
    assert "text" not in at.query_params


def test_unknown_words_are_named():
    at = home(text="The zebra crosses this bridge.")
    assert "*zebra* was never seen in training" in texts(at)


def test_another_model_brings_a_sentence_that_it_can_read_and_the_old_one_comes_back():
    at = home(text=WIDE)
    at = checked(at.radio(key="choose-model").set_value(REVERSE).run())
    assert at.query_params["model"] == REVERSE
    assert at.text_input(key="choose-text").value != WIDE
    assert "never seen" not in texts(at)
    at = checked(at.radio(key="choose-model").set_value(PRONOUNS).run())
    assert at.text_input(key="choose-text").value == WIDE


def test_one_head_or_the_average_can_be_chosen():
    at = home(popovers=["home-drawer"])
    assert "the average of its heads" in texts(at)
    at = checked(at.selectbox(key="choose-head").set_value(2).run())
    assert "head 2" in texts(at) and at.query_params["head"] == "2"
    at = checked(at.selectbox(key="choose-layer").set_value(0).run())
    assert "layer 0" in texts(at) and at.query_params["layer"] == "0"


@pytest.mark.parametrize("place", ["Layer", "Head"])
def test_a_link_to_a_layer_or_head_that_is_not_there_is_answered_while_the_drawer_is_closed(place):
    at = home(**{place.lower(): "99"})
    assert not at.selectbox and f"{place} 99 does not exist" in texts(at)


def test_the_vocabulary_can_be_searched():
    at = home()
    n_entries = load(PRONOUNS).tokenizer.vocab_size
    assert f"{n_entries:,} of {n_entries:,} entries" in texts(at)
    at = checked(at.text_input(key="search-vocabulary").set_value("street").run())
    assert list(at.dataframe[0].value["token"]) == ["street"]


def test_a_link_to_a_model_that_is_not_there_is_answered_in_a_sentence():
    at = home(model="../../etc/passwd")
    assert "There is no model" in texts(at) and "Shown instead" in texts(at)


def test_a_damaged_model_is_named_and_another_one_shown(own_models):
    (own_models / PRONOUNS / "config.json").write_text("{")
    at = home()
    assert "config\\.json cannot be read" in texts(at)
    assert at.radio(key="choose-model").value != PRONOUNS


def test_without_any_model_the_page_invites_to_train(room, no_shipped):
    assert "There is no model here yet" in texts(open_page())


def test_newer_weights_of_a_run_are_seen(own_models):
    before = home()
    save_untrained(own_models / "later", seed=7)
    (own_models / "later" / PRONOUNS / "weights.safetensors").replace(own_models / PRONOUNS / "weights.safetensors")
    assert load(PRONOUNS).translate([CLASSIC])[0] != french(before)
    assert load(PRONOUNS).translate([CLASSIC])[0] == french(home())


def test_no_line_of_the_explanation_reads_as_an_item_of_a_list():
    lines = texts(with_menus(home(), "token-lines-explained")).splitlines()
    assert any("weights that sum to 1." in line for line in lines)
    assert not [line for line in lines if re.match(r"\s*(\d+[.)]|[-+*])\s", line)]
