"""The faults of a plan and its surprises: a sentence for each field, with the numbers and the way out.

Here are faults of the fields by themselves; those that depend on the text of the corpus are in start.py.
"""

from collections.abc import Mapping
from typing import get_args

from pages.training.corpora import config_name
from pages.training.plan_fields import EMPTY, FIELD_OF, FIELDS, LABELS, MOST_SENTENCES, NOUNS, NUMBERS, Section
from pages.training.plan_text import short, written
from pages.training.plans import Plan
from transformer.data.corpora import CorpusError
from transformer.setting import Fault, Refusal
from transformer.training.devices import resolve_device

_SYMBOL_TASKS = ("copy", "reverse", "sort")


def faults(plan: Plan) -> dict[str, str]:
    """Returns a sentence for each field that cannot work, with the reason and the way out."""
    found = _refused(plan) | _misfits(plan) | _missing_corpus(plan)
    found |= {
        name: f"This field is empty; the recipe has {_shown(getattr(plan.recipe, name))}."
        for name in NUMBERS
        if getattr(plan, name) is None and name not in EMPTY
    }
    return {name: found[name] for name in LABELS if name in found}


def misread(drafts: Mapping[str, str]) -> dict[str, str]:
    """Returns a sentence for each number field with something else in it."""
    return {
        name: f"“{short(text)}” is not a number: write digits, such as 500 or 0.5, or leave the field empty."
        for name, text in drafts.items()
    }


def notes(plan: Plan) -> dict[str, str]:
    """Returns a sentence for each field that works but may surprise."""
    found = {}
    if plan.steps and plan.warmup_steps and plan.steps < plan.warmup_steps:
        found["warmup_steps"] = (
            f"The run ends at step {plan.steps:,}, before the end of the warm-up at step {plan.warmup_steps:,}: "
            "the learning rate never reaches its peak."
        )
    if not plan.is_transformer:
        return found
    if plan.positions == "none":
        found["positions"] = "Without positions the encoder cannot tell one order of words from another."
    if plan.positions == "alibi":
        found["positions"] = (
            "ALiBi treats both directions alike: only the end mark tells the encoder which way a sentence "
            "runs, so that copy and reverse are learned more slowly."
        )
    return found


def has_longest(corpus: str) -> bool:
    """Tells whether the strings of this corpus can be made longer."""
    return corpus in _SYMBOL_TASKS


def _missing_corpus(plan: Plan) -> dict[str, str]:
    try:
        config_name(plan.corpus)
    except CorpusError as error:
        return {"corpus": f"{error}."}
    return {}


def _misfits(plan: Plan) -> dict[str, str]:
    """Finds faults that no config knows of: they concern fields that are not settings as they stand, or this
    machine."""
    found = {}
    if plan.steps is None and plan.seconds is None:
        found["steps"] = (
            "Neither steps nor seconds end this run: fill in one of them, or both; the recipe has "
            f"{plan.recipe.steps:,} steps."
        )
    elif plan.steps is None and plan.schedule in ("cosine", "wsd"):
        found["schedule"] = (
            "This schedule falls to 0 at the last step, and a run that only the clock ends has no known last "
            "step: fill in the steps too, or take the paper's schedule."
        )
    if (plan.target_percent is not None) and not 0 < plan.target_percent <= 100:
        found["target_percent"] = (
            f"Exact match ({plan.target_percent:g} %) must be above 0 and at most 100: 99 is usual, and with an empty "
            "field the run never ends early."
        )
    if plan.longest is not None and not has_longest(plan.corpus):
        found["longest"] = (
            f"A longest string ({plan.longest:g}) is for {', '.join(_SYMBOL_TASKS)}: leave the field empty."
        )
    if plan.sentences is not None and len(plan.sentences) > MOST_SENTENCES:
        found["sentences"] = (
            f"{len(plan.sentences)} sentences are more than the {MOST_SENTENCES} that can be followed: remove some "
            "lines."
        )
    try:
        resolve_device(plan.device)
    except ValueError as error:
        found["device"] = f"{error}."
    return found


def _refused(plan: Plan) -> dict[str, str]:
    """Finds what the configs refuse."""
    found = {}
    for section in get_args(Section):
        try:
            plan.config(section)
        except CorpusError:  # `_missing_corpus` says so
            pass
        except Refusal as refusal:
            for fault in refusal.faults:
                field = FIELD_OF[f"{section}.{fault.setting}"]
                if getattr(plan, field) is not None:  # an empty one follows another, which has the fault too
                    found[field] = sentence(fault, section, plan)
    return found


def sentence(fault: Fault, section: Section, plan: Plan) -> str:
    """Returns a fault with the names that its fields have on the page, and a way out."""
    field = FIELD_OF[f"{section}.{fault.setting}"]
    said = fault.sentence(lambda name: NOUNS[FIELD_OF[f"{section}.{name}"]], _shown)
    if FIELDS[field].noun:
        said = said[:1].upper() + said[1:]
    recipe = getattr(plan.recipe, field)
    if fault.fix:
        said += f": {fault.fix}"
    elif recipe is not None:
        said += f"; the recipe has {_shown(recipe)}"
    elif field in EMPTY:
        said += ", or leave the field empty"
    return f"{said}."


def _shown(value: object) -> str:
    match value:
        case None:
            return "an empty field"
        case bool() | str():
            return written(value)
        case int():
            return f"{value:,}"
    return f"{value:g}"
