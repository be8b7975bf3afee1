"""The steps inside multi-head attention, from the three projections to the last one (section 3.2)."""

from functools import cached_property

import torch
from torch import Tensor

from transformer.analysis.attention.mask_reference import may_see
from transformer.analysis.attention.score_reference import reference_divisor, reference_scores
from transformer.analysis.trace.reference import distance_penalty, join_heads, linear, rotated, softmax, split_heads
from transformer.analysis.trace.step import Computed, Lines, Step, StepRecord, Words, stack_output, sublayer_input
from transformer.config import ScoreKind
from transformer.model import attention, positions
from transformer.model.attention import MultiHeadAttention
from transformer.model.kinds import AttentionKind
from transformer.model.mask_rules import limits_of, rules_of
from transformer.model.masks import open_to
from transformer.model.score_forms import SCORE_FORMS, ScoreForm
from transformer.model.scores import SCORES, score_equation
from transformer.model.transformer import Transformer


class Projections(Step):
    """Queries, keys and values of every head; with rotary positions turned."""

    name = "qkv"
    title = "Queries, keys and values"
    per_head = True

    @cached_property
    def label(self) -> str:
        return "Q, K, V, rotated" if self._rotates else "Q, K, V"

    def words(self, at: StepRecord | None = None) -> Words:
        n_heads, d_head = self.model.config.n_heads, self.model.config.d_head
        memory = "M" if self.sublayer == "cross" else "X"
        says = (
            "**Queries** come from the translation so far; **keys** and **values** from *M*, what the encoder made of "
            "the sentence. This is where the two meet."
            if self.sublayer == "cross"
            else "Each token's vector is turned into three others: a **query** (what it is looking for), a **key** "
            "(what it can be found by) and a **value** (what it gives to those who find it)."
        )
        if n_heads > 1:
            says += f" Each of the {n_heads} heads has {d_head} dimensions of its own."
        else:
            says += f" The one head has all {d_head} dimensions."
        equation = rf"Q = X W^Q + b^Q, \quad K = {memory} W^K + b^K, \quad V = {memory} W^V + b^V"
        paper = "Section 3.2.2 (the paper has no biases)"
        if self._rotates:
            says += (
                " Queries and keys are then rotated, two dimensions at a time, by an angle that grows with position."
            )
            equation = (
                r"\begin{aligned} Q &= R_t\,(X W^Q + b^Q), \quad K = R_t\,(X W^K + b^K), \quad V = X W^V + b^V \\ "
                r"R_t &: \text{ rotates dimensions } 2i, 2i{+}1 \text{ by } t / 10000^{2i/d_k} \end{aligned}"
            )
            paper = "Section 3.2.2; the rotation: Su et al. 2021 (RoFormer, eq. 34)"
        return Words(self.title, says, equation, paper)

    @cached_property
    def tensors(self) -> tuple[str, ...]:
        return ("q", "k", "v") if self.model.config.norm == "pre" else ("input", "q", "k", "v")

    @cached_property
    def lines(self) -> tuple[Lines, ...]:
        project, split = MultiHeadAttention._queries_keys_values, (MultiHeadAttention._split, "return x")
        if self.sublayer == "cross":
            return ((project, "q = self._split(self.query"), (project, "k, v = map"), split)
        joined = (project, "joined = ", "return self._turned")
        if not self._rotates:
            return (joined, split)
        return (joined, split, (positions.RotaryPositions.forward, "even, odd", "turned ="))

    def compute(self, at: StepRecord) -> Computed:
        x, module = sublayer_input(at), at.attention
        cross = self.sublayer == "cross"
        memory = stack_output(self.model, at.trace, "encoder") if cross else x
        q, k, v = (
            split_heads(linear(projection, states), self.model.config.n_heads)
            for projection, states in ((module.query, x), (module.key, memory), (module.value, memory))
        )
        if self._rotates:
            q, k = rotated(q), rotated(k)
        comes_in = (at.value("x", x),)
        if cross:
            recorded = self.model.config.norm != "none"
            comes_in += (at.value("memory", memory, rows="source", recorded=recorded, every_row=True),)
        return Computed(
            comes_in,
            (
                at.result("q", at.taken("q"), "d_head"),
                at.result("k", at.taken("k"), "d_head", rows=at.keys, every_row=cross),
                at.result("v", at.taken("v"), "d_head", rows=at.keys, every_row=cross),
            ),
            ((q, at.offered("q")), (k, at.offered("k")), (v, at.offered("v"))),
            "queries, keys and values of all heads, computed from what came in, against the recorded ones",
        )

    @property
    def _rotates(self) -> bool:
        return self.model.config.positions == "rotary" and self.sublayer == "self"


