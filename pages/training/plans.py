"""What the Train page has in its fields, as one frozen value that a URL can carry. No Streamlit here.

A plan may be wrong: it holds what was typed, and `faults.py` says, field by field, what cannot work and the way out.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from pages.training.corpora import config_name, of_run
from pages.training.plan_fields import (
    CORPUS_FIELDS,
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
from pages.training.plan_text import expected, parsed, short, written
from transformer.checkpoints.settings import Settings
from transformer.config import CONFIGS, PRESETS, CorpusConfig, ModelConfig, TrainConfig
from transformer.data.corpora import CorpusError
from transformer.data.recipes import recipe_for

Number = float | int | None
FIRST_CORPUS = "reverse"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Everything in the fields. None is an empty field."""

    corpus: str
    """The name of a corpus that comes with the lab, or what names a file (`corpora.py`)."""
    longest: Number
    """Most symbols of a string of copy, reverse and sort; None for their own length."""
    tokenizer: str
    vocab_size: Number
    """None: as many as suit the text."""
    n_encoder_layers: Number
    n_decoder_layers: Number
    d_model: Number
    n_heads: Number
    d_ff: Number
    max_length: Number
    positions: str
    norm: str
    causal_mask: bool
    scale_scores: bool
    residual: bool
    learning_rate: Number
    steps: Number
    """None: the clock alone ends the run."""
    seconds: Number
    """None: the steps alone end it. Where both are set, what comes first."""
    target_percent: Number
    """Exact match in per cent at which the run ends early; None never."""
    patience: Number
    """Evaluations without a lower validation loss after which it ends early; None never."""
    seed: Number
    dropout: Number
    """After sublayers and on the embeddings alike."""
    label_smoothing: Number
    schedule: str
    warmup_steps: Number
    batch_tokens: Number
    evaluate_every: Number
    precision: str
    device: str
    threads: Number
    sentences: tuple[str, ...] | None = None
    """None: the corpus's own examples."""
    start_from: str = ""
    """The run or shipped model whose weights it begins with; empty: random initial weights."""
    others: tuple[tuple[str, Any], ...] = ()
    """Settings without a field of their own that differ from the recipe's, named as on the command line."""

    @property
    def preset(self) -> str:
        """The name of the sizes in the fields."""
        sizes = {name: getattr(self, name) for name in SIZES}
        recipe = recommended(self.corpus)
        if all(getattr(recipe, name) == size for name, size in sizes.items()):
            return RECIPE
        named = (name for name, preset in PRESETS.items() if all(getattr(preset, s) == v for s, v in sizes.items()))
        return next(named, OWN)

    def with_preset(self, name: str) -> "Plan":
        """The same plan with the sizes of this preset."""
        source = recommended(self.corpus) if name == RECIPE else PRESETS.get(name, self)
        return replace(self, **{size: getattr(source, size) for size in SIZES})

    @property
    def left_out(self) -> tuple[Part, ...]:
        """The parts of the paper's model and training that this plan leaves out."""
        return tuple(part for part in PARTS if getattr(self, part) == _ABSENT[part])

    def with_part(self, part: Part, *, present: bool) -> "Plan":
        """The same plan with this part as the recipe has it, or left out."""
        recipe = getattr(recommended(self.corpus), part)
        there = _PRESENT[part] if recipe == _ABSENT[part] else recipe
        return replace(self, **{part: there if present else _ABSENT[part]})

    def with_corpus(self, corpus: str) -> "Plan":
        """The recipe of another corpus, on the device that was chosen."""
        return replace(recommended(corpus), device=self.device, threads=self.threads, precision=self.precision)

    def parameters(self) -> dict[str, str | list[str]]:
        """The query parameters that `read` turns into this plan again; what the recipe says anyway is left out."""
        recipe = recommended(self.corpus)
        found: dict[str, str | list[str]] = {} if self.corpus == FIRST_CORPUS else {"corpus": self.corpus}
        for name in _IN_URL:
            value = getattr(self, name)
            if value != getattr(recipe, name):
                found[name] = written(value)
        if self.sentences is not None:
            found["sentence"] = list(self.sentences) or [""]
        if self.others:
            found["set"] = [f"{name}={json.dumps(value)}" for name, value in self.others]
        return found

    def configs(self) -> tuple[ModelConfig, TrainConfig, CorpusConfig]:
        """The settings of a run; ValueError where they refuse each other. The vocabulary is not known here."""
        recipe = recipe_for(self.corpus)
        model, train, corpus = self.model_values(), self.train_values(), self.corpus_values()
        for name, value in self.others:
            kind, field = name.split(".")
            {"model": model, "train": train, "corpus": corpus}[kind][field] = value
        return replace(recipe.model, **model), replace(recipe.train, **train), CorpusConfig(**corpus)

    def model_values(self) -> dict[str, Any]:
        """The fields that are settings of the model, under the settings' names."""
        return self._values(MODEL_FIELDS) | {"dropout": self.dropout, "embedding_dropout": self.dropout}

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


