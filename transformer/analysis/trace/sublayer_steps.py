"""The steps around a sublayer, its norm and its residual sum, and the feed-forward network (sections 3.1 and 3.3)."""

from dataclasses import dataclass

from torch import Tensor

from transformer.analysis.trace.reference import activation, layer_norm, linear, split_heads
from transformer.analysis.trace.source import Snippet, lines_of
from transformer.analysis.trace.step import (
    SUBLAYERS,
    Computed,
    Step,
    StepRecord,
    StepText,
    Value,
    n_layers,
    sublayer_input,
    sublayer_sum,
)
from transformer.model.layers import AddNorm, FeedForward
from transformer.model.taps import Site
from transformer.model.transformer import Transformer

LAYER_NORM = r"\mathrm{LayerNorm}(x) = \gamma \odot \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta"
_ACTIVATION_NAMES = {"relu": "ReLU", "gelu": "GELU", "swish": "swish"}
_INNER = {
    "relu": r"\max\left(0,\, x W_1 + b_1\right)",
    "gelu": r"\mathrm{GELU}\!\left(x W_1 + b_1\right)",
    "swish": r"\mathrm{swish}\!\left(x W_1 + b_1\right)",
}


@dataclass(frozen=True)
class PreNorm(Step):
    """The layer norm before a sublayer."""

    name = "norm"

    def exists(self, model: Transformer) -> bool:
        return model.config.norm == "pre"

    @property
    def in_paper(self) -> bool:
        return False

    def label(self, model: Transformer) -> str:
        return "Norm"

    def text(self, model: Transformer, at: StepRecord | None = None) -> StepText:
        around = (
            "the residual around it stays as it is"
            if model.config.residual
            else "nothing goes around it (this model was trained **without residual connections**)"
        )
        return StepText(
            "Norm, before the sublayer",
            f"This model normalises what goes **into** a sublayer (pre-norm), and {around}: each token's numbers get "
            "mean 0 and variance 1, then a learned gain and shift.",
            LAYER_NORM,
            "Layer norm: Ba et al. 2016. The paper has it after the sublayer (section 3.1); pre-norm came later",
        )

    def compute(self, at: StepRecord) -> Computed:
        x = at.taken("input")
        return Computed(
            (at.hidden("x", x),),
            (at.hidden("normed", at.taken("normed")),),
            ((layer_norm(at.norm, x), at.offered("normed")),),
            "the layer norm of what came in, against the recorded one",
        )

    def tensors(self, model: Transformer) -> tuple[str, ...]:
        return ("input", "normed")

    def source(self, model: Transformer) -> tuple[Snippet, ...]:
        return (lines_of(AddNorm.forward, 'if self.placement == "pre"'), lines_of(AddNorm._normed, "return"))


@dataclass(frozen=True)
class Hidden(Step):
    """The wide half of the feed-forward network."""

    name = "hidden"

    def label(self, model: Transformer) -> str:
        return f"× W₁, {_ACTIVATION_NAMES[model.config.activation]}"

    def text(self, model: Transformer, at: StepRecord | None = None) -> StepText:
        config = model.config
        return StepText(
            "Feed-forward: the wide part",
            f"Now each token works alone. Its {config.d_model} numbers become {config.d_ff}, each a question to the "
            f"vector; {_ACTIVATION_NAMES[config.activation]} keeps the answers that are yes.",
            _INNER[config.activation],
            _ffn_section(model, "inner part of eq. 2"),
        )

    def compute(self, at: StepRecord) -> Computed:
        hidden = _hidden(at)
        return Computed(
            (at.hidden("x", sublayer_input(at)),),
            (Value("hidden", hidden, at.rows, "d_ff", recorded=False),),
            ((linear(at.feed_forward.outer, hidden), at.offered("output")),),
            "these numbers times W_2 plus its bias, against the recorded output",
        )

    def tensors(self, model: Transformer) -> tuple[str, ...]:
        return () if model.config.norm == "pre" else ("input",)

    def source(self, model: Transformer) -> tuple[Snippet, ...]:
        return (lines_of(FeedForward.forward, "return self.outer"),)


@dataclass(frozen=True)
class FeedForwardOutput(Step):
    """The second half of the feed-forward network, back to d_model numbers."""

    name = "output"

    def label(self, model: Transformer) -> str:
        return "× W₂"

    def text(self, model: Transformer, at: StepRecord | None = None) -> StepText:
        config = model.config
        becomes = "say what to add to the token's vector" if config.residual else "take the place of the token's vector"
        return StepText(
            "Feed-forward: back again",
            f"The {config.d_ff} answers are mixed back into {config.d_model} numbers, which {becomes}.",
            rf"\mathrm{{FFN}}(x) = {_INNER[config.activation]}\, W_2 + b_2",
            _ffn_section(model, "eq. 2"),
        )

    def compute(self, at: StepRecord) -> Computed:
        hidden = _hidden(at)
        return Computed(
            (Value("hidden", hidden, at.rows, "d_ff", recorded=False),),
            (at.hidden("output", at.taken("output")),),
            ((linear(at.feed_forward.outer, hidden), at.offered("output")),),
            "the hidden numbers times W_2 plus its bias, against the recorded output",
        )

    def tensors(self, model: Transformer) -> tuple[str, ...]:
        return ("output",)

    def source(self, model: Transformer) -> tuple[Snippet, ...]:
        return (lines_of(FeedForward.forward, "return self.outer"),)


