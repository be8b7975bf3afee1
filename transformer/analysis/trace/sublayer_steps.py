"""The steps around a sublayer, its norm and its residual sum, and the feed-forward network (sections 3.1 and 3.3)."""

from functools import cached_property

from torch import Tensor

from transformer.analysis.trace.reference import activation, layer_norm, linear, split_heads
from transformer.analysis.trace.step import (
    SUBLAYERS,
    Computed,
    Lines,
    Step,
    StepRecord,
    Words,
    n_layers,
    sublayer_input,
    sublayer_sum,
)
from transformer.model.layers import AddNorm, FeedForward
from transformer.model.taps import Site

LAYER_NORM = r"\mathrm{LayerNorm}(x) = \gamma \odot \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta"
_ACTIVATION_NAMES = {"relu": "ReLU", "gelu": "GELU", "swish": "swish"}
_INNER = {
    "relu": r"\max\left(0,\, x W_1 + b_1\right)",
    "gelu": r"\mathrm{GELU}\!\left(x W_1 + b_1\right)",
    "swish": r"\mathrm{swish}\!\left(x W_1 + b_1\right)",
}


class PreNorm(Step):
    """The layer norm before a sublayer."""

    name = "norm"
    label = "Norm"
    title = "Norm, before the sublayer"
    equation = LAYER_NORM
    paper = "Layer norm: Ba et al. 2016. The paper has it after the sublayer (section 3.1); pre-norm came later"
    lines = ((AddNorm.forward, 'if self.placement == "pre"'), (AddNorm._normed, "return"))
    tensors = ("input", "normed")
    in_paper = False

    @cached_property
    def exists(self) -> bool:
        return self.model.config.norm == "pre"

    @cached_property
    def says(self) -> str:
        around = (
            "the residual around it stays as it is"
            if self.model.config.residual
            else "nothing goes around it (this model was trained **without residual connections**)"
        )
        return (
            f"This model normalises what goes **into** a sublayer (pre-norm), and {around}: each token's numbers get "
            "mean 0 and variance 1, then a learned gain and shift."
        )

    def compute(self, at: StepRecord) -> Computed:
        x = at.taken("input")
        return Computed(
            (at.value("x", x),),
            (at.result("normed", at.taken("normed")),),
            ((layer_norm(at.norm, x), at.offered("normed")),),
            "the layer norm of what came in, against the recorded one",
        )


class FeedForwardHidden(Step):
    """The wide half of the feed-forward network."""

    name = "hidden"
    title = "Feed-forward: the wide part"
    lines = ((FeedForward.forward, "return self.outer"),)

    @cached_property
    def label(self) -> str:
        return f"× W₁, {_ACTIVATION_NAMES[self.model.config.activation]}"

    def words(self, at: StepRecord | None = None) -> Words:
        config = self.model.config
        says = (
            f"Now each token works alone. Its {config.d_model} numbers become {config.d_ff}, each a question to the "
            f"vector; {_ACTIVATION_NAMES[config.activation]} keeps the answers that are yes."
        )
        return Words(self.title, says, _INNER[config.activation], _feed_forward_section(self, "inner part of eq. 2"))

    @cached_property
    def tensors(self) -> tuple[str, ...]:
        return () if self.model.config.norm == "pre" else ("input",)

    def compute(self, at: StepRecord) -> Computed:
        hidden = _hidden(at)
        return Computed(
            (at.value("x", sublayer_input(at)),),
            (at.value("hidden", hidden, "d_ff", recorded=False),),
            ((linear(at.feed_forward.outer, hidden), at.offered("output")),),
            "these numbers times W_2 plus its bias, against the recorded output",
        )


class FeedForwardOutput(Step):
    """The second half of the feed-forward network, back to d_model numbers."""

    name = "output"
    label = "× W₂"
    title = "Feed-forward: back again"
    lines = ((FeedForward.forward, "return self.outer"),)
    tensors = ("output",)

    def words(self, at: StepRecord | None = None) -> Words:
        config = self.model.config
        becomes = "say what to add to the token's vector" if config.residual else "take the place of the token's vector"
        says = f"The {config.d_ff} answers are mixed back into {config.d_model} numbers, which {becomes}."
        equation = rf"\mathrm{{FFN}}(x) = {_INNER[config.activation]}\, W_2 + b_2"
        return Words(self.title, says, equation, _feed_forward_section(self, "eq. 2"))

    def compute(self, at: StepRecord) -> Computed:
        hidden = _hidden(at)
        return Computed(
            (at.value("hidden", hidden, "d_ff", recorded=False),),
            (at.result("output", at.taken("output")),),
            ((linear(at.feed_forward.outer, hidden), at.offered("output")),),
            "the hidden numbers times W_2 plus its bias, against the recorded output",
        )


