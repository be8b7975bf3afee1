"""Home, the Playground, the lessons and the glossary in another language: no sentence of theirs is left in English.

The language is made up: each Latin letter of the catalogue's texts is Ж. What then has Latin words on a page stands in
code. Left out is what the library says in English: descriptions of corpora, checks, and the words in figures.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any, get_args

import tiny_runs
from google.protobuf.json_format import MessageToDict
from page_exports import with_menus
from page_models import PRONOUNS, REVERSE, save_untrained, visit

from pages.learn.choices import BY_SLUG, SUMMARY, Choices
from pages.playground.choices import Expected, Knobs
from pages.shared.texts.catalogue import ORIGINAL, faults, read_texts
from pages.shared.url.view_state import View
from pages.shared.wording import plain
from pages.training.live.settings import PARTS, TASKS
from transformer.access.server_settings import LANGUAGE
from transformer.analysis.attention.shapes import Shape
from transformer.checkpoints.settings import list_checkpoints
from transformer.data.corpora import load_corpus
from transformer.runs.worker import train_run

ROOT = Path(__file__).parents[4]
KEPT = re.compile(r"<[^>]*>|:\w[\w/-]*(?=[:\[])|\$[^$]*\$")
"""The parts that a translator leaves as they are: tags, icons, colours, formulas."""
OF_TERMS = ("name", "meaning")
"""The texts that a translation of a term in the glossary has of its own."""
SHOWN = {"body", "label", "labels", "help", "placeholder", "text", "title", "said", "state", "rest", "unit"}
"""The fields of elements, and of what components get, that a visitor can read."""
OF_LINKS = (
    *(*View.names(), *Knobs.names(), *Choices.names()),
    *(*BY_SLUG, SUMMARY, *TASKS, *PARTS, *get_args(Shape), *get_args(Expected)),
    *("on", "yes", "encoder", "decoder", r"untrained-reverse"),
)
"""Names and values that a link has, which a sentence about one repeats."""
NAMES = ("HTML", "CSV", "NPZ", "sinusoidal", "weight")
"""Names of formats, and those that the library gives to settings and tables."""
UNTRAINED, TRAINED = "untrained", "trained"
VISITS: tuple[tuple[str, dict[str, str]], ...] = (
    ("", {"model": PRONOUNS}),
    ("", {"model": REVERSE, "text": "a b zebra"}),
    ("glossary", {}),
    ("playground", {}),
    ("playground", {"text": "a b zebra", "without": "positions"}),
    ("playground", {"text": " ".join("a" * 40)}),
    ("playground", {"run": UNTRAINED}),
    ("playground", {"run": TRAINED, "guess": "even"}),
    ("learn", {}),
    ("learn", {"lesson": "summary"}),
    ("learn", {"lesson": "query-key-value"}),
    ("learn", {"lesson": "positions", "answers": "positions.0"}),
    ("learn", {"lesson": "masks", "step": "2", "answers": "masks.0.0"}),
    ("learn", {"lesson": "decoding", "step": "1", "answers": "decoding.50"}),
    ("", {"model": REVERSE, "kind": "a", "layer": "b", "threshold": "c", "words": "d", "cell": "e", "switch": "f"}),
    ("", {"model": REVERSE, "layer": "9", "head": "99", "over": "98,99", "text": "zebra"}),
    ("", {"model": REVERSE, "view": "nonsense"}),
    ("playground", {"task": "a", "layers": "b", "heads": "9", "slow": "c", "without": "d", "run": "/", "seed": "7777"}),
    ("playground", {"text": "a" * 300, "guess": "e", "run": "gone"}),
    ("learn", {"lesson": "a", "locked": "b", "answers": "c"}),
    ("learn", {"lesson": "masks", "step": "99", "set": "a" * 200}),
)
"""Pages and the links that open them, the last ones with nonsense in them."""
POPOVERS = ("home-drawer", "page-end-save", "page-end-report", "page-end-open")
MENU = "token-lines-export"


def in_cyrillic(text: str) -> str:
    """Returns a text in the language that is made up."""
    said = []
    for written, name, form, turned in Formatter().parse(text):
        kept = KEPT.findall(written)
        parts = [re.sub("[A-Za-z]", "Ж", part) for part in KEPT.split(written)]
        whole = "".join(part + keep for part, keep in zip(parts, [*kept, ""], strict=True))
        said.append(whole.replace("{", "{{").replace("}", "}}"))
        if name is not None:
            said.append("{" + name + (f"!{turned}" if turned else "") + (f":{form}" if form else "") + "}")
    return "".join(said)


def translated(text: Any, *path: str) -> Any:
    """Returns the texts of a catalogue, or a part of it, in that language."""
    if isinstance(text, str):
        return in_cyrillic(text)
    if isinstance(text, list):
        return [in_cyrillic(each) for each in text]
    of_term = path[:1] == ("glossary",) and len(path) == 3
    return {name: translated(each, *path, name) for name, each in text.items() if not of_term or name in OF_TERMS}


def as_toml(texts: Mapping[str, Any], *path: str) -> Iterator[str]:
    """Returns the lines of a catalogue's file."""
    values = {name: text for name, text in texts.items() if not isinstance(text, Mapping)}
    if values:
        yield f"[{'.'.join(map(json.dumps, path))}]"
    yield from (f"{json.dumps(name)} = {json.dumps(text, ensure_ascii=False)}" for name, text in values.items())
    for name, text in texts.items():
        if isinstance(text, Mapping):
            yield from as_toml(text, *path, name)


