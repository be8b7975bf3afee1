"""The plan in the fields of the Train page, as one frozen value that a URL carries. No Streamlit here.

A plan may be wrong: it holds what was typed, and `plan_errors.py` says, field by field, what cannot work and the way
out. What the recipe of its corpus says anyway stays out of the URL.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, make_dataclass, replace
from functools import partial
from typing import Any, Self

from pages.shared.url.url_state import TEXTS, Form, Param, Parameters, Problem, Refused, UrlState, param
from pages.training.corpora import config_name, of_run, recipe_of
from pages.training.plan_fields import (
    FIELD_OF,
    FIELDS_OF,
    NO_STEP_LIMIT,
    OF_MODELS,
    OWN,
    PARTS,
    RECIPE,
    SETTINGS,
    SIZES,
    WHOLE,
    Part,
    Section,
)
from pages.training.plan_text import expected, parsed, short, written
from transformer.checkpoints.settings import Settings
from transformer.config import FAMILIES, PRESETS, AnyModelConfig, CorpusConfig, TrainConfig
from transformer.data.corpora import CorpusError
from transformer.data.recipes import family_recipe
from transformer.text.pairs import clean_text

Number = float | int | None
FIRST_CORPUS = "reverse"


def _read_field(name: str, text: str) -> Any:
    try:
        return parsed(name, text)
    except ValueError:
        raise Refused(expected(name)) from None


def _read_corpus(text: str) -> str:
    try:
        config_name(text)
    except CorpusError as error:
        raise Refused(str(error)) from error
    return text


_Settings: Any = make_dataclass(
    "_Settings", [(name, Any, param(None)) for name in SETTINGS], bases=(UrlState,), frozen=True, kw_only=True
)
"""A field for each setting of a run: `SETTINGS` says which, and config.py what each is."""


@dataclass(frozen=True, kw_only=True)
class Plan(_Settings):
    """Everything in the fields: every setting of a run, and what is here. None is an empty field.

    Some fields are not their setting as it stands (`_TO_SETTINGS`): without `steps` the clock alone ends the run, and
    without `seconds` the steps alone; `target_percent` is an exact match in per cent, and without
    `embedding_dropout` embeddings have the same dropout as sublayers.
    """

    corpus: str = param(FIRST_CORPUS, Form(_read_corpus), nonsense="corpus")
    """The name of a corpus that comes with the lab, or what names a file (`corpora.py`)."""
    family: str = param("transformer")
    sentences: tuple[str, ...] | None = param(
        None, Form(str), name="sentence", many=lambda texts: tuple(text for text in texts if text.strip())
    )
    """None: the corpus's own examples."""
    start_from: str = param("")
    """The run or shipped model whose weights it begins with; empty: random initial weights."""

    @classmethod
    def plain_param(cls, name: str) -> Param:
        """Describes a field that a link carries as it is typed."""
        return Param(form=Form(partial(_read_field, name), written), nonsense="field")

    @property
    def recipe(self) -> "Plan":
        """The plan that is recommended for its corpus and family of models."""
        return recommended(self.corpus, self.family, *self.text)

    @property
    def text(self) -> tuple[str | None, str | None, Number]:
        """Columns, tokenizer and vocabulary: all that the recipe of a file depends on."""
        return self.columns, self.tokenizer, self.vocab_size

    @property
    def is_transformer(self) -> bool:
        """Tells whether the model is a Transformer."""
        return self.family == "transformer"

    def with_family(self, family: str) -> "Plan":
        """The plan of another family of models for the same text: its recipe, and of what was chosen for the training
        all that its recipe does not set otherwise."""
        old, new = self.recipe, recommended(self.corpus, family, *self.text)
        differ = {name for name in SETTINGS if getattr(old, name) != getattr(new, name)}
        return replace(self, family=family, **{name: getattr(new, name) for name in OF_MODELS | differ})

    @property
    def preset(self) -> str:
        """The name of the sizes in the fields."""
        sizes = {name: getattr(self, name) for name in SIZES}
        if all(getattr(self.recipe, name) == size for name, size in sizes.items()):
            return RECIPE
        named = (name for name, preset in PRESETS.items() if all(getattr(preset, s) == v for s, v in sizes.items()))
        return next(named, OWN)

    def with_preset(self, name: str) -> "Plan":
        """The same plan with the sizes of this preset."""
        source = self.recipe if name == RECIPE else PRESETS.get(name, self)
        return replace(self, **{size: getattr(source, size) for size in SIZES})

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts that a run of this plan can leave out."""
        return PARTS if self.is_transformer else _TRAINING_PARTS

    @property
    def left_out(self) -> tuple[Part, ...]:
        """The parts of the paper's model and training that this plan leaves out."""
        return tuple(part for part in self.parts if getattr(self, part) == _ABSENT[part])

    def with_part(self, part: Part, *, present: bool) -> "Plan":
        """The same plan with this part as the recipe has it, or left out."""
        recipe = getattr(self.recipe, part)
        there = _PRESENT[part] if recipe == _ABSENT[part] else recipe
        return replace(self, **{part: there if present else _ABSENT[part]})

    def with_corpus(self, corpus: str) -> "Plan":
        """The recipe of another corpus, on the device that was chosen."""
        return self._on_this_device(recommended(corpus, self.family))

    def with_columns(self, columns: str | None) -> "Plan":
        """The recipe of other columns of the same file, on the device that was chosen."""
        return self._on_this_device(recommended(self.corpus, self.family, columns))

    def with_tokens(self, **changed: Any) -> "Plan":
        """The same plan with another tokenizer or vocabulary; lengths that were the recipe's are the new recipe's."""
        asked = replace(self, **changed)
        follows = [name for name in _OF_TOKENS if getattr(self, name) == getattr(self.recipe, name)]
        return replace(asked, **{name: getattr(asked.recipe, name) for name in follows})

    def _on_this_device(self, plan: "Plan") -> "Plan":
        return replace(plan, device=self.device, threads=self.threads, precision=self.precision)

    @classmethod
    def read(cls, parameters: Parameters, base: UrlState | None = None) -> tuple[Self, tuple[Problem, ...]]:
        """The plan in these query parameters, the recipe of its corpus where they say nothing, and a problem for each
        value that makes no sense."""
        named, _ = super().read({name: found for name, found in parameters.items() if name in _OF_RECIPE})
        older, unknown = _of_old_link(parameters.get(_OLD, ()))
        plan, problems = super().read({**older, **parameters}, base or named.recipe)
        return plan, problems + unknown

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Returns the names of the query parameters that `read` understands."""
        return (*super().names(), _OLD)

    def parameters(self, base: UrlState | None = None) -> dict[str, str | list[str]]:
        """The query parameters that `read` turns into this plan again; what the recipe says anyway is left out."""
        corpus: dict[str, str | list[str]] = {} if self.corpus == FIRST_CORPUS else {"corpus": self.corpus}
        none: dict[str, str | list[str]] = {"sentence": [""]} if self.sentences == () else {}
        family: dict[str, str | list[str]] = {} if self.is_transformer else {"family": self.family}
        columns: dict[str, str | list[str]] = {} if self.columns is None else {"columns": self.columns}
        return corpus | columns | family | super().parameters(base or self.recipe) | none

    def configs(self) -> tuple[AnyModelConfig, TrainConfig, CorpusConfig]:
        """The settings of a run, as `config` makes them."""
        return self.config("model"), self.config("train"), self.config("corpus")

    def config(self, section: Section) -> Any:
        """The settings of a section. Refusal where they cannot be, CorpusError for a file that is not here. The
        vocabulary of a model is not known here."""
        model, train = model_settings(self.corpus, self.family, *self.text)
        configs: dict[Section, Any] = {"model": model, "train": train, "corpus": CorpusConfig()}
        return replace(configs[section], **self.values(section))

    def fields_of(self, section: Section) -> tuple[str, ...]:
        """The fields that are settings of a section, for its family of models."""
        if section == "model":
            return FIELDS_OF[self.family]
        return tuple(name for name, setting in SETTINGS.items() if setting.section == section)

    def values(self, section: Section) -> dict[str, Any]:
        """The settings of a section, under their names in its config. CorpusError for a file that is not here."""
        return {SETTINGS[name].name: self.value(name) for name in self.fields_of(section)}

    def value(self, name: str) -> Any:
        """The value of the setting behind a field."""
        value = getattr(self, name)
        if name in _TO_SETTINGS:
            return _TO_SETTINGS[name](self)
        return whole(value) if name in WHOLE else value


_TO_SETTINGS: dict[str, Callable[[Plan], Any]] = {
    "corpus": lambda plan: config_name(plan.corpus),
    "steps": lambda plan: NO_STEP_LIMIT if plan.steps is None else whole(plan.steps),
    "target_percent": lambda plan: None if plan.target_percent is None else plan.target_percent / 100,
    "embedding_dropout": lambda plan: plan.dropout if plan.embedding_dropout is None else plan.embedding_dropout,
}
"""The settings of fields that mean something else than they hold."""
_OLD = "set"
"""The parameter in which links used to carry settings that had no field, as in "set=train.accumulate=2"."""
_OF_RECIPE = ("corpus", "columns", "tokenizer", "vocab_size", "family")
"""The parameters that choose the recipe."""
_OF_TOKENS = ("max_length", "steps", "evaluate_every")
"""The fields whose recommended values depend on the tokenizer."""
_ABSENT: dict[Part, Any] = {
    **{"causal_mask": False, "scale_scores": False, "residual": False},
    **{"positions": "none", "norm": "none", "label_smoothing": 0, "warmup_steps": 0},
}
_PRESENT: dict[Part, Any] = {
    **{"causal_mask": True, "scale_scores": True, "residual": True},
    **{"positions": "sinusoidal", "norm": "post", "label_smoothing": 0.1, "warmup_steps": 100},
}
_TRAINING_PARTS: tuple[Part, ...] = ("label_smoothing", "warmup_steps")


def recommended(
    corpus: str,
    family: str = "transformer",
    columns: str | None = None,
    tokenizer: str | None = None,
    vocab_size: Number = None,
) -> Plan:
    """The plan that one press of the button trains well; for a file cut by another tokenizer, with the lengths that
    suit its tokens."""
    settings = model_settings(corpus, family, columns, tokenizer, vocab_size)
    return replace(_plan(corpus, *settings, CorpusConfig()), columns=columns)


def model_settings(
    corpus: str, family: str, columns: str | None = None, tokenizer: str | None = None, vocab_size: Number = None
) -> tuple[AnyModelConfig, TrainConfig]:
    """The settings of a model of this family and of its training that suit a corpus, or these columns and tokens of a
    file."""
    return family_recipe(recipe_of(corpus, columns, tokenizer, vocab_size), family)


def plan_of(settings: Settings) -> Plan:
    """The plan that trains once more what these settings made, with the same sentences."""
    corpus = of_run(settings)
    return replace(_plan(corpus, settings.model, settings.train, settings.corpus), sentences=settings.pinned)


def lines_of(text: str) -> tuple[str, ...]:
    """The sentences in a field, one a line, each once."""
    return tuple(dict.fromkeys(filter(None, map(clean_text, text.splitlines()))))


def whole(value: Number) -> Number:
    """The number as an int where it is one."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _plan(corpus: str, model: AnyModelConfig, train: TrainConfig, words: CorpusConfig) -> Plan:
    # The model's own settings go before; those of others fill fields not in use.
    models = (*(family() for family in FAMILIES.values()), recipe_of(corpus).model, model)
    values = {name: getattr(one, name) for one in models for name in FIELDS_OF[one.family]}
    for section, config in (("corpus", words), ("train", train)):
        own = {name: setting for name, setting in SETTINGS.items() if setting.section == section}
        values |= {name: getattr(config, setting.name) for name, setting in own.items()}
    if train.max_steps == NO_STEP_LIMIT and train.max_seconds is not None:
        values["steps"] = None
    if train.target_exact_match is not None:
        values["target_percent"] = round(train.target_exact_match * 100, 6)
    if values["embedding_dropout"] == model.dropout or not isinstance(model, FAMILIES["transformer"]):
        values["embedding_dropout"] = None
    return Plan(**values | {"corpus": corpus, "family": model.family})


def _of_old_link(given: str | Sequence[str]) -> tuple[dict[str, str], tuple[Problem, ...]]:
    """Reads settings in the form that links had for those without a field; a problem for each unknown one."""
    found, problems = {}, []
    for text in (given,) if isinstance(given, str) else given:
        name, _, value = text.partition("=")
        if name in FIELD_OF:
            found[FIELD_OF[name]] = {"true": "on", "false": "off", "null": ""}.get(value, value.strip('"'))
        else:
            problems.append(
                Problem("corpus", TEXTS("nonsense.setting", text=short(text), expected=TEXTS("expected.known")))
            )
    return found, tuple(problems)
