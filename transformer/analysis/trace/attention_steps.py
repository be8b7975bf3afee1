"""The steps inside multi-head attention, from the three projections to the last one (section 3.2)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from transformer.analysis.attention.score_reference import reference_divisor, reference_scores
from transformer.analysis.trace.reference import distance_penalty, join_heads, linear, rotated, softmax, split_heads
from transformer.analysis.trace.source import Snippet, lines_of
from transformer.analysis.trace.step import (
    Computed,
    Step,
    StepRecord,
    StepText,
    Value,
    stack_output,
    sublayer_input,
)
from transformer.model import attention, positions, scores
from transformer.model.attention import MultiHeadAttention
from transformer.model.scores import score_equation
from transformer.model.transformer import Transformer


@dataclass(frozen=True)
class Projections(Step):
    """Queries, keys and values of every head; with rotary positions turned."""

    name = "qkv"
    per_head = True

    def label(self, model: Transformer) -> str:
        return "Q, K, V, rotated" if self._rotates(model) else "Q, K, V"

    def text(self, model: Transformer, at: StepRecord | None = None) -> StepText:
        config = model.config
        cross = self.sublayer == "cross"
        says = (
            "**Queries** come from the translation so far; **keys** and **values** from *M*, what the encoder made of "
            "the sentence. This is where the two meet."
            if cross
            else "Each token's vector is turned into three others: a **query** (what it is looking for), a **key** "
            "(what it can be found by) and a **value** (what it gives to those who find it)."
        )
        if config.n_heads > 1:
            says += f" Each of the {config.n_heads} heads has {config.d_head} dimensions of its own."
        else:
            says += f" The one head has all {config.d_head} dimensions."
        memory = "M" if cross else "X"
        equation = rf"Q = X W^Q + b^Q, \quad K = {memory} W^K + b^K, \quad V = {memory} W^V + b^V"
        paper = "Section 3.2.2 (the paper has no biases)"
        if self._rotates(model):
            says += (
                " Queries and keys are then rotated, two dimensions at a time, by an angle that grows with position."
            )
            equation = (
                r"\begin{aligned} Q &= R_t\,(X W^Q + b^Q), \quad K = R_t\,(X W^K + b^K), \quad V = X W^V + b^V \\ "
                r"R_t &: \text{ rotates dimensions } 2i, 2i{+}1 \text{ by } t / 10000^{2i/d_k} \end{aligned}"
            )
            paper = "Section 3.2.2; the rotation: Su et al. 2021 (RoFormer, eq. 34)"
        return StepText("Queries, keys and values", says, equation, paper)

    def compute(self, at: StepRecord) -> Computed:
        x, module, config = sublayer_input(at), at.attention, at.model.config
        cross = self.sublayer == "cross"
        memory = stack_output(at.model, at.trace, "encoder") if cross else x
        q, k, v = (
            split_heads(linear(projection, states), config.n_heads)
            for projection, states in ((module.query, x), (module.key, memory), (module.value, memory))
        )
        if self._rotates(at.model):
            q, k = rotated(q), rotated(k)
        comes_in = (at.hidden("x", x),)
        if cross:
            comes_in += (Value("memory", memory, "source", "d_model", config.norm != "none", every_row=True),)
        return Computed(
            comes_in,
            (
                Value("q", at.taken("q"), at.rows, "d_head"),
                Value("k", at.taken("k"), at.keys, "d_head", every_row=cross),
                Value("v", at.taken("v"), at.keys, "d_head", every_row=cross),
            ),
            ((q, at.offered("q")), (k, at.offered("k")), (v, at.offered("v"))),
            "queries, keys and values of all heads, computed from what came in, against the recorded ones",
        )

    def tensors(self, model: Transformer) -> tuple[str, ...]:
        return ("q", "k", "v") if model.config.norm == "pre" else ("input", "q", "k", "v")

    def source(self, model: Transformer) -> tuple[Snippet, ...]:
        project, split = MultiHeadAttention._queries_keys_values, lines_of(MultiHeadAttention._split, "return x")
        if self.sublayer == "cross":
            return (lines_of(project, "q = self._split(self.query"), lines_of(project, "k, v = map"), split)
        joined = lines_of(project, "joined = ", "return self._turned")
        if not self._rotates(model):
            return (joined, split)
        return (joined, split, lines_of(positions.RotaryPositions.forward, "even, odd", "turned ="))

    def _rotates(self, model: Transformer) -> bool:
        return model.config.positions == "rotary" and self.sublayer == "self"


@dataclass(frozen=True)
class Products(Step):
    """The product of every query with every key."""

    name = "products"
    per_head = True

    def label(self, model: Transformer) -> str:
        return "v · tanh(q + k)" if model.config.score == "additive" else "MatMul QKᵀ"

    def text(self, model: Transformer, at: StepRecord | None = None) -> StepText:
        if model.config.score == "additive":
            return StepText(
                "Every query meets every key",
                "The chosen token's query is added to each key, number by number, and each sum is squeezed between −1 "
                "and 1. A learned vector *v* of the head weighs these numbers and adds them up: this decides who "
                "attends to whom.",
                r"S_{tj} = v^\top \tanh(q_t + k_j) = \sum_{i=1}^{d_k} v_i \tanh(q_{t,i} + k_{j,i})",
                "Additive attention: Bahdanau et al. 2015, appendix A.1.2; compared in section 3.2.1",
            )
        return StepText(
            "Every query meets every key",
            "The chosen token's query is multiplied with each key, number by number, and the products are summed. The "
            "better the two match, the larger the sum: this decides who attends to whom.",
            r"S = Q K^\top, \qquad S_{tj} = q_t \cdot k_j = \sum_{i=1}^{d_k} q_{t,i}\, k_{j,i}",
            "Section 3.2.1, inside eq. 1",
        )

    def compute(self, at: StepRecord) -> Computed:
        q, k = at.taken("q"), at.taken("k")
        products = _products(at)
        name = "scores" if self.tensors(at.model) else "products" if at.model.config.score == "additive" else "QKᵀ"
        return Computed(
            (Value("q", q, at.rows, "d_head"), Value("k", k, at.keys, "d_head", every_row=True)),
            (Value(name, products, at.rows, at.keys, recorded=False),),
            ((_scaled(at) + _penalty(at), at.offered("scores")),),
            "these products, brought to the scale of the recorded scores, against those",
        )

    def tensors(self, model: Transformer) -> tuple[str, ...]:
        later = (Scale(self.stack, self.sublayer), Penalty(self.stack, self.sublayer))
        return () if any(step.exists(model) for step in later) else ("scores",)

    def source(self, model: Transformer) -> tuple[Snippet, ...]:
        if model.config.score == "additive":
            return (lines_of(scores.Additive.forward, "met =", "return"),)
        return (lines_of(scores.DotProduct.forward, "products ="),)


@dataclass(frozen=True)
class Scale(Step):
    """The division by the root of d_k."""

    name = "scaled"
    per_head = True

    def exists(self, model: Transformer) -> bool:
        return model.config.score == "dot" and model.config.scale_scores

    def label(self, model: Transformer) -> str:
        return "Scale ÷ √dₖ"

    def text(self, model: Transformer, at: StepRecord | None = None) -> StepText:
        d_head = model.config.d_head
        return StepText(
            "Divided by √dₖ",
            f"A sum of {d_head} products grows with their number, and with large scores softmax would give all its "
            f"weight to one key and hardly let a gradient through. So every score is divided by √{d_head}.",
            rf"S / \sqrt{{d_k}} = S / \sqrt{{{d_head}}} = S / {d_head**0.5:.4g}",
            "Section 3.2.1, inside eq. 1",
        )

    def compute(self, at: StepRecord) -> Computed:
        scaled, recorded = _scaled(at), bool(self.tensors(at.model))
        shown = at.taken("scores") if recorded else scaled
        return Computed(
            (Value("QKᵀ", _products(at), at.rows, at.keys, recorded=False),),
            (Value("scores", shown, at.rows, at.keys, recorded=recorded),),
            ((scaled + _penalty(at), at.offered("scores")),),
            "all products divided by √d_k, against the recorded scores",
        )

    def tensors(self, model: Transformer) -> tuple[str, ...]:
        return () if Penalty(self.stack, self.sublayer).exists(model) else ("scores",)

    def source(self, model: Transformer) -> tuple[Snippet, ...]:
        return (lines_of(scores.DotProduct.forward, "return"),)


@dataclass(frozen=True)
class Penalty(Step):
    """ALiBi: scores lowered with the distance of query and key."""

    name = "penalty"
    per_head = True

    def exists(self, model: Transformer) -> bool:
        return model.config.positions == "alibi" and self.sublayer == "self"

    @property
    def in_paper(self) -> bool:
        return False

    def label(self, model: Transformer) -> str:
        return "− ALiBi penalty"

    def text(self, model: Transformer, at: StepRecord | None = None) -> StepText:
        return StepText(
            "Less for what is far away",
            "This model adds no positions to its tokens. Instead each score is lowered with the distance between query "
            "and key, by a slope of the head's own: some heads look near, others far.",
            r"S_{tj} - m_h\,\lvert t - j \rvert",
            "ALiBi: Press et al. 2022; not in the paper",
        )

    def compute(self, at: StepRecord) -> Computed:
        scaled, penalty = _scaled(at), _penalty(at)
        return Computed(
            (
                Value("scaled", scaled, at.rows, at.keys, recorded=False),
                Value("penalty", penalty, at.rows, at.keys, recorded=False),
            ),
            (Value("scores", at.taken("scores"), at.rows, at.keys),),
            ((scaled + penalty, at.offered("scores")),),
            "products and penalties added up, against the recorded scores",
        )

    def tensors(self, model: Transformer) -> tuple[str, ...]:
        return ("scores",)

    def source(self, model: Transformer) -> tuple[Snippet, ...]:
        explicit = attention.explicit_attention
        return (lines_of(positions.AlibiPositions.forward, "key =", "return"), lines_of(explicit, '"scores"'))


@dataclass(frozen=True)
class Mask(Step):
    """Which keys each query may see."""

    name = "masked"
    per_head = True
    exact = True

    def label(self, model: Transformer) -> str:
        return "Mask"

    def text(self, model: Transformer, at: StepRecord | None = None) -> StepText:
        title = "What may not be seen is hidden"
        hidden = 0 if at is None else self._n_hidden(at)
        open_ = "" if hidden else ", and nothing is hidden here"
        if (self.stack, self.sublayer) != ("decoder", "self"):
            says = (
                "Here the mask would hide the padding that makes the sentences of a batch equally long. A single "
                f"sentence has none{'' if hidden else ', so every entry stays open'}."
            )
        elif not model.config.causal_mask:
            title = "Later tokens are not hidden"
            says = f"This model was trained **without a causal mask**: every token may see the ones after it{open_}."
        elif at is not None and at.trace.sees_later:
            title = "Later tokens are not hidden"
            says = f"A switch has lifted the **causal mask**: every token of this pass sees the ones after it{open_}."
        else:
            says = (
                "No token may look at a later one: while the translation is being written, later ones do not exist "
                "yet. Their scores become −∞, so that softmax gives them exactly 0."
            )
        if hidden:
            says += f" Hidden by a switch: {hidden} {'entry' if hidden == 1 else 'entries'}."
        return StepText(
            title,
            says,
            r"S_{tj} + M_{tj}, \qquad M_{tj} = \begin{cases} 0 & \text{if } t \text{ may see } j \\ -\infty & "
            r"\text{if not} \end{cases}",
            "Section 3.2.3; figure 2, “Mask (opt.)”",
        )

    def compute(self, at: StepRecord) -> Computed:
        scores, mask = at.taken("scores"), at.taken("mask")[0]
        n_queries, n_keys = mask.shape
        causal = self._is_causal and at.model.config.causal_mask
        rule = torch.tensor([[not causal or key <= query for key in range(n_keys)] for query in range(n_queries)])
        return Computed(
            (Value("scores", scores, at.rows, at.keys),),
            (Value("masked", scores, at.rows, at.keys, allowed=mask),),
            ((rule.double(), at.offered("mask")[0].double()),),
            "who may see whom by the rule, against the recorded mask; largest difference of an entry",
        )

    def tensors(self, model: Transformer) -> tuple[str, ...]:
        return ("mask",)

    def source(self, model: Transformer) -> tuple[Snippet, ...]:
        where = lines_of(attention.masked_softmax, "floor =", "return")
        if not self._is_causal:
            return (where,)
        return (lines_of(Transformer._target_mask, "if not", "return combine"), where)

    @property
    def _is_causal(self) -> bool:
        return (self.stack, self.sublayer) == ("decoder", "self")

    def _n_hidden(self, at: StepRecord) -> int:
        """The entries that this mask hides and the causal mask does not."""
        allowed = at.taken("mask")[0]
        seen = torch.ones_like(allowed).tril() if self._is_causal and not at.trace.sees_later else True
        return int((~allowed & seen).sum())


@dataclass(frozen=True)
class Weights(Step):
    """The softmax of each row of scores."""

    name = "weights"
    per_head = True

    def label(self, model: Transformer) -> str:
        return "Softmax"

    def text(self, model: Transformer, at: StepRecord | None = None) -> StepText:
        return StepText(
            "Softmax: weights that sum to 1",
            "Each row of scores becomes a row of weights: none below 0, and 1 in all (all 0 where nothing may be "
            "seen). This is **attention**: how the chosen token divides its attention over all that it may see. The "
            "figures on the other pages show these numbers.",
            r"A_{tj} = \frac{e^{S_{tj} + M_{tj}}}{\sum_{j'} e^{S_{tj'} + M_{tj'}}}",
            "Section 3.2.1, eq. 1",
        )

    def compute(self, at: StepRecord) -> Computed:
        scores, mask = at.taken("scores"), at.taken("mask")[0]
        return Computed(
            (Value("scores", scores, at.rows, at.keys, allowed=mask),),
            (Value("weights", at.taken("weights"), at.rows, at.keys, allowed=mask),),
            ((softmax(scores, mask), at.offered("weights")),),
            "the softmax of the recorded scores under the recorded mask, against the recorded weights",
        )

    def tensors(self, model: Transformer) -> tuple[str, ...]:
        return ("weights",)

    def source(self, model: Transformer) -> tuple[Snippet, ...]:
        weights = lines_of(attention.explicit_attention, "weights = masked")
        return (weights, lines_of(attention.masked_softmax, "return"))


@dataclass(frozen=True)
class Context(Step):
    """The values, averaged by the weights."""

    name = "context"
    per_head = True

    def label(self, model: Transformer) -> str:
        return "MatMul with V"

    def text(self, model: Transformer, at: StepRecord | None = None) -> StepText:
        score = score_equation(model.config)
        if Penalty(self.stack, self.sublayer).exists(model):
            score += r" - m_h\,\lvert t - j \rvert"
        return StepText(
            "Values, mixed by these weights",
            "What the head found: the values of all tokens, each multiplied by its weight, summed. A token with weight "
            "0.9 contributes nine tenths of the mixture.",
            rf"\mathrm{{head}} = A V = \mathrm{{softmax}}\!\left({score} + M\right) V",
            "Section 3.2.1, eq. 1",
        )

    def compute(self, at: StepRecord) -> Computed:
        weights, v = at.taken("weights"), at.taken("v")
        return Computed(
            (
                Value("weights", weights, at.rows, at.keys, allowed=at.taken("mask")[0]),
                Value("v", v, at.keys, "d_head", every_row=True),
            ),
            (Value("head", at.taken("heads"), at.rows, "d_head"),),
            ((weights.double() @ v.double(), at.offered("heads")),),
            "the recorded weights times the recorded values, against the recorded context of every head",
        )

    def tensors(self, model: Transformer) -> tuple[str, ...]:
        return ("heads",)

    def source(self, model: Transformer) -> tuple[Snippet, ...]:
        return (lines_of(attention.explicit_attention, "return offer"),)


@dataclass(frozen=True)
class Concat(Step):
    """What all heads found, side by side."""

    name = "concat"

    def label(self, model: Transformer) -> str:
        return "Concat"

    def text(self, model: Transformer, at: StepRecord | None = None) -> StepText:
        config = model.config
        return StepText(
            "All heads side by side",
            f"The {config.n_heads} heads have looked at different things. Their findings of {config.d_head} numbers "
            f"each are put in a row: {config.d_model} numbers again."
            if config.n_heads > 1
            else f"There is only one head: its {config.d_head} numbers go on as they are.",
            r"\mathrm{Concat}(\mathrm{head}_1, \dots, \mathrm{head}_h)",
            "Section 3.2.2",
        )

    def compute(self, at: StepRecord) -> Computed:
        heads = at.taken("heads")
        row = join_heads(heads)
        return Computed(
            tuple(Value(f"head {i}", head, at.rows, "d_head") for i, head in enumerate(heads)),
            (at.hidden("concat", row, recorded=False),),
            ((linear(at.attention.output, row), at.offered("output")),),
            "this row of heads times W_O, against the recorded output",
        )

    def source(self, model: Transformer) -> tuple[Snippet, ...]:
        return (lines_of(MultiHeadAttention.forward, "return self.output"),)


@dataclass(frozen=True)
class OutputProjection(Step):
    """The last linear map of attention, which mixes the heads."""

    name = "output"

    def label(self, model: Transformer) -> str:
        return "Linear Wᴼ"

    def text(self, model: Transformer, at: StepRecord | None = None) -> StepText:
        return StepText(
            "Wᴼ mixes the heads",
            "A last matrix lets every dimension of the result hear every head. What comes out is what this sublayer "
            "has to say about the token.",
            r"\mathrm{MultiHead} = \mathrm{Concat}(\mathrm{head}_1, \dots, \mathrm{head}_h)\, W^O + b^O",
            "Section 3.2.2 (the paper has no bias)",
        )

    def compute(self, at: StepRecord) -> Computed:
        row = join_heads(at.taken("heads"))
        return Computed(
            (at.hidden("concat", row, recorded=False),),
            (at.hidden("output", at.taken("output")),),
            ((linear(at.attention.output, row), at.offered("output")),),
            "the joined heads times W_O plus its bias, against the recorded output",
        )

    def tensors(self, model: Transformer) -> tuple[str, ...]:
        return ("output",)

    def source(self, model: Transformer) -> tuple[Snippet, ...]:
        return (lines_of(MultiHeadAttention.forward, "return self.output"),)


def _products(at: StepRecord) -> Tensor:
    """The scores of the queries and keys that the pass went on with, before any division."""
    q, k = at.taken("q").double().numpy(), at.taken("k").double().numpy()
    return torch.from_numpy(reference_scores(at.model, at.attention, q, k) * reference_divisor(at.model))


def _scaled(at: StepRecord) -> Tensor:
    """The products, divided by √d_k where the model does so."""
    return _products(at) / reference_divisor(at.model)


def _penalty(at: StepRecord) -> Tensor:
    """What ALiBi adds to the scores; 0 in other models."""
    if not Penalty(at.step.stack, at.step.sublayer).exists(at.model):
        return torch.zeros((), dtype=torch.float64)
    return distance_penalty(at.model.config.n_heads, at.taken("q").size(1), at.taken("k").size(1))


ATTENTION_STEPS: tuple[type[Step], ...] = (
    Projections,
    Products,
    Scale,
    Penalty,
    Mask,
    Weights,
    Context,
    Concat,
    OutputProjection,
)
"""In the order of computation."""
