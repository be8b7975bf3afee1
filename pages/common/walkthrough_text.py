"""What is said at each station of the Walkthrough: its name, what happens there, the equation and where it stands."""

from dataclasses import dataclass

from transformer.analysis.stations import Station
from transformer.config import ModelConfig

_ACTIVATIONS = {
    "relu": r"\max\left(0,\, x W_1 + b_1\right)",
    "gelu": r"\mathrm{GELU}\!\left(x W_1 + b_1\right)",
    "swish": r"\mathrm{swish}\!\left(x W_1 + b_1\right)",
}
_ACTIVATION_NAMES = {"relu": "ReLU", "gelu": "GELU", "swish": "swish"}


@dataclass(frozen=True)
class Told:
    """The words for one station of one model."""

    title: str
    says: str
    equation: str
    """LaTeX, or nothing where there is nothing to compute."""
    paper: str
    """Where the paper has it, or who else."""


def told(station: Station, config: ModelConfig) -> Told:
    """What is to be said of a station in this model."""
    if station.block == "ffn" and station.name == "output":
        return _outer(config)
    return {
        "ids": _ids,
        "embedding": _embedding,
        "positions": _positions,
        "norm": _norm,
        "qkv": _qkv,
        "products": _products,
        "scaled": _scaled,
        "penalty": _penalty,
        "masked": _masked,
        "weights": _weights,
        "context": _context,
        "concat": _concat,
        "output": _output,
        "hidden": _hidden,
        "add": _add,
        "layers": _layers,
        "final": _final,
        "logits": _logits,
        "probabilities": _probabilities,
    }[station.name](station, config)


def short_name(station: Station, config: ModelConfig) -> str:
    """The station's name on the map and on links, in the words of the paper's figures."""
    if station.block == "ffn" and station.name == "output":
        return "× W₂"
    decoder = station.stack == "decoder"
    match station.name:
        case "ids":
            return "Outputs (shifted right)" if decoder else "Inputs"
        case "embedding":
            return "Output embedding" if decoder else "Input embedding"
        case "positions":
            return "+ position"
        case "norm" | "final":
            return "Norm"
        case "qkv":
            return "Q, K, V" + ", turned" * (config.positions == "rotary" and station.block == "self")
        case "products":
            return "MatMul QKᵀ"
        case "scaled":
            return "Scale ÷ √dₖ"
        case "penalty":
            return "− ALiBi penalty"
        case "masked":
            return "Mask"
        case "weights":
            return "Softmax"
        case "context":
            return "MatMul with V"
        case "concat":
            return "Concat"
        case "output":
            return "Linear Wᴼ"
        case "hidden":
            return f"× W₁, {_ACTIVATION_NAMES[config.activation]}"
        case "add":
            return _add_name(config)
        case "layers":
            return "All layers"
        case "logits":
            return "Linear"
        case "probabilities":
            return "Softmax"
    raise AssertionError(f"{station} has no name")


def block_name(station: Station) -> str:
    """The box of figure 1 in which a station stands, for the line above its title."""
    names = {
        ("encoder", "self"): "self-attention",
        ("decoder", "self"): "masked self-attention",
        ("decoder", "cross"): "cross-attention",
        ("encoder", "ffn"): "feed-forward",
        ("decoder", "ffn"): "feed-forward",
    }
    return "" if station.block is None else names[station.stack, station.block]


def _ids(station: Station, config: ModelConfig) -> Told:
    if station.stack == "decoder":
        return Told(
            "What it has written, shifted right",
            "The decoder reads its own output, one place later: first the start mark, then each token it has just "
            "written. At every place it has to find the token that comes **next**.",
            r"(y_1, \dots, y_m) \;\mapsto\; (\text{<s>},\, y_1, \dots, y_{m-1})",
            "Section 3.1; figure 1, “outputs (shifted right)”",
        )
    return Told(
        "Words become numbers",
        "The sentence is cut into tokens, and each token is looked up in the vocabulary: from here on it is a number. "
        "An end mark is added.",
        rf"\text{{token}} \;\mapsto\; i \in \{{0, \dots, {config.vocab_size - 1}\}}",
        "Section 3.4",
    )


