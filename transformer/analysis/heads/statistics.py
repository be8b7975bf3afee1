"""The mean output and the mean entropy of each head over many pairs, from one teacher-forced pass a batch, real
positions only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from transformer.checkpoints.store import Checkpoint, CheckpointError, Model, load_tensors
from transformer.data.batches import pair_batches
from transformer.data.corpus_snapshot import load_own
from transformer.data.unpacking import CorpusError
from transformer.model.seq2seq import Seq2Seq
from transformer.model.taps import Recorder, Site
from transformer.text.pairs import Pair
from transformer.text.tokenizer import Tokenizer
from transformer.training.evaluation import fitting

STATISTICS_FILE = "head_statistics.safetensors"
"""The file in which a checkpoint carries the statistics of its heads; written by publishing.py."""
STATISTICS_PAIRS = 1_000
"""Validation pairs that go in, at most."""


@dataclass(frozen=True)
class BlockStatistics:
    """The heads of one attention block over a set of pairs."""

    sublayer: str
    """The address of the block, as in `decoder.1.cross`."""
    mean: Float[Tensor, "head d_head"]
    """Each head's mean context, before W_O."""
    entropy: Float[Tensor, " head"]
    """Mean entropy of the rows of weights in nats: 0 looks at one token, ln(keys) at all alike."""
    queries: int
    """Real positions that went in."""


@dataclass(frozen=True)
class HeadMeans:
    """The mean context of every head over validation pairs, and its origin."""

    means: Mapping[str, Float[Tensor, "head d_head"]]
    """The means by block, as in `decoder.1.cross`."""
    pairs: int
    measured: bool
    """True where they were taken just now, False where the checkpoint carries them."""


def head_means(checkpoint: Checkpoint[Model]) -> HeadMeans:
    """Returns the means that a checkpoint carries, else takes them over its corpus' validation pairs.

    ValueError where it comes without both, or its file does not fit the model.
    """
    path = checkpoint.folder / STATISTICS_FILE
    if path.is_file():
        return _carried(checkpoint)
    try:
        corpus = load_own(checkpoint.settings.corpus, checkpoint.folder)
    except (CorpusError, OSError) as error:
        raise ValueError(
            f"the mean of a head is taken over validation sentences, and {checkpoint.name} comes without them and "
            f"without {STATISTICS_FILE}: publish it where its corpus is (python -m transformer runs publish RUN "
            "FOLDER), or set heads to zero"
        ) from error
    longest = checkpoint.model.config.max_length
    pairs = fitting(corpus.validation, checkpoint.tokenizer, longest, STATISTICS_PAIRS)
    found = head_statistics(checkpoint.model, pairs, checkpoint.tokenizer)
    return HeadMeans({sublayer.sublayer: sublayer.mean.float() for sublayer in found}, len(pairs), measured=True)


def _carried(checkpoint: Checkpoint[Model]) -> HeadMeans:
    model = checkpoint.model
    try:
        tensors, notes = load_tensors(checkpoint.folder / STATISTICS_FILE)
    except CheckpointError as error:
        raise ValueError(str(error)) from error
    means = {name.removesuffix(".mean"): value.float() for name, value in tensors.items() if name.endswith(".mean")}
    shape = (model.config.n_heads, checkpoint.model_config.d_head)
    for site in model.sites():
        sublayer = f"{site.stack}.{site.layer}.{site.sublayer}"
        if site.tensor == "heads" and (sublayer not in means or means[sublayer].shape != shape):
            raise ValueError(
                f"{STATISTICS_FILE} of {checkpoint.name} does not fit the model: "
                f"it lacks {sublayer} in the shape {shape}"
            )
    return HeadMeans(means, int(notes.get("pairs", 0)), measured=False)


@torch.no_grad()
def head_statistics(
    model: Seq2Seq, pairs: Sequence[Pair], tokenizer: Tokenizer, *, batch_tokens: int = 2_048
) -> tuple[BlockStatistics, ...]:
    """Measures every attention block over these pairs; ValueError for a pair that does not fit the model."""
    sums: dict[str, tuple[Tensor, Tensor, int]] = {}
    for _, batch in pair_batches(pairs, tokenizer, batch_tokens, max_length=model.config.max_length):
        recorder = Recorder(_wanted)
        model(batch.source, batch.target_in, batch.source_mask, batch.target_mask, tap=recorder)
        for site, heads in recorder.recording.items():
            if site.tensor == "heads":
                sublayer = f"{site.stack}.{site.layer}.{site.sublayer}"
                weights = recorder.recording[Site(site.stack, site.layer, site.sublayer, "weights")]
                real = batch.source_mask if site.stack == "encoder" else batch.target_mask
                contexts, entropies = _summed(heads, weights, real)
                before = sums.get(sublayer, (0.0, 0.0, 0))
                sums[sublayer] = (contexts + before[0], entropies + before[1], int(real.sum()) + before[2])
    return tuple(BlockStatistics(sublayer, a / n, b / n, n) for sublayer, (a, b, n) in sums.items())


def _summed(
    heads: Float[Tensor, "batch head query d_head"],
    weights: Float[Tensor, "batch head query key"],
    real: Bool[Tensor, "batch query"],
) -> tuple[Float[Tensor, "head d_head"], Float[Tensor, " head"]]:
    """Returns contexts and entropies summed over the real queries, in float64."""
    entropy = torch.special.entr(weights.double()).sum(dim=-1)
    kept = real[:, None, :].double()
    return (heads.double() * kept[..., None]).sum(dim=(0, 2)), (entropy * kept).sum(dim=(0, 2))


def _wanted(site: Site) -> bool:
    return site.tensor in ("heads", "weights")
