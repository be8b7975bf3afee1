"""The explanations in the menus of figures: two to four sentences and the equation."""

import streamlit as st

from pages.shared.glossary import symbols_in
from pages.shared.wording import plain
from transformer.config import AnyModelConfig, ModelConfig
from transformer.lab import AttentionKind
from transformer.model.families import kinds_of
from transformer.model.mask_rules import limits_of
from transformer.model.scores import gathered_equation, score_equation

KIND_EXPLAINED: dict[AttentionKind, str] = {
    AttentionKind.ENCODER_SELF: """
Rows are queries, columns are keys, both tokens of the sentence. A row says how one token spread its attention over all
tokens that it may see when the encoder computed its next state; it sums to 1.
""",
    AttentionKind.DECODER_SELF: """
Rows are the tokens that the decoder read, columns the same tokens as keys. Row *t* was computed at step *t* of the real
decoding, when the tokens to its right did not exist yet: the causal mask *M* is −∞ there, so the upper triangle carries
exactly no weight.
""",
    AttentionKind.CROSS: """
Rows are the tokens of the translation, columns the tokens of the sentence. A token's row shows where the decoder
looked while it wrote that token, from the position of the token before. Each row was recorded at its
step of the real decoding and sums to 1.
""",
}
_ALL_SEEN = "Nothing is masked: every token may see every other one."
_WITHOUT_CAUSAL_MASK = """
Rows are the tokens that the decoder read, columns the same tokens as keys. This model has no causal mask: every token
may see the ones after it, so each new token changes all rows, and what is shown is the last whole pass.
"""
STEPS_EXPLAINED = """
At each step the decoder reads what it has written, looks at the sentence and at its own words, and gives every token of
its vocabulary a probability. It writes the most probable one, unless another is forced. Source and target share one
vocabulary, so tokens of the source can be candidates too. Both rows of attention were
recorded in the pass that made this choice. Keys and values of earlier positions do not change, because no position sees
later ones; so they are kept (the cache), and each step computes one new position only.
"""


_STEPS_WITHOUT_CAUSAL_MASK = """
At each step the decoder reads what it has written, looks at the sentence and at its own words, and gives every token of
its vocabulary a probability. It writes the most probable one, unless another is forced. This model has no causal mask:
earlier positions see later ones and change with each new token, so nothing can be kept, and each step computes all
positions again.
"""


def kind_explained(kind: AttentionKind, config: AnyModelConfig) -> str:
    """Explains the rows and columns of this kind of attention in this model."""
    text = _WITHOUT_CAUSAL_MASK if kind == "decoder_self" and not config.causal_mask else KIND_EXPLAINED[kind]
    limits = limits_of(config, kind) or ((_ALL_SEEN,) if kind is AttentionKind.ENCODER_SELF else ())
    return " ".join((text.strip(), *limits))


_RECURRENT_STEPS = """
At each step the decoder reads the token that it wrote last, changes its state, and gives every token of its vocabulary
a probability. It writes the most probable one, unless another is forced. The state is all that it keeps of what it has
written; with attention it also asks the sentence anew at each step, and the row of attention was recorded in the pass
that made this choice.
"""

_CONVOLUTIONAL_STEPS = """
At each step the decoder reads the last few tokens that it wrote, through one convolution after another, and gives every
token of its vocabulary a probability. It writes the most probable one, unless another is forced. Each layer asks the
sentence anew; the rows of attention were recorded in the pass that made this choice. Of what lies further back than its
convolutions reach, the decoder knows nothing.
"""
_STEPS_OF_OTHERS = {"rnn": _RECURRENT_STEPS, "conv": _CONVOLUTIONAL_STEPS}


def steps_explained(config: AnyModelConfig) -> str:
    """Explains one step of decoding in this model."""
    if config.family in _STEPS_OF_OTHERS:
        return _STEPS_OF_OTHERS[config.family]
    return STEPS_EXPLAINED if config.causal_mask else _STEPS_WITHOUT_CAUSAL_MASK


def explain(text: str, config: AnyModelConfig | None = None, equation: str = "") -> None:
    """Renders an explanation with this model's equation, or another one."""
    st.markdown(_one_line_a_paragraph(text))
    if equation := equation or (_attention(config) if config else ""):
        render_equation(equation)


def render_equation(equation: str) -> None:
    """Renders an equation in LaTeX and under it what its symbols stand for, where the glossary knows them."""
    st.latex(equation)
    if legend := _legend(equation):
        st.caption(legend)


def _legend(equation: str) -> str:
    """Returns what the symbols of an equation stand for, each by its name in the glossary."""
    named = ((symbol, plain(term.name)) for symbol, term in symbols_in(equation).items())
    return " · ".join(name if plain(symbol) == name else f"${symbol}$ {name}" for symbol, name in named)


def _attention(config: AnyModelConfig) -> str:
    """Returns attention in this model as LaTeX, one statement a line; empty if it has none."""
    if not kinds_of(config):
        return ""
    scores = "S" if isinstance(config, ModelConfig) else "S_{tj}"
    lines = rf"{scores} &= {score_equation(config)} \\ A &= \mathrm{{softmax}}(S + M) \\ {gathered_equation(config)}"
    return rf"\begin{{aligned}} {lines} \end{{aligned}}"


def _one_line_a_paragraph(text: str) -> str:
    """Returns the text without its line breaks: Markdown takes a line that happens to begin with "1." for a list."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))
