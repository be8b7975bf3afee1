"""What the Train page has in its fields, as one frozen value that a URL can carry. No Streamlit here.

A plan may be wrong: it holds what was typed, and `faults` says, field by field, what cannot work and the way out.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, get_args

from transformer.config import (
    PRESETS,
    CorpusConfig,
    ModelConfig,
    NormPlacement,
    PositionKind,
    Precision,
    ScheduleKind,
    TrainConfig,
)
from transformer.corpora import CORPORA
from transformer.recipes import RECIPES

Until = Literal["steps", "seconds"]
Number = float | int | None
RECIPE, OWN = "recipe", "own"
NO_STEP_LIMIT = 1_000_000
"""Steps allowed where the clock is to end the run."""
MOST_SENTENCES = 5
FIRST_CORPUS = "reverse"
SIZES = ("n_encoder_layers", "n_decoder_layers", "d_model", "n_heads", "d_ff")
_MODEL_FIELDS = (*SIZES, "positions", "norm")
_TRAIN_FIELDS = (
    *("learning_rate", "schedule", "warmup_steps", "label_smoothing", "batch_tokens", "evaluate_every"),
    *("seed", "precision", "threads"),
)

LABELS: dict[str, str] = {
    "corpus": "Corpus",
    "preset": "Preset",
    "n_encoder_layers": "Encoder layers",
    "n_decoder_layers": "Decoder layers",
    "d_model": "d_model",
    "n_heads": "Heads",
    "d_ff": "d_ff",
    "positions": "Positions",
    "learning_rate": "Learning rate",
    "until": "Unit",
    "steps": "End after",
    "seconds": "End after",
    "target_percent": "End early at exact match, %",
    "seed": "Seed",
    "norm": "Layer norm",
    "dropout": "Dropout",
    "label_smoothing": "Label smoothing",
    "schedule": "Schedule",
    "warmup_steps": "Warm-up, steps",
    "batch_tokens": "Tokens a batch",
    "evaluate_every": "Steps between evaluations",
    "precision": "Precision",
    "threads": "CPU threads",
    "sentences": "Sentences to follow",
}
NOUNS = {"steps": "The number of steps", "seconds": "The number of seconds", "target_percent": "Exact match"}
"""What a sentence calls a field where that is not its label."""
CHOICES: dict[str, tuple[str, ...]] = {
    "corpus": tuple(CORPORA),
    "preset": (RECIPE, *PRESETS, OWN),
    "positions": get_args(PositionKind),
    "until": get_args(Until),
    "norm": get_args(NormPlacement),
    "schedule": get_args(ScheduleKind),
    "precision": get_args(Precision),
}
WHOLE = frozenset({*SIZES, "steps", "seed", "warmup_steps", "batch_tokens", "evaluate_every", "threads"})
MOST = {
    **{"n_encoder_layers": 24, "n_decoder_layers": 24, "d_model": 4096, "n_heads": 64, "d_ff": 16384},
    **{"steps": NO_STEP_LIMIT, "warmup_steps": NO_STEP_LIMIT, "evaluate_every": NO_STEP_LIMIT},
    **{"batch_tokens": 100_000, "learning_rate": 10, "seed": 2**31 - 1, "threads": 256, "seconds": 1e6},
}
"""The largest number that each field takes."""
MAY_BE_EMPTY = frozenset({"target_percent", "threads"})


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Everything in the fields. None is an empty field."""

    corpus: str
    n_encoder_layers: Number
    n_decoder_layers: Number
    d_model: Number
    n_heads: Number
    d_ff: Number
    positions: str
    learning_rate: Number
    until: str
    steps: Number
    seconds: Number
    target_percent: Number
    """Exact match in per cent at which the run ends early; None never."""
    seed: Number
    norm: str
    dropout: Number
    """After sublayers and on the embeddings alike."""
    label_smoothing: Number
    schedule: str
    warmup_steps: Number
    batch_tokens: Number
    evaluate_every: Number
    precision: str
    threads: Number
    sentences: tuple[str, ...] | None = None
    """None: the corpus's own examples."""

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

    def parameters(self) -> dict[str, str | list[str]]:
        """The query parameters that `read` turns into this plan again; what the recipe says anyway is left out."""
        recipe = recommended(self.corpus)
        found: dict[str, str | list[str]] = {} if self.corpus == FIRST_CORPUS else {"corpus": self.corpus}
        for name in _IN_URL:
            value = getattr(self, name)
            if value != getattr(recipe, name):
                found[name] = "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
        if self.sentences is not None:
            found["sentence"] = list(self.sentences)
        return found

    def configs(self) -> tuple[ModelConfig, TrainConfig, CorpusConfig]:
        """The settings of a run; ValueError where `faults` has something to say. The vocabulary is not known here."""
        if faults := self.faults():
            name, sentence = next(iter(faults.items()))
            raise ValueError(f"{LABELS[name]}: {sentence}")
        return (
            replace(RECIPES[self.corpus].model, **self._model_values()),
            replace(RECIPES[self.corpus].train, **self._train_values()),
            CorpusConfig(name=self.corpus),
        )

    def faults(self) -> dict[str, str]:
        """For each field that cannot work, a sentence with what is wrong and the way out."""
        found = {
            name: f"This field is empty; the recipe has {_shown(getattr(recommended(self.corpus), name))}."
            for name in _NUMBERS
            if getattr(self, name) is None and name not in MAY_BE_EMPTY
        }
        for name in WHOLE - found.keys():
            value = getattr(self, name)
            if isinstance(value, float) and not value.is_integer():
                found[name] = f"{LABELS[name]} ({value:g}) must be a whole number: take {round(value)}."
        found = self._misfits(found) | found
        found |= self._refused(found)
        found.pop("steps" if self.until == "seconds" else "seconds", None)  # the limit that does not count
        return {name: found[name] for name in LABELS if name in found}

    def notes(self) -> dict[str, str]:
        """For each field that works but may surprise, a sentence."""
        found = {}
        if self.until == "steps" and self.steps and self.warmup_steps and self.steps < self.warmup_steps:
            found["warmup_steps"] = (
                f"The run ends at step {self.steps:,}, before the end of the warm-up at step {self.warmup_steps:,}: "
                "the learning rate never reaches its peak."
            )
        if self.positions == "none":
            found["positions"] = "Without positions the encoder cannot tell one order of words from another."
        if self.positions == "alibi":
            found["positions"] = (
                "ALiBi counts distance alike in both directions, so that the encoder cannot tell a sentence from its "
                "mirror image: copy and reverse cannot be learned with it."
            )
        return found

    def _misfits(self, known: Container[str]) -> dict[str, str]:
        """Faults that concern two fields, or a field that is not a setting by the same name."""
        found = {
            name: f"{LABELS[name]} ({getattr(self, name):,}) is more than this page trains with: take at most {most:,}."
            for name, most in MOST.items()
            if name not in known and getattr(self, name) is not None and getattr(self, name) > most
        }
        if "d_model" not in known and "n_heads" not in known:
            found |= self._uneven_heads()
        if self.until == "seconds" and self.schedule == "cosine":
            found["schedule"] = (
                "A cosine schedule falls to 0 at the last step, and a run that the clock ends has no known last step: "
                "end after steps, or take the paper's schedule."
            )
        if (self.target_percent is not None) and not 0 < self.target_percent <= 100:
            found["target_percent"] = (
                f"Exact match ({self.target_percent:g} %) must lie above 0 and at most at 100: 99 is usual, "
                "and an empty field never ends early."
            )
        if self.sentences is not None and len(self.sentences) > MOST_SENTENCES:
            found["sentences"] = (
                f"{len(self.sentences)} sentences are more than the {MOST_SENTENCES} that can be followed: "
                "take some lines out."
            )
        return found

    def _uneven_heads(self) -> dict[str, str]:
        """Where the width cannot be shared out among the heads."""
        d_model, heads = self.d_model, self.n_heads
        assert d_model is not None and heads is not None, "empty fields are reported first"
        if d_model < 1 or heads < 1:
            return {}
        if d_model % heads:
            said = (
                f"d_model ({d_model}) must be divisible by the number of heads ({heads}): each gets an equal "
                f"part. Take {_multiples(int(d_model), int(heads))}, or another number of heads."
            )
            return {"d_model": said}
        if self.positions == "rotary" and d_model // heads % 2:
            said = (
                f"d_model ({d_model}) gives each of the {heads} heads an odd part ({d_model // heads}), and rotary "
                f"positions turn dimensions in pairs. Take {_multiples(int(d_model), 2 * int(heads))}."
            )
            return {"d_model": said}
        return {}

    def _refused(self, known: Container[str]) -> dict[str, str]:
        """What the configs themselves refuse, each other field tried on its own with the recommended rest."""
        recipe = RECIPES[self.corpus]
        found: dict[str, str] = {}
        for config, values in ((recipe.model, self._model_values()), (recipe.train, self._train_values())):
            for name, value in values.items():
                field = _FIELD_OF.get(name, name)
                if field in known:
                    continue
                changes = {name: value}
                if name == "d_model":  # the other half of a pair must not be the reason for a refusal
                    changes |= {"n_heads": 1, "positions": "none" if self.positions == "rotary" else self.positions}
                elif name == "n_heads":
                    changes |= {"d_model": 2 * max(1, value)}
                try:
                    replace(config, **changes)
                except ValueError as error:
                    said = str(error).replace(f"{name} ({value!r})", f"{NOUNS.get(field, LABELS[field])} ({value:g})")
                    found[field] = f"{said.rstrip('.')}; the recipe has {self._recommended(field)}."
        return found

    def _recommended(self, name: str) -> str:
        return _shown(getattr(recommended(self.corpus), name))

    def _model_values(self) -> dict[str, Any]:
        values = {name: _whole(getattr(self, name)) if name in WHOLE else getattr(self, name) for name in _MODEL_FIELDS}
        return values | {"dropout": self.dropout, "embedding_dropout": self.dropout}

    def _train_values(self) -> dict[str, Any]:
        values = {name: _whole(getattr(self, name)) if name in WHOLE else getattr(self, name) for name in _TRAIN_FIELDS}
        by_clock = self.until == "seconds"
        return values | {
            "max_steps": NO_STEP_LIMIT if by_clock else _whole(self.steps),
            "max_seconds": self.seconds if by_clock else None,
            "target_exact_match": None if self.target_percent is None else self.target_percent / 100,
        }