class Add(Step):
    """The residual sum after a sublayer, the layer norm after it, or both."""

    name = "add"

    @cached_property
    def exists(self) -> bool:
        return self.model.config.residual or self._is_normed

    @cached_property
    def label(self) -> str:
        if not self.model.config.residual:
            return "Norm"
        return "Add & norm" if self._is_normed else "Add"

    def words(self, at: StepRecord | None = None) -> Words:
        added = (
            "What went into the sublayer is added to what came out of it (the residual): a sublayer only has to say "
            "what is *new*."
        )
        normed = "Then each token's numbers are brought to mean 0 and variance 1, with a learned gain and shift."
        if not self.model.config.residual:
            return Words(
                "Norm",
                "This model was trained **without residual connections**: nothing goes around the sublayer. " + normed,
                rf"\mathrm{{LayerNorm}}(\mathrm{{Sublayer}}(x)), \qquad {LAYER_NORM}",
                "Section 3.1 adds x before the norm; this model does not",
            )
        if self._is_normed:
            summed = r"y &= \mathrm{LayerNorm}(x + \mathrm{Sublayer}(x))"
            equation = rf"\begin{{aligned}} {summed} \\ &{LAYER_NORM} \end{{aligned}}"
            return Words("Add and norm", f"{added} {normed}", equation, "Section 3.1")
        why, inside = "This model has no layer norm at all.", "x"
        if self.model.config.norm == "pre":
            why = "The norm came before the sublayer (pre-norm), so there is none here."
            inside = r"\mathrm{LayerNorm}(x)"
        equation = rf"y = x + \mathrm{{Sublayer}}({inside})"
        return Words("Add", f"{added} {why}", equation, "Section 3.1, where a norm follows the sum")

    @cached_property
    def lines(self) -> tuple[Lines, ...]:
        if not self._is_normed:
            return ((AddNorm.forward, "x = self.dropout", "x = x if residual"),)
        return ((AddNorm.forward, "x = self.dropout", "return"), (AddNorm._normed, "return"))

    @cached_property
    def tensors(self) -> tuple[str, ...]:
        return ("residual", "normed") if self._is_normed else ("residual",)

    def compute(self, at: StepRecord) -> Computed:
        total = sublayer_sum(self.model, at.trace, self.stack, at.layer, at.sublayer)
        comes_in = (at.value("sublayer", at.taken("output")),)
        if self.model.config.residual:
            comes_in = (at.value("x", at.taken("residual")), *comes_in)
        summed = at.result("sum", total, recorded=False)
        if not self._is_normed:
            expected, recorded, how = _met_next(at, total)
            return Computed(comes_in, (summed,), ((expected, recorded),), how)
        normed = at.result("normed", at.taken("normed"))
        return Computed(
            comes_in,
            (summed, normed) if self.model.config.residual else (normed,),
            ((layer_norm(at.norm, total), at.offered("normed")),),
            "sum and layer norm of what came in, against the recorded one",
        )

    @property
    def _is_normed(self) -> bool:
        return self.model.config.norm == "post"


def _feed_forward_section(step: Step, equation: str) -> str:
    section = f"Section 3.3, {equation}"
    return section if step.model.config.activation == "relu" else f"{section}; the paper's non-linearity is ReLU"


def _hidden(at: StepRecord) -> Tensor:
    """Returns the numbers between the two maps of a feed-forward network, which the pass does not keep."""
    return activation(at.step.model.config.activation, linear(at.feed_forward.inner, sublayer_input(at)))


def _met_next(at: StepRecord, x: Tensor) -> tuple[Tensor, Tensor, str]:
    """Finds where the pass next meets what a sublayer gave, which has no site of its own: expected, recorded, how."""
    stack, offered, model = at.step.stack, at.trace.offered, at.step.model
    order = SUBLAYERS[stack]
    following = order.index(at.sublayer) + 1
    if following < len(order):
        recorded = offered[Site(stack, at.layer, order[following], "input")]
        return x, recorded, "the sum, against what the next sublayer read"
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


FEED_FORWARD_STEPS: tuple[type[Step], ...] = (FeedForwardHidden, FeedForwardOutput)
"""The steps in the order of computation."""
