"""The bottleneck: how much of a sentence can be read back from the fixed vector of a recurrent model."""

import streamlit as st

from pages.before.choices import SHOWS, Choices, segments
from pages.before.models import kind_of, offer_recurrent
from pages.shared import wording
from pages.shared.cache import cached
from pages.shared.context import PageContext, say, sentence
from pages.shared.exhibit import CANNOT_SHOW, exhibit
from transformer.analysis.reach.vector_probe import VectorProbe, has_vector, probe_vector
from transformer.lab import Lab
from transformer.views.reach.bottleneck import Bottleneck, BottleneckData
from transformer.views.reach.subjects import Probed


def render_bottleneck(context: PageContext, chosen: Choices) -> None:
    """Renders what linear probes read back from the vector, or offers models that have one."""
    lab = context.lab
    if not has_vector(lab.model):
        st.markdown(
            f"{wording.plain(lab.name)} is a Transformer. It has no such vector: its decoder looks at one state for "
            "each token of the sentence, however long that is. To see the bottleneck, open a recurrent model:"
        )
        offer_recurrent(context)
        return
    st.markdown(_why_text(context))
    try:
        found = get_probe(lab)
    except CANNOT_SHOW as error:
        say(sentence(str(error)))
        return
    segments("shows", "Show", SHOWS, chosen.shows)
    data = exhibit(Probed(lab, found), Bottleneck(shows=chosen.shows))
    if data is not None:
        st.markdown(_found_text(context, data))


@cached(max_entries=8, shared=True, spinner="Fitting a linear probe for each position and length")
def get_probe(lab: Lab) -> VectorProbe:
    """Returns the probes of a model's vector, fitted once; ValueError where there are none."""
    return probe_vector(lab.checkpoint)


def _why_text(context: PageContext) -> str:
    """Says what the vector is for this model."""
    d_model = context.lab.model.config.d_model
    n = len(context.sentence.tokens)
    read = f"The encoder reads your {n} tokens, or any other number of them, into one vector of {d_model} numbers."
    if kind_of(context.lab.checkpoint.settings.model) == "vector":
        return (
            f"{read} The decoder gets **nothing else** (Cho et al. 2014, Sutskever et al. 2014). Longer sentences do "
            "not get a longer vector, so something has to be forgotten. What?"
        )
    return (
        f"{read} The decoder starts from it, but **attention** (Bahdanau et al. 2015) also lets it look at a state for "
        "each token. How much would it know from the vector alone?"
    )


def _found_text(context: PageContext, data: BottleneckData) -> str:
    """Says what the longest sentences kept, in numbers of the figure."""
    row = int(data.lengths.argmax())
    length, tested = int(data.lengths[row]), int(data.tested[row])
    share = data.right[row, :length] / tested
    worst, best = int(share.argmin()), int(share.argmax())
    whole, exact = (int(each) for each in data.sentences[:, row])
    said = (
        f"Of {length} tokens, position {best} is recovered best ({share[best]:.0%}) and position {worst} worst "
        f"({share[worst]:.0%}). The model itself writes {exact:,} of {tested:,} such sentences without a mistake; "
        f"linear probes read {whole:,} of them back whole."
    )
    if kind_of(context.lab.checkpoint.settings.model) == "attention" and exact > whole:
        said += " What the vector has forgotten, attention fetches from the states of the tokens."
    return said
