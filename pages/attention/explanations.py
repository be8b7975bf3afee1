""" "What am I looking at?" for what a picture shows beside the raw weights: a few sentences and the equation."""

import streamlit as st

from pages.shared.explain import explain, kind_explained
from pages.shared.url.view_state import Shown, View
from transformer.config import ModelConfig

_NORMS = """
A weight says how much a head attends to a key, not how much it takes from there: the value may be short, and W_O may
shrink it further. Each entry is the length of what it adds to the block's output, as in Kobayashi et al. (2020),
*Attention is Not Only a Weight*. The bias of W_O belongs to no entry.
"""
_ROLLOUT = """
Layers are multiplied: what a position receives now already contains what its neighbours received. As in Abnar and
Zuidema (2020), *Quantifying Attention Flow in Transformers*, a layer counts as the mean W of its heads and its residual
as the identity I, with equal weight; rows are scaled to sum to 1. Heads that are off count as 0. It only
follows paths: it ignores values, feed-forward blocks and norms.
"""
_ROLLOUT_CROSS = """
For cross-attention both stacks are followed: each decoder position is a mixture of source and target tokens.
Self-attention mixes it further, and cross-attention C draws it towards what the encoder's last layer has received, as
given by the encoder's own rollout E. Abnar and Zuidema define no rollout for two stacks; both sentences share a row as
in Ferrando et al. (2022), *Towards Opening the Black Box of Neural Machine Translation*. They roll out measured
contributions; this page uses raw weights and counts the residual as one half.
"""
_ENTROPY = """
A row of weights is a distribution over keys; its entropy says how widely the head attends at that token. Rows are
tokens, columns are heads. The entropy is always that of the whole row, even where other pictures leave out part of it.
"""
# One statement a line: the column beside the matrix is 280 pixels wide in a window of 1360.
_EQUATIONS: dict[Shown, str] = {
    "norms": r"\lVert \alpha_{ij}\, v_j W_O \rVert",
    "rollout": r"\begin{aligned} R_{-1} &= I \\ R_l &= \tfrac{1}{2}\,(W_l + I)\, R_{l-1} \end{aligned}",
    "entropy": r"\begin{aligned} H_i &= -\sum_j \alpha_{ij} \log \alpha_{ij} \\ &\le \log n_i \end{aligned}",
}
_CROSS_EQUATION = (
    r"\begin{aligned} h &\leftarrow \tfrac{1}{2}\,(W_l + I)\, h \\ "
    r"h &\leftarrow \tfrac{1}{2}\,([\,C_l E \mid 0\,] + h) \end{aligned}"
)


def explain_picture(view: View, config: ModelConfig) -> None:
    """Renders the explanation of the picture that is shown."""
    shown: Shown = "weights" if view.bertviz else view.show
    if shown == "weights":
        explain(kind_explained(view.kind, config), config)
        return
    crosses = shown == "rollout" and view.kind == "cross"
    st.markdown({"norms": _NORMS, "rollout": _ROLLOUT, "entropy": _ENTROPY}[shown])
    if shown == "rollout" and not config.residual:
        st.markdown("This model has no residuals, so I and the ½ before the bracket are left out here.")
    st.latex(_EQUATIONS[shown])
    if crosses:
        st.markdown(_ROLLOUT_CROSS)
        st.latex(_CROSS_EQUATION)
