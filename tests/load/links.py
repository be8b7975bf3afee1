"""Opens thousands of varied links on one server and prints what its memory comes to: `make links`.

Four visitors at a time open pages with models, sentences, heads and switches of their own, 25 links a session, and go.
What is held for all visitors is bounded, and what belongs to a session goes with it: memory should reach a plateau.
Half an hour for 10,000 links on two cores.
"""

import argparse
import asyncio
import random
import re
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "browser"), str(ROOT / "benchmarks")]

from app_server import Server, free_port, running_app  # noqa: E402
from arguments import read_options  # noqa: E402
from session import Session  # noqa: E402

from transformer.data.corpora import load_corpus  # noqa: E402

MODELS = sorted(path.parent.name for path in ROOT.glob("checkpoints/*/config.json"))
WORDS = sorted({word for pair in load_corpus("pronouns-en-fr").validation[:1_000] for word in pair.source.split()})
PAGES: dict[str, dict[str, list[str]]] = {
    "home": {},
    "attention": {},
    "decoder-steps": {"look": ["steps", "inside", "beam", "samples", "reference"]},
    "walkthrough": {"station": ["decoder.cross.products", "encoder.self.products", "decoder.self.weights"]},
    "positions": {"section": ["scores", "break"]},
    "tokenizers": {"section": ["split", "merges", "unknown", "sizes", "model", "map"]},
    "heads": {"section": ["roles", "alike", "worth", "smallest", "evidence"]},
    "masks": {},
    "failures": {"without": MODELS},
    "two-at-once": {},
    "before-attention": {"section": ["bottleneck", "gradient"]},
    "race": {"seed": ["0", "1", "2"], "d_model": ["16", "32", "64"]},
    "train": {"corpus": ["reverse", "copy", "sort", "pronouns-en-fr"], "d_model": ["32", "64", "128"]},
    "runs": {},
    "lessons": {},
    "playground": {},
    "glossary": {},
    "class": {},
    "server": {},
    "paper-lab": {},
}
"""The pages, and what a link to each may choose besides a model, a sentence, a head and a switch."""
VISITORS = 4
LINKS_A_SESSION = 25


def random_link(chance: random.Random) -> tuple[str, dict[str, object]]:
    """Returns a page and the parameters of a link to it; a sentence has 3 to 40 words, a third of them made up."""
    page = chance.choice(list(PAGES))
    made_up = ["".join(chance.choices("abcdefghij", k=chance.randint(1, 8))) for _ in range(40)]
    words = [chance.choice(WORDS) if chance.random() < 2 / 3 else word for word in made_up]
    parameters: dict[str, object] = {name: chance.choice(values) for name, values in PAGES[page].items()}
    parameters |= {"model": chance.choice(MODELS), "text": " ".join(words[: chance.choice([3, 6, 10, 20, 40])])}
    if chance.random() < 0.7:
        parameters |= {"layer": chance.randrange(3), "head": chance.randrange(5)}
    if chance.random() < 0.4:
        parameters["switch"] = f"off:decoder.{chance.randrange(2)}.cross:{chance.randrange(4)}"
    return page, parameters


async def visit(server: Server, seed: int, links: int) -> int:
    """Opens links one after the other, in new sessions all the time; returns how many pages failed."""
    chance, failed, session = random.Random(seed), 0, await Session.open(server.url)
    for number in range(links):
        if number and number % LINKS_A_SESSION == 0:
            await session.close()
            session = await Session.open(server.url)
        page, parameters = random_link(chance)
        shown = await session.show(page, **parameters)
        if shown.failed:
            print(f"failed: {server.link(page, **parameters)}", flush=True)
        failed += shown.failed
    await session.close()
    return failed


def held_bytes(port: int) -> float:
    """Returns the bytes of results that the server holds for all visitors, as its metrics say."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        (found,) = re.findall(r"^attention_lab_results_bytes (\S+)$", answer.read().decode(), re.MULTILINE)
    return float(found)


async def drive(server: Server, port: int, links: int, looks: int) -> int:
    """Prints the server's memory each time that a part of the links was opened; returns how many pages failed."""
    process, begun, failed, memory = psutil.Process(server.pid), time.monotonic(), 0, []
    for look in range(looks + 1):
        memory.append(process.memory_info().rss / 1e6)
        held, opened = held_bytes(port) / 1e6, links * look // looks
        print(f"{opened:6} links: RSS {memory[-1]:5.0f} MB, results held {held:4.0f} MB", end="", flush=True)
        print(f", {time.monotonic() - begun:5.0f} s", flush=True)
        if look < looks:
            part = links * (look + 1) // looks - opened
            shares = [(part + visitor) // VISITORS for visitor in range(VISITORS)]
            visits = [visit(server, VISITORS * look + visitor, share) for visitor, share in enumerate(shares)]
            failed += sum(await asyncio.gather(*visits))
    grown = (memory[-1] - memory[looks // 2]) / (links - links * (looks // 2) // looks)
    print(f"RSS at most {max(memory):.0f} MB; over the last half {1000 * grown:.0f} kB a link")
    return failed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--links", type=int, default=10_000)
    parser.add_argument("--looks", type=int, default=20, help="times that memory is looked at")
    given = read_options(parser, smoke={"links": 8, "looks": 2})
    with tempfile.TemporaryDirectory() as folder:
        runs, port = Path(folder) / "runs", free_port()
        runs.mkdir()
        settings = {
            "ATTENTION_LAB_MEASURE": "ask",
            "ATTENTION_LAB_METRICS_PORT": str(port),
            "STREAMLIT_SERVER_DISCONNECTED_SESSION_TTL": "5",
        }
        with running_app(runs, Path(folder) / "log.txt", environment=settings) as server:
            failed = asyncio.run(drive(server, port, given.links, given.looks))
    if failed:
        raise SystemExit(f"{failed} pages failed")


if __name__ == "__main__":
    main()
