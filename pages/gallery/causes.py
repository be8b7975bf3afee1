"""Measures why a model that lacks a part goes wrong, or does not. No Streamlit here: tests measure the same way."""

from collections import Counter
from collections.abc import Sequence
from math import log

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from pages.shared.bench.bench import Bench, Pairs
from transformer.analysis.reach.input_gradients import EMBEDDING, untrained
from transformer.analysis.training.source_use import mean_cosine
from transformer.data.batches import Batch, make_batch
from transformer.model.taps import Recorder
from transformer.model.transformer import Transformer
from transformer.text.tokenizer import EOS


def copied(bench: Bench, name: str, pairs: Pairs) -> float:
    """Returns the share of letters that a model predicts as they are shown to it, though they answer another source.

    The decoder reads the target of the next pair: a model that sees only earlier letters cannot know the next one.
    """
    batch = _batch(bench, name, [(pairs[i - 1][0], target) for i, (_, target) in enumerate(pairs)])
    with torch.no_grad():
        logits = bench.lab(name).model(batch.source, batch.target_in, batch.source_mask, batch.target_mask)
    letters = batch.target_mask & (batch.target_out != EOS)
    return (logits.argmax(-1) == batch.target_out)[letters].double().mean().item()


def same_in_any_order(bench: Bench, name: str, pairs: Pairs) -> int:
    """Returns the number of sources for which a model writes the same when their letters come in reverse order."""
    turned = tuple((target, source) for source, target in pairs)
    both = zip(bench.written(name, pairs), bench.written(name, turned), strict=True)
    return sum(one == other for one, other in both)


def likeness(bench: Bench, name: str, pairs: Pairs, *, fresh: bool = False) -> float:
    """Returns the mean cosine between the encoder's vectors of two tokens of a source: 1 if it cannot tell them apart.

    `fresh`: with the random weights from which its training started.
    """
    batch, model = _batch(bench, name, pairs), _model(bench, name, fresh=fresh)
    with torch.no_grad():
        return mean_cosine(model.encode(batch.source, batch.source_mask), batch.source_mask)


def softmax_slope(bench: Bench, name: str, pairs: Pairs) -> tuple[float, float]:
    """Returns the largest weight of a row, and the slope of its softmax, in the encoder, before the model's training.

    Both are means over all real rows, heads and layers. The slope is the sum of all w(1 − w): how much the weights move
    with their own scores. 0 for a row that has all its weight on one key.
    """
    batch, model = _batch(bench, name, pairs), _model(bench, name, fresh=True)
    recorder = Recorder(lambda site: site.tensor == "weights")
    with torch.no_grad():
        model.encode(batch.source, batch.source_mask, tap=recorder)
    rows = torch.cat([_rows(weights, batch.source_mask) for weights in recorder.recording.values()])
    return rows.max(-1).values.mean().item(), (rows * (1 - rows)).sum(-1).mean().item()


def growth(bench: Bench, name: str, pairs: Pairs) -> tuple[float, float]:
    """Returns the root mean square of the numbers that enter the encoder, and of those that leave it."""
    batch, model = _batch(bench, name, pairs), _model(bench, name)
    recorder = Recorder(lambda site: site == EMBEDDING)
    with torch.no_grad():
        leaves = model.encode(batch.source, batch.source_mask, tap=recorder)
    enters = recorder.recording[EMBEDDING]
    sizes = [vectors[batch.source_mask].double().square().mean().sqrt().item() for vectors in (enters, leaves)]
    return sizes[0], sizes[1]


def found_by_one_head(bench: Bench, name: str, pairs: Pairs) -> float:
    """Returns the share of letters of right targets at which some head of the last cross-attention has its largest
    weight on the letter that is to be written: on place n − 1 − i for letter i of n."""
    batch, model = _batch(bench, name, pairs), _model(bench, name)
    last = [site for site in model.sites() if (site.sublayer, site.tensor) == ("cross", "weights")][-1]
    recorder = Recorder(lambda site: site == last)
    with torch.no_grad():
        memory = model.encode(batch.source, batch.source_mask)
        model.decode(batch.target_in, memory, batch.source_mask, batch.target_mask, tap=recorder)
    largest = recorder.recording[last].argmax(-1)  # [batch head target]
    letters = batch.target_mask & (batch.target_out != EOS)
    places = letters.sum(-1, keepdim=True) - 1 - torch.arange(letters.size(1))
    return (largest == places[:, None]).any(1)[letters].double().mean().item()


def guessing(pairs: Pairs) -> float:
    """Returns the loss, in nats per token, of a model that knows how frequent each letter of a target is, and no more:
    the entropy of the letters and end marks."""
    counts = Counter(token for _, target in pairs for token in (*target.split(), EOS))
    total = counts.total()
    return -sum(count / total * log(count / total) for count in counts.values())


def _batch(bench: Bench, name: str, pairs: Sequence[tuple[str, str]]) -> Batch:
    tokenizer = bench.lab(name).tokenizer
    return make_batch([(tokenizer.encode(source), tokenizer.encode_target(target)) for source, target in pairs])


def _model(bench: Bench, name: str, *, fresh: bool = False) -> Transformer:
    lab = bench.lab(name)
    return untrained(lab.transformer, lab.checkpoint.settings.train.seed) if fresh else lab.transformer


def _rows(
    weights: Float[Tensor, "batch head query key"], real: Bool[Tensor, "batch query"]
) -> Float[Tensor, "row key"]:
    """Returns the rows of real queries, of all heads."""
    return weights.double().movedim(1, 2)[real].flatten(0, 1)
