"""A report as a bundle: a zip file whose pages share one plotly.js, with every number as CSV and every program."""

import io
import zipfile
from dataclasses import replace

from plotly.offline import get_plotlyjs

from transformer.figures.export import PLOTLY_FILE
from transformer.figures.tables import as_csv
from transformer.reports.html_report import html_figure, html_report
from transformer.reports.markdown_report import markdown_report
from transformer.reports.report import Report


def bundle(report: Report) -> bytes:
    """Returns the zip file: index.html, report.md, plotly.min.js, and figures/, numbers/ and code/."""
    report = replace(report, sections=_with_own_names(report))
    files = {each.name: (f"figures/{each.name}.html", f"numbers/{each.name}.csv") for each in report.sections}
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("index.html", html_report(report, plotly=PLOTLY_FILE))
        archive.writestr("report.md", markdown_report(report, files=files))
        archive.writestr(PLOTLY_FILE, get_plotlyjs())
        for section in report.sections:
            figure, numbers = files[section.name]
            archive.writestr(figure, html_figure(section, dark=report.dark))
            archive.writestr(numbers, as_csv(section.tables))
            archive.writestr(f"code/{section.name}.py", section.program + "\n")
    return made.getvalue()


def _with_own_names(report: Report):
    """Returns the sections with a number behind each name that an earlier one has."""
    met: dict[str, int] = {}
    named = []
    for section in report.sections:
        met[section.name] = met.get(section.name, 0) + 1
        again = f"-{met[section.name]}" if met[section.name] > 1 else ""
        named.append(replace(section, name=section.name + again))
    return tuple(named)
