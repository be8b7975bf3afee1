"""Subjects of views of decoding steps: branches of a sentence, a beam search, the logit lens, exposure bias."""

from dataclasses import dataclass, replace

from transformer.analysis.steps.exposure_bias import Exposure
from transformer.analysis.steps.logit_lens import LogitLens
from transformer.analysis.steps.search_tree import SearchTree
from transformer.inspection.inspection import Inspection
from transformer.lab import Lab
from transformer.views.subjects import PARSE, decoding_line, decoding_origin, model_origin, switches_in_python
from transformer.views.view import Origin


@dataclass(frozen=True)
class Branches:
    """Several decodings of one sentence, some with forced tokens.

    The first may have been decoded without the switches of the others; the model's own output comes before those with
    forced tokens.
    """

    lab: Lab
    branches: tuple[Inspection, ...]

    @property
    def origin(self) -> Origin:
        """Decodes the sentence once for each branch; the caption is that of the last."""
        names = [f"branch{index}" for index in range(len(self.branches))]
        lines = [decoding_line(name, "lab", seen) for name, seen in zip(names, self.branches, strict=True)]
        last = decoding_origin(self.lab, self.branches[-1])
        model = replace(last, lines=last.lines[:1])
        return model.then(*lines, f"branches = ({', '.join(names)},)")


@dataclass(frozen=True)
class Search:
    """A sentence and the tree of a beam search for its translation, also without switches where there are any."""

    lab: Lab
    seen: Inspection
    tree: SearchTree
    baseline: SearchTree | None = None
    """The search without switches; None where there are no switches."""

    @property
    def origin(self) -> Origin:
        """Decodes the sentence and searches again."""
        tree = self.tree
        settings = f"size={tree.size}, alpha={tree.alpha!r}, norm={tree.norm!r}, early_stopping={tree.early_stopping}"
        call = f"search_tree(lab.model, seen.source_ids, {{}}, {settings})"
        return decoding_origin(self.lab, self.seen).then(
            f"tree = {call.format('seen.interventions')}",
            f"baseline = {'None' if self.baseline is None else call.format('()')}",
            imports=["from transformer.analysis.steps.search_tree import search_tree"],
            stem=f"{self.lab.name}-beam{tree.size}",
        )


@dataclass(frozen=True)
class LensAtStep:
    """One step of a decoding as its pass left it, also without switches where there are any."""

    lab: Lab
    seen: Inspection
    step: int
    lens: LogitLens
    baseline: LogitLens | None = None
    """The step without switches, after the same words; None where there are no switches."""

    @property
    def origin(self) -> Origin:
        """Decodes the sentence and reads the lens at the step."""
        call = "logit_lens(lab.model, seen.source_ids, seen.target_ids, step{})"
        return decoding_origin(self.lab, self.seen).then(
            f"step = {self.step}",
            f"lens = {call.format(', seen.interventions')}",
            f"baseline = {'None' if self.baseline is None else call.format('')}",
            imports=["from transformer.analysis.steps.logit_lens import logit_lens"],
            stem=f"{self.lab.name}-step{self.step}",
        )


@dataclass(frozen=True)
class MeasuredExposure:
    """Exposure bias of a model over the first pairs of its validation set."""

    lab: Lab
    exposure: Exposure

    @property
    def origin(self) -> Origin:
        """Loads the model and its validation pairs and measures again."""
        switches, n_pairs = self.exposure.switches, self.exposure.n_pairs
        imports = [
            "from transformer.analysis.steps.exposure_bias import exposure_bias, readable_pairs",
            "from transformer.data.corpora import load_corpus",
        ]
        caption, specs = f"{self.lab.name} · {n_pairs} validation pairs", "()"
        if switches:
            imports.append(PARSE)
            caption += f" · {' '.join(map(str, switches))}"
            specs = f"lab.resolved({switches_in_python(switches)})"
        return model_origin(self.lab).then(
            "validation = load_corpus(lab.checkpoint.corpus_config).validation",
            f"pairs = readable_pairs(validation, lab.tokenizer, lab.model.config.max_length, {n_pairs})",
            f"exposure = exposure_bias(lab.model, pairs, lab.tokenizer, {specs})",
            imports=imports,
            caption=caption,
        )
