"""Section 1 and Table 1: tokens a second in training, recurrent and Transformer, by the length of the sentence."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from statistics import fmean

import torch

from transformer.data.batches import Batch
from transformer.experiments.experiment import Budget, Chart, Experiment, Factor, Metric
from transformer.experiments.intervals import t_interval
from transformer.experiments.outcome import Finding, Verdict, finding
from transformer.experiments.paper.why_attention import ALONE, MODELS, VECTOR, WITH
from transformer.experiments.recount import column
from transformer.experiments.results import Cell, ExperimentError, Results
from transformer.model.families import AnyModel, build_model
from transformer.training.devices import seeded
from transformer.training.evaluation import summed_loss

LENGTHS = (8, 16, 32, 64, 128, 256)
TOKENS = 2_048
"""Target tokens in a step at every length, so that longer sentences come in smaller batches."""
VOCABULARY = 64
CPU, GPU = "processor", "GPU"
_NAMES = {
    (CPU, VECTOR): "one vector",
    (CPU, WITH): "attention",
    (GPU, VECTOR): "GPU: one vector",
    (GPU, WITH): "GPU: attention",
}
"""The recurrent models, short enough for a phone."""
_RATIO, _GROWTH = "Transformer over LSTM, tokens a second", "growth of that ratio from short to long"
_FASTER, _GROWS = "Faster at the longest sentences", "More so, the longer the sentence"


def measure(cell: Cell, seed: int, size: int) -> dict[str, float]:
    """Times training steps of all three models in turn, once for all of them; the least of `size` steps counts."""
    seconds = _seconds(str(cell["device"]), int(cell["length"]), seed, size)[str(cell["model"])]
    return {"tokens_per_s": TOKENS / seconds}


@lru_cache(maxsize=1)
def _seconds(device_name: str, length: int, seed: int, repeats: int) -> dict[str, float]:
    device = _device(device_name)
    with seeded(seed, device):
        batch = _batch(length).to(device)
        steps = {name: _step(_model(name, length).to(device), batch, device) for name in MODELS}
        found: dict[str, list[float]] = {name: [] for name in MODELS}
        for _ in range(1 + repeats):
            for name, step in steps.items():  # in turn, so that a busy moment meets all of them
                found[name].append(_timed(step, device))
    return {name: min(values[1:]) for name, values in found.items()}  # the first one warms up


def _device(name: str) -> torch.device:
    if name == GPU and not torch.cuda.is_available():
        raise ExperimentError("there is no GPU that PyTorch can use here: choose another budget")
    return torch.device("cuda" if name == GPU else "cpu")


def _model(name: str, length: int) -> AnyModel:
    return build_model(replace(MODELS[name], vocab_size=VOCABULARY, max_length=length + 1)).train()


def _batch(length: int) -> Batch:
    """Returns random sentences of exactly this length on both sides, TOKENS target tokens in all."""
    ids = torch.randint(3, VOCABULARY, (2, TOKENS // length, length))
    source, target = ids
    real = torch.ones_like(source, dtype=torch.bool)
    shifted = torch.cat((torch.ones_like(target[:, :1]), target[:, :-1]), dim=1)  # the start mark, then the target
    return Batch(source, shifted, target, real, real, TOKENS)


def _step(model: AnyModel, batch: Batch, device: torch.device) -> Callable[[], None]:
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        summed_loss(model, batch, device).backward()
        optimizer.step()

    return step


def _timed(step: Callable[[], None], device: torch.device) -> float:
    """Returns the seconds of a step: on one thread those that the processor gave it, whatever else it did meanwhile."""
    clock = time.process_time if device.type == "cpu" else time.perf_counter
    if device.type == "cuda":
        torch.cuda.synchronize()
    begun = clock()
    step()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return clock() - begun


def judge(results: Results) -> Verdict:
    """Divides the Transformer's speed by that of each recurrent model, measured in turn with it."""
    lengths = sorted(map(int, results.levels("length")))
    findings: list[Finding] = []
    for device in map(str, results.levels("device")):
        for rival in (VECTOR, WITH):
            short, long = (_ratios(results, device, rival, length) for length in (lengths[0], lengths[-1]))
            grown = [long[seed] / short[seed] for seed in long if seed in short]
            for name, group, ratios in (
                (f"{lengths[-1]}", _FASTER, list(long.values())),
                (f"{lengths[-1]} over {lengths[0]}", _GROWS, grown),
            ):
                findings.append(
                    finding(
                        f"{_NAMES[device, rival]}, {name}",
                        t_interval(ratios, "repeats"),
                        group=group,
                        unit=_RATIO if group == _FASTER else _GROWTH,
                        least=1.0,
                    )
                )
    primary = f"{_NAMES[str(results.levels('device')[0]), WITH]}, {lengths[-1]}"
    return Verdict(findings=tuple(findings), primary=primary, sentence=_sentence(results, lengths))


