"""The trainer's side of watching: decodes what is watched with the weights of now, some times a second."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from numpy import ndarray

from transformer.decoding.greedy import greedy
from transformer.inspection.inspection import Attention, Inspection, is_attention, most_steps, read_steps
from transformer.model.kinds import AttentionKind
from transformer.model.seq2seq import Seq2Seq
from transformer.runs.live.watched import LiveOutput, wanted, write_outputs
from transformer.text.pairs import clean_text
from transformer.text.token_ids import check_source
from transformer.text.tokenizer import Tokenizer

EVERY_S = 0.07
"""The least time between two outputs."""
SHARE = 0.08
"""The largest share of the time, about, that goes into being watched."""
ASKED_EVERY_S = 0.25
"""How often a trainer that nobody watches looks if somebody does."""


@dataclass
class LiveOutputs:
    """What a run's model writes for those who watch it. Being watched changes nothing of the training."""

    folder: Path
    tokenizer: Tokenizer
    clock: Callable[[], float] = time.monotonic
    _due: float = 0.0
    _newest: dict[str, LiveOutput] = field(default_factory=dict)
    _next: int = 0
    """Counts outputs: sentences take turns, so that many cost no more than one."""

    def write_if_due(self, model: Seq2Seq, step: int) -> None:
        """Writes the output for one watched sentence, if somebody watches and it is time."""
        begin = self.clock()
        if begin < self._due:
            return
        texts = wanted(self.folder)
        if not texts:
            self._due = begin + ASKED_EVERY_S
            return
        text = texts[self._next % len(texts)]
        self._next += 1
        self._newest = {known: self._newest[known] for known in texts if known in self._newest}
        try:
            self._newest[text] = live_output(model, self.tokenizer, text, step)
            write_outputs(self.folder, self._newest.values())
        except (ValueError, OSError):  # the page says at the field why a sentence cannot be read
            self._newest.pop(text, None)
        cost_s = self.clock() - begin
        self._due = begin + max(EVERY_S, cost_s / SHARE)


def live_output(model: Seq2Seq, tokenizer: Tokenizer, text: str, step: int) -> LiveOutput:
    """Returns the greedy output for a sentence with the model's weights of now; ValueError for one it cannot read.

    An output that does not end is cut at twice the source's length and ten tokens more. The model is left as it was,
    in training or not.
    """
    sentence = tokenizer.sentence(clean_text(text))
    check_source(sentence.ids[:-1], max_length=model.config.max_length, vocab_size=model.config.vocab_size)
    limit = min(most_steps(model, len(sentence.ids)), 2 * len(sentence.ids) + 10)
    source = torch.tensor([sentence.ids], device=next(model.parameters()).device)
    training = model.training
    model.eval()
    try:
        steps = list(greedy(model, source, max_length=limit, record=is_attention))
        seen = read_steps(model, tokenizer, sentence, steps, (), {}, model_name="")
    finally:
        model.train(training)
    return _output_of(seen, text, step)


def cross_attention(seen: Mapping[AttentionKind, Attention], n_queries: int, n_keys: int) -> tuple[ndarray, ndarray]:
    """Returns the weights and the mask of a pass's cross-attention; those of no layer where the model has none."""
    cross = seen.get(AttentionKind.CROSS)
    if cross is None:
        return np.zeros((0, 0, n_queries, n_keys), dtype=np.float32), np.zeros((0, n_queries, n_keys), dtype=bool)
    return cross.weights, cross.mask


def _output_of(seen: Inspection, text: str, step: int) -> LiveOutput:
    weights, mask = cross_attention(seen.attentions, len(seen.target_tokens), len(seen.source_tokens))
    return LiveOutput(
        step=step,
        text=text,
        source=seen.source_tokens,
        tokens=seen.target_tokens,
        probabilities=seen.probabilities,
        ended=seen.ended,
        weights=weights,
        mask=mask,
    )
