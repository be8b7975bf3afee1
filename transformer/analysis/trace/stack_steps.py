"""The steps at both ends of a stack: ids, embedding, positions; all layers; logits and probabilities (sections 3.1, 3.4
and 3.5)."""

from functools import cached_property

import torch

from transformer.analysis.checks import softmax_units
from transformer.analysis.trace.reference import layer_norm, linear, sinusoids, softmax
from transformer.analysis.trace.step import (
    Computed,
    Lines,
    Step,
    StepRecord,
    Words,
    layer_output,
    n_layers,
    stack_output,
)
from transformer.analysis.trace.sublayer_steps import LAYER_NORM
from transformer.data import batches
from transformer.decoding import greedy
from transformer.model import positions, transformer
from transformer.model.taps import Site
from transformer.model.transformer import Decoder, Embedding, Encoder, Transformer


class SourceIds(Step):
    """The sentence as token ids."""

    stacks = ("encoder",)
    name = "ids"
    label = "Inputs"
    title = "Words become numbers"
    says = (
        "The sentence is cut into tokens, and each token is looked up in the vocabulary: from here on it is a number. "
        "An end mark is added."
    )
    paper = "Section 3.4"
    lines = ((batches.encode_sources, "tokenizer.encode"), (batches.encode_sources, "return _padded"))
    exact = True

    @cached_property
    def equation(self) -> str:
        return rf"\text{{token}} \;\mapsto\; i \in \{{0, \dots, {self.model.config.vocab_size - 1}\}}"

    def compute(self, at: StepRecord) -> Computed:
        ids, again = torch.tensor(at.trace.source), torch.tensor(at.trace.source_again)
        how = "the sentence looked up again in the vocabulary; largest difference of an id"
        return Computed((), (at.value("ids", ids[:, None], "id"),), ((again, ids),), how)


class TargetIds(Step):
    """The output so far as token ids."""

    stacks = ("decoder",)
    name = "ids"
    label = "Outputs (shifted right)"
    title = "What it has written, shifted right"
    says = (
        "The decoder reads its own output, one place later: first the start mark, then each token it has just written. "
        "At every position it has to predict the token that comes **next**."
    )
    equation = r"(y_1, \dots, y_m) \;\mapsto\; (\text{<s>},\, y_1, \dots, y_{m-1})"
    paper = "Section 3.1; figure 1, “outputs (shifted right)”"
    lines = ((greedy.token_by_token, "model.config.bos_id"), (greedy.token_by_token, "search.logits(chosen)"))
    exact = True

    def compute(self, at: StepRecord) -> Computed:
        best = torch.tensor(at.trace.log_probs).clone()
        best[:, self.model.config.pad_id] = -torch.inf
        wrong = (best.argmax(dim=-1) != torch.tensor(at.trace.target)).sum()
        how = "the most probable token of each step against what the next one read; tokens that differ"
        shown = at.value("ids", torch.tensor(at.trace.inputs)[:, None], "id")
        return Computed((), (shown,), ((wrong, torch.zeros_like(wrong)),), how)


class TokenEmbedding(Step):
    """The rows of the embedding matrix, times √d_model."""

    name = "embedding"
    title = "Each number becomes a vector"
    paper = "Section 3.4"
    lines = ((Embedding.forward, '"embedding"'),)
    tensors = ("embedding",)

    @cached_property
    def label(self) -> str:
        return "Output embedding" if self.stack == "decoder" else "Input embedding"

    @cached_property
    def says(self) -> str:
        d_model = self.model.config.d_model
        why = ", so that the positions do not swamp them" if AddedPositions(self.model, self.stack).exists else ""
        tied = " Source and target share this matrix." if self.model.config.tie_embeddings else ""
        return (
            f"Row *i* of a learned matrix *E* is what the model knows of token *i* by itself: {d_model} numbers. They "
            f"are multiplied by √{d_model}{why}.{tied}"
        )

    @cached_property
    def equation(self) -> str:
        return rf"e_t = \sqrt{{d_{{\text{{model}}}}}}\; E_{{i_t}} = \sqrt{{{self.model.config.d_model}}}\; E_{{i_t}}"

    def compute(self, at: StepRecord) -> Computed:
        ids = torch.tensor(at.trace.source if self.stack == "encoder" else at.trace.inputs)
        rows = at.token_vectors[ids]
        return Computed(
            (at.value("ids", ids[:, None], "id"), at.value("row of E", rows, recorded=False)),
            (at.result("embedding", at.taken("embedding")),),
            ((rows.double() * self.model.config.d_model**0.5, at.offered("embedding")),),
            "the rows of the embedding matrix times √d_model, against the recorded embeddings",
        )


