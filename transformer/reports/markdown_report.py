"""A report as Markdown: settings, numbers, code and proofs; figures are files beside it, which a bundle holds."""

import re
from collections.abc import Mapping

from pandas import DataFrame

from transformer.analysis.checks import Check
from transformer.reports.html_report import number_text
from transformer.reports.report import Report, Section

MAX_CELLS = 150
"""Numbers of a table that are written out."""


def markdown_report(report: Report, *, files: Mapping[str, tuple[str, str]] | None = None) -> str:
    """Returns the report; `files` are the addresses of each section's figure and numbers, by its name."""
    parts = [f"# {_text(report.title)}", f"**{report.verdict}**"]
    if report.link:
        parts.append(f"[Open this page in Attention Lab](<{report.link}>)")
    parts += ["## Settings", _table_text(("", ""), [(name, said) for name, said in report.settings.items()])]
    for number, section in enumerate(report.sections, 1):
        parts += _section(section, number, (files or {}).get(section.name))
    return "\n\n".join(parts) + "\n"


def _section(section: Section, number: int, files: tuple[str, str] | None) -> list[str]:
    parts = [f"## {number}. {_text(section.title)}", _text(section.about), _text(section.caption)]
    if files:
        parts.append(f"[Figure](<{files[0]}>) · [Numbers](<{files[1]}>)")
    parts += ["### Numbers", *(_numbers(table) for table in section.tables)]
    parts += ["### Code", _fenced(section.program), "How the numbers are made:", _fenced(section.source)]
    if section.fault:
        parts += ["### Proofs", f"The checks could not be run: {_text(section.fault)}"]
    elif section.checks:
        rows = [_check_cells(check) for check in section.checks]
        parts += ["### Proofs", _table_text(("", "Claim", "How", "Deviation", "Allowed"), rows, escaped=True)]
    return parts


def _check_cells(check: Check) -> tuple[str, ...]:
    verdict = "holds" if check.holds else "**fails**"
    return verdict, _text(check.claim), _text(check.how), f"{check.measured:.3g}", f"{check.tolerance:.3g}"


def _numbers(table: DataFrame) -> str:
    if table.size > MAX_CELLS:
        return f"{_text(table.index.name)}: {' × '.join(map(str, table.shape))} numbers."
    rows = [(row, *map(number_text, values)) for row, *values in table.itertuples(name=None)]
    return _table_text((table.index.name, *table.columns), rows)


def _table_text(head: tuple[str, ...], rows: list[tuple[str, ...]], *, escaped: bool = False) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(
        f"| {' | '.join(cell if escaped or index == 1 else _text(cell) for cell in line)} |"
        for index, line in enumerate(lines)
    )


def _fenced(code: str) -> str:
    """Returns a block of Python within a fence longer than any inside it."""
    longest = max((len(run) for run in re.findall("`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}python\n{code}\n{fence}"


def _text(text: object) -> str:
    """Returns text of which Markdown takes nothing for its own."""
    return re.sub(r"([\\`*_{}\[\]<>#|~])", r"\\\1", " ".join(str(text).split()))
