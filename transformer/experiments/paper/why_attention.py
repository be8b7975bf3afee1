"""Section 1: one fixed vector, attention over the source, or attention alone, by the length of the sentence."""

import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from itertools import islice
from statistics import fmean

from transformer.config import PRESETS, AnyModelConfig, CorpusConfig, RecurrentConfig, TrainConfig
from transformer.data.batches import encode_sources, fits
from transformer.data.corpora import PRONOUNS, corpus_tokenizer, load_corpus
from transformer.data.tasks import pairs_of_length
from transformer.decoding.greedy import translate_ids
from transformer.experiments.comparisons import Comparison, again_by, judge_by
from transformer.experiments.experiment import Budget, Chart, Competence, Experiment, Factor, Metric
from transformer.experiments.outcome import Verdict
from transformer.experiments.results import Cell, Results
from transformer.experiments.training import Trained, train_model
from transformer.model.families import AnyModel
from transformer.model.position_extension import extended
from transformer.model.transformer import Transformer
from transformer.text.pairs import Pair
from transformer.training.metrics import exact_match

VECTOR, WITH, ALONE = "LSTM, one vector", "LSTM with attention", "Transformer"
ROTARY = "Transformer, rotary positions"
PAIRS = 200
"""Held-out pairs of each length, or all where there are fewer."""
_NO_DROPOUT = {"dropout": 0.0, "embedding_dropout": 0.0}


def _models(vector: int, attention: int, max_length: int) -> dict[str, AnyModelConfig]:
    """Returns the three models, the recurrent ones with these widths."""
    return {
        VECTOR: RecurrentConfig(d_model=vector, dropout=0.0, max_length=max_length),
        WITH: RecurrentConfig(d_model=attention, attention="additive", dropout=0.0, max_length=max_length),
        ALONE: replace(PRESETS["tiny"], **_NO_DROPOUT, max_length=max_length),
    }


@dataclass(frozen=True, kw_only=True)
class Task:
    """Something to learn, with models of equal size for it."""

    corpus: CorpusConfig
    models: dict[str, AnyModelConfig]
    """The widths are chosen so that they have equally many parameters, word vectors included."""
    unit: str
    """What a length counts."""
    lengths: Sequence[int]
    """The lengths that are tested, longer ones than any in training among them."""
    short: int
    long: int
    """The longest length of training."""


MODELS = _models(120, 96, 64)
"""Those that learn strings, of about 235,000 parameters each."""
STEPS = (1_500, 4_500)
"""The lengths of a short training, and of one three times as long."""
LENGTHS = (2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 24)
SHORT, LONG = 4, 16
_STRINGS = {"unit": "symbols", "lengths": LENGTHS, "short": SHORT, "long": LONG}
LONGEST_PAIR = 14
"""Tokens of the longest pronoun sentence of training on either side, the end mark included: 11 English words."""
TASKS = {
    "reverse": Task(
        corpus=CorpusConfig(name="reverse", longest=LONG),
        models=MODELS | {ROTARY: replace(MODELS[ALONE], positions="rotary")},
        **_STRINGS,
    ),
    "copy": Task(corpus=CorpusConfig(name="copy", longest=LONG), models=MODELS, **_STRINGS),
    PRONOUNS: Task(
        corpus=CorpusConfig(name=PRONOUNS),
        models=_models(116, 94, LONGEST_PAIR),
        unit="words",
        lengths=tuple(range(5, 14)),
        short=5,
        long=11,
    ),
}


def _comparisons(name: str, task: Task, steps: int, ending: str) -> tuple[Comparison, Comparison]:
    cells = {
        (model, length): {"task": name, "model": model, "steps": steps, "length": length}
        for model in (VECTOR, WITH)
        for length in (task.short, task.long)
    }
    return (
        Comparison(
            name=f"{name}, length {task.long}{ending}",
            group=f"Attention keeps long sentences ({name})",
            metric="symbols",
            unit="share in place at the longest length of training, with attention − without",
            first=cells[WITH, task.long],
            second=cells[VECTOR, task.long],
            least=0.0,
        ),
        Comparison(
            name=f"{name}, {task.short} to {task.long}{ending}",
            group=f"Without it, length hurts more ({name})",
            metric="symbols",
            unit="loss from short to long, without attention − with",
            first=cells[VECTOR, task.short],
            second=cells[VECTOR, task.long],
            beside=(cells[WITH, task.short], cells[WITH, task.long]),
            least=0.0,
        ),
    )


def _compared(trainings: Collection[int]) -> tuple[Comparison, ...]:
    """Returns the comparisons after the longest of these trainings, whose names say no steps, and after the others."""
    longest, *shorter = sorted(trainings, reverse=True)
    said = {longest: ""} | {steps: f", {steps:,} steps" for steps in shorter}
    return tuple(
        each
        for name, task in TASKS.items()
        for steps, ending in said.items()
        for each in _comparisons(name, task, steps, ending)
    )


def _judge(results: Results, primary: str) -> Verdict:
    comparisons = _compared(set(map(int, results.levels("steps"))))
    return judge_by(comparisons, _sentence, primary=primary)(results)