class AddedPositions(Step):
    """Positions added to the embeddings."""

    name = "positions"
    label = "+ position"
    title = "Its position is added"
    tensors = ("positions",)

    @cached_property
    def exists(self) -> bool:
        return self.model.config.positions in ("sinusoidal", "learned")

    def words(self, at: StepRecord | None = None) -> Words:
        says = "Attention alone cannot tell first from last. So to each token's vector "
        if self._is_learned:
            return Words(
                self.title,
                f"{says}a row of a learned table is added: the row of its position.",
                r"x^{(0)}_t = e_t + P_t",
                "Section 3.5, the learned variant (table 3, row E)",
            )
        return Words(
            self.title,
            f"{says}a pattern of sines and cosines is added that depends on its position alone: fast waves in the "
            "first dimensions, slow ones in the last.",
            r"x^{(0)}_t = e_t + PE_t, \qquad \begin{aligned} "
            r"PE_{(t, 2i)} &= \sin\!\left(t / 10000^{2i/d_{\text{model}}}\right)"
            r" \\ PE_{(t, 2i+1)} &= \cos\!\left(t / 10000^{2i/d_{\text{model}}}\right) \end{aligned}",
            "Section 3.5",
        )

    @cached_property
    def lines(self) -> tuple[Lines, ...]:
        added = (Embedding.forward, "if self.positions is not None", "x = x +")
        if self._is_learned:
            return (added, (positions.LearnedPositions.forward, "return"))
        return (added, (positions.sinusoidal_table, "position = ", "return"))

    def compute(self, at: StepRecord) -> Computed:
        embedded, added = at.taken("embedding"), at.taken("positions")
        entering = at.trace.offered[Site(self.stack, 0, "self", "input")]
        if self._is_learned:
            learned = self.model.get_parameter(f"{self.stack}.embedding.positions.table")
            table, what = learned.detach()[: len(added)], "the learned table's rows"
        else:
            table, what = sinusoids(*added.shape), "sines and cosines computed again"
        return Computed(
            (at.value("embedding", embedded), at.value("position", added)),
            (at.value("sum", entering),),
            ((table, at.offered("positions")), (embedded.double() + added.double(), entering)),
            f"{what} against the recorded positions, and the sum against what enters the first layer",
        )

    @property
    def _is_learned(self) -> bool:
        return self.model.config.positions == "learned"


class Layers(Step):
    """The states of the tokens after each layer of a stack."""

    name = "layers"
    label = "All layers"
    in_paper = False
    exact = True

    @cached_property
    def exists(self) -> bool:
        return self._n > 1

    def words(self, at: StepRecord | None = None) -> Words:
        ends = (
            "What comes out at the end is the **memory** that every decoder layer attends to."
            if self.stack == "encoder"
            else "What comes out at the end has to tell which token is next."
        )
        return Words(
            f"The same again: {self._n} layers",
            "Each layer has the same parts with weights of its own, and each reads what the one before has made of the "
            f"token. {ends} Below: the chosen token's vector on its way up.",
            rf"x^{{(\ell)}} = \mathrm{{Layer}}_\ell\!\left(x^{{(\ell - 1)}}\right), \quad \ell = 1, \dots, {self._n}",
            "Section 3.1 (the paper has N = 6)",
        )

    @cached_property
    def lines(self) -> tuple[Lines, ...]:
        stack = Encoder if self.stack == "encoder" else Decoder
        return ((stack.forward, "for layer", "x = layer"),)

    def compute(self, at: StepRecord) -> Computed:
        trace = at.trace
        after = [layer_output(self.model, trace, self.stack, layer) for layer in range(self._n)]
        entering = [trace.offered[Site(self.stack, layer, "self", "input")] for layer in range(1, self._n)]
        recorded = self.model.config.norm == "post"
        return Computed(
            (at.value("into layer 0", trace.taken[Site(self.stack, 0, "self", "input")]),),
            tuple(at.result(f"after layer {i}", x, recorded=recorded) for i, x in enumerate(after)),
            tuple(zip(after[:-1], entering, strict=True)),
            "what each layer gave, against what the next one read",
        )

    @property
    def _n(self) -> int:
        return n_layers(self.model, self.stack)


