"""Measures the cost of the Attention page: `python benchmarks/attention_payload.py`.

1. First paint of 6 layers x 8 heads x 128 tokens in Chromium, from following the link: seconds until all heads are
   drawn, of a decoding that goes on as far as it is written, and until the whole page's pictures are; bytes of all
   messages until then; beside them the browser's own first contentful paint. New: a sentence that the server has to
   decode, 128 steps through 6 layers in one thread; first of all with the model to be opened. Known: another visitor,
   same sentence. Goal: 2 MB, 2 s.
2. From a switch to the new picture on pronouns-en-fr, on the server: the script's rerun with a head off that was not
   off before, decoding and comparison included. Goal: p95 at most 400 ms while nothing trains.
3. The cost of a recorded pass over a sentence and its translation against a plain pass, on pronouns-en-fr. Goal: at
   most 2 times. Beside it the same of a whole decoding.
"""

import argparse
import gc
import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support"), str(ROOT / "tests" / "browser")]

import torch  # noqa: E402
from app_server import running_app  # noqa: E402
from arguments import read_options  # noqa: E402
from chromium import find_chromium  # noqa: E402
from page_models import CLASSIC, open_page  # noqa: E402
from playwright.sync_api import Browser, sync_playwright  # noqa: E402
from six_by_eight import NAME, SENTENCE, save_six_by_eight, sentence  # noqa: E402

from transformer.decoding.greedy import greedy  # noqa: E402
from transformer.lab import load  # noqa: E402
from transformer.model.taps import Recorder, Site, every_site  # noqa: E402

PRONOUNS = "pronouns-en-fr"
DRAWN = """(wanted) => {
  const find = (root, selector) => [root, ...[...root.querySelectorAll('*')].map(e => e.shadowRoot).filter(Boolean)]
    .flatMap(r => [...r.querySelectorAll(selector)]);
  const canvases = find(document, 'canvas').filter(c => c.width > 0 && c.getBoundingClientRect().height > 0);
  return canvases.length >= wanted;
}"""
"""True once so many pictures stand in the page."""
PAINTED = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
UNDER_WAY = "() => document.body.innerText.includes('written so far')"


