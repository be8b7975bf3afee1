"""Every view: its program makes its figure, its tables hold its data, its checks hold and notice each wrong number."""

import ast
import csv
import io
import pkgutil
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
from corruption import corruptions, numbers
from jaxtyping import Float
from numpy import ndarray
from pandas.testing import assert_frame_equal
from view_examples import EXAMPLES, TEXT, Example, batch, checks_of, data_of, decoding, lab, switches

from transformer import views
from transformer.analysis.checks import Check, agree
from transformer.checkpoints.settings import find_checkpoint
from transformer.figures.tables import as_csv, as_npz
from transformer.views.masks import SentenceMasks
from transformer.views.subjects import Compared, Model, Runs
from transformer.views.view import Document, View, file_name, program, source

EXPLAINED_BY_PAGES = set(
    "AttentionEntropy AttentionRollout Bertviz EntryShares ExposureBias HeadPair HeadSimilarity "
    "LogitContributions LogitLensDepths MeanReach MinimalSetOutputs OutputImportance OutputRanking "
    "PatternMap ScoreParts SentenceReach ShiftMaps StudyLengths "
    "TeacherForcedReference TokenLines ValidationImportanceMap ValidationRanking".split()
)
"""Views whose explanation depends on the model or on the page, which gives it."""


def _cases() -> Iterator[Any]:
    """Every example; those that are not the first of their view are slow."""
    met = set()
    for example in EXAMPLES:
        kind = type(example.view)
        yield pytest.param(example, marks=[pytest.mark.slow] if kind in met else [], id=repr(example.view))
        met.add(kind)


each = pytest.mark.parametrize("example", list(_cases()))


def view_classes() -> dict[str, type]:
    """Returns the dataclasses of the package that have what a view has, by their names."""
    modules = [import_module(found.name) for found in pkgutil.walk_packages(views.__path__, "transformer.views.")]
    return {
        kind.__name__: kind
        for module in modules
        for kind in vars(module).values()
        if is_dataclass(kind) and all(hasattr(kind, method) for method in ("data", "figure", "tables", "checks"))
    }


def test_every_view_has_an_example():
    examples = {type(example.view).__name__: type(example.view) for example in EXAMPLES}
    assert examples == view_classes() and all(isinstance(example.view, View) for example in EXAMPLES)


def test_every_view_tells_a_student_what_it_shows_or_its_page_does():
    said = {type(example.view): getattr(example.view, "explained", "") for example in EXAMPLES}
    assert {view.__name__ for view, text in said.items() if not text} == EXPLAINED_BY_PAGES
    for text in filter(None, said.values()):
        assert 150 < len(text) < 450 and text.endswith("."), text


@each
def test_a_view_holds_plain_options_and_prints_as_python(example: Example):
    view = example.view
    assert is_dataclass(view) and view.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert all(field.kw_only for field in fields(view))
    hash(view)
    assert eval(repr(view), view_classes()) == view


@each
def test_the_program_makes_the_figure_of_the_page(example: Example, monkeypatch, tmp_path):
    shown: list[go.Figure] = []
    monkeypatch.setattr(go.Figure, "show", lambda figure: shown.append(figure))
    monkeypatch.chdir(tmp_path)
    view, subject = example.view, example.subject()
    data = data_of(view, subject)
    names: dict = {}
    exec(compile(program(view, subject), "program", "exec"), names)
    assert names["view"] == view
    for made, own in zip(names["tables"], view.tables(data), strict=True):
        assert_frame_equal(made, own)
    if isinstance(view, Document):
        written = Path(f"{file_name(view, subject)}.html").read_text(encoding="utf-8")
        assert written == view.document(data)
        return
    (figure,) = shown
    assert figure is names["figure"] and figure.to_json() == view.figure(data).to_json()
    assert view.figure(data, dark=True).to_json() != figure.to_json()


@each
def test_the_source_that_is_shown_is_that_of_the_data(example: Example):
    (function,) = ast.parse(source(example.view)).body
    assert isinstance(function, ast.FunctionDef) and function.name == "data"