class Products(Step):
    """The product of every query with every key."""

    name = "products"
    title = "Every query meets every key"
    per_head = True

    @cached_property
    def label(self) -> str:
        return f"MatMul {self._form.matrices}" if self._form.is_divided else self._form.matrices

    @cached_property
    def is_product(self) -> bool:
        return self._kind == "dot"

    def words(self, at: StepRecord | None = None) -> Words:
        form = self._form
        equation = rf"S_{{tj}} = {form.pair('q_t', 'k_j')} = \sum_{{i=1}}^{{d_k}} {form.term('t,', 'j,')}"
        if form.is_bilinear:
            equation = rf"S = {form.equation}, \qquad {equation}"
        return Words(self.title, form.says, equation, form.paper)

    @cached_property
    def tensors(self) -> tuple[str, ...]:
        later = (Scale(self.model, self.stack, self.sublayer), Penalty(self.model, self.stack, self.sublayer))
        return () if any(step.exists for step in later) else ("scores",)

    @cached_property
    def lines(self) -> tuple[Lines, ...]:
        score = SCORES[self._kind]
        return ((score.forward, *score.product_lines),)

    def compute(self, at: StepRecord) -> Computed:
        name = "scores" if self.tensors else self._form.matrices if self._form.is_divided else "products"
        return Computed(
            (
                at.value("q", at.taken("q"), "d_head"),
                at.value("k", at.taken("k"), "d_head", rows=at.keys, every_row=True),
            ),
            (at.value(name, _products(at), at.keys, recorded=False),),
            ((_scaled(at) + _penalty(at), at.offered("scores")),),
            "these products, brought to the scale of the recorded scores, against those",
        )

    @property
    def _kind(self) -> ScoreKind:
        return self.model.config.score

    @property
    def _form(self) -> ScoreForm:
        return SCORE_FORMS[self._kind]


class Scale(Step):
    """The division by the root of d_k."""

    name = "scaled"
    label = "Scale ÷ √dₖ"
    title = "Divided by √dₖ"
    paper = "Section 3.2.1, inside eq. 1"
    per_head = True

    @cached_property
    def exists(self) -> bool:
        return reference_divisor(self.model) != 1

    @cached_property
    def lines(self) -> tuple[Lines, ...]:
        return ((SCORES[self.model.config.score].forward, "return"),)

    @cached_property
    def says(self) -> str:
        d_head = self.model.config.d_head
        return (
            f"A sum of {d_head} products grows with their number, and large scores saturate the softmax: they give all "
            f"weight to one key and leave almost no gradient. So every score is divided by √{d_head}."
        )

    @cached_property
    def equation(self) -> str:
        d_head = self.model.config.d_head
        return rf"S / \sqrt{{d_k}} = S / \sqrt{{{d_head}}} = S / {d_head**0.5:.4g}"

    @cached_property
    def tensors(self) -> tuple[str, ...]:
        return () if Penalty(self.model, self.stack, self.sublayer).exists else ("scores",)

    def compute(self, at: StepRecord) -> Computed:
        scaled, recorded = _scaled(at), bool(self.tensors)
        return Computed(
            (at.value(SCORE_FORMS[self.model.config.score].matrices, _products(at), at.keys, recorded=False),),
            (at.result("scores", at.taken("scores") if recorded else scaled, at.keys, recorded=recorded),),
            ((scaled + _penalty(at), at.offered("scores")),),
            "all products divided by √d_k, against the recorded scores",
        )


class Penalty(Step):
    """The ALiBi penalty, which lowers scores with the distance of query and key."""

    name = "penalty"
    label = "− ALiBi penalty"
    title = "Less for what is far away"
    says = (
        "This model adds no positions to its tokens. Instead each score is lowered with the distance between query "
        "and key, by a slope of the head's own: some heads look near, others far."
    )
    equation = r"S_{tj} - m_h\,\lvert t - j \rvert"
    paper = "ALiBi: Press et al. 2022; not in the paper"
    lines = ((positions.AlibiPositions.forward, "key =", "return"), (attention.explicit_attention, '"scores"'))
    tensors = ("scores",)
    in_paper = False
    per_head = True

    @cached_property
    def exists(self) -> bool:
        return self.model.config.positions == "alibi" and self.sublayer == "self"

    def compute(self, at: StepRecord) -> Computed:
        scaled, penalty = _scaled(at), _penalty(at)
        return Computed(
            (
                at.value("scaled", scaled, at.keys, recorded=False),
                at.value("penalty", penalty, at.keys, recorded=False),
            ),
            (at.result("scores", at.taken("scores"), at.keys),),
            ((scaled + penalty, at.offered("scores")),),
            "products and penalties added up, against the recorded scores",
        )


