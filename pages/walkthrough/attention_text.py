"""What is said at the stations inside attention: the words, the equation and where it stands."""

from dataclasses import dataclass

from transformer.analysis.trace.steps import Station, by_station
from transformer.config import ModelConfig


@dataclass(frozen=True)
class Logged:
    """The words for one station of one model."""

    title: str
    says: str
    equation: str
    """LaTeX, or nothing where there is nothing to compute."""
    paper: str
    """Where the paper has it, or who else."""


def _qkv(station: Station, config: ModelConfig) -> Logged:
    d_head = config.d_model // config.n_heads
    source = "M" if station.sublayer == "cross" else "X"
    asked = (
        "**Queries** come from the translation so far; **keys** and **values** from *M*, what the encoder made of the "
        "sentence. This is where the two meet."
        if station.sublayer == "cross"
        else "From each token's vector, three others are made: a **query** (what it is looking for), a **key** (what "
        "it can be found by) and a **value** (what it gives to those who find it)."
    )
    own = f"Each of the {config.n_heads} heads has {d_head} dimensions of its own."
    says = f"{asked} {own if config.n_heads > 1 else f'The one head has all {d_head} dimensions.'}"
    equation = rf"Q = X W^Q + b^Q, \quad K = {source} W^K + b^K, \quad V = {source} W^V + b^V"
    paper = "Section 3.2.2 (the paper writes no biases)"
    if config.positions == "rotary" and station.sublayer == "self":
        says += " Queries and keys are then turned, two dimensions at a time, by an angle that grows with their place."
        equation = (
            r"\begin{aligned} Q &= R_t\,(X W^Q + b^Q), \quad K = R_t\,(X W^K + b^K), \quad V = X W^V + b^V \\ R_t &: "
            r"\text{ turns dimensions } 2i, 2i{+}1 \text{ by } t / 10000^{2i/d_k} \end{aligned}"
        )
        paper = "Section 3.2.2; the turning: Su et al. 2021 (RoFormer, eq. 34)"
    return Logged("Queries, keys and values", says, equation, paper)


def _products(station: Station, config: ModelConfig) -> Logged:
    return Logged(
        "Every query meets every key",
        "The chosen token's query is multiplied with each key, number by number, and added up. The better the two "
        "agree, the larger the product: here it is decided who listens to whom.",
        r"S = Q K^\top, \qquad S_{tj} = q_t \cdot k_j = \sum_{i=1}^{d_k} q_{t,i}\, k_{j,i}",
        "Section 3.2.1, inside eq. 1",
    )


def _scaled(station: Station, config: ModelConfig) -> Logged:
    d_head = config.d_model // config.n_heads
    return Logged(
        "Divided by √dₖ",
        f"A sum of {d_head} products grows with their number, and softmax would answer to large scores with all or "
        f"nothing, which hardly lets a gradient through. So every score is divided by √{d_head}.",
        rf"S / \sqrt{{d_k}} = S / \sqrt{{{d_head}}} = S / {d_head**0.5:.4g}",
        "Section 3.2.1, inside eq. 1",
    )


def _penalty(station: Station, config: ModelConfig) -> Logged:
    return Logged(
        "Less for what is far away",
        "This model adds no positions to its tokens. Instead each score is lowered with the distance of query and key, "
        "by a slope of the head's own: some heads look near, others far.",
        r"S_{tj} - m_h\,\lvert t - j \rvert",
        "ALiBi: Press et al. 2022; not in the paper",
    )


def masked(station: Station, config: ModelConfig, *, lifted: bool, closed: int) -> Logged:
    """`lifted`: a switch took the causal mask away; `closed`: cells that switches closed here."""
    title, open_ = "What may not be seen is closed", ", and nothing is closed here" * (not closed)
    if (station.stack, station.sublayer) != ("decoder", "self"):
        says = (
            "Here the mask would hide the empty places that make the sentences of a batch equally long. One sentence "
            "alone has none" + ", so every cell stays open" * (not closed) + "."
        )
    elif lifted:
        title = "Later tokens are not closed"
        says = f"A switch has lifted the **causal mask**: every token of this pass sees the ones after it too{open_}."
    elif config.causal_mask:
        says = (
            "No token may look at a later one: while the translation is written, later ones do not exist yet. Their "
            "scores become −∞, so that softmax gives them exactly 0."
        )
    else:
        title = "Later tokens are not closed"
        says = f"This model was trained **without a causal mask**: every token may see the ones after it{open_}."
    if closed:
        says += f" Closed by a switch: {closed} cell{'s' * (closed > 1)}."
    return Logged(
        title,
        says,
        r"S_{tj} + M_{tj}, \qquad M_{tj} = \begin{cases} 0 & \text{if } t \text{ may see } j \\ -\infty & \text{if not}"
        r" \end{cases}",
        "Section 3.2.3; figure 2, “Mask (opt.)”",
    )


def _weights(station: Station, config: ModelConfig) -> Logged:
    return Logged(
        "Softmax: weights that sum to 1",
        "Each row of scores becomes a row of weights: none below 0, together 1 (all 0 where nothing may be seen). This "
        "is **attention**: how the chosen token divides its look over all it may see. The pictures on the other pages "
        "show these numbers.",
        r"A_{tj} = \frac{e^{S_{tj} + M_{tj}}}{\sum_{j'} e^{S_{tj'} + M_{tj'}}}",
        "Section 3.2.1, eq. 1",
    )


def _context(station: Station, config: ModelConfig) -> Logged:
    scaled = r"\frac{Q K^\top}{\sqrt{d_k}}" if config.scale_scores else r"Q K^\top"
    if config.positions == "alibi" and station.sublayer == "self":
        scaled += r" - m_h\,\lvert t - j \rvert"
    return Logged(
        "Values, mixed by these weights",
        "What the head found: the values of all tokens, each multiplied by its weight, added up. A token with weight "
        "0.9 gives nine tenths of the mixture.",
        rf"\mathrm{{head}} = A V = \mathrm{{softmax}}\!\left({scaled} + M\right) V",
        "Section 3.2.1, eq. 1",
    )


def _concat(station: Station, config: ModelConfig) -> Logged:
    d_head = config.d_model // config.n_heads
    several = (
        f"The {config.n_heads} heads have looked at different things. Their findings of {d_head} numbers each are put "
        f"in a row: {config.d_model} numbers again."
    )
    return Logged(
        "All heads side by side",
        several if config.n_heads > 1 else f"There is one head alone: its {d_head} numbers go on as they are.",
        r"\mathrm{Concat}(\mathrm{head}_1, \dots, \mathrm{head}_h)",
        "Section 3.2.2",
    )


def _output(station: Station, config: ModelConfig) -> Logged:
    return Logged(
        "Wᴼ mixes the heads",
        "A last matrix lets every dimension of the result hear every head. What comes out is what this block has to "
        "say about the token.",
        r"\mathrm{MultiHead} = \mathrm{Concat}(\mathrm{head}_1, \dots, \mathrm{head}_h)\, W^O + b^O",
        "Section 3.2.2 (the paper writes no bias)",
    )


ATTENTION_TOLD = by_station(_qkv, _products, _scaled, _penalty, _weights, _context, _concat, _output)
"""By the station's name; the mask's words depend on the pass too: `masked`."""
