from dataclasses import FrozenInstanceError, fields, replace

import pytest
import torch
from random_models import random_model

from transformer.config import (
    FAMILIES,
    PRESETS,
    CorpusConfig,
    DecodeConfig,
    ModelConfig,
    TrainConfig,
    about,
    missing_parts,
)
from transformer.model.transformer import Transformer

REFUSALS = [
    (ModelConfig, dict(d_model=510), "d_model (510) must be divisible by n_heads (8)"),
    (
        ModelConfig,
        dict(d_model=15, n_heads=3),
        "d_model (15) must be even for sinusoidal positions: each frequency needs a sine and a cosine",
    ),
    (ModelConfig, dict(vocab_size=0), "vocab_size (0) must be at least 1"),
    (ModelConfig, dict(n_heads=-1), "n_heads (-1) must be at least 1"),
    (ModelConfig, dict(n_decoder_layers=0), "n_decoder_layers (0) must be at least 1"),
    (ModelConfig, dict(d_model=64.0), "d_model (64.0) must be a whole number"),
    (ModelConfig, dict(d_ff="256"), "d_ff ('256') must be a whole number"),
    (ModelConfig, dict(n_heads=True), "n_heads (True) must be a whole number"),
    (ModelConfig, dict(dropout=1.0), "dropout (1.0) must lie in [0, 1)"),
    (ModelConfig, dict(attention_dropout=-0.1), "attention_dropout (-0.1) must lie in [0, 1)"),
    (ModelConfig, dict(embedding_dropout=float("nan")), "embedding_dropout (nan) must be a number"),
    (ModelConfig, dict(activation_dropout="much"), "activation_dropout ('much') must be a number"),
    (ModelConfig, dict(tie_output="no"), "tie_output ('no') must be true or false"),
    (ModelConfig, dict(causal_mask="off"), "causal_mask ('off') must be true or false"),
    (ModelConfig, dict(scale_scores=1), "scale_scores (1) must be true or false"),
    (ModelConfig, dict(residual=0.0), "residual (0.0) must be true or false"),
    (CorpusConfig, dict(name=3), "name (3) must be a text"),
    (ModelConfig, dict(activation="tanh"), "activation ('tanh') must be one of: relu, gelu, swish"),
    (ModelConfig, dict(norm="middle"), "norm ('middle') must be one of: post, pre, none"),
    (
        ModelConfig,
        dict(positions="spiral"),
        "positions ('spiral') must be one of: sinusoidal, learned, none, rotary, alibi",
    ),
    (ModelConfig, dict(norm_epsilon=0), "norm_epsilon (0) must be above 0"),
    (
        ModelConfig,
        dict(eos_id=1),
        "pad, bos and eos ids (0, 1, 1) must be three different ids below vocab_size (37000)",
    ),
    (
        ModelConfig,
        dict(vocab_size=2),
        "pad, bos and eos ids (0, 1, 2) must be three different ids below vocab_size (2)",
    ),
    (TrainConfig, dict(max_steps=0), "max_steps (0) must be at least 1"),
    (TrainConfig, dict(max_steps=10.5), "max_steps (10.5) must be a whole number"),
    (TrainConfig, dict(warmup_steps=-1), "warmup_steps (-1) must not be negative"),
    (TrainConfig, dict(max_seconds=0), "max_seconds (0) must be above 0, or left empty"),
    (TrainConfig, dict(learning_rate=0), "learning_rate (0) must be above 0"),
    (TrainConfig, dict(learning_rate=float("inf")), "learning_rate (inf) must be a number"),
    (TrainConfig, dict(label_smoothing=1), "label_smoothing (1) must lie in [0, 1)"),
    (TrainConfig, dict(target_exact_match=99), "target_exact_match (99) must lie in (0, 1]"),
    (TrainConfig, dict(schedule="linear"), "schedule ('linear') must be one of: paper, constant, cosine"),
    (TrainConfig, dict(precision="float16"), "precision ('float16') must be one of: auto, float32, bfloat16"),
    (
        CorpusConfig,
        dict(tokenizer="wordpiece"),
        "tokenizer ('wordpiece') must be one of: auto, words, bpe, unigram, char",
    ),
    (CorpusConfig, dict(vocab_size=7), "vocab_size (7) must be at least 8"),
    (ModelConfig, dict(max_length=4097), "max_length (4097) must be at most 4,096"),
    (ModelConfig, dict(d_model=4104), "d_model (4104) must be at most 4,096"),
    (ModelConfig, dict(n_encoder_layers=25), "n_encoder_layers (25) must be at most 24"),
    (TrainConfig, dict(average_last=10**6), "average_last (1000000) must be at most 1,000"),
    (TrainConfig, dict(learning_rate=11.5), "learning_rate (11.5) must be at most 10"),
    (ModelConfig, dict(dropout=10**400), f"dropout ({10**400}) must be a number"),
    (DecodeConfig, dict(method="sample", temperature=10**400), f"temperature ({10**400}) must be a number"),
    (DecodeConfig, dict(max_length=0), "max_length (0) must be at least 1"),
    (DecodeConfig, dict(method="best"), "method ('best') must be one of: greedy, beam, sample"),
    (DecodeConfig, dict(min_length=-1), "min_length (-1) must not be negative"),
    (DecodeConfig, dict(min_length=9, max_length=8), "min_length (9) must not be above max_length (8)"),
    (DecodeConfig, dict(no_repeat_ngram=-1), "no_repeat_ngram (-1) must not be negative"),
    (DecodeConfig, dict(method="beam", beam=0), "beam (0) must lie between 1 and 256"),
    (DecodeConfig, dict(method="beam", beam=10_000), "beam (10000) must lie between 1 and 256"),
    (DecodeConfig, dict(method="beam", alpha=float("nan")), "alpha (nan) must be a number"),
    (DecodeConfig, dict(method="beam", alpha=-1.0), "alpha (-1.0) must lie between 0 (no length norm) and 10"),
    (DecodeConfig, dict(method="beam", length_norm="none"), "length_norm ('none') must be one of: paper, length"),
    (DecodeConfig, dict(method="beam", n_best=5), "n_best (5) must lie between 1 and 4: the beam holds 4"),
    (DecodeConfig, dict(n_best=2), "n_best (2) must lie between 1 and 1: greedy has one output"),
    (
        DecodeConfig,
        dict(method="sample", temperature=0.0),
        "temperature (0.0) must lie between 0.01 and 100; for the most probable token each time: greedy",
    ),
    (
        DecodeConfig,
        dict(method="sample", top_p=1.5),
        "top_p (1.5) must lie above 0 and up to 1; 1 draws from all tokens",
    ),
    (DecodeConfig, dict(method="sample", top_k=-2), "top_k (-2) must not be negative; 0 draws from all tokens"),
    (DecodeConfig, dict(method="sample", min_p=2.0), "min_p (2.0) must lie between 0 and 1; 0 draws from all tokens"),
    (DecodeConfig, dict(method="sample", seed=-1), "seed (-1) must lie between 0 and 2 ** 63 - 1"),
    (DecodeConfig, dict(beam=8), "beam (8) is for the method beam and would do nothing: the method is greedy"),
    (
        DecodeConfig,
        dict(method="beam", top_k=3),
        "top_k (3) is for the method sample and would do nothing: the method is beam",
    ),
]


