"""Home, the Playground, the lessons and the glossary in another language: no sentence of theirs is left in English.

The language is made up: each Latin letter of the catalogue's texts is Ж. What then has Latin words on a page stands in
code. Left out are the descriptions that corpora have.
"""

import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import chain
from pathlib import Path
from string import Formatter
from typing import Any, ClassVar, get_args

import pytest
import tiny_runs
from google.protobuf.json_format import MessageToDict
from page_exports import with_menus
from page_models import PRONOUNS, REVERSE, save_untrained, visit
from streamlit.testing.v1 import AppTest

from pages.learn.choices import BY_SLUG, SUMMARY, Choices
from pages.learn.lesson import Drawing, Estimate, Step
from pages.learn.lessons import LESSONS
from pages.playground.choices import Expected, Knobs
from pages.shared.texts import phrases
from pages.shared.texts.catalogue import ORIGINAL, Texts, faults, leaves, read_texts
from pages.shared.url.view_state import View
from pages.shared.wording import plain
from pages.training.live.settings import PARTS, TASKS
from transformer.access.server_settings import LANGUAGE
from transformer.analysis.attention.shapes import Shape
from transformer.analysis.checks import Check
from transformer.analysis.training import run_checks
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
NAMES = r"\b(HTML|CSV|NPZ|sinusoidal|elle|il)\b"
"""Names of formats, one that the library gives to a setting, and tokens that an axis names."""
MODELS = r"\b(\w+-en-\w\w|reverse|trained|untrained)[\w-]*"
DATA = (
    r"^.* → (?=\*)",
    r"[a-z ]+ \d+ × \d+",
    MODELS,
    "'[^']*'(?=;)",
    "W_[QKVO]",
    r"\b(sin|cos|tanh|softmax)\b",
)
"""A sentence before its translation, a table's name before its size, names of models, mathematics."""
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
    ("", {"model": REVERSE, "text": "a " * 99}),
    ("", {"model": "unheard-of", "text": "漢"}),
)
"""Pages and the links that open them, the last ones with nonsense in them."""
POPOVERS = ("home-drawer", "page-end-save", "page-end-report", "page-end-open")
EXPORTS = {"": "token-lines-export", "query-key-value": "attention-in-plane-lesson-0-export"}


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


def visits_of_lessons() -> Iterator[tuple[str, dict[str, str]]]:
    """Returns every step of every lesson, answered, and again with each value of each of its controls."""
    for lesson in LESSONS:
        answers = [lesson.slug]
        for number, step in enumerate(lesson.steps, 1):
            answers.append(_an_answer(step))
            link = {"lesson": lesson.slug, "step": str(number), "answers": ".".join(answers)}
            chosen = [f"{control.name}={value}" for control in step.controls for value in control.values]
            yield from (("learn", link | given) for given in ({}, *({"set": each} for each in chosen)))


def _an_answer(step: Step) -> str:
    answer = step.answer
    if isinstance(answer, Estimate):
        return str((answer.least + answer.most) // 2)
    return "1" * len(answer.rows) if isinstance(answer, Drawing) else "0"


def left_in_english(page: str, link: Mapping[str, str], *, menus: bool = False) -> list[str]:
    """Returns what stands on a page with Latin words in it, all its popovers open, and the menus of its figures."""
    at = visit(page, popovers=POPOVERS, **link)
    opened = [EXPORTS[of]] if (of := link.get("lesson", page)) in EXPORTS else []
    if menus:
        figures = [key.removesuffix("-menu") for key in at.session_state._state.filtered_state if key.endswith("-menu")]
        opened += [f"{figure}-{entry}" for figure in figures for entry in ("proof", "explained")]
    found = _all_shown(at).union(*(_all_shown(with_menus(at, menu)) for menu in opened))
    return sorted(filter(_is_english, found - _data()))


def _all_shown(at: AppTest) -> set[str]:
    assert not at.exception, [each.value for each in at.exception]
    return {text for proto in _elements(at._tree) for text in _shown(MessageToDict(proto))}


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
        elif name == "spec":
            yield from _drawn(json.loads(value))
        elif name in SHOWN:
            yield value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            if key == "series":  # the curves of a panel
                yield from (curve["name"] for curve in each)
            elif not (key == "text" and "starts_word" in value):  # a token
                yield from _shown(each, key)
    elif isinstance(value, list):
        for each in value:
            yield from _shown(each, name)


def _drawn(figure: Mapping[str, Any]) -> Iterator[str]:
    """Returns the words in a figure without the tokens in its hover boxes; the labels of its axes may be tokens."""
    titles = _titles([trace.get("colorbar") for trace in figure["data"]]), _titles(figure["layout"])
    said = [trace.get(name) for trace in figure["data"] for name in ("name", "hovertemplate", "customdata")]
    for text in (*chain(*titles), *_strings(said)):
        lines = (re.sub("<b>.*?</b>|%{.*?}", "", line) for line in text.split("<br>"))
        yield from (line for line in lines if not re.fullmatch(r"\S+ [\d.e-]+", line))  # a token and its weight


def _titles(part: Any) -> Iterator[str]:
    for name, each in part.items() if isinstance(part, Mapping) else enumerate(part) if isinstance(part, list) else ():
        if name == "text":
            yield each
        elif name != "template":
            yield from _titles(each)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each)


