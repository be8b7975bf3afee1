"""What is said at each station of the Walkthrough: its title, what happens there, the equation and where it stands.

Inside attention: walkthrough_attention_text.py. The short names of stations: transformer/analysis/trace/names.py.
"""

from pages.walkthrough.attention_text import ATTENTION_TOLD, Logged, masked
from transformer.analysis.trace.names import ACTIVATION_NAMES
from transformer.analysis.trace.steps import Station, by_station
from transformer.config import ModelConfig

_ACTIVATIONS = {
    "relu": r"\max\left(0,\, x W_1 + b_1\right)",
    "gelu": r"\mathrm{GELU}\!\left(x W_1 + b_1\right)",
    "swish": r"\mathrm{swish}\!\left(x W_1 + b_1\right)",
}
_LAYER_NORM = r"\mathrm{LayerNorm}(x) = \gamma \odot \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta"


def told(station: Station, config: ModelConfig, *, lifted: bool = False, closed: int = 0) -> Logged:
    """What is to be said of a station in this model; `lifted`: a switch took the causal mask away; `closed`: cells that
    switches closed here."""
    if station.name == "masked":
        return masked(station, config, lifted=lifted, closed=closed)
    if station.sublayer == "ffn" and station.name == "output":
        return _outer(config)
    return _TOLD[station.name](station, config)


def _ids(station: Station, config: ModelConfig) -> Logged:
    if station.stack == "decoder":
        return Logged(
            "What it has written, shifted right",
            "The decoder reads its own output, one place later: first the start mark, then each token it has just "
            "written. At every place it has to find the token that comes **next**.",
            r"(y_1, \dots, y_m) \;\mapsto\; (\text{<s>},\, y_1, \dots, y_{m-1})",
            "Section 3.1; figure 1, “outputs (shifted right)”",
        )
    return Logged(
        "Words become numbers",
        "The sentence is cut into tokens, and each token is looked up in the vocabulary: from here on it is a number. "
        "An end mark is added.",
        rf"\text{{token}} \;\mapsto\; i \in \{{0, \dots, {config.vocab_size - 1}\}}",
        "Section 3.4",
    )


def _embedding(station: Station, config: ModelConfig) -> Logged:
    tied = " Source and target share this matrix." if config.tie_embeddings else ""
    why = ", so that the positions do not drown them" if config.positions in ("sinusoidal", "learned") else ""
    return Logged(
        "Each number becomes a vector",
        f"Row *i* of a learned matrix *E* is what the model knows of token *i* by itself: {config.d_model} numbers. "
        f"They are multiplied by √{config.d_model}{why}.{tied}",
        rf"e_t = \sqrt{{d_{{\text{{model}}}}}}\; E_{{i_t}} = \sqrt{{{config.d_model}}}\; E_{{i_t}}",
        "Section 3.4",
    )


def _positions(station: Station, config: ModelConfig) -> Logged:
    if config.positions == "learned":
        return Logged(
            "Where it stands is added",
            "Attention alone cannot tell first from last. So to each token's vector a row of a learned table is added: "
            "the row of its place.",
            r"x^{(0)}_t = e_t + P_t",
            "Section 3.5, the learned variant (table 3, row E)",
        )
    return Logged(
        "Where it stands is added",
        "Attention alone cannot tell first from last. So to each token's vector a pattern of sines and cosines is "
        "added that only its place decides: fast waves in the first dimensions, slow ones in the last.",
        r"x^{(0)}_t = e_t + PE_t, \qquad \begin{aligned} "
        r"PE_{(t, 2i)} &= \sin\!\left(t / 10000^{2i/d_{\text{model}}}\right)"
        r" \\ PE_{(t, 2i+1)} &= \cos\!\left(t / 10000^{2i/d_{\text{model}}}\right) \end{aligned}",
        "Section 3.5",
    )


def _norm(station: Station, config: ModelConfig) -> Logged:
    around = (
        "what goes around it stays as it is"
        if config.residual
        else "nothing goes around it (this model was trained **without residual connections**)"
    )
    return Logged(
        "Norm, before the block",
        f"This model normalises what goes **into** a block (pre-norm), and {around}: each token's numbers get mean 0 "
        "and spread 1, then a learned gain and shift.",
        _LAYER_NORM,
        "Layer norm: Ba et al. 2016. The paper has it behind the block (section 3.1); pre-norm came later",
    )


