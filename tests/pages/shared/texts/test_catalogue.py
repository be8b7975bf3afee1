"""The catalogue of texts: forms of a number, what a translation may lack, and that no text is missing or left over."""

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

from pages.learn.lessons import LESSONS
from pages.shared.registry import PAGES
from pages.shared.texts import catalogue
from pages.shared.texts.catalogue import ORIGINAL, Texts, faults, language_files, leaves, plural, read_texts
from transformer.access.server_settings import ServerSettingError

FOLDER = Path(catalogue.__file__).parents[2]
ENGLISH = read_texts(ORIGINAL)


@pytest.fixture
def small(monkeypatch):
    """Puts a small catalogue in the place of the pages'."""
    texts = {
        "hall": {
            "greeting": "Hello {name}, {share:.0%}",
            "seats": {"none": "no seat", "one": "a seat", "other": "{n} seats"},
            "rows": ["front", "back"],
            "colours": {"red": "rouge"},
        }
    }
    monkeypatch.setattr(catalogue, "spoken_texts", lambda: texts)
    return Texts("hall")


def test_what_a_language_lacks_is_said_in_english(server_in, tmp_path):
    path = tmp_path / "ko.toml"
    texts = [
        '[home]\nmore = "더"',
        '[learn.list]\nsteps = {other = "{n}단계"}',
        '[glossary.attention.query]\nname = "쿼리"',
    ]
    path.write_text("\n".join(texts), encoding="utf-8")
    server_in(path)
    home, lessons = Texts("home"), Texts("learn.list")
    assert (home("more"), home("lessons")) == ("더", ENGLISH["home"]["lessons"])
    assert (lessons("steps", n=1), lessons("start")) == ("1단계", "Start")
    query = Texts("glossary").table("attention")["query"]
    assert query["name"] == "쿼리" and query["symbols"] == ENGLISH["glossary"]["attention"]["query"]["symbols"]


@pytest.mark.parametrize("named", ["xx", "no/such/file.toml", "../catalogue"])
def test_a_language_without_a_file_is_refused(server_in, named):
    server_in(named)
    with pytest.raises(ServerSettingError, match=re.escape(f"({named!r}) must be one of en, or the path of a file")):
        Texts("home")("more")


def test_values_are_filled_in_and_a_number_asks_for_its_form(small: Texts):
    assert small("greeting", name="Ada", share=0.25) == "Hello Ada, 25%"
    assert [small("seats", n=n) for n in (0, 1, 2)] == ["no seat", "a seat", "2 seats"]
    assert small.several("rows") == ("front", "back")
    assert small.table("colours") == {"red": "rouge"} and not small.table("sounds")


def test_a_text_or_a_value_that_is_missing_is_an_error(small: Texts):
    for name, values in (("farewell", {}), ("greeting", {"name": "Ada"}), ("seats", {})):
        with pytest.raises(KeyError):
            small(name, **values)


def test_plural_forms_are_those_of_the_language():
    assert [plural(n, "en") for n in (0, 1, 1.5, 2)] == ["other", "one", "other", "other"]
    assert {plural(n, "ko") for n in range(5)} == {"other"}


def test_what_a_translation_lacks_or_has_too_much_is_named():
    original = {"a": {"x": "{n} of {total}", "many": {"one": "{n} seat", "other": "{n} seats"}, "rows": ["1", "2"]}}
    korean = {"a": {"x": "{total} {n}", "many": {"other": "{n}"}, "rows": ["1", "2"]}}
    assert not faults(korean, original, "ko")
    assert faults(korean, original, "en") == ["a.many lacks the form one"]
    wrong = {"a": {"x": "{sum}", "rows": ["1"], "y": "new"}}
    assert faults(wrong, original, "ko") == [
        "a.many is missing",
        "a.rows is not of the same kind, or not as long",
        "a.x has a value that the original has not",
        "a.y is not in the original",
    ]


@pytest.mark.parametrize("path", language_files(), ids=lambda path: path.stem)
def test_every_language_has_every_text_with_its_values_and_forms(path: Path):
    assert not faults(read_texts(path), ENGLISH, path.stem)


def test_every_text_is_used_and_none_that_is_used_is_missing():
    elsewhere = ("glossary", "library")  # which have tests of their own
    known = {path for path in leaves(ENGLISH) if path[0] not in elsewhere}
    used = _of_lessons() | _of_controls(known) | _of_pages() | _named_in_code(known) | _named_in_scripts()
    assert not {".".join(path) for path in used - known}, "missing"
    assert not {".".join(path) for path in known - used}, "left over"


