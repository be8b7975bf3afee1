"""Subjects of views of decoding steps: branches of a sentence, a beam search, the logit lens, exposure bias."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from transformer.analysis.steps.exposure_bias import Exposure
from transformer.analysis.steps.logit_lens import LogitLens
from transformer.analysis.steps.search_tree import SearchTree
from transformer.inspection.inspection import Inspection
from transformer.lab import Lab
from transformer.views.subjects import Decoding, decoding_line
from transformer.views.view import Opening


@dataclass(frozen=True)
class Branches:
    """Several decodings of one sentence, some with forced tokens; `data` takes `lab, branches`.

    The first may have been decoded without the switches of the others; the model's own output comes before those with
    forced tokens.
    """

    lab: Lab
    branches: tuple[Inspection, ...]

    @property
    def given(self) -> Mapping[str, Any]:
        """See `Subject`."""
        return {"lab": self.lab, "branches": self.branches}

    @property
    def opening(self) -> Opening:
        """See `Subject`."""
        names = [f"branch{index}" for index in range(len(self.branches))]
        lines = [decoding_line(name, "lab", seen) for name, seen in zip(names, self.branches, strict=True)]
        first = Decoding(self.lab, self.branches[-1]).opening
        return Opening(first.imports, (first.lines[0], *lines, f"branches = ({', '.join(names)},)"))

    @property
    def stem(self) -> str:
        """See `Subject`."""
        return self.lab.name

    @property
    def caption(self) -> str:
        """See `Subject`."""
        return Decoding(self.lab, self.branches[-1]).caption


@dataclass(frozen=True)
class Search:
    """A sentence and the tree of a beam search for its translation; `data` takes `lab, seen, tree`."""

    lab: Lab
    seen: Inspection
    tree: SearchTree

    @property
    def given(self) -> Mapping[str, Any]:
        """See `Subject`."""
        return {"lab": self.lab, "seen": self.seen, "tree": self.tree}

    @property
    def opening(self) -> Opening:
        """See `Subject`."""
        tree = self.tree
        settings = f"size={tree.size}, alpha={tree.alpha!r}, norm={tree.norm!r}, early_stopping={tree.early_stopping}"
        line = f"tree = search_tree(lab.model, seen.source_ids, seen.interventions, {settings})"
        return _after(self.lab, self.seen, "from transformer.analysis.steps.search_tree import search_tree", line)

    @property
    def stem(self) -> str:
        """See `Subject`."""
        return f"{self.lab.name}-beam{self.tree.size}"

    @property
    def caption(self) -> str:
        """See `Subject`."""
        return Decoding(self.lab, self.seen).caption


@dataclass(frozen=True)
class LensAtStep:
    """One step of a decoding as its pass left it, also without switches where there are any.

    `data` takes `lab, seen, step, lens, baseline`.
    """

    lab: Lab
    seen: Inspection
    step: int
    lens: LogitLens
    baseline: LogitLens | None = None
    """The step without switches, after the same words; None where there are no switches."""

    @property
    def given(self) -> Mapping[str, Any]:
        """See `Subject`."""
        return {"lab": self.lab, "seen": self.seen, "step": self.step, "lens": self.lens, "baseline": self.baseline}

    @property
    def opening(self) -> Opening:
        """See `Subject`."""
        call = "logit_lens(lab.model, seen.source_ids, seen.target_ids, step{})"
        lines = [
            f"step = {self.step}",
            f"lens = {call.format(', seen.interventions')}",
            f"baseline = {'None' if self.baseline is None else call.format('')}",
        ]
        return _after(self.lab, self.seen, "from transformer.analysis.steps.logit_lens import logit_lens", *lines)

    @property
    def stem(self) -> str:
        """See `Subject`."""
        return f"{self.lab.name}-step{self.step}"

    @property
    def caption(self) -> str:
        """See `Subject`."""
        return Decoding(self.lab, self.seen).caption


@dataclass(frozen=True)
class MeasuredExposure:
    """Exposure bias of a model over the first pairs of its validation set; `data` takes `lab, exposure`."""

    lab: Lab
    exposure: Exposure

    @property
    def given(self) -> Mapping[str, Any]:
        """See `Subject`."""
        return {"lab": self.lab, "exposure": self.exposure}

    @property
    def opening(self) -> Opening:
        """See `Subject`."""
        imports = [
            "from transformer import load",
            "from transformer.analysis.steps.exposure_bias import exposure_bias, readable_pairs",
            "from transformer.data.corpora import load_corpus",
        ]
        switches = "()"
        if self.exposure.switches:
            imports.append("from transformer.interventions import parse_intervention")
            parsed = ", ".join(f"parse_intervention({str(spec)!r})" for spec in self.exposure.switches)
            switches = f"lab.resolved([{parsed}])"
        lines = (
            f"lab = load({self.lab.name!r})",
            "validation = load_corpus(lab.checkpoint.corpus_config).validation",
            f"pairs = readable_pairs(validation, lab.tokenizer, lab.model.config.max_length, {self.exposure.n_pairs})",
            f"exposure = exposure_bias(lab.model, pairs, lab.tokenizer, {switches})",
        )
        return Opening(tuple(imports), lines)

    @property
    def stem(self) -> str:
        """See `Subject`."""
        return self.lab.name

    @property
    def caption(self) -> str:
        """See `Subject`."""
        switches = " ".join(map(str, self.exposure.switches))
        return " · ".join(filter(None, (self.lab.name, f"{self.exposure.n_pairs} validation pairs", switches)))


def _after(lab: Lab, seen: Inspection, imported: str, *lines: str) -> Opening:
    """Decodes the sentence, then runs more lines."""
    first = Decoding(lab, seen).opening
    return replace(first, imports=(*first.imports, imported), lines=(*first.lines, *lines))
