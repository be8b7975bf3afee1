"""The badges of a plan: its corpus counted again, its model built; red where a number is wrong."""

import gzip
import json
from dataclasses import replace

import pytest
from page_checks import proved, verdicts
from page_models import checked, open_page, texts
from test_page_train_corpus import pairs, upload

from pages.train import corpus_panel, costs_panel
from transformer.analysis.training.plan_checks import check_file
from transformer.data.cleaning import clean_pairs, read_rows
from transformer.data.corpora import file_corpus
from transformer.data.statistics import corpus_stats

pytestmark = [pytest.mark.slow_variants, pytest.mark.usefixtures("room", "measurements")]

ODD = b'"Salut"  tout le monde\tHi\n\nx\t\t\n' + b"y" * 501 + b"\tlong\nno second side\n"


def test_what_is_said_of_a_corpus_of_the_lab_is_counted_again():
    at = proved("train", "proof-corpus", look="corpus", corpus="reverse")
    assert verdicts(at)[1] == 0 and verdicts(at)[0] >= 6, texts(at)


def test_an_uploaded_file_is_counted_again(monkeypatch):
    at = upload(open_page("train"), "my pairs.tsv", pairs(300) + pairs(2) + ODD)
    at.session_state["proof-corpus"] = True
    at = checked(at.run())
    assert verdicts(at) == (4 + 2 + 2, 0), texts(at)
    honest = corpus_panel.stats_of

    def wrong(plan):
        found = honest(plan)
        assert found.report is not None
        sizes = {**found.sizes, "train": found.sizes["train"] + 1}
        return replace(found, report=replace(found.report, duplicate=3), sizes=sizes)

    monkeypatch.setattr(corpus_panel, "stats_of", wrong)
    assert verdicts(checked(at.run())) == (4 + 2, 2)


@pytest.mark.parametrize("end", ["tsv", "tsv.gz", "csv", "jsonl"])
def test_every_kind_of_file_is_counted_alike(tmp_path, end):
    content = pairs(300) + pairs(2) + ODD
    rows = [line.split("\t") for line in content.decode().split("\n") if line]
    if end == "csv":
        content = "".join(f"{';'.join(cells[:2])}\n" for cells in rows).encode().replace(b'"', b"")
    elif end == "jsonl":
        content = "".join(f"{json.dumps(cells)}\n" for cells in rows).encode()
    path = tmp_path / f"file.{end}"
    path.write_bytes(gzip.compress(content) if end.endswith("gz") else content)
    stats = corpus_stats(file_corpus(path))
    assert [check.holds for check in check_file(path, stats)] == [True, True]
    assert clean_pairs(read_rows(path))[1].duplicate == 2


def test_a_bar_that_is_wrong_turns_its_badge_red(monkeypatch):
    honest = corpus_panel.length_figure

    def wrong(*arguments, **options):
        figure = honest(*arguments, **options)
        bars = figure.data[0]
        bars.y = bars.y * 1.01  # type: ignore[attr-defined]
        return figure

    monkeypatch.setattr(corpus_panel, "length_figure", wrong)
    assert verdicts(proved("train", "proof-corpus", look="corpus", corpus="reverse"))[1] == 2


def test_parameters_and_memory_are_those_of_a_model_that_is_built(monkeypatch):
    badges = ("proof-costs", "proof-schedule-in-full")
    at = proved("train", *badges, look="costs", corpus="reverse", positions="learned")
    assert verdicts(at) == (4 + 1, 0), texts(at)
    honest = costs_panel.costs_panel

    def wrong(plan, found):
        honest(plan, replace(found, parameters=found.parameters + 1, memory=replace(found.memory, optimizer=0)))

    monkeypatch.setattr(costs_panel, "costs_panel", wrong)
    assert verdicts(proved("train", *badges, look="costs", corpus="reverse"))[1] == 2