def main(arguments: list[str]) -> None:
    """Prints a line for each measurement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=60)
    parser.add_argument("--d-model", type=int, nargs="+", default=[128, 256, 512])
    parser.add_argument("--visits", type=int, default=3, help="visits of each kind")
    options = read_options(parser, arguments, smoke={"times": 6, "d_model": [64], "visits": 1})
    os.chdir(ROOT)
    torch.set_num_threads(1)  # as serve.py does
    for d_model in options.d_model:
        _first_paint(d_model, options.visits)
    with tempfile.TemporaryDirectory(prefix="attention-payload-") as folder:
        os.environ["ATTENTION_LAB_RUNS"] = folder
        _recording(options.times)
        _switches(options.times)


def _first_paint(d_model: int, visits: int) -> None:
    with tempfile.TemporaryDirectory(prefix="attention-payload-") as folder, sync_playwright() as playwright:
        runs = Path(folder) / "runs"
        save_six_by_eight(runs, d_model=d_model)
        os.environ["ATTENTION_LAB_RUNS"] = str(runs)
        lab = load(NAME)
        start = time.perf_counter()
        lab.inspect(SENTENCE)
        decoding = time.perf_counter() - start
        browser = playwright.chromium.launch(
            executable_path=find_chromium(), args=["--no-sandbox", "--disable-gpu", "--disable-quic"]
        )
        with running_app(runs, Path(folder) / "log.txt") as server:
            _visit(browser, server.link("attention", model=PRONOUNS, text=CLASSIC), n_heads=8)  # wakes the server
            _visits(browser, [server.link("attention", model=PRONOUNS, text=CLASSIC)] * visits, PRONOUNS, n_heads=8)
            first, *others = (server.link("attention", model=NAME, text=sentence(n)) for n in range(1 + visits))
            where = f"6 x 8 x 128 tokens, d_model {d_model}"
            _visits(browser, [first], f"{where}, model not open yet (decoding alone {decoding:.2f} s)", n_heads=48)
            _visits(browser, others, f"{where}, new", n_heads=48)
            _visits(browser, others, f"{where}, known", n_heads=48)
        browser.close()


def _visits(browser: Browser, links: list[str], name: str, *, n_heads: int) -> None:
    found = [_visit(browser, link, n_heads=n_heads) for link in links]
    n_bytes, *moments = zip(*found, strict=True)
    first, whole, contentful = (" ".join(f"{seconds:.2f}" for seconds in each) for each in moments)
    print(
        f"First paint of {name}: all heads {first} s; whole {whole} s, {max(n_bytes) / 1e6:.2f} MB; "
        f"contentful after {contentful} s",
        flush=True,
    )


def _visit(browser: Browser, link: str, *, n_heads: int) -> tuple[int, float, float, float]:
    """The bytes that came through a new visitor's web socket, and the seconds until all heads were drawn, until the
    whole page was, and until the browser painted anything that is content.

    The visitor's browser has nothing in its cache, so the seconds hold the loading of Streamlit's own scripts.
    """
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    received: list[int] = []
    page.on("websocket", lambda ws: ws.on("framereceived", lambda frame: received.append(len(frame))))
    start = time.perf_counter()
    page.goto(link)
    page.wait_for_function(DRAWN, arg=n_heads, timeout=90_000)
    page.evaluate(PAINTED)
    first = time.perf_counter() - start
    page.wait_for_function(f"(wanted) => !({UNDER_WAY})() && ({DRAWN})(wanted)", arg=n_heads + 1, timeout=90_000)
    page.evaluate(PAINTED)
    whole = time.perf_counter() - start
    contentful = page.evaluate("() => performance.getEntriesByName('first-contentful-paint')[0].startTime / 1000")
    context.close()
    return sum(received), first, whole, contentful


def _recording(times: int) -> None:
    lab = load(PRONOUNS)
    seen = lab.inspect(CLASSIC)
    source = torch.tensor([seen.source_ids])
    written = torch.tensor([[lab.model.config.bos_id, *seen.target_ids[:-1]]])
    longest = lab.model.config.max_length

    def attention(site: Site) -> bool:
        return site.tensor in ("weights", "mask")

    def ratios(name: str, work: Callable[[Callable[[Site], bool] | None], object]) -> None:
        plain, recorded, everything = (
            _median(partial(work, wanted), times) for wanted in (None, attention, every_site)
        )
        print(
            f"{name} on {PRONOUNS}: plain {plain:.1f} ms; attention recorded {recorded:.1f} ms ({recorded / plain:.2f} "
            f"times); every site recorded {everything:.1f} ms ({everything / plain:.2f} times)",
            flush=True,
        )

    def one_pass(wanted: Callable[[Site], bool] | None) -> None:
        with torch.no_grad():
            lab.model(source, written, tap=None if wanted is None else Recorder(wanted))

    ratios("A pass", one_pass)
    ratios("Decoding", lambda wanted: list(greedy(lab.model, source, max_length=longest, record=wanted)))


def _median(work: Callable[[], object], times: int) -> float:
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        taken.append((time.perf_counter() - start) * 1e3)
    return float(np.median(taken[2:]))


def _switches(times: int) -> None:
    app = open_page("attention", model=PRONOUNS)
    gc.collect()
    gc.freeze()  # as serve.py does
    sites = [
        (sublayer, layer) for sublayer in ("encoder.{}.self", "decoder.{}.self", "decoder.{}.cross") for layer in (0, 1)
    ]
    sets = [(0,), (1,), (2,), (3,), (0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    switches = [
        f"off:{sublayer.format(layer)}:{','.join(map(str, heads))}" for heads in sets for sublayer, layer in sites
    ]
    taken = []
    for switch in switches[:times]:
        app.query_params["switch"] = switch
        start = time.perf_counter()
        app.run()
        taken.append((time.perf_counter() - start) * 1e3)
        assert not app.exception, app.exception
    p50, p95 = np.percentile(taken[4:], (50, 95))
    print(
        f"From a switch to the new picture on {PRONOUNS}, on the server: p50 {p50:.0f} ms, p95 {p95:.0f} ms of "
        f"{len(taken) - 4} switches",
        flush=True,
    )


if __name__ == "__main__":
    main(sys.argv[1:])