def again(rows: Sequence[Mapping]) -> dict[str, list[float]]:
    """Reads what every finding is the mean of from the rows of the file: see `recount`."""
    return again_by(_compared({row["steps"] for row in rows}))(rows)


def measure(cell: Cell, seed: int, size: int) -> dict[str, float]:
    """Trains the model, once for all lengths, and translates pairs of this length."""
    name, length = str(cell["task"]), int(cell["length"])
    trained = _trained(name, str(cell["model"]), seed, int(cell["steps"]))
    pairs = pairs_of(name, length)
    longest = 2 + max(len(trained.tokenizer.encode_target(pair.target)) for pair in pairs)
    source, mask = encode_sources([pair.source for pair in pairs], trained.tokenizer, max_length=longest)
    outputs = translate_ids(_longer(trained.model, longest), source, mask, max_length=longest)
    translations = [trained.tokenizer.decode(ids) for ids in outputs]
    return {
        "exact_match": exact_match(translations, [pair.target for pair in pairs]),
        "symbols": fmean(_in_place(one, pair.target) for one, pair in zip(translations, pairs, strict=True)),
    }


@lru_cache(maxsize=1)
def _trained(task: str, name: str, seed: int, steps: int) -> Trained:
    train = TrainConfig(max_steps=steps, batch_tokens=768, learning_rate=2e-3, warmup_steps=50, schedule="cosine")
    of = TASKS[task]
    return train_model(of.corpus, of.models[name], train, seed=seed, run=f"{task} {name} {steps} steps")


@cache
def pairs_of(name: str, length: int) -> Sequence[Pair]:
    """Returns held-out pairs of a length; up to the longest of training, such as training might have shown."""
    if name != PRONOUNS:
        return pairs_of_length(name, length, PAIRS)
    corpus = load_corpus(PRONOUNS)
    tokenizer = corpus_tokenizer(corpus, TASKS[name].corpus)
    found = (
        pair
        for pair in corpus.held_out["random"]
        if len(pair.source.split()) == length and (length > TASKS[name].long or fits(pair, tokenizer, LONGEST_PAIR))
    )
    return tuple(islice(found, PAIRS))


def _longer(model: AnyModel, length: int) -> AnyModel:
    """Returns the same model for sentences of up to `length` tokens: sinusoids follow their formula."""
    if length <= model.config.max_length:
        return model
    if isinstance(model, Transformer):
        return extended(model, length, "refuse", trained=model.config.max_length)
    longer = copy.copy(model)
    longer.config = replace(model.config, max_length=length)
    return longer


def _in_place(written: str, wanted: str) -> float:
    """The share of the wanted symbols, or words, that stand where they should."""
    found, right = written.split(), wanted.split()
    return sum(a == b for a, b in zip(found, right, strict=False)) / len(right)


def _sentence(results: Results) -> str:
    told, steps = [], max(map(int, results.levels("steps")))
    for name in map(str, results.levels("task")):
        task = TASKS[name]
        at = (task.short, task.long, max(task.lengths))
        models = []
        for model in map(str, results.levels("model")):
            cell = {"task": name, "model": model, "steps": steps}
            right = [100 * results.mean("exact_match", **cell, length=length) for length in at]
            models.append(f"{model} {right[0]:.0f} %, {right[1]:.0f} % and {right[2]:.0f} %")
        told.append(
            f"Of {at[0]}, {at[1]} and {at[2]} {task.unit} written right after {steps:,} steps ({name}, trained to "
            f"{task.long}): {'; '.join(models)}."
        )
    return " ".join(told)


_FACTORS = (
    Factor(name="task", label="task", explained="what is learned"),
    Factor(name="model", label="model", explained="how the decoder reads the source"),
    Factor(name="steps", label="steps", explained="how long the training is"),
    Factor(name="length", label="length of the source", explained="symbols in a string, or words in a sentence"),
)
_METRICS = (
    Metric(name="exact_match", label="written right", explained="share of strings or sentences without a mistake"),
    Metric(name="symbols", label="in place", explained="share of symbols or words that stand where they should"),
)
_CHARTS = (
    Chart(title="Written right, by length", metric="exact_match", x="length", by="model"),
    Chart(title="In place, by length", metric="symbols", x="length", by="model"),
)

