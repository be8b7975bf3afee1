"""The steps at both ends of a stack: ids, embedding, positions; all layers; logits and probabilities (sections 3.1, 3.4
and 3.5)."""

from dataclasses import dataclass

import torch

from transformer.analysis.trace.reference import layer_norm, linear, sinusoids, softmax
from transformer.analysis.trace.source import Snippet, lines_of
from transformer.analysis.trace.step import (
    Computed,
    Step,
    StepRecord,
    StepText,
    Value,
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


@dataclass(frozen=True)
class TokenIds(Step):
    """The sentence, or the output so far, as token ids."""

    name = "ids"
    exact = True

    def label(self, model: Transformer) -> str:
        return "Outputs (shifted right)" if self.stack == "decoder" else "Inputs"

    def text(self, model: Transformer, at: StepRecord | None = None) -> StepText:
        if self.stack == "decoder":
            return StepText(
                "What it has written, shifted right",
                "The decoder reads its own output, one place later: first the start mark, then each token it has just "
                "written. At every position it has to predict the token that comes **next**.",
                r"(y_1, \dots, y_m) \;\mapsto\; (\text{<s>},\, y_1, \dots, y_{m-1})",
                "Section 3.1; figure 1, “outputs (shifted right)”",
            )
        return StepText(
            "Words become numbers",
            "The sentence is cut into tokens, and each token is looked up in the vocabulary: from here on it is a "
            "number. An end mark is added.",
            rf"\text{{token}} \;\mapsto\; i \in \{{0, \dots, {model.config.vocab_size - 1}\}}",
            "Section 3.4",
        )

    def compute(self, at: StepRecord) -> Computed:
        trace = at.trace
        if self.stack == "encoder":
            shown = Value("ids", torch.tensor(trace.source)[:, None], "source", "id")
            again = torch.tensor(trace.source_again), torch.tensor(trace.source)
            how = "the sentence looked up again in the vocabulary; largest difference of an id"
            return Computed((), (shown,), (again,), how)
        shown = Value("ids", torch.tensor(trace.inputs)[:, None], "target", "id")
        best = torch.tensor(trace.log_probs).clone()
        best[:, at.model.config.pad_id] = -torch.inf
        wrong = (best.argmax(dim=-1) != torch.tensor(trace.target)).sum()
        how = "the most probable token of each step against what the next one read; tokens that differ"
        return Computed((), (shown,), ((wrong, torch.zeros_like(wrong)),), how)

    def source(self, model: Transformer) -> tuple[Snippet, ...]:
        if self.stack == "encoder":
            encode = batches.encode_sources
            return (lines_of(encode, "tokenizer.encode"), lines_of(encode, "return _padded"))
        by_token = greedy.token_by_token
        return (lines_of(by_token, "model.config.bos_id"), lines_of(by_token, "prefix = torch.cat"))


@dataclass(frozen=True)
class TokenEmbedding(Step):
    """The rows of the embedding matrix, times √d_model."""

    name = "embedding"

    def label(self, model: Transformer) -> str:
        return "Output embedding" if self.stack == "decoder" else "Input embedding"

    def text(self, model: Transformer, at: StepRecord | None = None) -> StepText:
        config = model.config
        why = ", so that the positions do not drown them" if AddedPositions(self.stack, None).exists(model) else ""
        tied = " Source and target share this matrix." if config.tie_embeddings else ""
        return StepText(
            "Each number becomes a vector",
            f"Row *i* of a learned matrix *E* is what the model knows of token *i* by itself: {config.d_model} "
            f"numbers. They are multiplied by √{config.d_model}{why}.{tied}",
            rf"e_t = \sqrt{{d_{{\text{{model}}}}}}\; E_{{i_t}} = \sqrt{{{config.d_model}}}\; E_{{i_t}}",
            "Section 3.4",
        )

    def compute(self, at: StepRecord) -> Computed:
        ids = torch.tensor(at.trace.source if self.stack == "encoder" else at.trace.inputs)
        rows = at.embedding.tokens.weight.detach()[ids]
        return Computed(
            (Value("ids", ids[:, None], at.rows, "id"), at.hidden("row of E", rows, recorded=False)),
            (at.hidden("embedding", at.taken("embedding")),),
            ((rows.double() * at.model.config.d_model**0.5, at.offered("embedding")),),
            "the rows of the embedding matrix times √d_model, against the recorded embeddings",
        )

    def tensors(self, model: Transformer) -> tuple[str, ...]:
        return ("embedding",)

    def source(self, model: Transformer) -> tuple[Snippet, ...]:
        return (lines_of(Embedding.forward, '"embedding"'),)


@dataclass(frozen=True)
class AddedPositions(Step):
    """Positions added to the embeddings."""

    name = "positions"

    def exists(self, model: Transformer) -> bool:
        return model.config.positions in ("sinusoidal", "learned")

    def label(self, model: Transformer) -> str:
        return "+ position"

    def text(self, model: Transformer, at: StepRecord | None = None) -> StepText:
        says = "Attention alone cannot tell first from last. So to each token's vector "
        if model.config.positions == "learned":
            return StepText(
                "Its position is added",
                f"{says}a row of a learned table is added: the row of its position.",
                r"x^{(0)}_t = e_t + P_t",
                "Section 3.5, the learned variant (table 3, row E)",
            )
        return StepText(
            "Its position is added",
            f"{says}a pattern of sines and cosines is added that depends on its position alone: fast waves in the "
            "first dimensions, slow ones in the last.",
            r"x^{(0)}_t = e_t + PE_t, \qquad \begin{aligned} "
            r"PE_{(t, 2i)} &= \sin\!\left(t / 10000^{2i/d_{\text{model}}}\right)"
            r" \\ PE_{(t, 2i+1)} &= \cos\!\left(t / 10000^{2i/d_{\text{model}}}\right) \end{aligned}",
            "Section 3.5",
        )

    def compute(self, at: StepRecord) -> Computed:
        embedded, added = at.taken("embedding"), at.taken("positions")
        entering = at.trace.offered[Site(self.stack, 0, "self", "input")]
        if at.model.config.positions == "sinusoidal":
            table, what = sinusoids(*added.shape), "sines and cosines computed again"
        else:
            learned = at.model.get_parameter(f"{self.stack}.embedding.positions.table")
            table, what = learned.detach()[: len(added)], "the learned table's rows"
        return Computed(
            (at.hidden("embedding", embedded), at.hidden("position", added)),
            (at.hidden("sum", entering),),
            ((table, at.offered("positions")), (embedded.double() + added.double(), entering)),
            f"{what} against the recorded positions, and the sum against what enters the first layer",
        )

    def tensors(self, model: Transformer) -> tuple[str, ...]:
        return ("positions",)

    def source(self, model: Transformer) -> tuple[Snippet, ...]:
        added = lines_of(Embedding.forward, "if self.positions is not None", "x = x +")
        if model.config.positions == "learned":
            return (added, lines_of(positions.LearnedPositions.forward, "return"))
        return (added, lines_of(positions.sinusoidal_table, "position = ", "return"))


@dataclass(frozen=True)
class Layers(Step):
    """What each layer of a stack made of the tokens."""

    name = "layers"
    exact = True

    def exists(self, model: Transformer) -> bool:
        return n_layers(model, self.stack) > 1

    @property
    def in_paper(self) -> bool:
        return False

    def label(self, model: Transformer) -> str:
        return "All layers"

    def text(self, model: Transformer, at: StepRecord | None = None) -> StepText:
        n = n_layers(model, self.stack)
        ends = (
            "What comes out at the end is the **memory** that every decoder layer attends to."
            if self.stack == "encoder"
            else "What comes out at the end has to tell which token is next."
        )
        return StepText(
            f"The same again: {n} layers",
            "Each layer has the same parts with weights of its own, and each reads what the one before has made of the "
            f"token. {ends} Below: the chosen token's vector on its way up.",
            rf"x^{{(\ell)}} = \mathrm{{Layer}}_\ell\!\left(x^{{(\ell - 1)}}\right), \quad \ell = 1, \dots, {n}",
            "Section 3.1 (the paper has N = 6)",
        )

    def compute(self, at: StepRecord) -> Computed:
        trace, numbers = at.trace, range(n_layers(at.model, self.stack))
        after = [layer_output(at.model, trace, self.stack, layer) for layer in numbers]
        entering = [trace.offered[Site(self.stack, layer, "self", "input")] for layer in numbers[1:]]
        recorded = at.model.config.norm == "post"
        return Computed(
            (at.hidden("into layer 0", trace.taken[Site(self.stack, 0, "self", "input")]),),
            tuple(at.hidden(f"after layer {i}", x, recorded=recorded) for i, x in enumerate(after)),
            tuple(zip(after[:-1], entering, strict=True)),
            "what each layer gave, against what the next one read",
        )

    def source(self, model: Transformer) -> tuple[Snippet, ...]:
        stack = Encoder if self.stack == "encoder" else Decoder
        return (lines_of(stack.forward, "for layer", "x = layer"),)


@dataclass(frozen=True)
class FinalNorm(Step):
    """The layer norm at the end of a pre-norm stack."""

    name = "final"

    def exists(self, model: Transformer) -> bool:
        return model.config.norm == "pre"

    @property
    def in_paper(self) -> bool:
        return False

    def label(self, model: Transformer) -> str:
        return "Norm"

    def text(self, model: Transformer, at: StepRecord | None = None) -> StepText:
        return StepText(
            "The last norm",
            "In pre-norm nothing is normalised after the last sublayer, so each stack ends in one more layer norm.",
            LAYER_NORM,
            "Layer norm: Ba et al. 2016; pre-norm is not in the paper",
        )

    def compute(self, at: StepRecord) -> Computed:
        (site,) = self.sites(at.model, 0)
        x = layer_output(at.model, at.trace, self.stack, n_layers(at.model, self.stack) - 1)
        return Computed(
            (at.hidden("x", x, recorded=False),),
            (at.hidden("normed", at.trace.taken[site]),),
            ((layer_norm(at.model.get_submodule(f"{self.stack}.norm"), x), at.trace.offered[site]),),
            "the layer norm of what the last layer gave, against the recorded one",
        )

    def sites(self, model: Transformer, layer: int) -> tuple[Site, ...]:
        return (Site(self.stack, None, "final", "normed"),)

    def source(self, model: Transformer) -> tuple[Snippet, ...]:
        return (lines_of(transformer._final, "return"),)


@dataclass(frozen=True)
class Logits(Step):
    """A score for every token of the vocabulary."""

    name = "logits"

    def exists(self, model: Transformer) -> bool:
        return self.stack == "decoder"

    @property
    def in_paper(self) -> bool:
        return self.stack == "decoder"

    def label(self, model: Transformer) -> str:
        return "Linear"

    def text(self, model: Transformer, at: StepRecord | None = None) -> StepText:
        config = model.config
        matrix = r"E^\top" if config.tie_output else "W"
        bias = " + b" if config.output_bias else ""
        tied = (
            " The matrix is the embedding itself: a token scores high if the vector points to where that token lives."
            if config.tie_output
            else ""
        )
        return StepText(
            "A score for every token of the vocabulary",
            f"The finished vector is compared with each of the {config.vocab_size:,} tokens that could come next."
            f"{tied}",
            rf"z_t = x_t\, {matrix}{bias}",
            "Section 3.4; figure 1, “Linear”",
        )

    def compute(self, at: StepRecord) -> Computed:
        x = stack_output(at.model, at.trace, "decoder")
        return Computed(
            (at.hidden("x", x, recorded=at.model.config.norm != "none"),),
            (Value("logits", at.taken("logits"), at.rows, "vocab"),),
            ((linear(at.model.projection, x), at.offered("logits")),),
            "the last states times the output matrix, against all recorded logits",
        )

    def tensors(self, model: Transformer) -> tuple[str, ...]:
        return ("logits",)

    def source(self, model: Transformer) -> tuple[Snippet, ...]:
        project = lines_of(Transformer.project, "return")
        if not model.config.tie_output:
            return (project,)
        return (project, lines_of(Transformer.__init__, "if config.tie_output:", "self.projection.weight"))


@dataclass(frozen=True)
class Probabilities(Step):
    """The probability of every token to come next."""

    name = "probabilities"

    def exists(self, model: Transformer) -> bool:
        return self.stack == "decoder"

    @property
    def in_paper(self) -> bool:
        return self.stack == "decoder"

    def label(self, model: Transformer) -> str:
        return "Softmax"

    def text(self, model: Transformer, at: StepRecord | None = None) -> StepText:
        return StepText(
            "Softmax: what comes next",
            "The scores become probabilities. Greedy decoding writes the most probable token, reads it in the next "
            "step, and the walk begins again on the right-hand side.",
            r"P(y_t = i \mid y_{<t}, \text{source}) = \frac{e^{z_{t,i}}}{\sum_{i'} e^{z_{t,i'}}}",
            "Section 3.4; figure 1, “Softmax”",
        )

    def compute(self, at: StepRecord) -> Computed:
        trace, logits = at.trace, at.taken("logits")
        decoded = torch.tensor(trace.log_probs).double().exp()
        first = trace.last if trace.sees_later else 0
        rows = f"of step {first}" if trace.sees_later else f"of all {len(decoded)} steps"
        shown = logits.log_softmax(dim=-1).exp()  # rounded as in the decoding
        return Computed(
            (Value("logits", logits, at.rows, "vocab"),),
            (Value("probabilities", shown, at.rows, "vocab", recorded=False),),
            ((softmax(logits)[first:], decoded[first:]),),
            f"the softmax of these logits, against the probabilities {rows} of the decoding that wrote the output",
        )

    def source(self, model: Transformer) -> tuple[Snippet, ...]:
        return (lines_of(greedy.Step.row_log_probs.func, "return"),)


FIRST_STEPS: tuple[type[Step], ...] = (TokenIds, TokenEmbedding, AddedPositions)
LAST_STEPS: tuple[type[Step], ...] = (Layers, FinalNorm, Logits, Probabilities)
"""In the order of computation: before the first layer, and after it."""
