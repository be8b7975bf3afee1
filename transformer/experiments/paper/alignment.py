"""Bahdanau et al. 2015, figure 3: does attention align words, in a recurrent model, in each head, in their average?"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product
from statistics import fmean

import torch
from jaxtyping import Float
from torch import Tensor

from transformer.analysis.heads.patterns import gold_of, patterns_of, punctuation_of
from transformer.analysis.heads.survey import count_links
from transformer.config import PRESETS, AnyModelConfig, CorpusConfig, RecurrentConfig, TrainConfig
from transformer.data.batches import Batch, encode_sources, pair_batches
from transformer.data.corpora import PRONOUNS
from transformer.decoding.greedy import translate_ids
from transformer.experiments.comparisons import Comparison, again_by, judge_by
from transformer.experiments.experiment import Budget, Chart, Competence, Experiment, Factor, Metric
from transformer.experiments.outcome import Verdict
from transformer.experiments.results import Cell, Results, Row
from transformer.experiments.training import Trained, train_model
from transformer.model.families import AnyModel
from transformer.model.kinds import AttentionKind
from transformer.model.taps import Recorder
from transformer.text.pairs import Pair
from transformer.training.metrics import exact_match

LSTM, AVERAGE, DIAGONAL = "LSTM", "all heads averaged", "same place"
_TINY = replace(PRESETS["tiny"], dropout=0.0, embedding_dropout=0.0)
MODELS: dict[str, AnyModelConfig] = {
    LSTM: RecurrentConfig(d_model=96, attention="additive", dropout=0.0, max_length=64),
    AVERAGE: _TINY,
}
HEADS = tuple(f"layer {layer}, head {head}" for layer in (1, 2) for head in range(1, _TINY.n_heads + 1))
LOOKS = (LSTM, *HEADS, AVERAGE, DIAGONAL)
STEPS = (400, 1_600)
"""A training after which four sentences of five are right, and one after which nearly all are."""
PAIRS = 250
"""Held-out pairs on which the best head is chosen, and as many others on which all are scored."""
CLOSE, APART = 0.05, 0.1
"""A head aligns as well as the LSTM if its error is at most CLOSE above; heads differ if the mean head errs APART more
than the best."""
BEST, MEAN = "best head", "mean head"
_ALIGNS = "Attention aligns words"


def _named(first: str, second: str, steps: int) -> str:
    return f"{steps:,} steps: {first} − {second}"


COMPARISONS = tuple(
    Comparison(
        name=_named(first, second, steps),
        group=group,
        metric="error",
        unit="difference in alignment error rate",
        first={"steps": steps, "look": first},
        second={"steps": steps, "look": second},
        least=least,
        most=most,
    )
    for steps in reversed(STEPS)
    for first, second, group, least, most in (
        (LSTM, DIAGONAL, _ALIGNS, -math.inf, 0.0),
        (BEST, DIAGONAL, _ALIGNS, -math.inf, 0.0),
        (BEST, LSTM, "A head aligns as well as the LSTM", -math.inf, CLOSE),
        (MEAN, BEST, "Heads do different things", APART, math.inf),
        (AVERAGE, BEST, "The best head aligns better than the average", 0.0, math.inf),
    )
)


def measure(cell: Cell, seed: int, size: int) -> dict[str, float]:
    """Trains both models, once for all ways of looking, and compares this one with gold links."""
    return _measured(seed, int(cell["steps"]))[str(cell["look"])]


@lru_cache(maxsize=1)
def _measured(seed: int, steps: int) -> dict[str, dict[str, float]]:
    train = TrainConfig(
        max_steps=steps, batch_tokens=768, learning_rate=3e-3, warmup_steps=50, schedule="cosine", label_smoothing=0.0
    )
    found: dict[str, dict[str, float]] = {}
    for name, config in MODELS.items():
        trained = train_model(
            CorpusConfig(name=PRONOUNS), config, train, seed=seed, run=f"{config.family} {steps} steps"
        )
        names = (LSTM,) if name == LSTM else (*HEADS, AVERAGE, DIAGONAL)
        chosen, scored = (trained.corpus.validation[PAIRS * i : PAIRS * (i + 1)] for i in (0, 1))
        choosing, _ = error_rates(trained, chosen)
        written, read = error_rates(trained, scored)
        right = _share_right(trained, scored)
        for look, *values in zip(names, written, read, choosing, strict=True):
            found[look] = dict(zip(("error", "error_read", "choosing"), map(float, values), strict=True))
            found[look]["exact_match"] = right
    return found


def _share_right(trained: Trained, pairs: Sequence[Pair]) -> float:
    model, tokenizer = trained.model, trained.tokenizer
    source, mask = encode_sources([pair.source for pair in pairs], tokenizer, max_length=model.config.max_length)
    outputs = translate_ids(model, source, mask, max_length=model.config.max_length)
    return exact_match([tokenizer.decode(ids) for ids in outputs], [pair.target for pair in pairs])


@torch.no_grad()
def error_rates(trained: Trained, pairs: Sequence[Pair]) -> tuple[Float[Tensor, " look"], Float[Tensor, " look"]]:
    """Returns the alignment error rate of each head by the rows that write a word and by those that read it.

    A model with several heads has two more looks at the end: the mean of its heads, and one at the same place.
    """
    model, tokenizer = trained.model, trained.tokenizer
    n_looks = n_links = 0
    for rows, batch in pair_batches(pairs, tokenizer, 4_096, max_length=model.config.max_length):
        gold = gold_of([pairs[row] for row in rows], batch, tokenizer, "word")
        weights = _cross_weights(model, batch)
        if weights.size(1) > 1:
            allowed = batch.source_mask[:, None, :].expand(-1, weights.size(2), -1)
            diagonal = patterns_of(AttentionKind.CROSS, batch, gold, punctuation_of(tokenizer), allowed)["diagonal"]
            weights = torch.cat((weights, weights.mean(dim=1, keepdim=True), diagonal[:, None].float()), dim=1)
        n_looks = n_looks + torch.stack([count_links(weights, words, gold) for words in (gold.written, gold.read)])
        n_links += int(gold.links.sum())
    (written, read) = (1 - 2 * right / (found + n_links) for right, found, _ in n_looks)
    return written, read


def _cross_weights(model: AnyModel, batch: Batch) -> Float[Tensor, "batch head query key"]:
    wanted = [site for site in model.sites() if (site.sublayer, site.tensor) == ("cross", "weights")]
    recorder = Recorder(wanted.__contains__)
    memory = model.encode(batch.source, batch.source_mask)
    model.decode(batch.target_in, memory, batch.source_mask, batch.target_mask, tap=recorder)
    return torch.cat([recorder.recording[site] for site in wanted], dim=1)


def judge(results: Results) -> Verdict:
    """Compares error rates seed by seed; the best head is chosen on other pairs than it is scored on."""
    return judge_by(COMPARISONS, _sentence, primary=_named(LSTM, DIAGONAL, STEPS[-1]))(
        replace(results, rows=(*results.rows, *_summed_up(results)))
    )


def _summed_up(results: Results) -> Iterator[Row]:
    """Yields two more looks for each training with all heads: the one that errs least when chosen, the mean of all."""
    for seed, steps in product(results.seeds, results.levels("steps")):
        heads = [row for row in results.rows if row.seed == seed and row.has(steps=steps) and row.cell["look"] in HEADS]
        if len(heads) == len(HEADS):
            best = min(heads, key=lambda row: row.values["choosing"]).values["error"]
            mean = fmean(row.values["error"] for row in heads)
            for look, error in ((BEST, best), (MEAN, mean)):
                yield Row(cell={"steps": steps, "look": look}, seed=seed, values={"error": error}, elapsed_s=0.0)


def _sentence(results: Results) -> str:
    steps = max(map(int, results.levels("steps")))
    means = {look: results.mean("error", steps=steps, look=look) for look in (*LOOKS, BEST)}
    heads = [means[head] for head in HEADS]
    return (
        f"Alignment error rate after {steps:,} steps (0 is perfect): LSTM with attention {means[LSTM]:.2f}; best head "
        f"of the Transformer {means[BEST]:.2f}, all heads averaged {means[AVERAGE]:.2f}, single heads {min(heads):.2f} "
        f"to {max(heads):.2f}; looking at the same place, without any training, {means[DIAGONAL]:.2f}."
    )


def again(rows: Sequence[Mapping]) -> dict[str, list[float]]:
    """Reads what every finding is the mean of from the rows of the file: see `recount`."""
    trainings: dict[tuple, list[tuple]] = {}
    for row in rows:
        if "," in row["look"]:
            heads = trainings.setdefault((row["seed"], row["steps"]), [])
            heads.append((row["choosing"], LOOKS.index(row["look"]), row["error"]))
    added: list[Mapping] = []
    for (seed, steps), heads in trainings.items():
        if len(heads) == len(HEADS):
            mean = math.fsum(error for *_, error in heads) / len(heads)
            for look, error in ((BEST, sorted(heads)[0][2]), (MEAN, mean)):
                added.append({"steps": steps, "look": look, "seed": seed, "error": error})
    return again_by(COMPARISONS)([*rows, *added])


EXPERIMENT = Experiment(
    name="alignment",
    title="Attention as alignment",
    question="Does attention find the source word of each translated word, and does every head?",
    claim=(
        "Bahdanau et al. (2015, figure 3) saw that the attention of a recurrent model aligns the words of both "
        "sentences as a person would. Of the Transformer the paper says that “individual attention heads clearly "
        "learn to perform different tasks”, and hopes for models that are easier to interpret."
    ),
    section="Section 4, and Bahdanau et al. 2015, section 5.2.1",
    setting=(
        "An LSTM with additive attention and a Transformer (2 + 2 layers, 4 heads), about 235,000 parameters each "
        "beside their word vectors, learn to translate the pronoun sentences into French from the same batches; the "
        f"grammar that writes them knows which words belong together. On {PAIRS} held-out pairs, each translated word "
        "is linked to the source word with the most weight in the row that writes it. The error rate is that of Och "
        f"and Ney (2003). The best head is chosen on {PAIRS} other pairs. Looking at the same share of the sentence, "
        "without any training, is what alignment must beat."
    ),
    factors=(
        Factor(name="steps", label="steps", explained="how long the training is"),
        Factor(name="look", label="attention", explained="whose weights say which word belongs to which"),
    ),
    metrics=(
        Metric(name="error", label="alignment error rate", explained="0 where all links are the gold ones"),
        Metric(
            name="error_read",
            label="error rate, one row later",
            explained="the same by the row that reads the word, one step after it is written",
        ),
        Metric(name="choosing", label="error rate, choosing pairs", explained="what the best head is chosen by"),
        Metric(
            name="exact_match", label="translated right", explained="share of the pairs that the model writes right"
        ),
    ),
    budgets=(
        Budget(
            name="full",
            says="both models, 400 and 1,600 steps, 5 seeds",
            levels={"steps": STEPS, "look": LOOKS},
            seeds=(5, 6, 7, 8, 9),
        ),
        Budget(
            name="small",
            says="both models, 1,600 steps, 3 seeds",
            levels={"steps": STEPS[-1:], "look": LOOKS},
            seeds=(5, 6, 7),
        ),
    ),
    charts=(
        Chart(title="By the row that writes", metric="error", x="look", by="look"),
        Chart(title="By the row that reads", metric="error_read", x="look", by="look"),
    ),
    rule=(
        f"The LSTM decides, as in the paper of 2015: after {STEPS[-1]:,} steps it must err less than a look at the "
        f"same place. Besides, the best head should too; it should err at most {CLOSE:g} more than the LSTM; the mean "
        f"of the single heads' errors should be at least {APART:g} more than that of the best head, and the average of "
        f"all heads should err more than the best head; and all that should hold after {STEPS[0]:,} steps."
    ),
    objections={
        "Models that translate badly need not align.": (
            "That is why the longer of two trainings decides, and only if both models translate nine sentences of ten "
            "without a mistake."
        ),
        "The French sentences keep the English order.": (
            "Mostly. That is why a look at the same place is the mark to beat, and why it is so hard to beat here."
        ),
        "The best of several heads is best by luck, too.": (
            "It is chosen on other pairs than those on which it is scored, so luck does not help it."
        ),
        "Does the translation depend on these weights?": (
            "This experiment does not ask. Switching heads off does: the Heads page measures what each is worth."
        ),
    },
    change_of_mind=(
        "Deeper models and freer text: these sentences keep nearly the order of the English ones, so "
        "the same place is often right. Rows that read a word align worse here (second chart); in deeper models others "
        "found them better (Kobayashi et al. 2020)."
    ),
    named_first=True,
    competence=Competence(
        metric="exact_match",
        least=0.9,
        arms={name: {"steps": STEPS[-1], "look": look} for name, look in ((LSTM, LSTM), ("Transformer", AVERAGE))},
    ),
    measure=measure,
    judge=judge,
    again=again,
    shared="look",
)