class Mask(Step):
    """The keys that each query may see."""

    name = "masked"
    label = "Mask"
    title = "Masking: hide what must not be seen"
    equation = (
        r"S_{tj} + M_{tj}, \qquad M_{tj} = \begin{cases} 0 & \text{if } t \text{ may see } j \\ -\infty & "
        r"\text{if not} \end{cases}"
    )
    paper = "Section 3.2.3; figure 2, “Mask (opt.)”"
    tensors = ("mask",)
    per_head = True
    exact = True

    def words(self, at: StepRecord | None = None) -> Words:
        title, hidden = self.title, 0 if at is None else self._n_hidden(at)
        lifts = set() if at is None else _lifts(at)
        rules = rules_of(self.model.config, self._kind)
        limits = " ".join(limits_of(self.model.config, self._kind, but=lifts))
        open_ = "" if hidden or limits else ", and nothing is hidden here"
        if not self._is_causal and limits:
            says = (
                f"{limits} Scores further away become −∞, so that softmax gives them exactly 0. The mask would also "
                "hide padding, of which a single sentence has none."
            )
        elif not self._is_causal:
            says = (
                "Here the mask would hide the padding that makes the sentences of a batch equally long. A single "
                f"sentence has none{'' if hidden else ', so every entry stays open'}."
            )
        elif not self.model.config.causal_mask:
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
        says += f" {limits}" if self._is_causal and limits else ""
        for rule in rules:
            if rule.name in lifts and rule.says(self.model.config):
                says += f" A switch has lifted the **{rule.label}**."
        if hidden:
            says += f" Hidden by a switch: {hidden} {'entry' if hidden == 1 else 'entries'}."
        paper = f"{self.paper}; restricted self-attention: section 4" if limits else self.paper
        return Words(title, says, self.equation, paper)

    @cached_property
    def lines(self) -> tuple[Lines, ...]:
        where = (attention.masked_softmax, "floor =", "return")
        has_rules = self._is_causal or bool(rules_of(self.model.config, self._kind))
        return ((Transformer._self_mask, "rules", "return key_mask"), where) if has_rules else (where,)

    def compute(self, at: StepRecord) -> Computed:
        scores, mask = at.taken("scores"), at.taken("mask")[0]
        n_queries, n_keys = mask.shape
        config, kind = self.model.config, self._kind
        rule = torch.tensor(
            [[may_see(config, kind, query, key) for key in range(n_keys)] for query in range(n_queries)]
        )
        return Computed(
            (at.value("scores", scores, at.keys),),
            (at.result("masked", scores, at.keys, allowed=mask),),
            ((rule.double(), at.offered("mask")[0].double()),),
            "who may see whom by the rule, against the recorded mask; largest difference of an entry",
        )

    @property
    def _kind(self) -> AttentionKind:
        return AttentionKind.at(self.stack, self.sublayer or "")

    @property
    def _is_causal(self) -> bool:
        return self._kind is AttentionKind.DECODER_SELF

    def _n_hidden(self, at: StepRecord) -> int:
        """Counts the entries that this mask hides and the rules that hold in this pass do not."""
        allowed = at.taken("mask")[0]
        rules = open_to(self.model.config, self._kind, *allowed.shape, but=_lifts(at))
        return int((~allowed if rules is None else ~allowed & rules).sum())


def _lifts(at: StepRecord) -> set[str]:
    """Returns the names of the masks that switches of this pass have lifted."""
    return {mask for spec in at.trace.interventions for mask in spec.lifts}


class Weights(Step):
    """The softmax of each row of scores."""

    name = "weights"
    label = "Softmax"
    title = "Softmax: weights that sum to 1"
    says = (
        "Each row of scores becomes a row of weights: none below 0, and 1 in all (all 0 where nothing may be seen). "
        "This is **attention**: how the chosen token divides its attention over all that it may see. The figures on "
        "the other pages show these numbers."
    )
    equation = r"A_{tj} = \frac{e^{S_{tj} + M_{tj}}}{\sum_{j'} e^{S_{tj'} + M_{tj'}}}"
    paper = "Section 3.2.1, eq. 1"
    lines = ((attention.explicit_attention, "weights = masked"), (attention.masked_softmax, "return"))
    tensors = ("weights",)
    per_head = True

    def compute(self, at: StepRecord) -> Computed:
        scores, mask = at.taken("scores"), at.taken("mask")[0]
        return Computed(
            (at.value("scores", scores, at.keys, allowed=mask),),
            (at.result("weights", at.taken("weights"), at.keys, allowed=mask),),
            ((softmax(scores, mask), at.offered("weights")),),
            "the softmax of the recorded scores under the recorded mask, against the recorded weights",
        )


