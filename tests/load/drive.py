"""Puts many visitors at a time on one server, over real websockets, and prints what that costs: `make load`.

Each visitor opens Home with sentences of their own, looks at their attention and their decoder steps, and switches
heads off, with pauses as people make them. Who sees anything of another one's sentence, or waits in vain, is counted.
Then the same beside two trainings, one visitor beside 20 others who watch a run of the Playground, 50 sessions opened
and closed again and again, to see that memory comes back, and one visitor who edits a long sentence quickly. Traffic
goes to this machine alone; about eleven minutes in all.
"""

import argparse
import asyncio
import random
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from websockets.asyncio.client import connect

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), *(str(ROOT / folder) for folder in ("tests/browser", "tests/support", "benchmarks"))]

from app_server import Server, running_app  # noqa: E402
from arguments import read_options  # noqa: E402
from page_models import save_model  # noqa: E402
from random_models import random_model  # noqa: E402
from session import Session, Shown  # noqa: E402

from transformer.data.corpora import load_corpus  # noqa: E402
from transformer.lab import load  # noqa: E402
from transformer.runs.status import Status, write_status  # noqa: E402

MODEL = "pronouns-en-fr"
THINK_S = (4.0, 12.0)
"""Bounds of the seconds between two things that a visitor does."""
HURRIED_S = (0.1, 0.3)
"""The same of one who is alone, so that there is much to count."""
SMALL = {"d_model": 64, "n_heads": 4, "d_ff": 256, "n_encoder_layers": 2, "n_decoder_layers": 2, "threads": 1}
LARGE = {"d_model": 512, "n_heads": 8, "d_ff": 2048, "n_encoder_layers": 6, "n_decoder_layers": 6, "max_length": 160}
"""The sizes of the untrained model whose sentence is edited quickly."""
EDITS, EDIT_EVERY_S = 10, 0.2


@dataclass
class Stage:
    """Holds the measurements of a time with a constant number of visitors."""

    visitors: int
    note: str = ""
    think_s: tuple[float, float] = THINK_S
    seconds: list[float] = field(default_factory=list)
    lost: int = 0
    mixed: int = 0
    cpu_s: float = 0.0
    memory: int = 0

    def line(self) -> str:
        times = sorted(self.seconds) or [0.0]
        at = [1000 * times[min(len(times) - 1, int(share * len(times)))] for share in (0.5, 0.95)]
        cpu = 1000 * self.cpu_s / max(1, len(self.seconds))
        return (
            f"{self.visitors:8} {self.note:22} {len(self.seconds):6} {at[0]:8.0f} {at[1]:8.0f} {1000 * times[-1]:8.0f} "
            f"{cpu:8.0f} {self.memory / 1e6:8.0f} {self.lost:6} {self.mixed:6}"
        )


HEAD = (
    f"{'visitors':>8} {'':22} {'reruns':>6} {'p50 ms':>8} {'p95 ms':>8} {'max ms':>8} {'cpu ms':>8} {'RSS MB':>8} "
    f"{'lost':>6} {'mixed':>6}"
)


@dataclass
class Course:
    """Holds the server, the sentences that go round, and the translation of each."""

    server: Server
    sentences: Sequence[str]
    translations: dict[str, str]

    def own(self, visitor: int, of: int) -> list[str]:
        """Returns the sentences that are this visitor's alone."""
        return list(self.sentences[visitor::of])


