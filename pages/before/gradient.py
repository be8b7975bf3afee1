"""The gradient's reach: how strongly outputs depend on source tokens near and far, without and with attention."""

from functools import partial

import numpy as np
import streamlit as st

from pages.before.choices import OVER, PAIRS, WEIGHTS, Choices, segments
from pages.before.models import compared, kind_of, offer_recurrent
from pages.shared import loading, wording
from pages.shared.cache import cached
from pages.shared.context import PageContext, say, sentence
from pages.shared.exhibit import CANNOT_SHOW, exhibit
from transformer.analysis.heads.pair_sample import PairSample, validation_sample
from transformer.lab import Lab
from transformer.views.reach.gradients import GradientMap, MeanReach, ReachData, SentenceReach
from transformer.views.reach.subjects import SamePairs, SameSentence


def render_gradient(context: PageContext, chosen: Choices) -> None:
    """Renders the gradients of a model of each kind by distance, and those of the page's model token by token."""
    st.markdown(_WHY)
    labs = compared(context)
    if not {"vector", "attention"} & {kind_of(lab.checkpoint.settings.model) for lab in labs}:
        learned = wording.plain(context.lab.checkpoint.settings.corpus.name)
        st.markdown(f"No recurrent model here learned *{learned}*, so there is nothing to compare with. Others:")
        offer_recurrent(context)
    with st.container(horizontal=True, gap="medium"):
        segments("over", "Over", OVER, chosen.over)
        segments("weights", "Weights", WEIGHTS, chosen.weights)
    seen = tuple(loading.get_inspection(lab, context.view.text) for lab in labs)
    subject = SameSentence(labs, seen)
    explain = partial(st.markdown, _EXPLAINED)
    if chosen.over == "sentence":
        data = exhibit(subject, SentenceReach(weights=chosen.weights), explain=explain)
    else:
        try:
            sample = _sample(labs[0])
        except CANNOT_SHOW as error:
            say(sentence(str(error)))
            return
        data = exhibit(SamePairs(labs, sample), MeanReach(weights=chosen.weights), explain=explain)
    if data is not None:
        st.markdown(_found_text(labs, data))
    st.markdown(f"### Where the gradient of {wording.plain(context.lab.name)} goes in this sentence")
    exhibit(subject, GradientMap(model=labs.index(context.lab), weights=chosen.weights))


@cached(max_entries=8, shared=True, also=loading.may_read_corpus)
def _sample(lab: Lab) -> PairSample:
    return validation_sample(lab.checkpoint, PAIRS)


def _found_text(labs: tuple[Lab, ...], data: ReachData) -> str:
    """Says what is left of each model's gradient at the largest distance that all of them have."""
    shared = np.flatnonzero((data.count > 0).all(axis=0))
    if len(shared) < 2:
        return ""
    near, far = int(shared[0]), int(shared[-1])
    parts = [
        f"by {norm[far] / norm[near]:.2g} in {wording.plain(lab.name)} ({name})"
        for lab, name, norm in zip(labs, data.models, data.norm, strict=True)
        if norm[near] > 0
    ]
    return f"From {near} to {far} steps, the length of the gradient is multiplied {', '.join(parts)}."


_WHY = """
A model learns from a word only if the error at its output gets back to it. In a recurrent model the gradient takes one
step a token, through the decoder and the encoder, and each step multiplies it. **Attention** (Bahdanau et al. 2015)
added a short cut from every output to every source token. **Convolutional models** (Gehring et al. 2017) have it too,
and no chain: in each layer a token meets its neighbours at once. **The Transformer** (Vaswani et al. 2017) kept only
the short cuts: its path between any two tokens has length 1 in each layer.
"""
_EXPLAINED = """
A point is the mean length of the gradient of one output token's logit (its score before softmax) at the embedding of
one source token, over all pairs of tokens that are so many steps apart. One step reads or writes one token. An encoder
that reads both ways has a second way, which is shorter for tokens early in the sentence. The scale is logarithmic: a
straight fall is a constant factor a step.

*Before training* takes the same settings with random weights, as at the start of learning: there the chain of steps
shows. Training may open the gates of an LSTM so far that little is lost over a short sentence; then the lines of
trained models lie level, or rise. A gradient that arrives is not yet a token that is kept apart from all others: what
the vector mixes up, *The bottleneck* shows. The map says on which tokens each output depends. Compare the shapes of
lines, not their heights: models scale their logits differently.
"""
