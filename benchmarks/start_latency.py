"""Measures the seconds from the click to the first metric, cold and warm: `python benchmarks/start_latency.py`.

The click is `create_run` and `start`, in a process that has the app's libraries and this corpus's tokenizer, as after a
visit to Train; the first metric is the first whole row of metrics.jsonl. Each way is measured several times, in turns.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from arguments import read_options

PATIENCE_S = 120.0
LOOK_AGAIN_S = 0.005


def main(arguments: list[str]) -> None:
    options = _options(arguments)
    with tempfile.TemporaryDirectory(prefix="start-latency-") as folder:
        os.environ["ATTENTION_LAB_RUNS"] = folder
        _measure(options.corpus, options.times)


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", nargs="*", default=["reverse", "pronouns-en-fr"])
    parser.add_argument("--times", type=int, default=5)
    return read_options(parser, arguments, smoke={"corpus": ["reverse"], "times": 1})


def _measure(corpora: list[str], times: int) -> None:
    from transformer.runs.launch import WARM

    found: dict[tuple[str, str], list[float]] = {}
    for _ in range(times):
        for way in ("cold", "warm"):
            if way == "warm":
                WARM.keep()
                if not WARM.is_ready(PATIENCE_S):
                    raise SystemExit("the warm worker did not come up")
            for corpus in corpora:
                found.setdefault((corpus, way), []).append(first_metric_s(corpus))
            WARM.end()
    for (corpus, way), seconds in sorted(found.items()):
        print(f"{corpus:16} {way}  median {statistics.median(seconds):.2f} s   worst {max(seconds):.2f} s   of {times}")


def first_metric_s(corpus: str) -> float:
    """Starts a run of the corpus's recipe, waits for its first metric, ends it."""
    from transformer.config import CorpusConfig
    from transformer.data.corpus_cache import prepared
    from transformer.data.file_recipes import recipe_for
    from transformer.files import read_rows
    from transformer.runs import run_folder
    from transformer.runs.status import run_folder as folder_of
    from transformer.runs.status import status

    config = CorpusConfig(name=corpus)
    recipe = recipe_for(config)
    prepared(config)
    begin = time.perf_counter()
    run_id = run_folder.create_run(recipe.model, recipe.train, config)
    run_folder.start(run_id)
    rows = folder_of(run_id) / "metrics.jsonl"
    while not read_rows(rows):
        if time.perf_counter() - begin > PATIENCE_S or status(run_id).state == "failed":
            raise SystemExit(f"no metric came: {status(run_id)}")
        time.sleep(LOOK_AGAIN_S)
    took = time.perf_counter() - begin
    run_folder.stop(run_id)
    while status(run_id).active:
        time.sleep(LOOK_AGAIN_S)
    run_folder.delete(run_id)
    return took


if __name__ == "__main__":
    main(sys.argv[1:])