class FinalNorm(Step):
    """The layer norm at the end of a pre-norm stack."""

    name = "final"
    label = "Norm"
    title = "The last norm"
    says = "In pre-norm nothing is normalised after the last sublayer, so each stack ends in one more layer norm."
    equation = LAYER_NORM
    paper = "Layer norm: Ba et al. 2016; pre-norm is not in the paper"
    lines = ((transformer._final, "return"),)
    in_paper = False

    @cached_property
    def exists(self) -> bool:
        return self.model.config.norm == "pre"

    def compute(self, at: StepRecord) -> Computed:
        (site,) = self.sites(0)
        x = layer_output(self.model, at.trace, self.stack, n_layers(self.model, self.stack) - 1)
        return Computed(
            (at.value("x", x, recorded=False),),
            (at.result("normed", at.trace.taken[site]),),
            ((layer_norm(self.model.get_submodule(f"{self.stack}.norm"), x), at.trace.offered[site]),),
            "the layer norm of what the last layer gave, against the recorded one",
        )

    def sites(self, layer: int) -> tuple[Site, ...]:
        return (Site(self.stack, None, "final", "normed"),)


class Logits(Step):
    """A score for every token of the vocabulary."""

    stacks = ("decoder",)
    name = "logits"
    label = "Linear"
    title = "A score for every token of the vocabulary"
    paper = "Section 3.4; figure 1, “Linear”"
    tensors = ("logits",)

    def words(self, at: StepRecord | None = None) -> Words:
        config = self.model.config
        matrix = r"E^\top" if config.tie_output else "W"
        bias = "" if self.model.projection.bias is None else " + b"
        says = f"The finished vector is compared with each of the {config.vocab_size:,} tokens that could come next."
        if config.tie_output:
            says += (
                " The matrix is the embedding itself: a token scores high if the vector points to where that token "
                "lives."
            )
        return Words(self.title, says, rf"z_t = x_t\, {matrix}{bias}", self.paper)

    @cached_property
    def lines(self) -> tuple[Lines, ...]:
        project = (Transformer.project, "return")
        if not self.model.config.tie_output:
            return (project,)
        return (project, (Transformer.__init__, "if config.tie_output:", "self.projection.weight"))

    def compute(self, at: StepRecord) -> Computed:
        x = stack_output(self.model, at.trace, "decoder")
        return Computed(
            (at.value("x", x, recorded=self.model.config.norm != "none"),),
            (at.result("logits", at.taken("logits"), "vocab"),),
            ((linear(self.model.projection, x), at.offered("logits")),),
            "the last states times the output matrix, against all recorded logits",
        )


class Probabilities(Step):
    """The probability of every token to come next."""

    stacks = ("decoder",)
    name = "probabilities"
    label = "Softmax"
    title = "Softmax: what comes next"
    says = (
        "The scores become probabilities. Greedy decoding writes the most probable token, reads it in the next step, "
        "and the walk begins again on the right-hand side."
    )
    equation = r"P(y_t = i \mid y_{<t}, \text{source}) = \frac{e^{z_{t,i}}}{\sum_{i'} e^{z_{t,i'}}}"
    paper = "Section 3.4; figure 1, “Softmax”"
    lines = ((greedy.Step.row_log_probs.func, "return"),)

    def compute(self, at: StepRecord) -> Computed:
        trace, logits = at.trace, at.taken("logits")
        decoded = torch.tensor(trace.log_probs).double().exp()
        first = trace.last if trace.sees_later else 0
        rows = f"of step {first}" if trace.sees_later else f"of all {len(decoded)} steps"
        shown = logits.log_softmax(dim=-1).exp()  # rounded as in the decoding
        expected = softmax(logits)[first:]
        units = torch.from_numpy(softmax_units(expected.numpy(), float(logits.abs().max())))
        return Computed(
            (at.value("logits", logits, "vocab"),),
            (at.value("probabilities", shown, "vocab", recorded=False),),
            ((expected / units, decoded[first:] / units),),
            f"the softmax of these logits, against the probabilities {rows} of the decoding that wrote the output, "
            "less where large logits move them more",
        )


FIRST_STEPS: tuple[type[Step], ...] = (SourceIds, TargetIds, TokenEmbedding, AddedPositions)
LAST_STEPS: tuple[type[Step], ...] = (Layers, FinalNorm, Logits, Probabilities)
"""The steps before the first layer, and after the last one, in the order of computation."""