def _is_english(text: str) -> bool:
    """Tells whether a text has a Latin word that is no markup, no emphasised name, no translation, none of DATA or
    NAMES, and in a sentence about a link none that the link has."""
    text = text.replace("\\", "")
    if text.startswith(":red[:material/error:"):
        text = re.sub("|".join(["“[^”]*”", *(rf"\b{name}(?![\w-])" for name in OF_LINKS)]), " ", text)
    if text.startswith((":green[:material/check:", ":red[:material/close:")):  # a check, whose claim is bold
        text = text.replace("*", "")
    markup = r"<style>.*?</style>|<p class=\"home-.*</p>|<[^>]*>|`[^`]*`|\*+[^*]*\*+|:\w[\w/-]*[:\[]|\$+[^$]+\$+|&\w+;"
    return bool(re.search(r"[A-Za-z]{2}", re.sub("|".join([markup, *DATA, NAMES]), " ", text, flags=re.DOTALL)))


def test_no_sentence_of_the_four_pages_is_left_in_english(tmp_path):
    left = _opened_elsewhere(tmp_path, "few")["left"]
    assert not [(visited, text) for visited, texts in zip(VISITS, left, strict=True) for text in texts]


@pytest.mark.slow
def test_no_word_of_a_lesson_is_left_in_english_and_each_of_the_librarys_is_said_somewhere(tmp_path):
    found, visits = _opened_elsewhere(tmp_path, "all"), (*VISITS, *visits_of_lessons())
    assert not [(visited, text) for visited, texts in zip(visits, found["left"], strict=True) for text in texts]
    assert set(found["used"]) == {".".join(path) for path in leaves(read_texts(ORIGINAL)) if path[0] == "library"}


def _opened_elsewhere(tmp_path: Path, which: str) -> dict[str, Any]:
    """Opens the pages in a process that speaks the language; returns what is left in English, and which of the
    library's texts were said."""
    language, runs = tmp_path / "zz.toml", tmp_path / "runs"
    language.write_text("\n".join(as_toml(translated(read_texts(ORIGINAL)))), encoding="utf-8")
    assert not faults(read_texts(language), read_texts(ORIGINAL), "en")
    save_untrained(runs)
    environment = {**os.environ, LANGUAGE: str(language), "ATTENTION_LAB_RUNS": str(runs)}
    environment["PYTHONPATH"] = os.pathsep.join(map(str, (ROOT, ROOT / "tests" / "support")))
    done = subprocess.run(
        [sys.executable, __file__, which], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


class _Recorder(Texts):
    """Texts that remember which of them were said."""

    said: ClassVar[set[str]] = set()

    def __call__(self, name: str, /, **values: Any) -> str:
        self.said.add(f"{self.section}.{name}")
        return super().__call__(name, **values)


def _both_ways(check: Callable[..., Iterator[Check]]) -> Callable[..., Iterator[Check]]:
    """Returns a check of all pairs and then of a sample, which else depends on how fast the machine is."""

    def checks(*args: Any, **options: Any) -> Iterator[Check]:
        return chain.from_iterable(check(*args, **options | {"budget_s": budget_s}) for budget_s in (math.inf, 0.0))

    return checks


if __name__ == "__main__":
    phrases.Texts = _Recorder  # type: ignore[misc]
    for name in (UNTRAINED, TRAINED):
        tiny_runs.create(name=name, pinned=())
    train_run(TRAINED)
    run_checks.check_evaluation = _both_ways(run_checks.check_evaluation)
    few = sys.argv[1] == "few"
    visits = VISITS if few else (*VISITS, *visits_of_lessons())
    left = [left_in_english(*each, menus=not few and "set" not in each[1]) for each in visits]
    print(json.dumps({"left": left, "used": sorted(_Recorder.said)}))