def _embedding(station: Station, config: ModelConfig) -> Told:
    tied = " Source and target share this matrix." if config.tie_embeddings else ""
    return Told(
        "Each number becomes a vector",
        f"Row *i* of a learned matrix *E* is what the model knows of token *i* by itself: {config.d_model} numbers. "
        f"They are multiplied by √{config.d_model}, so that the positions do not drown them.{tied}",
        rf"e_t = \sqrt{{d_{{\text{{model}}}}}}\; E_{{i_t}} = \sqrt{{{config.d_model}}}\; E_{{i_t}}",
        "Section 3.4",
    )


def _positions(station: Station, config: ModelConfig) -> Told:
    if config.positions == "learned":
        return Told(
            "Where it stands is added",
            "Attention alone cannot tell first from last. So to each token's vector a row of a learned table is added: "
            "the row of its place.",
            r"x^{(0)}_t = e_t + P_t",
            "Section 3.5, the learned variant (table 3, row E)",
        )
    return Told(
        "Where it stands is added",
        "Attention alone cannot tell first from last. So to each token's vector a pattern of sines and cosines is "
        "added that only its place decides: fast waves in the first dimensions, slow ones in the last.",
        r"x^{(0)}_t = e_t + PE_t, \qquad \begin{aligned} "
        r"PE_{(t, 2i)} &= \sin\!\left(t / 10000^{2i/d_{\text{model}}}\right)"
        r" \\ PE_{(t, 2i+1)} &= \cos\!\left(t / 10000^{2i/d_{\text{model}}}\right) \end{aligned}",
        "Section 3.5",
    )


_LAYER_NORM = r"\mathrm{LayerNorm}(x) = \gamma \odot \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta"


def _norm(station: Station, config: ModelConfig) -> Told:
    return Told(
        "Norm, before the block",
        "This model normalises what goes **into** a block (pre-norm), and what goes around it stays as it is: each "
        "token's numbers get mean 0 and spread 1, then a learned gain and shift.",
        _LAYER_NORM,
        "Layer norm: Ba et al. 2016. The paper has it behind the block (section 3.1); pre-norm came later",
    )


def _qkv(station: Station, config: ModelConfig) -> Told:
    d_head = config.d_model // config.n_heads
    source = "M" if station.block == "cross" else "X"
    asked = (
        "**Queries** come from the translation so far; **keys** and **values** from *M*, what the encoder made of the "
        "sentence. This is where the two meet."
        if station.block == "cross"
        else "From each token's vector, three others are made: a **query** (what it is looking for), a **key** (what "
        "it can be found by) and a **value** (what it gives to those who find it)."
    )
    says = f"{asked} Each of the {config.n_heads} heads has {d_head} dimensions of its own."
    equation = rf"Q = X W^Q + b^Q, \quad K = {source} W^K + b^K, \quad V = {source} W^V + b^V"
    paper = "Section 3.2.2 (the paper writes no biases)"
    if config.positions == "rotary" and station.block == "self":
        says += " Queries and keys are then turned, two dimensions at a time, by an angle that grows with their place."
        equation = (
            r"\begin{aligned} Q &= R_t\,(X W^Q + b^Q), \quad K = R_t\,(X W^K + b^K), \quad V = X W^V + b^V \\ R_t &: "
            r"\text{ turns dimensions } 2i, 2i{+}1 \text{ by } t / 10000^{2i/d_k} \end{aligned}"
        )
        paper = "Section 3.2.2; the turning: Su et al. 2021 (RoFormer, eq. 34)"
    return Told("Queries, keys and values", says, equation, paper)


def _products(station: Station, config: ModelConfig) -> Told:
    return Told(
        "Every query meets every key",
        "The chosen token's query is multiplied with each key, number by number, and added up. The better the two "
        "agree, the larger the product: here it is decided who listens to whom.",
        r"S = Q K^\top, \qquad S_{tj} = q_t \cdot k_j = \sum_{i=1}^{d_k} q_{t,i}\, k_{j,i}",
        "Section 3.2.1, inside eq. 1",
    )