class Context(Step):
    """The values, averaged by the weights."""

    name = "context"
    label = "MatMul with V"
    title = "Values, mixed by these weights"
    says = (
        "What the head found: the values of all tokens, each multiplied by its weight, summed. A token with weight 0.9 "
        "contributes nine tenths of the mixture."
    )
    paper = "Section 3.2.1, eq. 1"
    lines = ((attention.explicit_attention, "return offer"),)
    tensors = ("heads",)
    per_head = True
    is_product = True

    @cached_property
    def equation(self) -> str:
        score = score_equation(self.model.config)
        if Penalty(self.model, self.stack, self.sublayer).exists:
            score += r" - m_h\,\lvert t - j \rvert"
        return rf"\mathrm{{head}} = A V = \mathrm{{softmax}}\!\left({score} + M\right) V"

    def compute(self, at: StepRecord) -> Computed:
        weights, v = at.taken("weights"), at.taken("v")
        return Computed(
            (
                at.value("weights", weights, at.keys, allowed=at.taken("mask")[0]),
                at.value("v", v, "d_head", rows=at.keys, every_row=True),
            ),
            (at.result("head", at.taken("heads"), "d_head"),),
            ((weights.double() @ v.double(), at.offered("heads")),),
            "the recorded weights times the recorded values, against the recorded context of every head",
        )


class Concat(Step):
    """The findings of all heads side by side."""

    name = "concat"
    label = "Concat"
    title = "All heads side by side"
    equation = r"\mathrm{Concat}(\mathrm{head}_1, \dots, \mathrm{head}_h)"
    paper = "Section 3.2.2"
    lines = ((MultiHeadAttention.forward, "return self.output"),)

    @cached_property
    def says(self) -> str:
        if self.model.config.n_heads == 1:
            return f"There is only one head: its {self.model.config.d_head} numbers go on as they are."
        return (
            f"The {self.model.config.n_heads} heads have looked at different things. Their findings of "
            f"{self.model.config.d_head} numbers each are put in a row: {self.model.config.d_model} numbers again."
        )

    def compute(self, at: StepRecord) -> Computed:
        heads = at.taken("heads")
        row = join_heads(heads)
        return Computed(
            tuple(at.value(f"head {i}", head, "d_head") for i, head in enumerate(heads)),
            (at.value("concat", row, recorded=False),),
            ((linear(at.attention.output, row), at.offered("output")),),
            "this row of heads times W_O, against the recorded output",
        )


class OutputProjection(Step):
    """The last linear map of attention, which mixes the heads."""

    name = "output"
    label = "Linear Wᴼ"
    title = "Wᴼ mixes the heads"
    says = (
        "A last matrix lets every dimension of the result hear every head. What comes out is what this sublayer has to "
        "say about the token."
    )
    equation = r"\mathrm{MultiHead} = \mathrm{Concat}(\mathrm{head}_1, \dots, \mathrm{head}_h)\, W^O + b^O"
    paper = "Section 3.2.2 (the paper has no bias)"
    lines = ((MultiHeadAttention.forward, "return self.output"),)
    tensors = ("output",)

    def compute(self, at: StepRecord) -> Computed:
        row = join_heads(at.taken("heads"))
        return Computed(
            (at.value("concat", row, recorded=False),),
            (at.result("output", at.taken("output")),),
            ((linear(at.attention.output, row), at.offered("output")),),
            "the joined heads times W_O plus its bias, against the recorded output",
        )


def _products(at: StepRecord) -> Tensor:
    """Returns the scores of the queries and keys that the pass went on with, before any division."""
    q, k = at.taken("q").double().numpy(), at.taken("k").double().numpy()
    model = at.step.model
    return torch.from_numpy(reference_scores(model, at.attention, q, k) * reference_divisor(model))


def _scaled(at: StepRecord) -> Tensor:
    """Returns the products, divided by √d_k where the model does so."""
    return _products(at) / reference_divisor(at.step.model)


def _penalty(at: StepRecord) -> Tensor:
    """Returns what ALiBi adds to the scores; 0 in other models."""
    step = at.step
    if not Penalty(step.model, step.stack, step.sublayer).exists:
        return torch.zeros((), dtype=torch.float64)
    return distance_penalty(step.model.config.n_heads, at.taken("q").size(1), at.taken("k").size(1))


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
"""The steps in the order of computation."""
