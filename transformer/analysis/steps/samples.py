"""Many samples of one sentence: the outputs that were drawn, and their counts."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from numpy import ndarray

from transformer.config import DecodeConfig
from transformer.decoding.sampling import reshaped, sample
from transformer.interventions import Intervention, compile_interventions
from transformer.model.transformer import Transformer


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Settings with which tokens are drawn, as in `sampling.sample`; ValueError for those a DecodeConfig refuses."""

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0

    def __post_init__(self) -> None:
        DecodeConfig(
            method="sample", temperature=self.temperature, top_k=self.top_k, top_p=self.top_p, min_p=self.min_p
        )

    def reshape(self, log_probs: Float[ndarray, " vocab"], *, never: int) -> Float[ndarray, " vocab"]:
        """Returns the log-probabilities that a token is drawn with; the token `never` (padding) cannot be drawn."""
        allowed = torch.from_numpy(log_probs.copy())
        allowed[never] = -torch.inf
        return reshaped(
            allowed[None],
            temperature=self.temperature,
            top_k=self.top_k,
            top_p=self.top_p,
            min_p=self.min_p,
        )[0].numpy()


@dataclass(frozen=True)
class Sample:
    """An output that was drawn at least once."""

    ids: tuple[int, ...]
    """The ids, its eos included where it has one."""
    count: int
    log_prob: float
    """The log-probability that the model itself gives it, in nats."""


def draw_samples(
    model: Transformer,
    source: Sequence[int],
    switches: Sequence[Intervention],
    sampling: Sampling,
    *,
    n: int,
    seed: int,
) -> tuple[Sample, ...]:
    """Draws `n` outputs and returns the different ones among them, the most frequent first."""
    steps = list(
        sample(
            model,
            torch.tensor([source]).expand(n, -1),
            max_length=model.config.max_length,
            seed=seed,
            temperature=sampling.temperature,
            top_k=sampling.top_k,
            top_p=sampling.top_p,
            min_p=sampling.min_p,
            tap=compile_interventions(switches, model),
        )
    )
    tokens = torch.stack([step.tokens for step in steps], dim=1)
    each = torch.stack([step.log_probs.gather(1, step.tokens[:, None])[:, 0] for step in steps], dim=1)
    totals = each.masked_fill(tokens == model.config.pad_id, 0.0).sum(dim=1).tolist()
    rows = [tuple(token for token in row if token != model.config.pad_id) for row in tokens.tolist()]
    log_probs = dict(zip(rows, totals, strict=True))
    return tuple(Sample(ids, count, log_probs[ids]) for ids, count in Counter(rows).most_common())
