"""The way from a plan to a run: the faults and notes of its text, and the start."""

from dataclasses import replace

from pages.shared import wording
from pages.shared.context import sentence
from pages.train import costs, measuring, plan_errors
from pages.train.previews import corpus_of, longer_sides, text_of
from pages.training import durations
from pages.training.corpora import is_upload
from pages.training.plan_fields import LABELS, OWN, SIZES
from pages.training.plan_text import written
from pages.training.plans import Plan, whole
from transformer.analysis.training.progress import progress_of
from transformer.checkpoints.settings import CheckpointError, list_checkpoints, read_settings
from transformer.config import AnyModelConfig, TrainConfig
from transformer.data.corpora import CorpusError
from transformer.data.statistics import too_long
from transformer.runs import run_folder
from transformer.runs.status import RunError
from transformer.runs.status import run_folder as folder_of
from transformer.text.tokenizer import Tokenizer, TokenizerError

EXPECTED = (RunError, CorpusError, TokenizerError, CheckpointError, ValueError, OSError)
"""The errors with which a start can be refused; each says why in a sentence."""
_EASY = 11
"""The characters of a pair that is read at a glance."""
N_PINNED = 3
"""The number of examples of the corpus that are followed where the visitor names none."""
UNFOLDED = frozenset({"corpus", "columns", "preset", "seconds", "start_from"})
"""The fields that stand open on the page: what to learn, how large and for how long."""
_OF_TEXT = ("corpus", "columns", "longest", "tokenizer", "vocab_size")


def sentences_of(plan: Plan) -> tuple[str, ...]:
    """Returns the sentences to follow: the visitor's, or the corpus's first examples."""
    if plan.sentences is not None:
        return plan.sentences
    try:
        return corpus_of(plan).examples[:N_PINNED]
    except (CorpusError, ValueError):
        return ()


def described(plan: Plan) -> str:
    """Returns the corpus in a line, with a pair of it; nothing where it cannot be read."""
    try:
        corpus = corpus_of(plan)
    except (CorpusError, ValueError):
        return ""
    pair = min(corpus.validation[:20], key=lambda pair: abs(len(pair.source) - _EASY))
    return wording.plain(f"{sentence(corpus.description)} {pair.source} → {pair.target}")


def faults_of(plan: Plan) -> dict[str, str]:
    """Returns a sentence with the way out for each field that cannot work, by itself or with the text of the corpus."""
    found = plan_errors.faults(plan)
    if not any(name in found for name in _OF_TEXT):
        found = _text_faults(plan, found) | found
    return {name: found[name] for name in LABELS if name in found}


def notes_of(plan: Plan) -> dict[str, str]:
    """Returns a sentence for each field that works but may surprise."""
    found = plan_errors.notes(plan)
    try:
        text, sides = text_of(plan), longer_sides(plan)
    except (CorpusError, TokenizerError, ValueError):
        return found
    found |= _strange_words(plan, text.tokenizer)
    if plan.max_length and (lost := too_long(sides, len(text.corpus.train), whole(plan.max_length))):
        found["max_length"] = lost
    return found


def changes_of(plan: Plan) -> str:
    """Names the folded settings that are not those of the recipe, with their values; empty if all are."""
    recipe = plan.recipe
    passed = {*UNFOLDED, "sentences", *(SIZES if plan.preset != OWN else ())}
    changed = [name for name in LABELS if name not in passed and getattr(plan, name) != getattr(recipe, name)]
    named = [f"{LABELS[name]} {written(getattr(plan, name)) or 'none'}" for name in changed]
    return ", ".join([*named, *([LABELS["sentences"]] if plan.sentences is not None else [])])


def ceiling_of(plan: Plan) -> int | None:
    """Returns the largest vocabulary that the text allows, where the plan asks for a larger one."""
    try:
        text_of(plan)
    except TokenizerError as error:
        return error.ceiling
    except (CorpusError, ValueError):
        pass
    return None


def elsewhere(plan: Plan) -> str:
    """Returns the training time of a shipped model of these very settings in words; nothing where there is none."""
    model, train, _ = plan.configs()
    shipped_s = _shipped_s(model, train, plan)
    return "" if shipped_s is None else f"the shipped model took {durations.duration(shipped_s)} on two cores"


def start(plan: Plan) -> str:
    """Starts a run on this plan and returns its id. Raises one of EXPECTED."""
    model, train, corpus = plan.configs()
    pinned = sentences_of(plan)
    estimate = costs.estimate(costs.costs_of(plan, pinned, costs.at_work()), train)
    measuring.cancel()
    run_id = run_folder.create_run(model, train, corpus, pinned=pinned, start_from=plan.start_from or None)
    if estimate is not None:
        durations.write_estimate(folder_of(run_id), estimate)
    run_folder.start(run_id)
    return run_id


def _text_faults(plan: Plan, known: dict[str, str]) -> dict[str, str]:
    try:
        tokenizer = text_of(plan).tokenizer
    except CorpusError as error:
        return {"corpus": f"{error}."}
    except TokenizerError as error:
        if error.fault is None:
            return {"tokenizer": f"{error}."}
        return {"vocab_size": plan_errors.sentence(error.fault, "corpus", plan)}
    longest = plan.max_length
    if "max_length" in known or not longest:
        return {}
    if (shortest := int(longer_sides(plan).min())) > longest:
        said = f"No pair fits into {longest} tokens: the shortest has {shortest:,} with its end mark."
        return {"max_length": said}
    for text in sentences_of(plan):
        length = len(tokenizer.encode(text)) + 1
        if length > longest:
            said = f"“{text[:40]}…” has {length:,} tokens with its end mark, and the model takes {longest}: shorten it."
            return {"sentences": said}
    return {}


def _strange_words(plan: Plan, tokenizer: Tokenizer) -> dict[str, str]:
    """Returns a note that names the words which this corpus never shows."""
    strange = dict.fromkeys(word for text in sentences_of(plan) for word in tokenizer.sentence(text).unseen)
    if not strange:
        return {}
    listed = ", ".join(f"*{wording.plain(word[:30])}*" for word in list(strange)[:8])
    if len(strange) > 8:
        listed += " …"
    verb, them = ("is", "it") if len(strange) == 1 else ("are", "them")
    return {"sentences": f"{listed} {verb} not in this corpus: the model will never have seen {them}."}


def _shipped_s(model: AnyModelConfig, train: TrainConfig, plan: Plan) -> float | None:
    """Returns the seconds that a shipped model of these very settings took; None where there is none."""
    if is_upload(plan.corpus):
        return None
    for found in list_checkpoints():
        if not found.shipped:
            continue
        try:
            settings = read_settings(found.folder)
        except CheckpointError:  # says so where it is opened
            continue
        same_model = replace(settings.model, vocab_size=model.vocab_size) == model
        same_steps = (settings.train.max_steps, settings.train.batch_tokens) == (train.max_steps, train.batch_tokens)
        if same_model and same_steps and settings.corpus.name == plan.corpus:
            return progress_of(found.folder).last("train", "elapsed_s")
    return None
