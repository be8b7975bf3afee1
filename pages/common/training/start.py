"""From a plan to a run: what can be said before the start, and the start."""

from dataclasses import replace

from pages.common import wording
from pages.common.training import timing
from pages.common.training.data import corpus_of, parameter_count, progress_of
from pages.common.training.plans import Plan
from transformer import runs
from transformer.config import ModelConfig, TrainConfig
from transformer.corpora import CORPORA, CorpusError
from transformer.recipes import RECIPES
from transformer.runs import RunError
from transformer.settings import CheckpointError, list_checkpoints, read_settings
from transformer.tokenizer import Tokenizer, TokenizerError

EXPECTED = (RunError, CorpusError, TokenizerError, ValueError, OSError)
"""What a start can be refused with; each says why in a sentence."""
_EASY = 11
"""Characters of a pair that is read at a glance."""
N_PINNED = 3
"""Examples of the corpus that are followed where the visitor names none."""


def sentences_of(plan: Plan) -> tuple[str, ...]:
    """The sentences to follow: the visitor's, or the corpus's first examples."""
    return corpus_of(plan.corpus)[0].examples[:N_PINNED] if plan.sentences is None else plan.sentences


def described(corpus: str) -> str:
    """The corpus in a line, with a pair of it."""
    pair = min(corpus_of(corpus)[0].validation[:20], key=lambda pair: abs(len(pair.source) - _EASY))
    text = CORPORA[corpus]
    return wording.plain(f"{text[:1].upper()}{text[1:]}. {pair.source} → {pair.target}")


def sentence_faults(plan: Plan) -> dict[str, str]:
    """A sentence for the field where one of the lines is too long for the model."""
    tokenizer, longest = corpus_of(plan.corpus)[1], RECIPES[plan.corpus].model.max_length
    for text in sentences_of(plan):
        length = len(tokenizer.encode(text)) + 1
        if length > longest:
            said = f"“{text[:40]}…” has {length:,} tokens with its end mark, and the model takes {longest}: shorten it."
            return {"sentences": said}
    return {}


def sentence_notes(plan: Plan) -> dict[str, str]:
    """The words that this corpus never shows, named."""
    tokenizer: Tokenizer = corpus_of(plan.corpus)[1]
    strange = dict.fromkeys(word for text in sentences_of(plan) for word in tokenizer.unknown(text))
    if not strange:
        return {}
    listed = ", ".join(f"*{wording.plain(word[:30])}*" for word in list(strange)[:8]) + (
        " …" if len(strange) > 8 else ""
    )
    verb, them = ("is", "it") if len(strange) == 1 else ("are", "them")
    return {"sentences": f"{listed} {verb} not in this corpus: the model will never have seen {them}."}


def forecast(plan: Plan) -> str:
    """Parameters and time: "417,000 parameters · estimate: about 25 s, at the speed of reverse-3"."""
    model, train, _ = plan.configs()
    vocab_size = corpus_of(plan.corpus)[1].vocab_size
    count = parameter_count(replace(model, vocab_size=vocab_size))
    estimate = timing.step_estimate(model, train, runs.list_runs())
    return f"{count:,} parameters · {timing.said(train, estimate, shipped_s=_shipped_s(model, train, plan))}"


def start(plan: Plan) -> str:
    """The id of a run that has just been started on this plan. Raises one of EXPECTED."""
    model, train, corpus = plan.configs()
    run_id = runs.create_run(model, train, corpus, pinned=sentences_of(plan))
    runs.start(run_id)
    return run_id


def _shipped_s(model: ModelConfig, train: TrainConfig, plan: Plan) -> float | None:
    """Seconds that a shipped model of these very settings took where it was trained; None where there is none."""
    for found in list_checkpoints():
        if not found.shipped:
            continue
        try:
            settings = read_settings(found.folder)
        except CheckpointError:  # says so where it is opened
            continue
        same = timing.is_same_work(settings.model, settings.train, model, train)
        if same and settings.corpus.name == plan.corpus:
            return progress_of(found.folder).last("train", "elapsed_s")
    return None