@pytest.mark.parametrize("of", ["nonsense", "absent"])
def test_every_sentence_about_a_link_is_some_fields_own(of):
    """The fields of a URL's state name them; `test_every_text_is_used` takes any of them for used."""
    sources = "".join(path.read_text(encoding="utf-8") for path in FOLDER.rglob("*.py"))
    known = {path[-1] for path in leaves(ENGLISH["link"][of])}
    of_fields = set(re.findall(rf'\b{of}(?:: str)? ?= ?"(\w+)"', sources))
    assert not of_fields - known, "missing"
    assert not known - of_fields - set(re.findall(rf'"{of}\.(\w+)"', sources)), "left over"


def _of_lessons() -> set[tuple[str, ...]]:
    """Returns the texts that lessons and their steps read by their own names."""
    found = {("lessons", lesson.slug, name) for lesson in LESSONS for name in ("title", "question", "onwards")}
    for lesson in LESSONS:
        for step in lesson.steps:
            names = ("title", "text", "question", "do", "keep", *(["answers"] if hasattr(step.answer, "texts") else []))
            found |= {("lessons", *step.name.split("."), name) for name in names}
    return found


def _of_pages() -> set[tuple[str, ...]]:
    """Returns the title of each page, and its question where it ends with one."""
    questions = {("pages", page.folder, name) for page in PAGES if page.then for name in ("asks", "answer")}
    return questions | {("pages", page.folder, "title") for page in PAGES}


def _named_in_scripts() -> set[tuple[str, ...]]:
    """Returns the texts that scripts call by a name; each has those of its own section alone."""
    found = set()
    for path in FOLDER.rglob("*.js"):
        named = set(re.findall(r"\bSAID\.(\w+)\.(\w+)", path.read_text(encoding="utf-8")))
        assert {section for section, _ in named} <= {path.stem}
        found |= {("components", *name) for name in named}
    return found


def _of_controls(known: set[tuple[str, ...]]) -> set[tuple[str, ...]]:
    """Returns the label of each control, and the words for those of its values that have some."""
    controls = [control for lesson in LESSONS for step in lesson.steps for control in step.controls if control.values]
    tables = {("lessons", "controls", control.texts or control.name): control for control in controls}
    values = {(*table, value) for table, control in tables.items() for value in control.values}
    return {(*table, "label") for table in tables} | values & known


def _named_in_code(known: set[tuple[str, ...]]) -> set[tuple[str, ...]]:
    """Returns the texts that modules call by a name, in the section that each takes."""
    found = set()
    for path in FOLDER.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        sections = _sections(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and (called := _called(node.func)) in sections:
                argument = node.args[0] if node.args else ast.Constant("")
                found |= _named(sections[called], argument, known, whole=not isinstance(node.func, ast.Attribute))
    return found


def _sections(tree: ast.Module) -> dict[str, str]:
    """Returns the sections whose texts a module reads, by the names that it has for them."""
    found = {}
    for node in tree.body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Call)
            and ast.unparse(node.value.func) == "Texts"
        ):
            found[ast.unparse(node.targets[0])] = ast.literal_eval(node.value.args[0])
        if isinstance(node, ast.ImportFrom):
            taken = [alias for alias in node.names if alias.name == "TEXTS"]
            found |= {alias.asname or alias.name: import_module(str(node.module)).TEXTS.section for alias in taken}
    return found


def _called(function: ast.expr) -> str:
    """Returns the name of the texts that a call reads: TEXTS of `TEXTS(...)` and of `TEXTS.table(...)`."""
    return ast.unparse(function.value if isinstance(function, ast.Attribute) else function)


def _named(section: str, argument: ast.expr, known: set[tuple[str, ...]], *, whole: bool) -> set[tuple[str, ...]]:
    """Returns the texts that an argument may name, or of which it names the table; of one that is put together at run
    time, those that fit.

    Names that begin with a lesson's or a step's are those of `_of_lessons`.
    """
    if isinstance(argument, ast.IfExp):
        return set().union(*(_named(section, each, known, whole=whole) for each in (argument.body, argument.orelse)))
    if whole and isinstance(argument, ast.Constant):
        return {(*section.split("."), *argument.value.split("."))}
    parts = argument.values if isinstance(argument, ast.JoinedStr) else [argument]
    if not isinstance(parts[0], ast.Constant):
        return set()
    told = [re.escape(part.value) if isinstance(part, ast.Constant) else r"[\w.-]+" for part in parts]
    wanted = re.escape(f"{section}.") + "".join(told) + ("" if whole else r"\.?.*")
    fitting = {path for path in known if re.fullmatch(wanted, ".".join(path))}
    assert fitting, ast.unparse(argument)
    return fitting
