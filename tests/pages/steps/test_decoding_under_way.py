"""A decoding that takes longer is drawn as far as it is written, and what is drawn is the beginning of the whole."""

import threading
import time

import numpy as np
import pytest
from page_models import CLASSIC, PRONOUNS, open_page, texts

from pages.attention import pictures
from pages.shared import background, decoding, loading
from pages.shared.context import PageContext
from pages.shared.serving.machine import cores
from pages.shared.url.session import GRID
from pages.shared.url.view_state import View
from transformer import lab as lab_module
from transformer.interventions import parse_intervention
from transformer.lab import AttentionKind, load

pytestmark = pytest.mark.usefixtures("untrained_models")
N_STEPS = 3
SO_FAR = f"{GRID}-so-far-{N_STEPS}"


@pytest.mark.parametrize("switches", [(), ("off:decoder.0.cross:1",), ("mask:causal",)], ids=str)
def test_what_is_seen_on_the_way_is_the_beginning_of_the_whole(switches):
    """Without the causal mask the decoder's own attention is the newest whole pass, which no later one holds."""
    seen = []
    specs = [parse_intervention(switch) for switch in switches]
    whole = load(PRONOUNS).inspect(CLASSIC, specs, watch=lambda n, so_far: seen.append((n, so_far())))
    assert [n for n, _ in seen] == list(range(1, len(whole.target_ids) + 1))
    for n, part in seen:
        assert part.target_ids == whole.target_ids[:n] and part.target_tokens == whole.target_tokens[:n]
        assert np.array_equal(part.log_probs, whole.log_probs[:n]) and part.source_tokens == whole.source_tokens
        assert np.array_equal(part.encoder_self.weights, whole.encoder_self.weights)
        assert np.array_equal(part.cross.weights, whole.cross.weights[:, :, :n])
        assert part.cross.queries == whole.cross.queries[:n] and part.decoder_inputs == whole.decoder_inputs[:n]
        assert part.decoder_self.weights.shape[2:] == (n, n)
        if whole.cached:
            assert np.array_equal(part.decoder_self.weights, whole.decoder_self.weights[:, :, :n, :n])
            assert np.array_equal(part.decoder_self.mask, whole.decoder_self.mask[:, :n, :n])


@pytest.fixture
def halted(monkeypatch):
    """A page's decoding halts after N_STEPS until all heads were drawn; the pictures drawn, by their keys."""
    drawn, event, decode, draw = {}, threading.Event(), lab_module.greedy, pictures.head_grid

    def slow(*args, **options):
        for step in decode(*args, **options):
            yield step
            if step.index == N_STEPS - 1 and threading.current_thread().name.startswith("decoding"):
                assert event.wait(timeout=20), "nothing was drawn"

    def watched(weights, *, key, **options):
        drawn[key] = weights
        if key == SO_FAR:
            event.set()
        return draw(weights, key=key, **options)

    monkeypatch.setattr(lab_module, "greedy", slow)
    monkeypatch.setattr(pictures, "head_grid", watched)
    monkeypatch.setattr(decoding, "_EVERY_S", 0.2)
    monkeypatch.setattr(decoding, "_WORTH_S", 0.0)
    yield drawn
    event.set()


@pytest.mark.parametrize("kind", list(AttentionKind))
@pytest.mark.parametrize("switch", ["", "off:decoder.1.cross:0"])
def test_all_heads_are_drawn_as_far_as_the_output_is_written(halted, kind, switch):
    text = f"{CLASSIC[:-1]} {kind} {switch[:3]}"  # nobody decoded it before
    at = open_page("attention", model=PRONOUNS, text=text, kind=kind, **({"switch": switch} if switch else {}))
    seen = load(PRONOUNS).inspect(text, [parse_intervention(switch)] if switch else [])
    whole = seen.attention(kind).weights
    part = {"encoder_self": whole, "cross": whole[:, :, :N_STEPS], "decoder_self": whole[:, :, :N_STEPS, :N_STEPS]}
    assert np.array_equal(halted[SO_FAR], part[kind]) and np.array_equal(halted[GRID], whole)
    assert "so far" not in texts(at)


def test_nothing_is_under_way_before_and_after():
    lab = loading.get_lab(PRONOUNS)
    watcher = background.Watcher()
    work = loading.decoding(lab, CLASSIC, (), watcher)
    assert work.result().text == CLASSIC and work.so_far is None
    broken = loading.decoding(lab, "  ", (), watcher)
    with pytest.raises(ValueError, match="empty"):
        broken.result()
    assert broken.so_far is None


