""" "What am I looking at?" under each figure: two to four sentences and the equation."""

import streamlit as st

from transformer.config import AnyModelConfig, RecurrentConfig
from transformer.lab import AttentionKind
from transformer.model.scores import score_equation

KIND_EXPLAINED: dict[AttentionKind, str] = {
    AttentionKind.ENCODER_SELF: """
Rows are queries, columns are keys, both tokens of the sentence. A row says how one token spread its attention over all
tokens when the encoder computed its next state; it sums to 1. Nothing is masked: every token may see every other one.
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
_WITHOUT_CAUSAL_MASK = """
Rows are the tokens that the decoder read, columns the same tokens as keys. This model has no causal mask: every token
may see the ones after it, so each new token changes all rows, and what is shown is the last whole pass.
"""
LINES_EXPLAINED = """
The translation is written one token at a time. While writing one, the decoder asks the sentence a question (the query
*Q*); every token of the sentence answers with a key *K*, and softmax turns how well they match into weights that sum to
1. The lines are these weights, recorded in the very pass that wrote the token.
"""
STEPS_EXPLAINED = """
At each step the decoder reads what it has written, looks at the sentence and at its own words, and gives every token of
its vocabulary a probability. It writes the most probable one, unless another is forced. Both rows of attention were
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
    return _WITHOUT_CAUSAL_MASK if kind == "decoder_self" and not config.causal_mask else KIND_EXPLAINED[kind]


_RECURRENT_STEPS = """
At each step the decoder reads the token that it wrote last, changes its state, and gives every token of its vocabulary
a probability. It writes the most probable one, unless another is forced. The state is all that it keeps of what it has
written; with attention it also asks the sentence anew at each step, and the row of attention was recorded in the pass
that made this choice.
"""


def steps_explained(config: AnyModelConfig) -> str:
    """Explains one step of decoding in this model."""
    if isinstance(config, RecurrentConfig):
        return _RECURRENT_STEPS
    return STEPS_EXPLAINED if config.causal_mask else _STEPS_WITHOUT_CAUSAL_MASK


def what_am_i_looking_at(text: str, config: AnyModelConfig, equation: str = "") -> None:
    """Renders the explanation and this model's equation, or another one, in a closed expander."""
    with st.expander("What am I looking at?"):
        st.markdown(_one_line_a_paragraph(text))
        if equation:
            st.latex(equation)
            return
        # One statement a line, for the narrow column beside a matrix.
        if isinstance(config, RecurrentConfig):
            if config.attention != "none":
                score = score_equation(config)
                st.latex(
                    rf"\begin{{aligned}} S_{{tj}} &= {score} \\ A &= \mathrm{{softmax}}(S + M) \\ "
                    r"c_t &= \textstyle\sum_j A_{tj}\, h_j \end{aligned}"
                )
            return
        scores = rf"S &= {score_equation(config)} \\"
        st.latex(
            rf"\begin{{aligned}} {scores} A &= \mathrm{{softmax}}(S + M) \\ \mathrm{{head}} &= A\,V \end{{aligned}}"
        )


def _one_line_a_paragraph(text: str) -> str:
    """Returns the text without its line breaks: Markdown takes a line that happens to begin with "1." for a list."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))
