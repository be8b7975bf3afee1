"""The report of a page: every figure that it drew, with settings, numbers, code and the checks that were run."""

import io
import zipfile

import pytest
from page_models import REVERSE, checked, open_page, texts

pytestmark = pytest.mark.usefixtures("untrained_models")
VIEW = {"model": REVERSE, "text": "a b c", "layer": "0", "head": "1", "switch": "off:decoder.0.cross:1"}


def made(page: str, kind: str, **parameters):
    at = open_page(page, popovers=("page-end-report",), **parameters)
    checked(at.segmented_control(key="report-kind").set_value(kind).run())
    checked(at.button(key="report-make").click().run())
    return at, at.session_state["file-made"]


def test_one_html_file_holds_all_figures_and_plotly_once():
    at, file = made("attention", "HTML", **VIEW)
    page = file.content.decode()
    assert file.name == "attention-report.html" and page.count("plotly.js v") == 1
    titles = [figure.title for figure in at.session_state["figures-shown"].values()]
    assert len(titles) >= 4 and all(f"{i}. {title}</h2>" in page for i, title in enumerate(titles, 1))
    assert page.count("Plotly.newPlot(") >= len(titles) and len(page) < 5_500_000
    assert "off:decoder.0.cross:1" in page and "checks were run: all hold." in page and "load(&#x27;" in page


def test_a_bundle_shares_one_plotly_and_holds_every_number_and_program():
    at, file = made("attention", "Bundle", **VIEW)
    with zipfile.ZipFile(io.BytesIO(file.content)) as archive:
        names = archive.namelist()
        index, text = archive.read("index.html").decode(), archive.read("report.md").decode()
        pages = [archive.read(name).decode() for name in names if name.startswith("figures/")]
    n = len(at.session_state["figures-shown"])
    assert len(pages) == n and sum(name.endswith(".csv") for name in names) == n == sum(
        name.endswith(".py") for name in names
    )
    assert '<script src="plotly.min.js">' in index and len(index) < 500_000
    assert all('<script src="../plotly.min.js">' in page and len(page) < 100_000 for page in pages)
    assert all(f"(<{name}>)" in text for name in names if name.startswith(("figures/", "numbers/")))
    assert len(file.content) < 2_500_000


def test_a_report_without_checks_says_so_and_markdown_takes_no_text_for_its_own():
    at = open_page("attention", popovers=("page-end-report",), **{**VIEW, "text": "a | *b*"})
    checked(at.segmented_control(key="report-kind").set_value("Markdown").run())
    checked(at.toggle(key="report-checked").set_value(False).run())
    checked(at.button(key="report-make").click().run())
    text = at.session_state["file-made"].content.decode()
    assert text.startswith("# Attention\n\n**No checks were run.**") and "a \\| \\*b\\*" in text
    assert "```python" in text and "### Proofs" not in text and "Download" not in texts(at)


@pytest.mark.slow
@pytest.mark.parametrize("page", ["home", "masks", "steps", "walkthrough", "compare", "positions", "gallery"])
def test_every_page_has_a_report_without_code_of_its_own(page):
    sentence = {} if page == "gallery" else {"model": REVERSE, "text": "a b c"}
    at, file = made(page, "HTML", **sentence)
    assert file.content.decode().count("</section>") == len(at.session_state["figures-shown"]) > 0
    assert "fail." not in file.content.decode().partition("</style>")[2].partition("Settings</h2>")[0]
