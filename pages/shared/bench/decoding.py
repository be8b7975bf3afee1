"""Decodes many strings at once under switches. No Streamlit here: tests measure the same way."""

from collections.abc import Sequence

from transformer.data.batches import encode_sources
from transformer.decoding.greedy import greedy, outputs
from transformer.interventions import compile_interventions, parse_intervention
from transformer.lab import Lab

_SPARE = 2
"""Tokens that an output may have beyond the longest right answer before it is cut off."""


def written_for(lab: Lab, pairs: Sequence[tuple[str, str]], switches: Sequence[str] = ()) -> tuple[str, ...]:
    """Returns what the model, decoding greedily under switches, writes for the source of each pair (source, target).

    An output much longer than the longest target is cut off. ValueError for a text that the model cannot read or a
    switch that it does not have.
    """
    config = lab.model.config
    texts = [source for source, _ in pairs]
    source, mask = encode_sources(texts, lab.tokenizer, max_length=config.max_length, vocab_size=config.vocab_size)
    tap = compile_interventions(lab.resolved(map(parse_intervention, switches)), lab.model)
    longest = max(len(lab.tokenizer.encode(target)) for _, target in pairs)
    steps = greedy(lab.model, source, mask, max_length=min(config.max_length, longest + _SPARE), tap=tap)
    return tuple(map(lab.tokenizer.decode, outputs(lab.model, steps)))