@dataclass(frozen=True)
class Add(Step):
    """The residual sum after a sublayer, the layer norm after it, or both."""

    name = "add"

    def exists(self, model: Transformer) -> bool:
        return model.config.residual or model.config.norm == "post"

    def label(self, model: Transformer) -> str:
        if not model.config.residual:
            return "Norm"
        return "Add & norm" if model.config.norm == "post" else "Add"

    def text(self, model: Transformer, at: StepRecord | None = None) -> StepText:
        added = (
            "What went into the sublayer is added to what came out of it (the residual): a sublayer only has to say "
            "what is *new*."
        )
        normed = "Then each token's numbers are brought to mean 0 and variance 1, with a learned gain and shift."
        norm = model.config.norm
        if not model.config.residual:
            return StepText(
                "Norm",
                "This model was trained **without residual connections**: nothing goes around the sublayer. " + normed,
                rf"\mathrm{{LayerNorm}}(\mathrm{{Sublayer}}(x)), \qquad {LAYER_NORM}",
                "Section 3.1 adds x before the norm; this model does not",
            )
        if norm == "post":
            summed = r"y &= \mathrm{LayerNorm}(x + \mathrm{Sublayer}(x))"
            equation = rf"\begin{{aligned}} {summed} \\ &{LAYER_NORM} \end{{aligned}}"
            return StepText("Add and norm", f"{added} {normed}", equation, "Section 3.1")
        why = (
            "This model has no layer norm at all."
            if norm == "none"
            else "The norm came before the sublayer (pre-norm), so there is none here."
        )
        inside = r"\mathrm{LayerNorm}(x)" if norm == "pre" else "x"
        equation = rf"y = x + \mathrm{{Sublayer}}({inside})"
        return StepText("Add", f"{added} {why}", equation, "Section 3.1, where a norm follows the sum")

    def compute(self, at: StepRecord) -> Computed:
        config, output = at.model.config, at.taken("output")
        total = sublayer_sum(at.model, at.trace, self.stack, at.layer, at.sublayer)
        comes_in = (at.hidden("sublayer", output),)
        if config.residual:
            comes_in = (at.hidden("x", at.taken("residual")), *comes_in)
        if config.norm != "post":
            expected, recorded, how = _met_next(at, total)
            return Computed(comes_in, (at.hidden("sum", total, recorded=False),), ((expected, recorded),), how)
        middle = (at.hidden("sum", total, recorded=False),) if config.residual else ()
        return Computed(
            comes_in,
            (*middle, at.hidden("normed", at.taken("normed"))),
            ((layer_norm(at.norm, total), at.offered("normed")),),
            "sum and layer norm of what came in, against the recorded one",
        )

    def tensors(self, model: Transformer) -> tuple[str, ...]:
        return ("residual", "normed") if model.config.norm == "post" else ("residual",)

    def source(self, model: Transformer) -> tuple[Snippet, ...]:
        if model.config.norm != "post":
            return (lines_of(AddNorm.forward, "x = self.dropout", "x = x if residual"),)
        return (lines_of(AddNorm.forward, "x = self.dropout", "return"), lines_of(AddNorm._normed, "return"))


def _ffn_section(model: Transformer, equation: str) -> str:
    section = f"Section 3.3, {equation}"
    return section if model.config.activation == "relu" else f"{section}; the paper's non-linearity is ReLU"


def _hidden(at: StepRecord) -> Tensor:
    """The numbers between the two maps of a feed-forward network, which the pass does not keep."""
    return activation(at.model.config.activation, linear(at.feed_forward.inner, sublayer_input(at)))


def _met_next(at: StepRecord, x: Tensor) -> tuple[Tensor, Tensor, str]:
    """Where the pass next meets what a sublayer gave, which has no site of its own: expected, recorded, and how."""
    stack, offered, model = at.step.stack, at.trace.offered, at.model
    order = SUBLAYERS[stack]
    following = order.index(at.sublayer) + 1
    if following < len(order):
        return (
            x,
            offered[Site(stack, at.layer, order[following], "input")],
            "the sum, against what the next sublayer read",
        )
    if at.layer + 1 < n_layers(model, stack):
        return x, offered[Site(stack, at.layer + 1, "self", "input")], "the sum, against what the next layer read"
    if model.config.norm == "pre":
        recorded = offered[Site(stack, None, "final", "normed")]
        norm = model.get_submodule(f"{stack}.norm")
        return layer_norm(norm, x), recorded, "the final norm of this sum, against the recorded one"
    if stack == "decoder":
        logits = offered[Site("decoder", None, None, "logits")]
        return linear(model.projection, x), logits, "the logits of this sum, against the recorded ones"
    value = model.get_submodule("decoder.layers.0.cross_attention.value")
    computed = split_heads(linear(value, x), model.config.n_heads)  # type: ignore[arg-type]
    recorded = offered[Site("decoder", 0, "cross", "v")]
    return computed, recorded, "the decoder's values of this sum, against the recorded ones"


FEED_FORWARD_STEPS: tuple[type[Step], ...] = (Hidden, FeedForwardOutput)
"""In the order of computation."""
