"""The steps of a recurrent model's attention: one head, from the decoder's state over the encoder's states."""

from functools import cached_property

import torch
from torch import Tensor

from transformer.analysis.attention.score_reference import one_head_scores
from transformer.analysis.trace.attention_steps import Context, Mask, Products, Weights
from transformer.analysis.trace.recurrent.passes import layer_pass
from transformer.analysis.trace.reference import linear
from transformer.analysis.trace.step import Computed, Lines, Step, StepRecord, Words, layer_output
from transformer.config import ScoreKind
from transformer.model.recurrent import RecurrentAttention, RecurrentModel, Source
from transformer.model.scores import score_equation

_BAHDANAU = "Bahdanau et al. 2015, appendix A.1.2"
_LUONG = "Luong et al. 2015, eq. 8"


class Asked(Step):
    """The state that asks, and the states that are asked."""

    name = "qkv"
    title = "The decoder asks the sentence"
    tensors = ("q", "k", "v")
    in_paper = False
    per_head = True

    @cached_property
    def label(self) -> str:
        return {"additive": "W s, U h", "general": "W s, h"}.get(self.model.config.attention, "s, h")

    def words(self, at: StepRecord | None = None) -> Words:
        kind = self.model.config.attention
        says = (
            "Here is what the one vector lacked: the decoder may look at **every** state of the encoder. "
            + (
                "The state *before* the token asks (Bahdanau's order)."
                if kind == "additive"
                else "The state at the token asks (Luong's order)."
            )
            + " The paper's words fit: the decoder's state is the **query**, the encoder's states are the **keys**, "
            "and these same states, unchanged, are the **values** that will be mixed."
        )
        asks = r"s_{t-1}" if kind == "additive" else r"s_t"
        query = {"additive": rf"W {asks} + b", "general": rf"W {asks}"}.get(kind, asks)
        key = r"U h_j" if kind == "additive" else r"h_j"
        return Words(self.title, says, rf"q_t = {query}, \quad k_j = {key}, \quad v_j = h_j", self.paper)

    @property
    def paper(self) -> str:  # type: ignore[override]
        return _paper(self.model)

    @cached_property
    def lines(self) -> tuple[Lines, ...]:
        forward, keys = RecurrentAttention.forward, RecurrentAttention.keys
        return ((forward, "q = self.query"), (keys, "return"), (Source.__init__, "self._values ="))

    def compute(self, at: StepRecord) -> Computed:
        asked, states = (
            _asking(at),
            layer_output(self.model, at.trace, "encoder", self.model.config.n_encoder_layers - 1),
        )
        q, k = (
            linear(map_, x) if isinstance(map_, torch.nn.Linear) else x.double()
            for map_, x in ((self.model.attention.query, asked), (self.model.attention.key, states))
        )
        before = self.model.config.attention == "additive"
        return Computed(
            (
                at.value("state before" if before else "state", asked, recorded=not before),
                at.value("states", states, rows="source", every_row=True),
            ),
            (
                at.result("q", at.taken("q"), "d_head"),
                at.result("k", at.taken("k"), "d_head", rows="source", every_row=True),
                at.result("v", at.taken("v"), "d_head", rows="source", every_row=True),
            ),
            ((q[None], at.offered("q")), (k[None], at.offered("k")), (states.double()[None], at.offered("v"))),
            "query, keys and values computed from what came in, against the recorded ones",
        )


class Scores(Products):
    """The score of every decoder state with every encoder state; it is not scaled."""

    title = "Every state meets every state"
    tensors = ("scores",)
    in_paper = False

    def words(self, at: StepRecord | None = None) -> Words:
        equation = rf"S_{{tj}} = {score_equation(self.model.config)}"
        if self._kind == "additive":
            says = (
                "The query is added to each key, number by number, and each sum is squeezed between −1 and 1: a small "
                "neural network with one hidden layer. A learned vector *v* weighs these numbers and adds them up."
            )
            equation = r"S_{tj} = v^\top \tanh(q_t + k_j) = v^\top \tanh(W s_{t-1} + b + U h_j)"
        else:
            says = (
                "The query is multiplied with each key, number by number, and the products are summed. The better the "
                "two match, the larger the sum. Nothing is divided by √d: that came with the Transformer."
            )
        return Words(self.title, says, equation, _paper(self.model))

    def compute(self, at: StepRecord) -> Computed:
        q, k = at.taken("q")[0].double().numpy(), at.taken("k")[0].double().numpy()
        found = torch.stack([torch.from_numpy(one_head_scores(self.model, row, k)) for row in q])[None]
        return Computed(
            (
                at.value("q", at.taken("q"), "d_head"),
                at.value("k", at.taken("k"), "d_head", rows="source", every_row=True),
            ),
            (at.result("scores", at.taken("scores"), "source"),),
            ((found, at.offered("scores")),),
            "all scores computed from the recorded queries and keys, against the recorded ones",
        )

    @property
    def _kind(self) -> ScoreKind:
        return "additive" if self.model.config.attention == "additive" else "dot"  # W of general attention is in q


class PaddingMask(Mask):
    """The padding, which no state may look at."""

    paper = "The decoder's causal mask (section 3.2.3) is not needed: a recurrent decoder has seen nothing later"
    in_paper = False


class Alignment(Weights):
    """The softmax of each row of scores: the soft alignment of a target token with the source."""

    says = (
        "Each row of scores becomes a row of weights: none below 0, and 1 in all. Bahdanau et al. called it a soft "
        "**alignment**: where in the sentence the decoder looks while it writes this token. The Attention page shows "
        "these numbers."
    )
    paper = "Bahdanau et al. 2015, eq. 6; in the Transformer section 3.2.1, eq. 1"
    in_paper = False


class Gathered(Context):
    """The encoder's states, averaged by the weights."""

    label = "Context c"
    title = "The states, mixed by these weights"
    says = (
        "The **context**: the states of all source tokens, each multiplied by its weight, summed. It is a vector of "
        "this step's own, where a model without attention has the same one vector at every step."
    )
    equation = r"c_t = \textstyle\sum_j A_{tj}\, h_j"
    paper = "Bahdanau et al. 2015, eq. 5"
    tensors = ("heads", "output")
    in_paper = False
    lines = (*Context.lines, (RecurrentAttention.forward, "heads =", "return"))

    def compute(self, at: StepRecord) -> Computed:
        found, handed_on = super().compute(at), at.taken("output")
        heads = at.taken("heads")[0]
        out = found.comes_out
        if not torch.equal(handed_on, heads):
            out = (*out, at.result("handed on", handed_on))
        return Computed(found.comes_in, out, (*found.equal, (heads.double(), at.offered("output"))), found.how)


def _asking(at: StepRecord) -> Tensor:
    """Returns the states that ask: in Bahdanau's order those before each token."""
    model: RecurrentModel = at.step.model
    last = model.config.n_decoder_layers - 1
    if model.config.attention == "additive":
        return layer_pass(model, at.trace, "decoder", last).states_before
    return layer_output(model, at.trace, "decoder", last)


def _paper(model: RecurrentModel) -> str:
    return _BAHDANAU if model.config.attention == "additive" else _LUONG


ASKING_STEPS: tuple[type[Step], ...] = (Asked, Scores, PaddingMask, Alignment, Gathered)
"""The steps in the order of computation."""
