"""The notebook's door, and the pages': load a model, translate, look at one real decoding, compare two.

Everything here returns labelled NumPy arrays; every array is read from the passes that wrote the output beside it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Generic

import torch
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from torch import Tensor

from transformer.analysis.attention.entry import Entry, explain_entry
from transformer.analysis.attention.mask_leakage import Leak, measure_leak
from transformer.analysis.heads.statistics import HeadMeans, head_means
from transformer.analysis.trace.steps import is_traced
from transformer.analysis.trace.trace import Trace, record_trace
from transformer.checkpoints.store import Checkpoint, Model, find_checkpoint, load_checkpoint
from transformer.config import DecodeConfig
from transformer.data.batches import encode_sources
from transformer.decoding.greedy import Constraints, Step, greedy, log_probs_on_prefixes
from transformer.decoding.methods import decode
from transformer.inspection.inspection import (
    Attention,
    AttentionShift,
    Comparison,
    Inspection,
    is_attention,
    most_steps,
    newest_rows,
    read_attention,
    read_steps,
)
from transformer.interventions import DisableMask, Intervention, compile_interventions
from transformer.model.kinds import AttentionKind, KindName
from transformer.model.seq2seq import attention_layers
from transformer.model.taps import Address, Recorder, chain
from transformer.model.transformer import Transformer
from transformer.text.pairs import clean_text
from transformer.text.sentence import Sentence
from transformer.text.token_ids import check_source
from transformer.text.tokenizer import Tokenizer

__all__ = [
    "Attention",
    "AttentionKind",
    "AttentionShift",
    "Comparison",
    "Inspection",
    "Lab",
    "Translation",
    "load",
]

GREEDY = DecodeConfig()


@dataclass(frozen=True)
class Translation:
    """One output and how good the model finds it."""

    text: str
    log_prob: float
    """Natural log of its probability, the end mark's included."""
    score: float
    """The same divided by the length norm of a beam search; elsewhere the same."""
    ended: bool
    """False where it was cut off at the length limit before an end mark."""