def left_in_english(page: str, link: Mapping[str, str]) -> list[str]:
    """Returns what stands on a page with Latin words in it, all its popovers open."""
    at = visit(page, popovers=POPOVERS, **link)
    if not page:
        at = with_menus(at, MENU)
    assert not at.exception, [each.value for each in at.exception]
    found = {text for proto in _elements(at._tree) for text in _shown(MessageToDict(proto))}
    return sorted(filter(_is_english, found - _data()))


@cache
def _data() -> set[str]:
    """Returns what is no text of the pages: names of models and sentences to choose from."""
    examples = {plain(text) for name in ("pronouns-en-fr", "reverse") for text in load_corpus(name).examples}
    return examples | {model.name for model in list_checkpoints()}


def _elements(block: Any) -> Iterator[Any]:
    for child in block.children.values():
        if child.proto is not None:
            yield child.proto
        if hasattr(child, "children"):
            yield from _elements(child)


def _shown(value: Any, name: str = "") -> Iterator[str]:
    if isinstance(value, str):
        if value[:1] in "{[" and name == "json":
            yield from _shown(json.loads(value), "json")
        elif name in SHOWN:
            yield value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            if key != "panels" and not (key == "text" and "starts_word" in value):  # of a figure, or a token
                yield from _shown(each, key)
    elif isinstance(value, list):
        for each in value:
            yield from _shown(each, name)


def _is_english(text: str) -> bool:
    """Tells whether a text has a Latin word that is no markup, no emphasised name, no translation, none of NAMES, and
    in a sentence about a link none that the link has."""
    if text.startswith(":red[:material/error:"):
        text = re.sub("|".join(["“[^”]*”", *(rf"\b{name}(?![\w-])" for name in OF_LINKS)]), " ", text.replace("\\", ""))
    markup = r"<style>.*?</style>|<p class=\"home-.*</p>|<[^>]*>|`[^`]*`|\*+[^*]*\*+|:\w[\w/-]*[:\[]|\$[^$]*\$|&\w+;"
    return bool(re.search(r"[A-Za-z]{2}", re.sub("|".join([markup, *NAMES]), " ", text, flags=re.DOTALL)))


def test_no_sentence_of_the_four_pages_is_left_in_english(tmp_path):
    language, runs = tmp_path / "zz.toml", tmp_path / "runs"
    language.write_text("\n".join(as_toml(translated(read_texts(ORIGINAL)))), encoding="utf-8")
    assert not faults(read_texts(language), read_texts(ORIGINAL), "en")
    save_untrained(runs)
    environment = {**os.environ, LANGUAGE: str(language), "ATTENTION_LAB_RUNS": str(runs)}
    environment["PYTHONPATH"] = os.pathsep.join(map(str, (ROOT, ROOT / "tests" / "support")))
    done = subprocess.run([sys.executable, __file__], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    left = zip(VISITS, json.loads(done.stdout.splitlines()[-1]), strict=True)
    assert not [(visited, text) for visited, texts in left for text in texts]


if __name__ == "__main__":
    for name in (UNTRAINED, TRAINED):
        tiny_runs.create(name=name, pinned=())
    train_run(TRAINED)
    print(json.dumps([left_in_english(*each) for each in VISITS]))
