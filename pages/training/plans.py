"""The plan in the fields of the Train page, as one frozen value that a URL carries. No Streamlit here.

A plan may be wrong: it holds what was typed, and `plan_errors.py` says, field by field, what cannot work and the way
out. What the recipe of its corpus says anyway stays out of the URL.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from typing import Any, Self

from pages.shared.url.url_state import TEXTS, Form, Param, Parameters, Problem, Refused, UrlState, param
from pages.training.corpora import config_name, of_run, recipe_of
from pages.training.plan_fields import (
    CORPUS_FIELDS,
    FIELDS_OF,
    MODEL_FIELDS,
    NO_STEP_LIMIT,
    OWN,
    PARTS,
    RECIPE,
    SIZES,
    TRAIN_FIELDS,
    WHOLE,
    Part,
)
from pages.training.plan_text import expected, parsed, written
from transformer.checkpoints.settings import Settings
from transformer.config import CONFIGS, FAMILIES, PRESETS, AnyModelConfig, CorpusConfig, TrainConfig
from transformer.data.corpora import CorpusError
from transformer.data.recipes import family_recipe
from transformer.text.pairs import clean_text

Number = float | int | None
FIRST_CORPUS = "reverse"
Other = tuple[str, Any]
"""A setting without a field of its own: its name, as on the command line, and its value."""


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


def _read_other(text: str) -> Other:
    """The setting in a text like "train.accumulate=2"."""
    name, _, after = text.partition("=")
    if name not in _FURTHER:
        raise Refused(TEXTS("expected.known"))
    try:
        value = json.loads(after)
    except (ValueError, RecursionError):
        value = after
    if isinstance(value, list | dict):
        raise Refused(TEXTS("expected.single"))
    return name, value


_OTHER = Form(_read_other, lambda other: f"{other[0]}={json.dumps(other[1])}")


@dataclass(frozen=True, kw_only=True)
class Plan(UrlState):
    """Everything in the fields. None is an empty field."""

    corpus: str = param(FIRST_CORPUS, Form(_read_corpus), nonsense="corpus")
    """The name of a corpus that comes with the lab, or what names a file (`corpora.py`)."""
    columns: str = param(None)
    """The columns of a file that hold source and target, "2,4"; None: found by their names and their content."""
    longest: Number = param(None)
    """Most symbols of a string of copy, reverse and sort; None for their own length."""
    tokenizer: str = param(None)
    vocab_size: Number = param(None)
    """None: as many as suit the text."""
    family: str = param("transformer")
    cell: str = param(None)
    attention: str = param(None)
    bidirectional: bool = param(None)
    input_feeding: bool = param(None)
    kernel: Number = param(None)
    dilated: bool = param(None)
    separable: bool = param(None)
    n_encoder_layers: Number = param(None)
    n_decoder_layers: Number = param(None)
    d_model: Number = param(None)
    n_heads: Number = param(None)
    d_ff: Number = param(None)
    max_length: Number = param(None)
    positions: str = param(None)
    norm: str = param(None)
    score: str = param(None)
    window: Number = param(None)
    causal_mask: bool = param(None)
    scale_scores: bool = param(None)
    residual: bool = param(None)
    learning_rate: Number = param(None)
    steps: Number = param(None)
    """None: the clock alone ends the run."""
    seconds: Number = param(None)
    """None: the steps alone end it. Where both are set, what comes first."""
    target_percent: Number = param(None)
    """Exact match in per cent at which the run ends early; None never."""
    patience: Number = param(None)
    """Evaluations without a lower validation loss after which it ends early; None never."""
    seed: Number = param(None)
    dropout: Number = param(None)
    """After sublayers and on the embeddings alike."""
    label_smoothing: Number = param(None)
    optimizer: str = param(None)
    schedule: str = param(None)
    warmup_steps: Number = param(None)
    batch_tokens: Number = param(None)
    evaluate_every: Number = param(None)
    precision: str = param(None)
    device: str = param(None)
    threads: Number = param(None)
    sentences: tuple[str, ...] | None = param(
        None, Form(str), name="sentence", many=lambda texts: tuple(text for text in texts if text.strip())
    )
    """None: the corpus's own examples."""
    start_from: str = param("")
    """The run or shipped model whose weights it begins with; empty: random initial weights."""
    others: tuple[Other, ...] = param(
        (), _OTHER, name="set", many=lambda found: tuple(dict(found).items()), beside="others", nonsense="setting"
    )
    """Settings without a field of their own that differ from the recipe's, named as on the command line."""

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
        """The recommended plan of another family of models, for the same text."""
        return replace(
            self, **{name: getattr(recommended(self.corpus, family, *self.text), name) for name in _OF_FAMILY}
        )

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
        plan, problems = super().read(parameters, base or named.recipe)
        kept, refused = _accepted(plan)
        return replace(plan, others=kept), problems + refused

    def parameters(self, base: UrlState | None = None) -> dict[str, str | list[str]]:
        """The query parameters that `read` turns into this plan again; what the recipe says anyway is left out."""
        corpus: dict[str, str | list[str]] = {} if self.corpus == FIRST_CORPUS else {"corpus": self.corpus}
        none: dict[str, str | list[str]] = {"sentence": [""]} if self.sentences == () else {}
        family: dict[str, str | list[str]] = {} if self.is_transformer else {"family": self.family}
        columns: dict[str, str | list[str]] = {} if self.columns is None else {"columns": self.columns}
        return corpus | columns | family | super().parameters(base or self.recipe) | none

    def configs(self) -> tuple[AnyModelConfig, TrainConfig, CorpusConfig]:
        """The settings of a run; ValueError where they refuse each other. The vocabulary is not known here."""
        base, recipe = model_settings(self.corpus, self.family, *self.text)
        model, train, corpus = self.model_values(), self.train_values(), self.corpus_values()
        for name, value in self.others:
            kind, field = name.split(".")
            {"model": model, "train": train, "corpus": corpus}[kind][field] = value
        return replace(base, **model), replace(recipe, **train), CorpusConfig(**corpus)

    def model_values(self) -> dict[str, Any]:
        """The fields that are settings of the model, under the settings' names."""
        embedded = {"embedding_dropout": self.dropout} if self.is_transformer else {}
        return self._values(FIELDS_OF[self.family]) | {"dropout": self.dropout} | embedded

    def train_values(self) -> dict[str, Any]:
        """The fields that are settings of the training, under the settings' names."""
        return self._values(TRAIN_FIELDS) | {
            "max_steps": NO_STEP_LIMIT if self.steps is None else whole(self.steps),
            "max_seconds": self.seconds,
            "target_exact_match": None if self.target_percent is None else self.target_percent / 100,
        }

    def corpus_values(self) -> dict[str, Any]:
        """The fields that are settings of the corpus, under the settings' names."""
        return self._values(CORPUS_FIELDS) | {"name": config_name(self.corpus)}

    def _values(self, names: Sequence[str]) -> dict[str, Any]:
        return {name: whole(getattr(self, name)) if name in WHOLE else getattr(self, name) for name in names}


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
_OF_FAMILIES = tuple(dict.fromkeys(name for names in FIELDS_OF.values() for name in names))
_OF_FAMILY = (
    *("family", *_OF_FAMILIES, "dropout", "learning_rate", "optimizer", "schedule", "warmup_steps"),
    *("batch_tokens", "steps", "evaluate_every"),
)
"""Fields whose recommended values differ between families."""
NUMBERS = tuple(item.name for item in fields(Plan) if item.type == Number)
_FURTHER = {
    f"{kind}.{item.name}"
    for kind, config in CONFIGS.items()
    for item in fields(config)
    if item.name not in {"model": MODEL_FIELDS, "train": TRAIN_FIELDS, "corpus": CORPUS_FIELDS}[kind]
    and item.name not in ("dropout", "max_steps", "max_seconds", "target_exact_match", "name", "vocab_size")
    and item.name not in ("pad_id", "bos_id", "eos_id", "family")
}
"""Settings without a field of their own."""


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
    plan = _plan(corpus, settings.model, settings.train, settings.corpus)
    found = {"model": settings.model, "train": settings.train, "corpus": settings.corpus}
    usual = dict(zip(CONFIGS, replace(plan.recipe, dropout=plan.dropout).configs(), strict=True))
    others = tuple(
        (f"{kind}.{item.name}", getattr(config, item.name))
        for kind, config in found.items()
        for item in fields(config)
        if f"{kind}.{item.name}" in _FURTHER and getattr(config, item.name) != getattr(usual[kind], item.name)
    )
    return replace(plan, sentences=settings.pinned, others=others)


