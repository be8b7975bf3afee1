"""The steps around the units of a recurrent model: embedding, all layers, the one vector, the decoder's start, and what
is compared with the vocabulary."""

from functools import cached_property

import torch

from transformer.analysis.trace.recurrent.passes import (
    combined_parts,
    combined_states,
    layer_pass,
    start_states,
)
from transformer.analysis.trace.reference import linear
from transformer.analysis.trace.stack_steps import Layers, Logits, TokenEmbedding
from transformer.analysis.trace.step import Computed, Lines, Step, StepRecord, Words, layer_output
from transformer.model.carrying import CarryingModel
from transformer.model.recurrent import VECTOR, RecurrentLayer, RecurrentModel
from transformer.model.taps import Site


class Vectors(TokenEmbedding):
    """The rows of the embedding matrix, times √d_model; no positions are added."""

    paper = "Section 3.4; the factor √d_model is the Transformer's too"
    lines = ((CarryingModel._embedded, "return"),)

    @cached_property
    def says(self) -> str:
        d_model = self.model.config.d_model
        tied = " Source and target share this matrix." if self.model.config.tie_embeddings else ""
        return (
            f"Row *i* of a learned matrix *E* is what the model knows of token *i* by itself: {d_model} numbers, "
            f"multiplied by √{d_model}. No positions are added: a recurrent network reads in order, one token after "
            f"the other.{tied}"
        )


class AllLayers(Layers):
    """The states of the tokens after each recurrent layer."""

    exact = False

    def words(self, at: StepRecord | None = None) -> Words:
        n = self._n
        says = "Each layer has weights of its own and reads the states of the layer below, token by token."
        equation = rf"h^{{(\ell)}}_t = \mathrm{{{str(self.model.config.cell).upper()}}}_\ell"
        equation += r"\!\left(h^{(\ell - 1)}_t,\, h^{(\ell)}_{t-1}\right), \quad \ell = 1, \dots, " + str(n)
        return Words(f"The same again: {n} layers", says, equation, "Sutskever et al. 2014, section 3.4, has 4 layers")

    @cached_property
    def lines(self) -> tuple[Lines, ...]:
        if self.stack == "encoder":
            return ((RecurrentModel.encode, "for layer in", "x = self.dropout"),)
        if self.model.config.is_sequential:
            return ((RecurrentModel.step, "for i, layer", "found = self.dropout"),)
        return ((RecurrentModel._in_parallel, "for layer", "read = self.dropout"),)

    def compute(self, at: StepRecord) -> Computed:
        model, trace = self.model, at.trace
        after = [layer_output(model, trace, self.stack, layer) for layer in range(self._n)]
        return Computed(
            (at.value("into layer 0", trace.taken[Site(self.stack, None, None, "embedding")]),),
            tuple(at.result(f"after layer {i}", x) for i, x in enumerate(after)),
            tuple(
                (
                    layer_pass(model, trace, self.stack, i).states,
                    trace.offered[Site(self.stack, i, "recurrent", "output")],
                )
                for i in range(self._n)
            ),
            "each layer run again over what it read, against the recorded states",
        )


class OneVector(Step):
    """The fixed vector: all that is left of the sentence at its ends."""

    name = "vector"
    label = "One vector"
    title = "The whole sentence in one vector"
    paper = "Cho et al. 2014; Sutskever et al. 2014"
    in_paper = False
    exact = True

    def words(self, at: StepRecord | None = None) -> Words:
        config = self.model.config
        ends = (
            "the forward state at the last token and the backward state at the first"
            if config.bidirectional
            else "the state at the last token"
        )
        rest = (
            "Without attention **it is all that the decoder ever gets**, however long the sentence is."
            if self.model.attention is None
            else "The decoder starts from it; attention will give it the states of all tokens as well."
        )
        says = f"What the encoder carries at its end: {ends}. {config.d_model} numbers for the whole sentence. {rest}"
        equation = r"v = [\overrightarrow{h}_n; \overleftarrow{h}_1]" if config.bidirectional else r"v = h_n"
        return Words(self.title, says, equation, self.paper)

    @cached_property
    def lines(self) -> tuple[Lines, ...]:
        offered = (RecurrentModel.encode, "vector =", "return")
        if self.model.config.bidirectional:
            return ((RecurrentLayer.ends, "half =", "return"), offered)
        return ((RecurrentLayer.ends, "last ="), offered)

    def compute(self, at: StepRecord) -> Computed:
        states = layer_output(self.model, at.trace, "encoder", self.model.config.n_encoder_layers - 1)
        half = self.model.config.d_model // 2
        ends = torch.cat((states[-1, :half], states[0, half:])) if self.model.config.bidirectional else states[-1]
        return Computed(
            (at.value("states", states, every_row=True),),
            (at.result("vector", at.trace.taken[VECTOR], rows="one"),),
            ((ends[None], at.trace.offered[VECTOR]),),
            "the states at the ends of the sentence, against the recorded vector",
        )

    def sites(self, layer: int) -> tuple[Site, ...]:
        return (VECTOR,)


