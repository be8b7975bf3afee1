"""Recipes for each corpus: sizes and training settings, measured on two cores. The defaults of the command line, the
Train page and the shipped checkpoints; plain values and no more.
"""

from dataclasses import dataclass, replace

from transformer.config import PRESETS, AnyModelConfig, ConvolutionalConfig, ModelConfig, RecurrentConfig, TrainConfig
from transformer.data.emoji_names import LANGUAGES


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Settings to start from; the vocabulary size is set by the tokenizer when a run is made."""

    preset: str
    """The preset that `model` departs from."""
    model: ModelConfig
    train: TrainConfig
    why: tuple[str, ...] = ()
    """The reasons for the settings, each a sentence, where they depend on the text."""


# Generated pairs do not run out, so there is nothing to overfit: dropout only slows learning (reverse with Adam: 97.6 %
# exact after 1,000 steps with dropout 0.1, 99.4 % after 850 without). Muon with small batches takes about half the time
# of Adam (BENCHMARKS.md, "Time to accuracy").
_NO_DROPOUT = {"dropout": 0.0, "embedding_dropout": 0.0}
MUON = TrainConfig(optimizer="muon", schedule="cosine", momentum=0.9, beta1=0.8, beta2=0.95)
"""The part that all recipes with Muon have in common."""
_TASK = replace(MUON, max_steps=400, learning_rate=1e-2, warmup_steps=20, batch_tokens=512, evaluate_every=25)
_TINY = replace(PRESETS["tiny"], **_NO_DROPOUT)
_SMALL = replace(PRESETS["small"], **_NO_DROPOUT)

# 3,442 names are few: with much dropout. English to Korean, 800 steps: validation loss still falls (2.82 at step 600,
# 2.79 at 800); held-out names of words that training shows reach chrF 39, the others 5.
_EMOJI = Recipe(
    preset="small",
    model=replace(PRESETS["small"], dropout=0.3, embedding_dropout=0.3),
    train=TrainConfig(
        max_steps=1_500,
        schedule="cosine",
        learning_rate=2e-3,
        warmup_steps=100,
        batch_tokens=1_536,
        evaluate_every=150,
    ),
)

RECIPES: dict[str, Recipe] = {
    "copy": Recipe(preset="tiny", model=_TINY, train=replace(_TASK, max_steps=300)),
    "reverse": Recipe(preset="tiny", model=_TINY, train=_TASK),
    "sort": Recipe(preset="tiny", model=_TINY, train=_TASK),
    "addition": Recipe(preset="tiny", model=_TINY, train=replace(_TASK, max_steps=700, batch_tokens=768)),
    "dates": Recipe(preset="tiny", model=_TINY, train=replace(_TASK, max_steps=600)),
    "pronouns-en-fr": Recipe(
        preset="small",
        model=_SMALL,
        train=replace(_TASK, max_steps=900, learning_rate=6e-3, batch_tokens=768, evaluate_every=50),
    ),
    **{f"emoji-en-{code}": _EMOJI for code in LANGUAGES},
}
"""The recipes of the corpora that come with the lab, by their names."""


def family_recipe(recipe: Recipe, family: str) -> tuple[AnyModelConfig, TrainConfig]:
    """Returns the settings of a model of this family for a corpus of which this is the Transformer's recipe."""
    match family:
        case "rnn":
            return recurrent_recipe(recipe)
        case "conv":
            return convolutional_recipe(recipe)
    return recipe.model, recipe.train


def convolutional_recipe(recipe: Recipe) -> tuple[ConvolutionalConfig, TrainConfig]:
    """Returns the settings of a convolutional model for a corpus of which this is the Transformer's recipe."""
    model = ConvolutionalConfig(
        vocab_size=recipe.model.vocab_size,
        d_model=recipe.model.d_model,
        max_length=recipe.model.max_length,
        dropout=recipe.model.dropout,
    )
    return model, recipe.train


def recurrent_recipe(recipe: Recipe) -> tuple[RecurrentConfig, TrainConfig]:
    """Returns the settings of a recurrent model for a corpus of which this is the Transformer's recipe.

    Twice as wide, as it has one layer a stack; Adam, as an LSTM's matrices are several in one.
    """
    wide = 2 * recipe.model.d_model
    model = RecurrentConfig(
        vocab_size=recipe.model.vocab_size,
        d_model=wide,
        max_length=recipe.model.max_length,
        dropout=recipe.model.dropout,
    )
    train = replace(
        recipe.train,
        optimizer="adamw",
        schedule="cosine",
        learning_rate=min(2e-3, 0.256 / wide),
        warmup_steps=50,
        beta1=0.9,
        beta2=0.98,
    )
    return model, train