@pytest.mark.parametrize(("kind", "settings", "text"), REFUSALS, ids=[text for _, _, text in REFUSALS])
def test_a_contradiction_is_refused_with_its_numbers(kind, settings, text):
    with pytest.raises(ValueError) as refusal:
        kind(**settings)
    assert str(refusal.value).startswith(text)


CONFIGS = [*FAMILIES.values(), TrainConfig, CorpusConfig]
BOUNDED = [(kind, each.name) for kind in CONFIGS for each in fields(kind) if about(kind, each.name).most is not None]


@pytest.mark.parametrize(("kind", "name"), BOUNDED, ids=lambda value: getattr(value, "__name__", value))
@pytest.mark.parametrize("times", [1, 1000, 10**400], ids=["beyond", "far beyond", "beyond a float"])
def test_no_setting_goes_beyond_the_bound_that_it_states(kind, name, times):
    most = about(kind, name).most
    with pytest.raises(ValueError, match=rf"^{name} \(\d+\) must be (at most {most:,}$|a number$)"):
        kind(**{name: (int(most) + 1) * times})


@pytest.mark.parametrize("kind", CONFIGS)
def test_every_whole_number_that_costs_memory_or_time_has_a_bound(kind):
    unbounded = {each.name for each in fields(kind) if each.type is int and about(kind, each.name).most is None}
    assert unbounded <= {"pad_id", "bos_id", "eos_id"}  # which lie below vocab_size


@pytest.mark.parametrize("kind", [ModelConfig, TrainConfig, CorpusConfig, DecodeConfig])
def test_configs_are_frozen_keyword_only_and_refuse_typos(kind):
    config = kind()
    with pytest.raises(FrozenInstanceError):
        setattr(config, fields(kind)[0].name, 1)
    with pytest.raises(TypeError, match="positional"):
        kind(1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'd_modle'"):
        kind(d_modle=64)
    assert hash(config) == hash(kind())


def test_the_defaults_are_the_paper_s_base_model():
    base = PRESETS["paper-base"]
    assert base == ModelConfig()
    assert (base.d_model, base.n_heads, base.d_ff, base.d_head) == (512, 8, 2048, 64)
    assert (base.n_encoder_layers, base.n_decoder_layers, base.dropout) == (6, 6, 0.1)
    assert (base.norm, base.activation, base.positions) == ("post", "relu", "sinusoidal")
    assert base.tie_embeddings and base.tie_output
    assert base.causal_mask and base.scale_scores and base.residual


def test_the_base_model_has_63_082_496_parameters():
    with torch.device("meta"):
        assert Transformer(PRESETS["paper-base"]).n_parameters() == 63_082_496


def test_the_big_model_has_as_many_parameters_as_its_sizes_say():
    d, ff, vocab = 1024, 4096, 37_000
    attention, feed_forward, norm = 4 * (d * d + d), 2 * d * ff + ff + d, 2 * d
    expected = vocab * d + 6 * (attention + feed_forward + 2 * norm) + 6 * (2 * attention + feed_forward + 3 * norm)
    with torch.device("meta"):
        assert Transformer(PRESETS["paper-big"]).n_parameters() == expected


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_builds_with_a_small_vocabulary_too(name):
    with torch.device("meta"):
        assert Transformer(replace(PRESETS[name], vocab_size=40)).n_parameters() > 0


def test_the_paper_s_model_and_training_miss_nothing_and_every_missing_part_is_named():
    assert missing_parts(ModelConfig(), TrainConfig()) == ()
    bare = ModelConfig(causal_mask=False, positions="none", scale_scores=False, residual=False, norm="none")
    assert missing_parts(bare, TrainConfig(label_smoothing=0, warmup_steps=0)) == (
        "no causal mask",
        "no positions",
        "no scaling of scores by 1/√d_k",
        "no residual connections",
        "no layer norm",
        "no label smoothing",
        "no warm-up",
    )
    assert missing_parts(ModelConfig(residual=False), TrainConfig()) == ("no residual connections",)


def test_a_whole_number_may_stand_for_a_rate():
    assert random_model(dropout=0).config.dropout == 0
    assert TrainConfig(learning_rate=1, max_seconds=60).max_seconds == 60
