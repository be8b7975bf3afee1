"""Section 1: one fixed vector, attention over the source, or attention alone, by the length of the sentence."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from statistics import fmean

import torch

from transformer.config import PRESETS, AnyModelConfig, CorpusConfig, RecurrentConfig, TrainConfig
from transformer.data.batches import encode_sources
from transformer.data.corpora import corpus_tokenizer, load_corpus
from transformer.data.tasks import pairs_of_length
from transformer.decoding.greedy import translate_ids
from transformer.experiments.experiment import Bounds, Budget, Chart, Experiment, Factor, Metric
from transformer.experiments.intervals import t_interval
from transformer.experiments.outcome import Verdict, finding
from transformer.experiments.recount import mean_and_t
from transformer.experiments.results import Cell, Results
from transformer.model.families import AnyModel
from transformer.text.tokenizer import Tokenizer
from transformer.training.loop import train_steps
from transformer.training.metrics import exact_match
from transformer.training.state import new_state

VECTOR, WITH, ALONE = "LSTM, one vector", "LSTM with attention", "Transformer"
TRAINED_TO = 16
SHORT, LONG = 4, 16
LENGTHS = (2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 24)
PAIRS = 200
"""Held-out strings of each length, or all where there are fewer."""
_NO_DROPOUT = {"dropout": 0.0, "embedding_dropout": 0.0}
MODELS: dict[str, AnyModelConfig] = {
    VECTOR: RecurrentConfig(d_model=120, dropout=0.0, max_length=64),
    WITH: RecurrentConfig(d_model=96, attention="additive", dropout=0.0, max_length=64),
    ALONE: replace(PRESETS["tiny"], **_NO_DROPOUT),
}
"""Each of about 235,000 parameters: the widths are chosen so."""
_LONGER, _FALLS = "Attention keeps long sentences", "Without it, length hurts more"


def measure(cell: Cell, seed: int, size: int) -> dict[str, float]:
    """Trains the model for `size` steps, once for all lengths, and translates strings of this length."""
    model, tokenizer = _trained(str(cell["task"]), str(cell["model"]), seed, size)
    pairs = pairs_of_length(str(cell["task"]), int(cell["length"]), PAIRS)
    longest = 2 + int(cell["length"])
    source, mask = encode_sources([pair.source for pair in pairs], tokenizer, max_length=longest)
    outputs = translate_ids(model, source, mask, max_length=longest)
    translations = [tokenizer.decode(ids) for ids in outputs]
    return {
        "exact_match": exact_match(translations, [pair.target for pair in pairs]),
        "symbols": fmean(_in_place(one, pair.target) for one, pair in zip(translations, pairs, strict=True)),
    }


@lru_cache(maxsize=1)
def _trained(task: str, name: str, seed: int, steps: int) -> tuple[AnyModel, Tokenizer]:
    config = CorpusConfig(name=task, longest=TRAINED_TO)
    corpus = load_corpus(config)
    tokenizer = corpus_tokenizer(corpus, config)
    train = TrainConfig(
        max_steps=steps,
        batch_tokens=768,
        learning_rate=2e-3,
        warmup_steps=50,
        schedule="cosine",
        evaluate_every=steps,
        evaluate_pairs=1,
        seed=seed,
        device="cpu",
        precision="float32",
    )
    state = new_state(replace(MODELS[name], vocab_size=tokenizer.vocab_size), train, torch.device("cpu"))
    for _ in train_steps(state, train, corpus, tokenizer):
        pass
    return state.model.eval(), tokenizer


def _in_place(written: str, wanted: str) -> float:
    """The share of the wanted symbols that stand where they should."""
    found, right = written.split(), wanted.split()
    return sum(a == b for a, b in zip(found, right, strict=False)) / len(right)


def judge(results: Results) -> Verdict:
    """Compares models of one seed with each other, at the longest strings of training and over their lengths."""
    findings = []
    for task in map(str, results.levels("task")):
        by = {
            (model, length): results.by_seed("symbols", task=task, model=model, length=length)
            for model in MODELS
            for length in (SHORT, LONG)
        }
        gains = [by[WITH, LONG][seed] - right for seed, right in by[VECTOR, LONG].items() if seed in by[WITH, LONG]]
        unit = f"share of symbols in place, with attention − without, at {LONG} symbols"
        findings.append(finding(f"{task}, length {LONG}", t_interval(gains), group=_LONGER, unit=unit, least=0.0))
        falls = {
            model: {seed: short - by[model, LONG][seed] for seed, short in by[model, SHORT].items()}
            for model in (VECTOR, WITH)
        }
        apart = [fall - falls[WITH][seed] for seed, fall in falls[VECTOR].items() if seed in falls[WITH]]
        unit = f"loss from {SHORT} to {LONG} symbols, without attention − with"
        findings.append(finding(f"{task}, {SHORT} to {LONG}", t_interval(apart), group=_FALLS, unit=unit, least=0.0))
    return Verdict(findings=tuple(findings), sentence=_sentence(results))


def _sentence(results: Results) -> str:
    told = []
    for task in map(str, results.levels("task")):
        shares = {
            (model, length): fmean(results.by_seed("exact_match", task=task, model=model, length=length).values())
            for model in MODELS
            for length in (SHORT, LONG, max(LENGTHS))
        }
        models = [
            f"{model} {100 * shares[model, SHORT]:.0f} %, {100 * shares[model, LONG]:.0f} % and "
            f"{100 * shares[model, max(LENGTHS)]:.0f} %"
            for model in MODELS
        ]
        told.append(
            f"Strings of {SHORT}, {LONG} and {max(LENGTHS)} symbols written right ({task}, trained to {TRAINED_TO}): "
            f"{'; '.join(models)}."
        )
    return " ".join(told)


def again(rows: Sequence[Mapping]) -> dict[str, Bounds]:
    """Computes every finding again from the rows of the file: see `recount`."""
    held = {(row["task"], row["model"], row["length"], row["seed"]): row["symbols"] for row in rows}
    found = {}
    for task in {row["task"] for row in rows}:
        gains, apart = [], []
        for seed in sorted({row["seed"] for row in rows}):
            places = [(task, model, length, seed) for model in (VECTOR, WITH) for length in (SHORT, LONG)]
            if not all(place in held for place in places):
                continue
            vector_short, vector_long, with_short, with_long = (held[place] for place in places)
            gains.append(with_long - vector_long)
            apart.append((vector_short - vector_long) - (with_short - with_long))
        found[f"{task}, length {LONG}"] = mean_and_t(gains)
        found[f"{task}, {SHORT} to {LONG}"] = mean_and_t(apart)
    return found


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
        f"Three models of 235,000 parameters each (equal within 0.4 %) learn to reverse strings of 1 to {TRAINED_TO} "
        "symbols from the same batches with the same Adam: an LSTM that reads both ways into one vector, one with "
        f"additive attention, and a Transformer. Strings up to {max(LENGTHS)} symbols are tested, longer ones than any "
        "in training among them. The earlier papers translated sentences."
    ),
    factors=(
        Factor(name="task", label="task", explained="what is learned"),
        Factor(name="model", label="model", explained="how the decoder reads the source"),
        Factor(name="length", label="symbols in the string", explained="the length of the strings that are tested"),
    ),
    metrics=(
        Metric(name="exact_match", label="strings right", explained="share of strings with no symbol wrong"),
        Metric(name="symbols", label="symbols in place", explained="share of symbols that stand where they should"),
    ),
    budgets=(
        Budget(
            name="full",
            says="three models, 1,500 steps, 5 seeds",
            levels={"task": ("reverse",), "model": tuple(MODELS), "length": LENGTHS},
            seeds=(0, 1, 2, 3, 4),
            size=1_500,
        ),
        Budget(
            name="small",
            says="three models, 400 steps, 3 seeds",
            levels={"task": ("reverse",), "model": tuple(MODELS), "length": (4, 8, 12, 16, 20, 24)},
            seeds=(0, 1, 2),
            size=400,
        ),
    ),
    charts=(
        Chart(title="Strings right, by length", metric="exact_match", x="length", by="model"),
        Chart(title="Symbols in place, by length", metric="symbols", x="length", by="model"),
    ),
    rule=(
        f"At {LONG} symbols, the longest of training, the LSTM with attention must have a larger share of symbols in "
        f"place than the one without, and from {SHORT} to {LONG} symbols it must lose less, for models of the same "
        "seed, by the whole 95 % intervals."
    ),
    change_of_mind=(
        "A longer training or a wider vector: one vector can hold short strings, and how long is short depends on its "
        "width. A task whose answer needs little of the source would show no difference."
    ),
    measure=measure,
    judge=judge,
    again=again,
)