def test_two_sentences_at_once_keep_apart(monkeypatch):
    lab, texts_, decode = loading.get_lab(PRONOUNS), ("The cat slept.", "The dog slept."), lab_module.greedy
    both = threading.Barrier(3, timeout=60)

    def slow(*args, **options):
        for step in decode(*args, **options):
            yield step
            if step.index == 0:
                both.wait()  # both are under way
                both.wait()  # both were looked at

    monkeypatch.setattr(lab_module, "greedy", slow)
    watchers = [background.Watcher() for _ in texts_]
    works = [loading.decoding(lab, *each) for each in zip(texts_, ((), ()), watchers, strict=True)]
    both.wait()
    seen = [work.so_far() for work in works if work.so_far]
    both.wait()
    for work in works:
        work.result()
    assert [part.text for part in seen] == list(texts_) and [len(part.target_ids) for part in seen] == [1, 1]


def test_the_rest_is_foretold_at_the_pace_so_far(monkeypatch):
    work: background.Work[list] = background.Work(lambda tell: [])
    work.begun, work.share = 10.0, 20 / 128
    monkeypatch.setattr(background.time, "monotonic", lambda: 10.5)
    assert work.left_s == pytest.approx(108 * 0.5 / 20)


@pytest.mark.parametrize(("left", "is_drawn"), [(0.5, False), (0.7, True)])
def test_what_is_nearly_done_is_not_drawn_before(monkeypatch, left, is_drawn):
    drawn, decode = [], lab_module.greedy

    def slow(*args, **options):
        for step in decode(*args, **options):
            yield step
            time.sleep(0.05 if threading.current_thread().name.startswith("decoding") else 0)

    monkeypatch.setattr(lab_module, "greedy", slow)
    monkeypatch.setattr(pictures, "head_grid", lambda weights, *, key, **options: drawn.append(key))
    monkeypatch.setattr(background.Work, "left_s", left)
    open_page("attention", model=PRONOUNS, text=f"The dog is {left} tall.", kind="cross")
    assert drawn[-1] == GRID and any(key.startswith(f"{GRID}-so-far") for key in drawn) == is_drawn


def test_a_head_can_be_chosen_while_the_output_is_written():
    at = open_page("attention", model=PRONOUNS, text=CLASSIC)
    at.session_state[SO_FAR] = {"picked": [0, 2]}  # what the browser reports of a click
    assert "layer 0 · head 2" in texts(at.run())


@pytest.fixture
def endless(monkeypatch):
    """No decoding ends by itself; the numbers of those at work, as each one began."""
    at_work, counts, lock = [], [], threading.Lock()

    def inspect(lab, text, *_, watch, **options):
        with lock:
            at_work.append(text)
            counts.append(len(at_work))
        try:
            while not over.is_set():
                watch(1, lambda: None)
                time.sleep(0.002)
        finally:
            with lock:
                at_work.remove(text)

    over = threading.Event()
    monkeypatch.setattr(lab_module.Lab, "inspect", inspect)
    yield counts
    over.set()
    wait_until(lambda: not at_work)


def wait_until(condition):
    limit = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.005)


def test_a_visitor_s_newest_sentence_stops_the_one_before(endless):
    lab, one, other = loading.get_lab(PRONOUNS), background.Watcher(), background.Watcher()
    asked = [loading.decoding(lab, f"The cat number {i} slept.", (), one) for i in range(10)]
    wait_until(lambda: all(work.stopped for work in asked[:-1]))
    shared = loading.decoding(lab, "The cat number 9 slept.", (), other)
    assert shared is asked[-1] and not shared.over.is_set()
    last = loading.decoding(lab, "The dog number 9 slept.", (), one)
    time.sleep(0.05)
    assert not shared.over.is_set()  # the other visitor still waits for it
    for watcher in (one, other):
        loading.decoding(lab, "", (), watcher)  # refused at once
    wait_until(lambda: shared.stopped and last.stopped)


def test_no_more_sentences_are_decoded_at_once_than_there_are_cores(endless):
    lab, watchers = loading.get_lab(PRONOUNS), [background.Watcher() for _ in range(6)]
    works = [loading.decoding(lab, f"Dog {i} slept.", (), watcher) for i, watcher in enumerate(watchers)]
    threads = []
    for i in range(6):  # pages that decode by themselves count too

        def decode(text=f"Cat {i} slept."):
            loading.get_inspection(lab, text, (), lambda *_: time.sleep(0.002))

        threads.append(threading.Thread(target=decode, daemon=True))
        threads[-1].start()
    wait_until(lambda: len(endless) >= cores())
    time.sleep(0.1)
    assert max(endless) == cores()
    for work in works:
        work.cancel()


def test_a_page_gives_way_while_its_sentence_is_decoded(endless, monkeypatch):
    class ChangedMeanwhile(BaseException):
        """Streamlit's signal to run again is one too."""

    def change(*_):
        raise ChangedMeanwhile

    monkeypatch.setattr(decoding, "give_way", change)
    monkeypatch.setattr(decoding, "session_watcher", background.Watcher)
    lab = loading.get_lab(PRONOUNS)
    waiting = PageContext(view=View(text="The bird slept."), lab=lab, sentence=lab.sentence("The bird slept."))
    with pytest.raises(ChangedMeanwhile):
        decoding.decode(waiting)
