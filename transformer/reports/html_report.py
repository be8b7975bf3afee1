"""A report as HTML: one file with plotly.js inside it once, or pages beside a plotly.js that they share."""

import html
from collections.abc import Sequence

import numpy as np
from pandas import DataFrame

from transformer.figures.export import PLOTLY_FILE, html_page, plot_html
from transformer.reports.report import Report, Section

MAX_CELLS = 1_000
"""Numbers of a table that are written out; larger ones are in the CSV files of a bundle."""


def html_report(report: Report, *, plotly: str | None = None) -> str:
    """Returns the report as one page, which needs no network; `plotly` is the address of a plotly.js beside it."""
    contents = "".join(
        f'<li><a href="#figure-{number}">{_text(section.title)}</a></li>'
        for number, section in enumerate(report.sections, 1)
    )
    body = [f"<h1>{_text(report.title)}</h1>", f"<p><strong>{_text(report.verdict)}</strong></p>"]
    if report.link:
        body.append(f'<p><a href="{html.escape(report.link)}">Open this page in Attention Lab</a></p>')
    body += ["<h2>Settings</h2>", _rows(tuple(report.settings.items())), f"<h2>Figures</h2><ol>{contents}</ol>"]
    body += [_section(section, number) for number, section in enumerate(report.sections, 1)]
    return html_page("\n".join(body), title=report.title, dark=report.dark, plotly=plotly, style=_STYLE)


def html_figure(section: Section, *, dark: bool) -> str:
    """Returns one figure of a bundle as a page that takes plotly.js from the folder above."""
    if isinstance(section.figure, str):
        return section.figure
    body = f"<h1>{_text(section.title)}</h1>\n{plot_html(section.figure)}\n<p>{_text(section.caption)}</p>"
    return html_page(body, title=section.name, dark=dark, plotly=f"../{PLOTLY_FILE}")


def _section(section: Section, number: int) -> str:
    if isinstance(section.figure, str):
        page, title = html.escape(section.figure), _text(section.title)
        drawing = f'<iframe sandbox="allow-scripts" srcdoc="{page}" title="{title}"></iframe>'
    else:
        drawing = f'<div class="figure">{plot_html(section.figure)}</div>'
    return "\n".join(
        (
            f'<section id="figure-{number}"><h2>{number}. {_text(section.title)}</h2>',
            f"<p>{_text(section.about)}</p>",
            drawing,
            f"<p><small>{_text(section.caption)}</small></p>",
            f"<details><summary>Numbers</summary>{''.join(map(_table, section.tables))}</details>",
            f"<details><summary>Code</summary><pre>{_text(section.program)}</pre>"
            f"<p>How the numbers are made:</p><pre>{_text(section.source)}</pre></details>",
            _proofs(section),
            "</section>",
        )
    )


def _table(table: DataFrame) -> str:
    name, shape = _text(table.index.name), " × ".join(map(str, table.shape))
    if table.size > MAX_CELLS:
        return f"<p>{name}: {shape} numbers, too many to write out; a bundle has them as CSV.</p>"
    head = "".join(f"<th>{_text(column)}</th>" for column in table.columns)
    rows = "".join(
        f"<tr><th>{_text(row)}</th>{''.join(f'<td>{_text(number_text(value))}</td>' for value in values)}</tr>"
        for row, *values in table.itertuples(name=None)
    )
    return f"<table><caption>{name}</caption><tr><th></th>{head}</tr>{rows}</table>"


def _proofs(section: Section) -> str:
    if section.fault:
        return f"<p>The checks could not be run: {_text(section.fault)}</p>"
    if not section.checks:
        return ""
    failing = sum(not check.holds for check in section.checks)
    said = f"{failing} of {len(section.checks)} fail" if failing else f"all {len(section.checks)} hold"
    rows = "".join(
        f"<tr><td>{'✓' if check.holds else '✗'}</td><td>{_text(check.claim)}</td><td>{_text(check.how)}</td>"
        f"<td>{check.measured:.3g}</td><td>{check.tolerance:.3g}</td></tr>"
        for check in section.checks
    )
    head = "<tr><th></th><th>Claim</th><th>How</th><th>Deviation</th><th>Allowed</th></tr>"
    return (
        f"<details{' open' if failing else ''}><summary>Proofs: {said}</summary><table>{head}{rows}</table></details>"
    )


def number_text(value: object) -> str:
    """Returns a number of a table in few characters; the CSV and NPZ files have it exactly."""
    return f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)


def _rows(rows: Sequence[tuple[str, str]]) -> str:
    return f"<table>{''.join(f'<tr><th>{_text(name)}</th><td>{_text(said)}</td></tr>' for name, said in rows)}</table>"


def _text(text: object) -> str:
    return html.escape(str(text))


_STYLE = """
body { max-width: 60rem; }
section { margin-top: 3rem; }
.figure, details { overflow-x: auto; }
iframe { width: 100%; height: 32rem; border: 1px solid #8886; }
details { margin: .5rem 0; }
summary { cursor: pointer; }
table { border-collapse: collapse; font-size: .8125rem; margin: .75rem 0; }
caption { text-align: left; font-weight: 600; padding-bottom: .25rem; }
th, td { border: 1px solid #8884; padding: .2rem .5rem; text-align: left; vertical-align: top; }
td { font-variant-numeric: tabular-nums; }
pre { font-size: .8125rem; overflow-x: auto; padding: .75rem; background: #8881; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.125rem; }
"""