async def visit(course: Course, stage: Stage, number: int, until: float) -> None:
    """Plays one visitor from the first page to the end of the stage."""
    chance = random.Random(number)
    own = course.own(number, stage.visitors)
    others = set(course.sentences) - set(own)
    await asyncio.sleep(chance.uniform(0, stage.think_s[1] / 2) if stage.visitors > 1 else 0)
    try:
        session = await Session.open(course.server.url)
    except (OSError, TimeoutError):
        stage.lost += 1
        return
    try:
        turn = 0
        while time.monotonic() < until:
            text = own[turn // 4 % len(own)]
            switch = f"off:decoder.{chance.randrange(2)}.cross:{chance.randrange(4)}"
            page, given = [
                ("home", {}),
                ("attention", {"layer": chance.randrange(2), "head": chance.randrange(4)}),
                ("attention", {"switch": switch}),
                ("decoder-steps", {}),
            ][turn % 4]
            shown = await session.show(page, model=MODEL, text=text, **given)
            stage.seconds.append(shown.seconds)
            stage.lost += shown.failed or "All places are taken" in shown.text
            stage.mixed += not _is_own(shown, text, others, course.translations[text] if page == "home" else "")
            turn += 1
            await asyncio.sleep(chance.uniform(*stage.think_s))
    except (OSError, TimeoutError, ConnectionError) as error:
        print(f"visitor {number}: {error!r}", file=sys.stderr)
        stage.lost += 1
    finally:
        await session.close()


def _is_own(shown: Shown, text: str, others: set[str], translation: str) -> bool:
    """Tells whether a page shows this visitor's sentence and result, and no other visitor's sentence."""
    words = shown.text.replace("\\\\", "").replace("\\'", "'")
    if text not in words or any(other in words for other in others):
        return False
    return all(word in words for word in re.findall(r"\w+", translation) if word.isascii())


async def hold(course: Course, stage: Stage, seconds: float) -> Stage:
    """Keeps the stage's visitors on the server for these seconds and prints what was measured."""
    process = psutil.Process(course.server.pid)
    before, until = process.cpu_times(), time.monotonic() + seconds
    visits = [asyncio.create_task(visit(course, stage, number, until)) for number in range(stage.visitors)]
    while time.monotonic() < until:
        stage.memory = max(stage.memory, process.memory_info().rss)
        await asyncio.sleep(1)
    await asyncio.gather(*visits)
    after = process.cpu_times()
    stage.cpu_s = after.user + after.system - before.user - before.system
    print(stage.line(), flush=True)
    return stage


async def train(course: Course, runs: int) -> int:
    """Starts trainings as visitors do, by the button of Train; returns how many are at work."""
    for number in range(runs):
        session = await Session.open(course.server.url)
        given = SMALL | {"corpus": "pronouns-en-fr", "steps": 100_000, "seed": number}
        page = await session.show("train", **given)
        if button := page.buttons.get("Train"):
            await session.show("train", pressed=button, **given)
        await session.close()
    limit = time.monotonic() + 40
    while time.monotonic() < limit and _at_work(course.server.runs) < runs:
        await asyncio.sleep(0.5)
    return _at_work(course.server.runs)


def _at_work(runs: Path) -> int:
    return len([path for path in runs.glob("pronouns-*/metrics.jsonl") if path.stat().st_size])


async def beside_watchers(course: Course, watchers: int, seconds: float) -> Stage:
    """Lets one visitor look at pages in haste beside a run of the Playground that others watch: they are `watchers`.

    The run is in slow motion and lasts 40 s: where it may take a core, it costs more than those who watch it.
    """
    async with AsyncExitStack() as opened:
        session, before = await _opened(course, opened), set(course.server.runs.iterdir())
        page = await session.show("playground", slow="on")
        pressed = await session.show("playground", pressed=page.buttons["Play"], slow="on")
        (run,) = (path.name for path in set(course.server.runs.glob("reverse-*")) - before)
        ticket = re.findall(r"/live/([\w-]+)", pressed.text)[0]
        received = [0] * watchers
        async with asyncio.TaskGroup() as group:
            following = []
            for number in range(watchers):
                other = await _opened(course, opened)
                await other.show("playground", run=run, slow="on")
                following.append(group.create_task(_follow(course, ticket, received, number)))
            done = await hold(course, Stage(1, f"beside {watchers} watchers", HURRIED_S), seconds)
            for task in following:
                task.cancel()
        await session.show("playground", pressed=pressed.buttons["Pause"], run=run, slow="on")
    if watchers:
        print(f"each watcher received {min(received) / seconds:.1f} to {max(received) / seconds:.1f} messages a second")
    return done


async def _opened(course: Course, opened: AsyncExitStack) -> Session:
    session = await Session.open(course.server.url)
    opened.push_async_callback(session.close)
    return session


async def _follow(course: Course, ticket: str, received: list[int], number: int) -> None:
    async with connect(f"ws{course.server.url.removeprefix('http')}/live/{ticket}", max_size=None) as stream:
        async for _ in stream:
            received[number] += 1


async def come_and_go(course: Course, sessions: int, rounds: int, rest_s: float) -> list[int]:
    """Opens sessions, looks once with each, closes them; returns the server's memory before and after each round."""
    process = psutil.Process(course.server.pid)
    found = [process.memory_info().rss]
    for _ in range(rounds):
        opened = [await Session.open(course.server.url) for _ in range(sessions)]
        for number, session in enumerate(opened):
            await session.show("attention", model=MODEL, text=course.sentences[number % 8])
        for session in opened:
            await session.close()
        await asyncio.sleep(rest_s)
        found.append(process.memory_info().rss)
    return found


async def edit_quickly(course: Course, page: str, symbols: int) -> None:
    """Edits a long sentence faster than it is decoded, and prints what the last edit and another visitor wait for."""
    chance, parameters = random.Random(page), {"model": "large"}
    texts = [" ".join(chance.choices("abcdefgh", k=symbols)) for _ in range(3 + EDITS)]
    async with AsyncExitStack() as opened:
        session, other = await _opened(course, opened), await _opened(course, opened)
        await session.show(page, **parameters, text="a b c")  # loads the model
        alone = [(await session.show(page, **parameters, text=text)).seconds for text in texts[EDITS:]]
        is_over = asyncio.Event()
        looking = asyncio.create_task(_look_again(course, other, is_over))
        for text in texts[: EDITS - 1]:
            await session.ask(page, **parameters, text=text)
            await asyncio.sleep(EDIT_EVERY_S)
        last = await session.show(page, **parameters, text=texts[EDITS - 1])
        is_over.set()
        reruns = await looking
    once = statistics.median(alone)
    print(
        f"{page}: of {EDITS} quick edits of {symbols} symbols the last is shown after {last.seconds:.1f} s, "
        f"{last.seconds / once:.2f} times one alone, {once:.1f} s (at most 2 wanted); meanwhile another visitor's "
        f"slowest of {len(reruns)} reruns takes {1000 * max(reruns):.0f} ms (at most 500 wanted)",
        flush=True,
    )


async def _look_again(course: Course, session: Session, is_over: asyncio.Event) -> list[float]:
    """Looks at one head after the other; returns the seconds that each took."""
    seconds: list[float] = []
    while not seconds or not is_over.is_set():
        shown = await session.show("attention", model=MODEL, text=course.sentences[0], head=len(seconds) % 4)
        seconds.append(shown.seconds)
        await asyncio.sleep(HURRIED_S[1])
    return seconds


async def drive(course: Course, given: argparse.Namespace) -> list[Stage]:
    """Prints what each stage measured, and what they say together; returns them."""
    for text in course.sentences[:2]:  # what is loaded once is no visitor's time
        session = await Session.open(course.server.url)
        for page in ("home", "attention", "decoder-steps", "train"):
            await session.show(page, model=MODEL, text=text)
        await session.close()
    print(HEAD, flush=True)
    stages = zip(given.visitors, given.seconds, strict=False)
    done = [await hold(course, Stage(visitors), seconds) for visitors, seconds in stages]
    held = await come_and_go(course, given.sessions, given.rounds, given.rest)
    alone, most = done[0], done[-1]
    if given.watched:
        without, beside = [await beside_watchers(course, watchers, given.watched) for watchers in (0, given.watchers)]
        done += without, beside
        ratio = _p95(beside) / _p95(without)
        print(f"p95 beside {given.watchers} watchers of a run is {ratio:.1f} times that without (at most 2 wanted)")
    if given.with_runs:
        at_work = await train(course, 2)
        trained = await hold(course, Stage(most.visitors, f"beside {at_work} trainings"), given.with_runs)
        done.append(trained)
        ratio = _p95(trained) / _p95(most)
        print(f"\np95 beside {at_work} trainings is {ratio:.1f} times that without (at most 2 wanted)")
    if given.edited:  # not before: Train opens the newest run, and this one is large
        save_model(course.server.runs / "large", lambda **sizes: random_model(**sizes | LARGE))
        write_status(course.server.runs / "large", Status(state="finished"))
    for page in given.edited:
        await edit_quickly(course, page, given.symbols)
    each = (most.memory - alone.memory) / max(1, most.visitors - alone.visitors)
    print(f"memory a visitor: {each / 1e6:.1f} MB, the results held for all among it")
    print(
        f"RSS before and after {given.rounds} times {given.sessions} sessions, opened and closed: "
        + ", ".join(f"{b / 1e6:.0f}" for b in held)
        + " MB"
    )
    return done


def _p95(stage: Stage) -> float:
    times = sorted(stage.seconds) or [1.0]
    return times[int(0.95 * len(times))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--visitors", type=int, nargs="+", default=[1, 10, 25, 50])
    parser.add_argument("--seconds", type=float, nargs="+", default=[25, 35, 40, 60])
    parser.add_argument("--with-runs", type=float, default=60, help="seconds beside two trainings; 0 for none")
    parser.add_argument("--watchers", type=int, default=20, help="visitors who watch one run of the Playground")
    parser.add_argument("--watched", type=float, default=30, help="seconds beside that run; 0 for none")
    parser.add_argument("--edited", nargs="*", default=["attention", "home", "decoder-steps"], help="pages to edit on")
    parser.add_argument("--symbols", type=int, default=128, help="length of the sentence that is edited there")
    parser.add_argument("--sentences", type=int, default=200, help="sentences that go round, each translated before")
    parser.add_argument("--sessions", type=int, default=50, help="sessions that come and go together")
    parser.add_argument("--rounds", type=int, default=3, help="times that they do")
    parser.add_argument("--rest", type=float, default=8, help="seconds after which memory must be back")
    least = {
        "sentences": 8,
        "visitors": [1],
        "seconds": [1.0],
        "with_runs": 0.0,
        "watchers": 1,
        "watched": 1.0,
        "edited": ["attention"],
        "symbols": 8,
        "sessions": 1,
        "rounds": 1,
        "rest": 0.0,
    }
    given = read_options(parser, smoke=least)
    corpus = load_corpus(MODEL)
    sentences = list(dict.fromkeys(pair.source for pair in corpus.validation if pair.source not in corpus.examples))
    sentences = sorted(sentences, key=lambda text: random.Random(text).random())[: given.sentences]
    translations = dict(zip(sentences, load(MODEL).translate(sentences), strict=True))
    print(f"load average before: {', '.join(f'{x:.1f}' for x in psutil.getloadavg())} on {psutil.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder:
        runs = Path(folder) / "runs"
        runs.mkdir()
        settings = {
            "ATTENTION_LAB_MEASURE": "ask",
            "ATTENTION_LAB_MAX_RUNS": "2",
            "ATTENTION_LAB_MAX_SESSIONS": "60",
            "STREAMLIT_SERVER_DISCONNECTED_SESSION_TTL": "5",
            "MALLOC_ARENA_MAX": "2",
        }
        with running_app(runs, Path(folder) / "log.txt", environment=settings) as server:
            done = asyncio.run(drive(Course(server, sentences, translations), given))
    print(f"load average after: {', '.join(f'{x:.1f}' for x in psutil.getloadavg())}")
    if faults := sum(stage.lost + stage.mixed for stage in done):
        raise SystemExit(f"{faults} answers were lost or mixed up")


if __name__ == "__main__":
    main()