class Start(Step):
    """The decoder's state before its first token, made of the one vector."""

    name = "start"
    label = "Start s₀"
    title = "The decoder starts from it"
    paper = "Bahdanau et al. 2015, appendix A.2.2"
    in_paper = False
    lines = ((RecurrentModel.first_state, "parts =", "return"),)

    def words(self, at: StepRecord | None = None) -> Words:
        n, is_lstm = self.model.config.n_decoder_layers, self.model.config.cell == "lstm"
        parts = "a state and a cell" if is_lstm else "a state"
        each = f"each of the {n} layers of the decoder" if n > 1 else "the decoder"
        says = f"The vector is mapped to what {each} begins with, before any token is written: {parts}."
        cell = r", \qquad m_0 = W' v + b'" if is_lstm else ""
        return Words(self.title, says, r"s_0 = \tanh(W v + b)" + cell, self.paper)

    def compute(self, at: StepRecord) -> Computed:
        model, trace = self.model, at.trace
        shown = [
            at.value(f"{part} of layer {layer}", x, rows="one", recorded=False)
            for layer, parts in enumerate(start_states(model, trace))
            for part, x in zip(("state", "cell"), parts, strict=False)
        ]
        return Computed(
            (at.value("vector", trace.taken[VECTOR], rows="one"),),
            tuple(shown),
            tuple(
                (
                    layer_pass(model, trace, "decoder", layer).states[:1],
                    trace.offered[Site("decoder", layer, "recurrent", "output")][:1],
                )
                for layer in range(model.config.n_decoder_layers)
            ),
            "the state after the first token, computed from this start, against the recorded one",
        )


class Combine(Step):
    """State and context made one vector."""

    name = "combine"
    label = "Combine"
    title = "State and context, combined"
    in_paper = False
    lines = ((RecurrentModel._combined, "parts =", "return"),)

    @cached_property
    def exists(self) -> bool:
        return self.model.combine is not None

    def words(self, at: StepRecord | None = None) -> Words:
        is_additive = self.model.config.attention == "additive"
        token = ", the token's own vector" if is_additive else ""
        parts = r"[s_t; c_t; x_t]" if is_additive else r"[s_t; c_t]"
        paper = (
            "Bahdanau et al. 2015, appendix A.2.2, where a maxout stands in place of the tanh"
            if is_additive
            else "Luong et al. 2015, eq. 5"
        )
        says = (
            f"The decoder's state{token} and the context it gathered are put in a row and mixed: from this the next "
            "token is predicted."
        )
        return Words(self.title, says, rf"\tilde h_t = \tanh(W\, {parts} + b)", paper)

    def compute(self, at: StepRecord) -> Computed:
        combined = combined_states(self.model, at.trace)
        logits = at.trace.offered[Site("decoder", None, None, "logits")]
        return Computed(
            tuple(at.value(name, part) for name, part in combined_parts(self.model, at.trace).items()),
            (at.value("combined", combined, recorded=False),),
            ((linear(self.model.projection, combined), logits),),
            "the logits of this vector, against the recorded ones",
        )


class Comparison(Logits):
    """A score for every token of the vocabulary, from the decoder's state or what was combined."""

    @cached_property
    def lines(self) -> tuple[Lines, ...]:
        project = (CarryingModel.project, "return")
        tied = (RecurrentModel.__init__, "if config.tie_output:", "self.projection.weight")
        return (project, tied) if self.model.config.tie_output else (project,)

    def compute(self, at: StepRecord) -> Computed:
        x = combined_states(self.model, at.trace)
        return Computed(
            (at.value("x", x, recorded=self.model.combine is None),),
            (at.result("logits", at.taken("logits"), "vocab"),),
            ((linear(self.model.projection, x), at.offered("logits")),),
            "the last vectors times the output matrix, against all recorded logits",
        )