_NUMBERS = tuple(item.name for item in fields(Plan) if item.type == Number)
_IN_URL = tuple(item.name for item in fields(Plan) if item.name not in ("corpus", "sentences"))
_FIELD_OF = {
    "max_steps": "steps",
    "max_seconds": "seconds",
    "target_exact_match": "target_percent",
    "embedding_dropout": "dropout",
}
PARAMETERS = ("run", "corpus", "sentence", *_IN_URL)
"""The query parameters of the Train page."""


def recommended(corpus: str) -> Plan:
    """The plan that one press of the button trains well."""
    recipe = RECIPES[corpus]
    model, train = asdict(recipe.model), asdict(recipe.train)
    target = train["target_exact_match"]
    return Plan(
        corpus=corpus,
        **{name: model[name] for name in _MODEL_FIELDS},
        **{name: train[name] for name in _TRAIN_FIELDS},
        dropout=model["dropout"],
        until="steps" if train["max_seconds"] is None else "seconds",
        steps=train["max_steps"],
        seconds=train["max_seconds"] or 60,
        target_percent=None if target is None else round(target * 100, 6),
    )


def read(parameters: Mapping[str, Sequence[str]]) -> tuple[Plan, tuple[tuple[str, str], ...]]:
    """The plan that these query parameters describe; with the field and a sentence for each that makes no sense."""
    wrong: list[tuple[str, str]] = []
    corpus = parameters["corpus"][-1] if parameters.get("corpus") else FIRST_CORPUS
    if corpus not in CORPORA:
        wrong.append(("corpus", f"The link asks for the corpus “{_short(corpus)}”; there are {', '.join(CORPORA)}."))
        corpus = FIRST_CORPUS
    plan = recommended(corpus)
    for name in _IN_URL:
        if not parameters.get(name):
            continue
        text = parameters[name][-1]
        try:
            plan = replace(plan, **{name: _parsed(name, text)})
        except ValueError:
            expected = f"one of {', '.join(CHOICES[name])}" if name in CHOICES else "a number"
            wrong.append((name, f"The link asks for “{_short(text)}” here, which is not {expected}."))
    if sentences := tuple(text for text in parameters.get("sentence", ()) if text.strip()):
        plan = replace(plan, sentences=sentences)
    return plan, tuple(wrong)


def lines_of(text: str) -> tuple[str, ...]:
    """The sentences in a field, one a line, each once."""
    return tuple(dict.fromkeys(" ".join(line.split()) for line in text.splitlines() if line.strip()))


def _parsed(name: str, text: str) -> Any:
    if name in CHOICES:
        if text not in CHOICES[name]:
            raise ValueError(text)
        return text
    if text == "":
        return None
    number = float(text)
    if not abs(number) < 1e12:
        raise ValueError(text)
    return int(number) if name in WHOLE and number.is_integer() else number


def _whole(value: Number) -> Number:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _multiples(d_model: int, heads: int) -> str:
    """The nearest widths that these heads divide, even ones so that sinusoidal positions stay possible."""
    step = heads if heads % 2 == 0 else 2 * heads
    below, above = d_model // step * step, (d_model // step + 1) * step
    return f"{below} or {above}" if below else f"{above}"


def _shown(value: object) -> str:
    return "an empty field" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}…"