class Lab(Generic[Model]):
    """A loaded model with its tokenizer. Holds no state between calls, so one may serve many threads."""

    def __init__(self, checkpoint: Checkpoint[Model]) -> None:
        self.checkpoint = checkpoint
        self.name: str = checkpoint.name
        self.model: Model = checkpoint.model
        self.tokenizer: Tokenizer = checkpoint.tokenizer

    def translate(self, texts: Sequence[str], settings: DecodeConfig = GREEDY) -> list[str]:
        """The best translation of each text (the first sample); ValueError for an empty or overlong one."""
        return [found[0].text for found in self.translations(texts, settings)]

    def translations(self, texts: Sequence[str], settings: DecodeConfig = GREEDY) -> list[tuple[Translation, ...]]:
        """The `n_best` translations of each text with their scores; ValueError as `translate`."""
        source, mask = self._encode(texts)
        return [
            tuple(
                Translation(
                    self.tokenizer.decode(output.text_ids),
                    output.log_prob,
                    output.score,
                    output.ended,
                )
                for output in found
            )
            for found in decode(self.model, source, mask, settings)
        ]

    def unknown(self, text: str) -> list[str]:
        """Returns the words that hold something this model never saw."""
        return [*self.tokenizer.sentence(clean_text(text)).unseen]

    def inspect(
        self,
        text: str | Sentence,
        interventions: Iterable[Intervention] = (),
        forced: Mapping[int, int] | None = None,
        watch: Callable[[int, Callable[[], Inspection]], object] | None = None,
    ) -> Inspection:
        """The text decoded greedily under the given switches with all attention recorded; ValueError as `translate`.

        A `Sentence` of this lab is not cut again. `forced` holds the token ids that must stand at some steps; what
        follows is decoded from them. `watch` is given after every step how many there are, and what makes an inspection
        of these, in any thread. An output too long to be recorded is cut off: see `most_steps`.
        """
        sentence = self.sentence(text) if isinstance(text, str) else text
        specs = self.resolved(interventions, n_source=len(sentence.ids))
        tap = compile_interventions(specs, self.model)
        written = greedy(
            self.model,
            torch.tensor([sentence.ids]),
            max_length=most_steps(self.model, len(sentence.ids)),
            constraints=Constraints(forced=forced or {}),
            tap=tap,
            record=is_attention,
        )
        steps: list[Step] = []

        def so_far() -> Inspection:
            made = self.model, self.tokenizer, sentence, steps[:], specs, forced or {}
            return read_steps(*made, model_name=self.name)

        for step in written:
            steps.append(step)
            steps[-2:-1] = map(newest_rows, steps[-2:-1])
            if watch is not None:
                watch(len(steps), so_far)
        return so_far()

    @cached_property
    def head_means(self) -> HeadMeans:
        """The mean context of every head over validation pairs, read or measured once; ValueError as `head_means`."""
        return head_means(self.checkpoint)

    def means_by_sublayer(self) -> Mapping[str, Float[Tensor, "head d_head"]]:
        """The same by block as in `decoder.0.cross`."""
        return self.head_means.means

    def resolved(
        self, interventions: Iterable[Intervention], *, n_source: int | None = None
    ) -> tuple[Intervention, ...]:
        """The specs, each once, with what they need from elsewhere: means of heads, what another sentence had.

        ValueError where that cannot be had, or (with the source's number of tokens) a position does not exist.
        """
        found = []
        for spec in dict.fromkeys(interventions):
            spec.sites(self.model)
            spec = spec.resolve(self)
            if n_source is not None:
                spec.check_source(n_source)
            found.append(spec)
        return tuple(found)

    def sentence(self, text: str) -> Sentence:
        """Returns a text as the encoder reads it; ValueError as `translate`."""
        config = self.model.config
        found = self.tokenizer.sentence(clean_text(text))
        ids = found.ids[:-1]
        check_source(ids, max_length=config.max_length, vocab_size=config.vocab_size)
        return found

    def without_switches(self, seen: Inspection) -> Float[ndarray, "step vocab"]:
        """Returns the log-probabilities of an inspection's output without its switches, on the same prefixes."""
        source, target = torch.tensor([seen.source_ids]), torch.tensor([seen.target_ids])
        return log_probs_on_prefixes(self.model, source, target)[0].numpy()

    def explain_entry(self, seen: Inspection, kind: KindName, layer: int, head: int, query: int, key: int) -> Entry:
        """One entry of an attention matrix taken apart; ValueError for one that does not exist."""
        stack, sublayer = AttentionKind(kind).where
        return explain_entry(
            self.transformer,
            seen.source_ids,
            seen.interventions,
            forced=dict(seen.forced),
            address=Address(stack, layer, sublayer),
            head=head,
            query=query,
            key=key,
        )

    def leak(self, texts: Sequence[str], off: Sequence[DisableMask]) -> Leak:
        """The texts as one batch, with all masks and without the given ones; ValueError as `translate`."""
        return replace(measure_leak(self.transformer, self._encode(texts)[0], off), texts=tuple(texts))

    def compare(self, text: str, interventions: Iterable[Intervention]) -> Comparison:
        """The text decoded without and with the switches, and their effect on the original output's probabilities."""
        before, after = self.inspect(text), self.inspect(text, interventions)
        return self.effect(before, after)

    def effect(self, before: Inspection, after: Inspection) -> Comparison:
        """The comparison of two inspections of one text by this model; the first is the reference."""
        tap = compile_interventions(after.interventions, self.model)
        base = compile_interventions(before.interventions, self.model)
        source, target = torch.tensor([before.source_ids]), torch.tensor([before.target_ids])
        p = log_probs_on_prefixes(self.model, source, target, tap=base)[0].double()
        q = log_probs_on_prefixes(self.model, source, target, tap=tap)[0].double()
        chosen = target[0][:, None]
        return Comparison(
            before=before,
            after=after,
            forced_before=p.gather(1, chosen)[:, 0].exp().numpy(),
            forced_after=q.gather(1, chosen)[:, 0].exp().numpy(),
            kl_divergence=(p.exp() * (p - q)).sum(dim=-1).clamp(min=0).numpy(),
        )

    def attention_shift(self, comparison: Comparison) -> AttentionShift:
        """All attention without and with the switches on the same prefixes: those of the original output."""
        before, after = comparison.before, comparison.after
        return AttentionShift(
            self.attention_on(before, before.interventions), self.attention_on(before, after.interventions)
        )

    @torch.no_grad()
    def trace(self, seen: Inspection, step: int | None = None) -> Trace:
        """Returns one pass over a decoded sentence and its output with every tensor kept; where decoder positions see
        later ones, the pass of a step of the decoding (None: of the last one).

        ValueError for a model whose steps are not known, such as a convolutional one.
        """
        if not is_traced(self.model):
            raise ValueError(f"{self.name} cannot be walked through: only Transformers and recurrent models can")
        again = (*self.tokenizer.encode(seen.text), self.model.config.eos_id)
        ids = seen.source_ids, seen.target_ids, seen.interventions
        return record_trace(self.model, *ids, log_probs=seen.log_probs, source_again=again, step=step)

    def attention_on(
        self, seen: Inspection, interventions: Iterable[Intervention]
    ) -> Mapping[AttentionKind, Attention]:
        """All attention under some switches while an inspection's output is read again, teacher-forced.

        Where a position may see later ones, the output is read prefix by prefix, as it was written: `cross` has each
        prefix's newest row, `decoder_self` the last prefix's whole pass. Of another model's inspection the words alone
        are taken, and the kinds that both have.
        """
        config = self.model.config
        tap = compile_interventions(self.resolved(interventions), self.model)
        source, target = torch.tensor([seen.source_ids]), torch.tensor([[config.bos_id, *seen.target_ids[:-1]]])
        one_by_one = self.model.needs_recomputation(tap)
        recordings = []
        for end in range(1 if one_by_one else target.size(1), target.size(1) + 1):
            recorder = Recorder(is_attention)
            self.model(source, target[:, :end], tap=chain(tap, recorder))
            recordings.append(recorder.recording)
        return {
            kind: read_attention(
                recordings, kind, n_layers, shown.queries, shown.keys, by_row=kind == "cross" and one_by_one
            )
            for kind, n_layers in attention_layers(self.model).items()
            if (shown := seen.attentions.get(kind)) is not None
        }

    @property
    def transformer(self) -> Transformer:
        """The model, for what takes a Transformer apart; ValueError for one of another family."""
        if not isinstance(self.model, Transformer):
            raise ValueError(f"{self.name} is no Transformer, and only a Transformer can be taken apart like this")
        return self.model

    def _encode(self, texts: Sequence[str]) -> tuple[Int[Tensor, "batch source"], Bool[Tensor, "batch source"]]:
        config = self.model.config
        return encode_sources(texts, self.tokenizer, max_length=config.max_length, vocab_size=config.vocab_size)


def load(name: str) -> Lab:
    """The model of a shipped checkpoint's name, a run's id or a folder; CheckpointError if there is none."""
    return Lab(load_checkpoint(find_checkpoint(name)))
