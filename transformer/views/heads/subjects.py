"""What views of heads are of: heads over many pairs, heads removed, tokens hidden, a search for a minimal set."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from jaxtyping import Float
from numpy import ndarray

from transformer.analysis.heads.ablations import Means
from transformer.analysis.heads.addresses import heads_of
from transformer.analysis.heads.importance import OutputEffect
from transformer.analysis.heads.leave_one_out import Hiding
from transformer.analysis.heads.minimal_set import MinimalSets, SearchPlan
from transformer.analysis.heads.pair_sample import PairSample
from transformer.analysis.heads.survey import Survey
from transformer.analysis.heads.validation_importance import ValidationImportance
from transformer.lab import Lab
from transformer.views.subjects import Decoding
from transformer.views.view import Opening

Removal = Literal["zero", "mean"]
_IDS = "seen.source_ids, seen.target_ids"
_MEANS = "means=lab.head_means.means"


def means_of(lab: Lab, removal: Removal) -> Means | None:
    """What a removed head is set to; None for zero."""
    return lab.head_means.means if removal == "mean" else None


@dataclass(frozen=True)
class _OverPairs:
    lab: Lab
    sample: PairSample

    @property
    def stem(self) -> str:
        """The model's name and how many pairs there are."""
        return f"{self.lab.name}-{self.sample.file_name}"

    @property
    def caption(self) -> str:
        """The model and what was measured on."""
        return f"{self.lab.name} · measured on {self.sample.description}"

    def _opening(self, imports: tuple[str, ...], *lines: str) -> Opening:
        module = "from transformer.analysis.heads.pair_sample import"
        if self.sample.is_validation:
            made = f"validation_sample(lab.checkpoint, {len(self.sample.pairs)})"
            imports += (f"{module} validation_sample",)
        else:
            made = repr(self.sample)
            imports += (f"{module} PairSample", "from transformer.text.pairs import Pair")
        opening = ("from transformer import load", *imports)
        return Opening(opening, (f"lab = load({self.lab.name!r})", f"sample = {made}", *lines))


@dataclass(frozen=True)
class Surveyed(_OverPairs):
    """Where every head looks over some pairs; `data` takes `lab, sample, found`."""

    found: Survey

    @property
    def given(self) -> Mapping[str, Any]:
        """See `Subject`."""
        return {"lab": self.lab, "sample": self.sample, "found": self.found}

    @property
    def opening(self) -> Opening:
        """See `Subject`."""
        line = "found = survey(lab.model, sample.pairs, lab.tokenizer, unit=sample.unit)"
        return self._opening(("from transformer.analysis.heads.survey import survey",), line)


@dataclass(frozen=True)
class RemovedOverPairs(_OverPairs):
    """Every head removed in turn over some pairs; `data` takes `lab, sample, removal, found`."""

    removal: Removal
    found: ValidationImportance

    @property
    def given(self) -> Mapping[str, Any]:
        """See `Subject`."""
        return {"lab": self.lab, "sample": self.sample, "removal": self.removal, "found": self.found}

    @property
    def opening(self) -> Opening:
        """See `Subject`."""
        means = f", {_MEANS}" if self.removal == "mean" else ""
        return self._opening(
            ("from transformer.analysis.heads.validation_importance import validation_importance",),
            f"removal = {self.removal!r}",
            f"found = validation_importance(lab.model, sample.pairs, lab.tokenizer{means})",
        )


@dataclass(frozen=True)
class Removed(Decoding):
    """Every head removed in turn from one decoding; `data` takes `lab, seen, removal, effects`."""

    removal: Removal
    effects: Sequence[OutputEffect]

    @property
    def given(self) -> Mapping[str, Any]:
        """See `Subject`."""
        return {"lab": self.lab, "seen": self.seen, "removal": self.removal, "effects": tuple(self.effects)}

    @property
    def opening(self) -> Opening:
        """See `Subject`."""
        means = f", {_MEANS}" if self.removal == "mean" else ""
        return _more(
            self,
            ("from transformer.analysis.heads.importance import output_effects",),
            f"removal = {self.removal!r}",
            f"effects = output_effects(lab.model, {_IDS}, seen.interventions{means})",
        )


@dataclass(frozen=True)
class Hidden(Decoding):
    """Every source token of one decoding hidden in turn; `data` takes `lab, seen, hiding, effect`."""

    hiding: Hiding
    effect: Float[ndarray, "target source"]

    @property
    def given(self) -> Mapping[str, Any]:
        """See `Subject`."""
        return {"lab": self.lab, "seen": self.seen, "hiding": self.hiding, "effect": self.effect}

    @property
    def opening(self) -> Opening:
        """See `Subject`."""
        return _more(
            self,
            ("from transformer.analysis.heads.leave_one_out import leave_one_out",),
            f"hiding = {self.hiding!r}",
            f"effect = leave_one_out(lab.model, {_IDS}, hiding, seen.interventions)",
        )


@dataclass(frozen=True)
class Searched(Decoding):
    """A search for the smallest set of heads that changes a decoding; `data` takes `lab, seen, plan, found`."""

    plan: SearchPlan
    found: MinimalSets

    @property
    def given(self) -> Mapping[str, Any]:
        """See `Subject`."""
        return {"lab": self.lab, "seen": self.seen, "plan": self.plan, "found": self.found}

    @property
    def opening(self) -> Opening:
        """See `Subject`."""
        kinds = sorted({at.kind for at in self.plan.heads})
        off = [str(at) for at in heads_of(self.lab.model) if at.kind in kinds and at not in self.plan.heads]
        condition = f"at.kind in {kinds!r}" + (f" and str(at) not in {off!r}" if off else "")
        goal, exact, most = self.plan.goal, self.plan.exact, self.plan.most
        return _more(
            self,
            (
                "from transformer.analysis.heads.addresses import heads_of",
                "from transformer.analysis.heads.minimal_set import Goal, SearchPlan, minimal_set",
            ),
            f"heads = tuple(at for at in heads_of(lab.model) if {condition})",
            f"plan = SearchPlan({goal!r}, heads, exact={exact}, most={most})",
            "options = {'switches': seen.interventions, 'exact': plan.exact, 'most': plan.most}",
            f"found = minimal_set(lab.model, {_IDS}, plan.goal, plan.heads, **options)",
        )


def _more(subject: Decoding, imports: tuple[str, ...], *lines: str) -> Opening:
    """The opening of a decoding, and more."""
    opening = Decoding(subject.lab, subject.seen).opening
    return Opening((*opening.imports, *imports), (*opening.lines, *lines))
