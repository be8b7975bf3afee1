"""The faults of a plan and its surprises: a sentence for each field, with the numbers and the way out.

Here are faults of the fields by themselves; those that depend on the text of the corpus are in start.py.
"""

from collections.abc import Container, Mapping
from dataclasses import replace
from typing import Any

from pages.training.corpora import config_name
from pages.training.plan_fields import (
    EMPTY,
    FIELDS,
    LABELS,
    MOST_SENTENCES,
    NOUNS,
    NUMBERS,
    SETTINGS,
    WHOLE,
    Section,
)
from pages.training.plan_text import short, written
from pages.training.plans import Plan, model_settings
from transformer.config import CorpusConfig, wsd_plateau
from transformer.data.corpora import CorpusError
from transformer.model.score_forms import SCORE_FORMS
from transformer.training.devices import resolve_device

_SYMBOL_TASKS = ("copy", "reverse", "sort")


def faults(plan: Plan) -> dict[str, str]:
    """Returns a sentence for each field that cannot work, with the reason and the way out."""
    found = _missing_corpus(plan) | {
        name: f"This field is empty; the recipe has {_shown(getattr(plan.recipe, name))}."
        for name in NUMBERS
        if getattr(plan, name) is None and name not in EMPTY
    }
    for name in WHOLE - found.keys():
        value = getattr(plan, name)
        if isinstance(value, float) and not value.is_integer():
            found[name] = f"{LABELS[name]} ({value:g}) must be a whole number: take {round(value)}."
    found = _misfits(plan, found) | found
    found |= _refused(plan, found)
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


def _misfits(plan: Plan, known: Container[str]) -> dict[str, str]:
    """Finds faults that concern two fields, or a field that is not a setting by the same name."""
    found = {
        name: f"{LABELS[name]} ({getattr(plan, name):,}) is too much: take at most {most:,}."
        for name, most in ((name, field.most) for name, field in FIELDS.items())
        if most is not None and name not in known and (getattr(plan, name) or 0) > most
    }
    if plan.family == "rnn":
        found |= _recurrent_misfits(plan)
    elif plan.is_transformer and "d_model" not in known and "n_heads" not in known:
        found |= _uneven_heads(plan)
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
    elif plan.steps and plan.schedule == "wsd" and (plan.warmup_steps or 0) > (end := wsd_plateau(plan.steps)):
        found["warmup_steps"] = (
            f"The warm-up ({plan.warmup_steps:,} steps) ends after step {end:,}, when this schedule falls to 0: "
            "take fewer warm-up steps, more steps in all, or another schedule."
        )
    if (plan.target_percent is not None) and not 0 < plan.target_percent <= 100:
        found["target_percent"] = (
            f"Exact match ({plan.target_percent:g} %) must be above 0 and at most 100: 99 is usual, and with an empty "
            "field the run never ends early."
        )
    if not plan.is_transformer:
        pass
    elif plan.score != "dot" and plan.positions == "rotary":
        found["score"] = (
            "Rotary positions need dot products: only these keep the distance of two turned vectors. Take other "
            "positions, or the dot product."
        )
    elif not SCORE_FORMS[plan.score].is_divided and not plan.scale_scores:
        found["score"] = (
            f"An {plan.score} score has no division by √d_k to leave out: put it back under *Ablate a component*, or "
            "take the dot product."
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


def _recurrent_misfits(plan: Plan) -> dict[str, str]:
    """Finds a width that two directions cannot share, and input feeding without anything to feed."""
    found = {}
    if plan.bidirectional and plan.d_model and plan.d_model % 2:
        found["d_model"] = f"d_model ({plan.d_model}) must be even to read both ways: take {plan.d_model + 1}."
    if plan.input_feeding and plan.attention not in ("dot", "general"):
        found["input_feeding"] = (
            f"Input feeding is for dot and general attention, and attention is {plan.attention}: leave one of them out."
        )
    return found


def _uneven_heads(plan: Plan) -> dict[str, str]:
    """Finds a width that cannot be shared out among the heads."""
    d_model, heads = plan.d_model, plan.n_heads
    assert d_model is not None and heads is not None, "empty fields are reported first"
    if d_model < 1 or heads < 1:
        return {}
    if d_model % heads:
        said = (
            f"d_model ({d_model}) must be divisible by the number of heads ({heads}): each gets an equal "
            f"part. Take {_multiples(int(d_model), int(heads))}, or another number of heads."
        )
        return {"d_model": said}
    if plan.positions == "rotary" and d_model // heads % 2:
        said = (
            f"d_model ({d_model}) gives each of the {heads} heads an odd part ({d_model // heads}), and rotary "
            f"positions turn dimensions in pairs. Take {_multiples(int(d_model), 2 * int(heads))}."
        )
        return {"d_model": said}
    return {}


def _refused(plan: Plan, known: Container[str]) -> dict[str, str]:
    """Finds what the configs themselves refuse, trying each other field on its own with the recommended rest."""
    model, train = model_settings(plan.corpus, plan.family, *plan.text)
    configs: dict[Section, Any] = {"model": model, "train": train, "corpus": CorpusConfig()}
    found: dict[str, str] = {}
    for section, config in configs.items():
        for field in plan.fields_of(section):
            if field in known or (field in EMPTY and getattr(plan, field) is None):
                continue
            name, value = SETTINGS[field].name, plan.value(field)
            changes = {name: value}
            if name in ("max_steps", "warmup_steps"):  # both together are judged by `_misfits`
                changes["schedule"] = "paper"
            elif name == "schedule":
                changes["warmup_steps"] = 0
            elif plan.family == "rnn":
                changes |= {"bidirectional": False} if name == "d_model" else {}
                changes |= {"attention": "dot"} if name == "input_feeding" else {"input_feeding": False}
                changes = changes if config is model else {name: value}
            elif not plan.is_transformer:
                pass
            elif name == "d_model":  # the other half of a pair must not be the reason for a refusal
                changes |= {"n_heads": 1, "positions": "none" if plan.positions == "rotary" else plan.positions}
            elif name == "n_heads":
                changes |= {"d_model": 2 * max(1, value)}
            try:
                replace(config, **changes)
            except ValueError as error:
                called = f"{NOUNS.get(field, LABELS[field])} ({written(value)})"
                said = str(error).replace(f"{name} ({value!r})", called).rstrip(".")
                recipe = getattr(plan.recipe, field)
                if recipe is not None:
                    said += f"; the recipe has {_shown(recipe)}"
                elif "empty" not in said:
                    said += ", or leave the field empty"
                found[field] = f"{said}."
    return found


def _multiples(d_model: int, heads: int) -> str:
    """Returns the nearest widths that these heads divide, even ones so that sinusoidal positions stay possible."""
    step = heads if heads % 2 == 0 else 2 * heads
    below, above = d_model // step * step, (d_model // step + 1) * step
    return f"{below} or {above}" if below else f"{above}"


def _shown(value: object) -> str:
    return "an empty field" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