def _ratios(results: Results, device: str, rival: str, length: int) -> dict[int, float]:
    speeds = {
        model: results.by_seed("tokens_per_s", device=device, model=model, length=length) for model in (ALONE, rival)
    }
    return {seed: speed / speeds[rival][seed] for seed, speed in speeds[ALONE].items() if seed in speeds[rival]}


def _sentence(results: Results, lengths: Sequence[int]) -> str:
    told = []
    for device in map(str, results.levels("device")):
        told.append(f"on the {device}, {_speeds(results, device, lengths)}")
    return f"Target tokens a second in training at {lengths[0]} and {lengths[-1]} tokens a sentence: {'; '.join(told)}."


def _speeds(results: Results, device: str, lengths: Sequence[int]) -> str:
    told = []
    for model in MODELS:
        cells = [{"device": device, "model": model, "length": length} for length in (lengths[0], lengths[-1])]
        short, long = (fmean(results.by_seed("tokens_per_s", **cell).values()) for cell in cells)
        told.append(f"{model} {short:,.0f} and {long:,.0f}")
    return "; ".join(told)


def again(rows: Sequence[Mapping]) -> dict[str, list[float]]:
    """Reads what every finding is the mean of from the rows of the file: see `recount`."""
    short, long = min(row["length"] for row in rows), max(row["length"] for row in rows)
    found: dict[str, list[float]] = {}
    for device in dict.fromkeys(row["device"] for row in rows):
        for rival in (VECTOR, WITH):
            ratio: dict[int, dict[int, float]] = {}
            for length in (short, long):
                ours, theirs = (
                    column(rows, "tokens_per_s", device=device, length=length, model=model) for model in (ALONE, rival)
                )
                ratio[length] = {seed: ours[seed] / theirs[seed] for seed in ours if seed in theirs}
            name = _NAMES[device, rival]
            found[f"{name}, {long}"] = list(ratio[long].values())
            grown = [ratio[long][seed] / ratio[short][seed] for seed in ratio[long] if seed in ratio[short]]
            found[f"{name}, {long} over {short}"] = grown
    return found


def _budget(name: str, says: str, device: str, lengths: Sequence[int], repeats: int, size: int) -> Budget:
    levels = {"device": (device,), "length": lengths, "model": tuple(MODELS)}
    return Budget(name=name, says=says, levels=levels, seeds=tuple(range(repeats)), size=size)


EXPERIMENT = Experiment(
    name="parallel-training",
    title="Parallel training",
    question="Does a Transformer train faster than a recurrent model, and more so on long sentences?",
    claim=(
        "Recurrence “precludes parallelization within training examples, which becomes critical at longer sequence "
        "lengths”; the Transformer “allows for significantly more parallelization” and “can be trained significantly "
        "faster than architectures based on recurrent or convolutional layers”."
    ),
    section="Sections 1 and 7",
    setting=(
        f"Training steps of three models of 235,000 parameters each (equal within 1.2 %) on {TOKENS:,} target tokens "
        "of random sentences, all of one length: forward pass, backward pass and Adam. The models take turns in one "
        "process, and what is compared is their ratio. On the processor each has one thread, and what counts is the "
        "time the processor gave it, so that a busy machine changes little. The paper had eight GPUs, which compute "
        "thousands of numbers at once: a single thread shows less of what can run in parallel than they do."
    ),
    factors=(
        Factor(name="device", label="device", explained="what computes"),
        Factor(name="length", label="tokens in a sentence", explained="on both sides"),
        Factor(name="model", label="model", explained="how the decoder reads the source"),
    ),
    metrics=(
        Metric(
            name="tokens_per_s",
            label="target tokens a second",
            explained="how many are trained on in a second of computing",
            log=True,
        ),
    ),
    budgets=(
        _budget("full", "8 to 256 tokens, 5 repeats", CPU, LENGTHS, 5, 3),
        _budget("gpu", "8 to 256 tokens on a GPU, 5 repeats; refused where there is none", GPU, LENGTHS, 5, 10),
        _budget("small", "16 to 128 tokens, 3 repeats", CPU, (16, 64, 128), 3, 2),
    ),
    charts=(Chart(title="Tokens a second", metric="tokens_per_s", x="length", by="model", log_x=True),),
    rule=(
        "This decides: at the longest sentences the Transformer must train on more tokens a second than the recurrent "
        "model with attention. Besides, than the one without; and its lead there should be larger than at the "
        "shortest. Ratios are of models measured in turn."
    ),
    objections={
        "One thread says little about parallel computing.": (
            "It says the least that can be said for the Transformer: even where nothing runs side by side, a chain of "
            "small steps costs more than few large products."
        ),
        "Without attention the recurrent model is faster.": (
            "Yes, at this width: it computes less. The paper compares itself with recurrent models that attend, as "
            "the best of its time did, so these decide."
        ),
    },
    change_of_mind=(
        "A GPU: there, steps that wait for each other leave most of it idle. A wider model: its products take longer "
        "than starting them, which is what many small steps pay for here. Much longer sentences: self-attention grows "
        "with the square of the length (Table 1)."
    ),
    measure=measure,
    judge=judge,
    again=again,
    replicate="repeat",
)