def _scaled(station: Station, config: ModelConfig) -> Told:
    d_head = config.d_model // config.n_heads
    return Told(
        "Divided by √dₖ",
        f"A sum of {d_head} products grows with their number, and softmax would answer to large scores with all or "
        f"nothing, which hardly lets a gradient through. So every score is divided by √{d_head}.",
        rf"S / \sqrt{{d_k}} = S / \sqrt{{{d_head}}} = S / {d_head**0.5:.4g}",
        "Section 3.2.1, inside eq. 1",
    )


def _penalty(station: Station, config: ModelConfig) -> Told:
    return Told(
        "Less for what is far away",
        "This model adds no positions to its tokens. Instead each score is lowered with the distance of query and key, "
        "by a slope of the head's own: some heads look near, others far.",
        r"S_{tj} - m_h\,\lvert t - j \rvert",
        "ALiBi: Press et al. 2022; not in the paper",
    )


def _masked(station: Station, config: ModelConfig) -> Told:
    causal = station.stack == "decoder" and station.block == "self"
    if causal and config.causal_mask:
        says = (
            "No token may look at a later one: while the translation is written, later ones do not exist yet. Their "
            "scores become −∞, so that softmax gives them exactly 0."
        )
    elif causal:
        says = (
            "This model was trained **without a causal mask**: every token may see the ones after it, and nothing is "
            "closed here."
        )
    else:
        says = (
            "Here the mask would hide the empty places that make the sentences of a batch equally long. One sentence "
            "alone has none, so every cell stays open."
        )
    return Told(
        "What may not be seen is closed",
        says,
        r"S_{tj} + M_{tj}, \qquad M_{tj} = \begin{cases} 0 & \text{if } t \text{ may see } j \\ -\infty & \text{if not}"
        r" \end{cases}",
        "Section 3.2.3; figure 2, “Mask (opt.)”",
    )


def _weights(station: Station, config: ModelConfig) -> Told:
    return Told(
        "Softmax: weights that sum to 1",
        "Each row of scores becomes a row of weights: all positive, together 1. This is **attention**: how the chosen "
        "token divides its look over all it may see. The pictures on the other pages show these numbers.",
        r"A_{tj} = \frac{e^{S_{tj} + M_{tj}}}{\sum_{j'} e^{S_{tj'} + M_{tj'}}}",
        "Section 3.2.1, eq. 1",
    )


def _context(station: Station, config: ModelConfig) -> Told:
    scaled = r"\frac{Q K^\top}{\sqrt{d_k}}" if config.scale_scores else r"Q K^\top"
    return Told(
        "Values, mixed by these weights",
        "What the head found: the values of all tokens, each multiplied by its weight, added up. A token with weight "
        "0.9 gives nine tenths of the mixture.",
        rf"\mathrm{{head}} = A V = \mathrm{{softmax}}\!\left({scaled} + M\right) V",
        "Section 3.2.1, eq. 1",
    )


def _concat(station: Station, config: ModelConfig) -> Told:
    d_head = config.d_model // config.n_heads
    return Told(
        "All heads side by side",
        f"The {config.n_heads} heads have looked at different things. Their findings of {d_head} numbers each are put "
        f"in a row: {config.d_model} numbers again.",
        r"\mathrm{Concat}(\mathrm{head}_1, \dots, \mathrm{head}_h)",
        "Section 3.2.2",
    )


def _output(station: Station, config: ModelConfig) -> Told:
    return Told(
        "Wᴼ mixes the heads",
        "A last matrix lets every dimension of the result hear every head. What comes out is what this block has to "
        "say about the token.",
        r"\mathrm{MultiHead} = \mathrm{Concat}(\mathrm{head}_1, \dots, \mathrm{head}_h)\, W^O + b^O",
        "Section 3.2.2 (the paper writes no bias)",
    )


def _hidden(station: Station, config: ModelConfig) -> Told:
    return Told(
        "Feed-forward: the wide part",
        f"Now each token works alone. Its {config.d_model} numbers become {config.d_ff}, each a question to the "
        f"vector; {_ACTIVATION_NAMES[config.activation]} keeps the answers that are yes.",
        _ACTIVATIONS[config.activation],
        _ffn_paper(config, "inner part of eq. 2"),
    )