def lines_of(text: str) -> tuple[str, ...]:
    """The sentences in a field, one a line, each once."""
    return tuple(dict.fromkeys(filter(None, map(clean_text, text.splitlines()))))


def whole(value: Number) -> Number:
    """The number as an int where it is one."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _plan(corpus: str, model: AnyModelConfig, train: TrainConfig, words: CorpusConfig) -> Plan:
    target, steps = train.target_exact_match, train.max_steps
    defaults = tuple(family() for family in FAMILIES.values())
    configs = (*defaults, recipe_of(corpus).model, model)  # the last one goes before; the others fill fields not in use
    return Plan(
        corpus=corpus,
        family=model.family,
        **{name: value for name, value in asdict(words).items() if name in CORPUS_FIELDS},
        **{name: value for own in configs for name, value in asdict(own).items() if name in _OF_FAMILIES},
        **{name: value for name, value in asdict(train).items() if name in TRAIN_FIELDS},
        dropout=model.dropout,
        steps=None if steps == NO_STEP_LIMIT and train.max_seconds is not None else steps,
        seconds=train.max_seconds,
        target_percent=None if target is None else round(target * 100, 6),
    )


def _accepted(plan: Plan) -> tuple[tuple[Other, ...], tuple[Problem, ...]]:
    """The further settings of a plan that its configs take, and a problem for each other one."""
    configs = dict(zip(CONFIGS, plan.recipe.configs(), strict=True))
    kept, refused = [], []
    for name, value in plan.others:
        kind, _, setting = name.partition(".")
        try:
            replace(configs[kind], **{setting: value})
        except ValueError as error:
            text = _OTHER.write((name, value))
            refused.append(Problem("others", TEXTS("nonsense.setting", text=text, expected=error)))
        else:
            kept.append((name, value))
    return tuple(kept), tuple(refused)