_ABSENT: dict[Part, Any] = {
    **{"causal_mask": False, "scale_scores": False, "residual": False},
    **{"positions": "none", "norm": "none", "label_smoothing": 0, "warmup_steps": 0},
}
_PRESENT: dict[Part, Any] = {
    **{"causal_mask": True, "scale_scores": True, "residual": True},
    **{"positions": "sinusoidal", "norm": "post", "label_smoothing": 0.1, "warmup_steps": 100},
}
NUMBERS = tuple(item.name for item in fields(Plan) if item.type == Number)
_IN_URL = tuple(item.name for item in fields(Plan) if item.name not in ("corpus", "sentences", "others"))
PARAMETERS = ("corpus", "sentence", "set", *_IN_URL)
"""The query parameters of a plan."""
_FURTHER = {
    f"{kind}.{item.name}"
    for kind, config in CONFIGS.items()
    for item in fields(config)
    if item.name not in {"model": MODEL_FIELDS, "train": TRAIN_FIELDS, "corpus": CORPUS_FIELDS}[kind]
    and item.name not in ("dropout", "max_steps", "max_seconds", "target_exact_match", "name", "vocab_size")
    and item.name not in ("pad_id", "bos_id", "eos_id")
}
"""Settings without a field of their own."""


def recommended(corpus: str) -> Plan:
    """The plan that one press of the button trains well."""
    recipe = recipe_for(corpus)
    return _plan(corpus, recipe.model, recipe.train, CorpusConfig())


def plan_of(settings: Settings) -> Plan:
    """The plan that trains once more what these settings made, with the same sentences."""
    corpus = of_run(settings)
    plan, recipe = _plan(corpus, settings.model, settings.train, settings.corpus), recommended(corpus)
    found = {"model": settings.model, "train": settings.train, "corpus": settings.corpus}
    usual = dict(zip(CONFIGS, replace(recipe, dropout=plan.dropout).configs(), strict=True))
    others = tuple(
        (f"{kind}.{item.name}", getattr(config, item.name))
        for kind, config in found.items()
        for item in fields(config)
        if f"{kind}.{item.name}" in _FURTHER and getattr(config, item.name) != getattr(usual[kind], item.name)
    )
    return replace(plan, sentences=settings.pinned, others=others)


def read(parameters: Mapping[str, Sequence[str]]) -> tuple[Plan, tuple[tuple[str, str], ...]]:
    """The plan that these query parameters describe; with the field and a sentence for each that makes no sense."""
    wrong: list[tuple[str, str]] = []
    corpus = parameters["corpus"][-1] if parameters.get("corpus") else FIRST_CORPUS
    try:
        config_name(corpus)
    except CorpusError as error:
        wrong.append(("corpus", f"The link asks for a corpus that is not here: {error}."))
        corpus = FIRST_CORPUS
    plan = recommended(corpus)
    for name in _IN_URL:
        if not parameters.get(name):
            continue
        text = parameters[name][-1]
        try:
            plan = replace(plan, **{name: parsed(name, text)})
        except ValueError:
            wrong.append((name, f"The link asks for “{short(text)}” here, which is not {expected(name)}."))
    if "sentence" in parameters:
        plan = replace(plan, sentences=tuple(text for text in parameters["sentence"] if text.strip()))
    for text in parameters.get("set", ()):
        try:
            plan = _with_other(plan, text)
        except ValueError as error:
            wrong.append(("others", f"The link asks for “{short(text)}”, which is no setting: {error}."))
    return plan, tuple(wrong)


def lines_of(text: str) -> tuple[str, ...]:
    """The sentences in a field, one a line, each once."""
    return tuple(dict.fromkeys(" ".join(line.split()) for line in text.splitlines() if line.strip()))


def whole(value: Number) -> Number:
    """The number as an int where it is one."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _plan(corpus: str, model: ModelConfig, train: TrainConfig, words: CorpusConfig) -> Plan:
    target, steps = train.target_exact_match, train.max_steps
    return Plan(
        corpus=corpus,
        **{name: value for name, value in asdict(words).items() if name in CORPUS_FIELDS},
        **{name: value for name, value in asdict(model).items() if name in MODEL_FIELDS},
        **{name: value for name, value in asdict(train).items() if name in TRAIN_FIELDS},
        dropout=model.dropout,
        steps=None if steps == NO_STEP_LIMIT and train.max_seconds is not None else steps,
        seconds=train.max_seconds,
        target_percent=None if target is None else round(target * 100, 6),
    )


def _with_other(plan: Plan, text: str) -> Plan:
    """The plan with a further setting, "train.accumulate=2"; ValueError saying why there is none."""
    name, _, written = text.partition("=")
    kind, _, field = name.partition(".")
    if name not in _FURTHER:
        raise ValueError("its name is not known")
    try:
        value = json.loads(written)
    except (ValueError, RecursionError):
        value = written
    if isinstance(value, list | dict):
        raise ValueError("it has no single value")
    replace(dict(zip(CONFIGS, recommended(plan.corpus).configs(), strict=True))[kind], **{field: value})
    return replace(plan, others=(*((n, v) for n, v in plan.others if n != name), (name, value)))
