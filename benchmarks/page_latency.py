"""Measures one rerun of the Attention page on the server, in ms: `python benchmarks/page_latency.py`.

The page's script on pronouns-en-fr, each time with another head chosen by the address, so that the picture is a new
one; without a run and beside one that trains with all the machine's threads. What the browser then draws is not here.
"""

import argparse
import gc
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402
from arguments import read_options  # noqa: E402
from streamlit.testing.v1 import AppTest  # noqa: E402

from transformer.config import CorpusConfig  # noqa: E402
from transformer.data.file_recipes import recipe_for  # noqa: E402
from transformer.runs import run_folder  # noqa: E402
from transformer.runs.status import status  # noqa: E402

MODEL = "pronouns-en-fr"


def main(arguments: list[str]) -> None:
    """Prints a line without a run and one beside a run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=60)
    options = read_options(parser, arguments, smoke={"times": 6})
    os.chdir(ROOT)
    torch.set_num_threads(1)  # as serve.py does
    with tempfile.TemporaryDirectory(prefix="page-latency-") as folder:
        os.environ["ATTENTION_LAB_RUNS"] = folder
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).run()  # names the pages
        app.query_params["model"] = MODEL
        app.switch_page("pages/attention/page.py").run()
        gc.collect()
        gc.freeze()  # as serve.py does
        _report("idle", app, options.times)
        recipe = recipe_for(CorpusConfig(name=MODEL))
        run = run_folder.create_run(recipe.model, recipe.train, CorpusConfig(name=MODEL))
        run_folder.start(run)
        try:
            while not run_folder.metrics(run):
                time.sleep(0.1)
            _report("while a run trains", app, options.times)
        finally:
            run_folder.stop(run)
            while status(run).active:
                time.sleep(0.1)


def _report(name: str, app: AppTest, times: int) -> None:
    taken = []
    for number in range(times):
        app.query_params["head"] = str(number % 4)
        start = time.perf_counter()
        app.run()
        taken.append((time.perf_counter() - start) * 1e3)
        assert not app.exception, app.exception
        assert app.radio(key="choose-model").value == MODEL and app.get("bidi_component"), "not the page"
    p50, p95 = np.percentile(taken[4:], (50, 95))
    print(f"Attention page, {name}: p50 {p50:.0f} ms, p95 {p95:.0f} ms of {times - 4} reruns", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