def _hidden(station: Station, config: ModelConfig) -> Logged:
    return Logged(
        "Feed-forward: the wide part",
        f"Now each token works alone. Its {config.d_model} numbers become {config.d_ff}, each a question to the "
        f"vector; {ACTIVATION_NAMES[config.activation]} keeps the answers that are yes.",
        _ACTIVATIONS[config.activation],
        _ffn_paper(config, "inner part of eq. 2"),
    )


def _outer(config: ModelConfig) -> Logged:
    inner = _ACTIVATIONS[config.activation]
    return Logged(
        "Feed-forward: back again",
        f"The {config.d_ff} answers are mixed back into {config.d_model} numbers, which "
        + ("say what to add to the token's vector." if config.residual else "take the place of the token's vector."),
        rf"\mathrm{{FFN}}(x) = {inner}\, W_2 + b_2",
        _ffn_paper(config, "eq. 2"),
    )


def _ffn_paper(config: ModelConfig, where: str) -> str:
    return f"Section 3.3, {where}" + ("" if config.activation == "relu" else "; the paper's non-linearity is ReLU")


def _add(station: Station, config: ModelConfig) -> Logged:
    around = "What went into the block is added to what came out (the residual): a block only has to say what is *new*."
    normed = "Then each token's numbers are brought to mean 0 and spread 1, with a learned gain and shift."
    if not config.residual:
        return Logged(
            "Norm",
            f"This model was trained **without residual connections**: nothing goes around the block. {normed}",
            rf"\mathrm{{LayerNorm}}(\mathrm{{Sublayer}}(x)), \qquad {_LAYER_NORM}",
            "Section 3.1 adds x before the norm; this model does not",
        )
    if config.norm == "post":
        summed = r"y &= \mathrm{LayerNorm}(x + \mathrm{Sublayer}(x))"
        equation = rf"\begin{{aligned}} {summed} \\ &{_LAYER_NORM} \end{{aligned}}"
        return Logged("Add and norm", f"{around} {normed}", equation, "Section 3.1")
    why = (
        "This model has no layer norm at all."
        if config.norm == "none"
        else "The norm stood before the block (pre-norm), so here is none."
    )
    inside = r"\mathrm{LayerNorm}(x)" if config.norm == "pre" else "x"
    return Logged(
        "Add", f"{around} {why}", rf"y = x + \mathrm{{Sublayer}}({inside})", "Section 3.1, where a norm follows the sum"
    )


def _layers(station: Station, config: ModelConfig) -> Logged:
    n = config.n_encoder_layers if station.stack == "encoder" else config.n_decoder_layers
    ends = (
        "What comes out at the end is the **memory** that every decoder layer looks at."
        if station.stack == "encoder"
        else "What comes out at the end must say which token is next."
    )
    return Logged(
        f"The same again: {n} layers",
        f"Each layer has the same parts with weights of its own, and each takes what the one before has made of the "
        f"token. {ends} Below: the chosen token's vector on its way up.",
        rf"x^{{(\ell)}} = \mathrm{{Layer}}_\ell\!\left(x^{{(\ell - 1)}}\right), \quad \ell = 1, \dots, {n}",
        "Section 3.1 (the paper has N = 6)",
    )


def _final(station: Station, config: ModelConfig) -> Logged:
    return Logged(
        "The last norm",
        "In pre-norm nothing is normalised behind the last block, so each stack ends in one more layer norm.",
        _LAYER_NORM,
        "Layer norm: Ba et al. 2016; pre-norm is not in the paper",
    )


def _logits(station: Station, config: ModelConfig) -> Logged:
    matrix = r"E^\top" if config.tie_output else "W"
    tied = (
        " The matrix is the embedding itself: a token scores high if the vector points to where that token lives."
        if config.tie_output
        else ""
    )
    bias = " + b" if config.output_bias else ""
    return Logged(
        "A score for every token of the vocabulary",
        f"The finished vector is compared with each of the {config.vocab_size:,} tokens that could come next.{tied}",
        rf"z_t = x_t\, {matrix}{bias}",
        "Section 3.4; figure 1, “Linear”",
    )


def _probabilities(station: Station, config: ModelConfig) -> Logged:
    return Logged(
        "Softmax: what comes next",
        "The scores become probabilities. Greedy decoding writes the most probable token, reads it in the next step, "
        "and the walk begins again on the right-hand side.",
        r"P(y_t = i \mid y_{<t}, \text{source}) = \frac{e^{z_{t,i}}}{\sum_{i'} e^{z_{t,i'}}}",
        "Section 3.4; figure 1, “Softmax”",
    )


_TOLD = ATTENTION_TOLD | by_station(
    _ids, _embedding, _positions, _norm, _hidden, _add, _layers, _final, _logits, _probabilities
)
