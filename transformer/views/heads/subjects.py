"""The subjects of views of heads: heads over many pairs, heads removed, tokens hidden, a search for a minimal set."""

from dataclasses import dataclass
from typing import Literal

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
from transformer.inspection.inspection import Inspection
from transformer.lab import Lab
from transformer.views.subjects import decoding_origin, model_origin
from transformer.views.view import Origin

Removal = Literal["zero", "mean"]
_IDS = "seen.source_ids, seen.target_ids"
_MEANS: dict[Removal, str] = {"zero": "", "mean": ", means=lab.head_means.means"}


def means_of(lab: Lab, removal: Removal) -> Means | None:
    """Returns the vectors that removed heads are set to; None for zero."""
    return lab.head_means.means if removal == "mean" else None


def pairs_origin(lab: Lab, sample: PairSample) -> Origin:
    """Returns the lines that load a model as `lab` and read pairs as `sample`."""
    module = "from transformer.analysis.heads.pair_sample import"
    if sample.is_validation:
        made, imports = f"validation_sample(lab.checkpoint, {len(sample.pairs)})", [f"{module} validation_sample"]
    else:
        made, imports = repr(sample), [f"{module} PairSample", "from transformer.text.pairs import Pair"]
    return model_origin(lab).then(
        f"sample = {made}",
        imports=imports,
        stem=f"{lab.name}-{sample.file_name}",
        caption=f"{lab.name} · measured on {sample.description}",
    )


@dataclass(frozen=True)
class Surveyed:
    """The attention of every head over some pairs."""

    lab: Lab
    sample: PairSample
    found: Survey

    @property
    def origin(self) -> Origin:
        """Surveys the heads over the pairs."""
        return pairs_origin(self.lab, self.sample).then(
            "found = survey(lab.model, sample.pairs, lab.tokenizer, unit=sample.unit)",
            imports=["from transformer.analysis.heads.survey import survey"],
        )


@dataclass(frozen=True)
class RemovedOverPairs:
    """Every head removed in turn over some pairs."""

    lab: Lab
    sample: PairSample
    removal: Removal
    found: ValidationImportance

    @property
    def origin(self) -> Origin:
        """Removes each head in turn over the pairs."""
        return pairs_origin(self.lab, self.sample).then(
            f"removal = {self.removal!r}",
            f"found = validation_importance(lab.model, sample.pairs, lab.tokenizer{_MEANS[self.removal]})",
            imports=["from transformer.analysis.heads.validation_importance import validation_importance"],
        )


@dataclass(frozen=True)
class Removed:
    """Every head removed in turn from one decoding."""

    lab: Lab
    seen: Inspection
    removal: Removal
    effects: tuple[OutputEffect, ...]

    @property
    def origin(self) -> Origin:
        """Decodes the sentence and removes each head in turn."""
        return decoding_origin(self.lab, self.seen).then(
            f"removal = {self.removal!r}",
            f"effects = output_effects(lab.model, {_IDS}, seen.interventions{_MEANS[self.removal]})",
            imports=["from transformer.analysis.heads.importance import output_effects"],
        )


@dataclass(frozen=True)
class Hidden:
    """Every source token of one decoding hidden in turn."""

    lab: Lab
    seen: Inspection
    hiding: Hiding
    effect: Float[ndarray, "target source"]

    @property
    def origin(self) -> Origin:
        """Decodes the sentence and hides each source token in turn."""
        return decoding_origin(self.lab, self.seen).then(
            f"hiding = {self.hiding!r}",
            f"effect = leave_one_out(lab.model, {_IDS}, hiding, seen.interventions)",
            imports=["from transformer.analysis.heads.leave_one_out import leave_one_out"],
        )


@dataclass(frozen=True)
class Searched:
    """A search for the smallest set of heads that changes a decoding."""

    lab: Lab
    seen: Inspection
    plan: SearchPlan
    found: MinimalSets

    @property
    def origin(self) -> Origin:
        """Decodes the sentence and searches among the heads of the plan."""
        kinds = sorted({at.kind for at in self.plan.heads})
        left_out = [str(at) for at in heads_of(self.lab.model) if at.kind in kinds and at not in self.plan.heads]
        condition = f"at.kind in {kinds!r}" + (f" and str(at) not in {left_out!r}" if left_out else "")
        goal, exact, most = self.plan.goal, self.plan.exact, self.plan.most
        return decoding_origin(self.lab, self.seen).then(
            f"heads = tuple(at for at in heads_of(lab.model) if {condition})",
            f"plan = SearchPlan({goal!r}, heads, exact={exact}, most={most})",
            "options = {'switches': seen.interventions, 'exact': plan.exact, 'most': plan.most}",
            f"found = minimal_set(lab.model, {_IDS}, plan.goal, plan.heads, **options)",
            imports=[
                "from transformer.analysis.heads.addresses import heads_of",
                "from transformer.analysis.heads.minimal_set import Goal, SearchPlan, minimal_set",
            ],
        )