EXPERIMENT = Experiment(
    name="why-attention",
    title="Why attention",
    question="What is lost when a whole sentence must pass through one vector, and does attention bring it back?",
    claim=(
        "Recurrent models are the state of the art that the paper replaces; attention lets a model relate tokens "
        "whatever their distance. Before it, Cho et al. (2014) saw translations through one vector get worse with "
        "length, and Bahdanau et al. (2015, figure 2) saw attention prevent it."
    ),
    section="Section 1",
    setting=(
        f"Three models of 235,000 parameters each (equal within 0.4 %) learn to reverse strings of 1 to {LONG} "
        "symbols from the same batches with the same Adam: an LSTM that reads both ways into one vector, one with "
        f"additive attention, and a Transformer. Strings up to {max(LENGTHS)} symbols are tested, longer ones than any "
        "in training among them. The earlier papers translated sentences."
    ),
    factors=_FACTORS,
    metrics=_METRICS,
    budgets=(
        Budget(
            name="full",
            says="three models, 1,500 steps, 5 seeds",
            levels={"task": ("reverse",), "model": tuple(MODELS), "steps": STEPS[:1], "length": LENGTHS},
            seeds=(0, 1, 2, 3, 4),
        ),
        Budget(
            name="long",
            says="four models, 1,500 and 4,500 steps, 5 seeds",
            levels={"task": ("reverse",), "model": tuple(TASKS["reverse"].models), "steps": STEPS, "length": LENGTHS},
            seeds=(5, 6, 7, 8, 9),
        ),
        Budget(
            name="small",
            says="the two LSTMs, 1,500 steps, 3 seeds",
            levels={
                "task": ("reverse",),
                "model": (VECTOR, WITH),
                "steps": STEPS[:1],
                "length": (4, 8, 12, 16, 20, 24),
            },
            seeds=(0, 1, 2),
        ),
    ),
    charts=_CHARTS,
    rule=(
        f"This decides: at {LONG} symbols, the longest of training, and after the longest training, the LSTM with "
        "attention must have a larger share of symbols in place than the one without, for models of the same seed. "
        f"Besides, from {SHORT} to {LONG} symbols it should lose less."
    ),
    objections={
        "Perhaps one vector only needs a longer training.": (
            "In part: more steps move the length at which it breaks. The budget *long* trains three times as long as "
            "well, and its longer training decides; its numbers are not shipped yet."
        ),
        "Beyond 16 symbols the Transformer fails as well.": (
            "Its positions do: it has never met those numbers in training. The budget *long* has a fourth model, with "
            "rotary positions, which say how far apart two symbols stand. The Positions page compares more kinds."
        ),
    },
    change_of_mind=(
        "A still longer training or a wider vector: one vector can hold short strings, and how long is short depends "
        "on its width. A task whose answer needs little of the source would show no difference."
    ),
    competence=Competence(
        metric="exact_match",
        least=0.9,
        arms={
            f"{name}, {SHORT} symbols": {"task": "reverse", "model": name, "length": SHORT} for name in (VECTOR, WITH)
        },
        best_of="steps",
    ),
    measure=measure,
    judge=partial(_judge, primary=f"reverse, length {LONG}"),
    again=again,
    shared="length",
)
_OTHERS = tuple(name for name in TASKS if name != "reverse")
_ALL_LENGTHS = tuple(sorted({length for name in _OTHERS for length in TASKS[name].lengths}))
ELSEWHERE = replace(
    EXPERIMENT,
    name="why-attention-elsewhere",
    title="Why attention, elsewhere",
    question="Is one vector as narrow for copying, and for sentences, as it is for reversing?",
    setting=(
        f"The same three kinds of models learn to copy strings of 1 to {LONG} symbols, and to translate the pronoun "
        "sentences into French, from the same batches with the same Adam; for the sentences they have about 258,000 "
        f"parameters each (equal within 1.2 %), word vectors included. Sentences of more than {LONGEST_PAIR - 1} "
        f"tokens on either side are kept out of training, so that it ends at {TASKS[PRONOUNS].long} words; their "
        "grammar writes none of more than 13, so past training there are two lengths only. Trainings are "
        "shorter and seeds fewer than for reversing, so that both tasks take no longer than other experiments. Tatoeba "
        "is left out: its sentences do not come with the lab, and to learn them takes hours."
    ),
    budgets=(
        Budget(
            name="full",
            says="copy and sentences, 400 steps, 3 seeds",
            levels={"task": _OTHERS, "model": tuple(MODELS), "steps": (400,), "length": _ALL_LENGTHS},
            seeds=(0, 1, 2),
        ),
        Budget(
            name="long",
            says="copy and sentences, 1,500 steps, 5 seeds",
            levels={"task": _OTHERS, "model": tuple(MODELS), "steps": (1_500,), "length": _ALL_LENGTHS},
            seeds=(0, 1, 2, 3, 4),
        ),
    ),
    rule=(
        "The sentences decide: at 11 words, the longest of training, the LSTM with attention must have a larger share "
        "in place than the one without, for models of the same seed. Besides, the same for copying at 16 symbols, and "
        "from the shortest (5 words, 4 symbols) to the longest it should lose less."
    ),
    competence=Competence(
        metric="exact_match",
        least=0.9,
        arms={
            f"{name}, {TASKS[PRONOUNS].short} words": {"task": PRONOUNS, "model": name, "length": TASKS[PRONOUNS].short}
            for name in (VECTOR, WITH)
        },
        best_of="steps",
    ),
    judge=partial(_judge, primary=f"{PRONOUNS}, length {TASKS[PRONOUNS].long}"),
    change_of_mind=(
        "The longer budget: in 400 steps a model may not have learned yet what its vector could hold. Freer sentences: "
        "those of a grammar can be guessed in part from their first words, whatever the vector has lost."
    ),
    skips=lambda cell: int(cell["length"]) not in TASKS[str(cell["task"])].lengths,
)