@each
def test_the_tables_hold_numbers_of_the_data_and_read_back(example: Example):
    view = example.view
    data = data_of(view, example.subject())
    tables = view.tables(data)
    held = np.concatenate([np.ravel(value).astype(np.float64) for _, value in numbers(data)])
    names = [table.index.name for table in tables]
    assert tables and len(set(names)) == len(names) and not set(example.derived) - set(names)
    with np.load(io.BytesIO(as_npz(tables))) as file:
        for table in tables:
            values = table.values.astype(np.float64)
            np.testing.assert_array_equal(file[table.index.name], table.values)
            if table.index.name not in example.derived:
                assert np.isin(values[~np.isnan(values)], held).all(), table.index.name
    rows = [row for row in csv.reader(io.StringIO(as_csv(tables))) if row]
    assert len(rows) == sum(1 + len(table) for table in tables)


@each
def test_the_checks_hold(example: Example):
    view, subject = example.view, example.subject()
    checks = tuple(checks_of(view, subject, data_of(view, subject)))
    assert checks and [check for check in checks if not check.holds] == []


@pytest.mark.parametrize("example", [case for case in _cases() if not case.marks])
def test_a_wrong_number_turns_a_check_red(example: Example):
    assert _unnoticed(example, most=8) == []


@pytest.mark.slow
@each
def test_every_wrong_number_turns_a_check_red(example: Example):
    assert _unnoticed(example) == []


def _unnoticed(example: Example, most: int | None = None) -> list[str]:
    """The numbers that no check finds wrong, each changed alone; `most` of them at random."""
    view, subject = example.view, example.subject()
    data = data_of(view, subject)
    paths = [path for path, _ in numbers(data)]
    assert all(any(_below(path, own) for path in paths) for own in example.unproved), "no such number"
    rng = np.random.default_rng(zlib.crc32(repr(view).encode()))
    return [
        where
        for where, wrong in corruptions(data, rng, most=most)
        if not any(_below(where.partition("[")[0], own) for own in example.unproved)
        and all(check.holds for check in checks_of(view, subject, wrong))
    ]


def _below(path: str, own: str) -> bool:
    return path == own or path.startswith(f"{own}.")


def test_a_sentence_that_is_not_in_the_batch_has_no_masks():
    with pytest.raises(ValueError, match="no sentence 2: the batch has sentences 0 to 1"):
        data_of(SentenceMasks(kind="cross", row=2), batch()())


@dataclass(frozen=True)
class Loose:
    """Data of which the first number alone is checked."""

    checked: float
    values: Float[ndarray, " any"]
    deeper: tuple[dict[str, int], ...]


def test_the_harness_finds_what_no_check_covers():
    data = Loose(0.5, np.array([1.0, np.nan], dtype=np.float32), ({"x": 3},))

    def checks(wrong: Loose) -> Check:
        return agree("", wrong.checked, 0.5, 1e-3, "")

    made = dict(corruptions(data, np.random.default_rng(0), cells=9))
    assert set(made) == {"checked", "values[0]", "values[1]", "deeper.0.x"}
    assert [where for where, wrong in made.items() if checks(wrong).holds] == [w for w in made if w != "checked"]
    assert made["values[1]"].values[1] == 0 and made["deeper.0.x"].deeper == ({"x": 2},)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Model(lab()),
        decoding(TEXT, "off:decoder.0.cross:1", "mask:causal"),
        lambda: type(decoding()())(lab(), lab().inspect(TEXT, (), {1: 5})),
        lambda: Compared(lab(), lab().compare(TEXT, switches(["off:decoder.0.cross:1"]))),
        batch("mask:padding"),
        lambda: Runs((find_checkpoint("reverse"), find_checkpoint("reverse-learned"))),
    ],
    ids=["model", "decoding", "forced", "compared", "batch", "runs"],
)
def test_the_lines_of_the_origin_make_the_subject(make):
    subject = make()
    names: dict = {}
    exec("\n".join([*subject.origin.imports, *subject.origin.lines]), names)
    again = type(subject)(*(names[name] for name in vars(subject)))
    assert again.origin == subject.origin