def _outer(config: ModelConfig) -> Told:
    inner = _ACTIVATIONS[config.activation]
    return Told(
        "Feed-forward: back again",
        f"The {config.d_ff} answers are mixed back into {config.d_model} numbers, which say what to add to the token's "
        "vector.",
        rf"\mathrm{{FFN}}(x) = {inner}\, W_2 + b_2",
        _ffn_paper(config, "eq. 2"),
    )


def _ffn_paper(config: ModelConfig, where: str) -> str:
    return f"Section 3.3, {where}" + ("" if config.activation == "relu" else "; the paper's non-linearity is ReLU")


def _add_name(config: ModelConfig) -> str:
    if not config.residual:
        return "Norm"
    return "Add & norm" if config.norm == "post" else "Add"


def _add(station: Station, config: ModelConfig) -> Told:
    around = "What went into the block is added to what came out (the residual): a block only has to say what is *new*."
    normed = "Then each token's numbers are brought to mean 0 and spread 1, with a learned gain and shift."
    if not config.residual:
        return Told(
            "Norm",
            f"This model was trained **without residual connections**: nothing goes around the block. {normed}",
            rf"\mathrm{{LayerNorm}}(\mathrm{{Sublayer}}(x)), \qquad {_LAYER_NORM}",
            "Section 3.1 adds x before the norm; this model does not",
        )
    if config.norm == "post":
        summed = r"y &= \mathrm{LayerNorm}(x + \mathrm{Sublayer}(x))"
        equation = rf"\begin{{aligned}} {summed} \\ &{_LAYER_NORM} \end{{aligned}}"
        return Told("Add and norm", f"{around} {normed}", equation, "Section 3.1")
    why = (
        "This model has no layer norm at all."
        if config.norm == "none"
        else "The norm stood before the block (pre-norm), so here is none."
    )
    inside = r"\mathrm{LayerNorm}(x)" if config.norm == "pre" else "x"
    return Told(
        "Add", f"{around} {why}", rf"y = x + \mathrm{{Sublayer}}({inside})", "Section 3.1, where a norm follows the sum"
    )


def _layers(station: Station, config: ModelConfig) -> Told:
    n = config.n_encoder_layers if station.stack == "encoder" else config.n_decoder_layers
    ends = (
        "What comes out at the end is the **memory** that every decoder layer looks at."
        if station.stack == "encoder"
        else "What comes out at the end must say which token is next."
    )
    return Told(
        f"The same again: {n} layers",
        f"Each layer has the same parts with weights of its own, and each takes what the one before has made of the "
        f"token. {ends} Below: the chosen token's vector on its way up.",
        rf"x^{{(\ell)}} = \mathrm{{Layer}}_\ell\!\left(x^{{(\ell - 1)}}\right), \quad \ell = 1, \dots, {n}",
        "Section 3.1 (the paper has N = 6)",
    )


def _final(station: Station, config: ModelConfig) -> Told:
    return Told(
        "The last norm",
        "In pre-norm nothing was normalised on the way around the blocks, so each stack ends in one more layer norm.",
        _LAYER_NORM,
        "Layer norm: Ba et al. 2016; pre-norm is not in the paper",
    )


def _logits(station: Station, config: ModelConfig) -> Told:
    matrix = r"E^\top" if config.tie_output else "W"
    tied = (
        " The matrix is the embedding itself: a token scores high if the vector points to where that token lives."
        if config.tie_output
        else ""
    )
    bias = " + b" if config.output_bias else ""
    return Told(
        "A score for every token of the vocabulary",
        f"The finished vector is compared with each of the {config.vocab_size:,} tokens that could come next.{tied}",
        rf"z_t = x_t\, {matrix}{bias}",
        "Section 3.4; figure 1, “Linear”",
    )


def _probabilities(station: Station, config: ModelConfig) -> Told:
    return Told(
        "Softmax: what comes next",
        "The scores become probabilities. Greedy decoding writes the most probable token, reads it in the next step, "
        "and the walk begins again on the right-hand side.",
        r"P(y_t = i \mid y_{<t}, \text{source}) = \frac{e^{z_{t,i}}}{\sum_{i'} e^{z_{t,i'}}}",
        "Section 3.4; figure 1, “Softmax”",
    )
