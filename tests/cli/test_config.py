import pickle
import re
from dataclasses import FrozenInstanceError, fields, replace

import pytest
import torch
from random_models import random_model

from transformer.config import (
    FAMILIES,
    PRESETS,
    ConvolutionalConfig,
    CorpusConfig,
    DecodeConfig,
    ModelConfig,
    RecurrentConfig,
    TrainConfig,
    missing_parts,
)
from transformer.model.transformer import Transformer
from transformer.setting import Refusal, about

REFUSALS = [
    (ModelConfig, dict(d_model=510), "d_model (510) must be divisible by n_heads (8)"),
    (
        ModelConfig,
        dict(d_model=15, n_heads=3),
        "d_model (15) must be even for sinusoidal positions, as each frequency needs a sine and a cosine: take 12",
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
        "pad_id (0) must be an id of its own like bos_id (1) and eos_id (1), each below vocab_size (37000)",
    ),
    (
        ModelConfig,
        dict(vocab_size=2),
        "pad_id (0) must be an id of its own like bos_id (1) and eos_id (2), each below vocab_size (2)",
    ),
    (TrainConfig, dict(max_steps=0), "max_steps (0) must be at least 1"),
    (TrainConfig, dict(max_steps=10.5), "max_steps (10.5) must be a whole number"),
    (TrainConfig, dict(warmup_steps=-1), "warmup_steps (-1) must not be negative"),
    (TrainConfig, dict(max_seconds=0), "max_seconds (0) must be above 0: take more, or leave it empty"),
    (TrainConfig, dict(learning_rate=0), "learning_rate (0) must be above 0"),
    (TrainConfig, dict(learning_rate=float("inf")), "learning_rate (inf) must be a number"),
    (TrainConfig, dict(label_smoothing=1), "label_smoothing (1) must lie in [0, 1)"),
    (
        TrainConfig,
        dict(target_exact_match=99),
        "target_exact_match (99) must be at most 1: take less, or leave it empty",
    ),
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
    (DecodeConfig, dict(method="beam", beam=0), "beam (0) must be at least 1"),
    (DecodeConfig, dict(method="beam", beam=10_000), "beam (10000) must be at most 256"),
    (DecodeConfig, dict(method="beam", alpha=float("nan")), "alpha (nan) must be a number"),
    (DecodeConfig, dict(method="beam", alpha=-1.0), "alpha (-1.0) must not be negative: 0 is no length norm"),
    (DecodeConfig, dict(method="beam", length_norm="none"), "length_norm ('none') must be one of: paper, length"),
    (DecodeConfig, dict(method="beam", n_best=5), "n_best (5) must not be above beam (4), which holds no more: take"),
    (DecodeConfig, dict(n_best=2), "n_best (2) must be 1, as greedy decoding has one output: take a beam"),
    (
        DecodeConfig,
        dict(method="sample", temperature=0.0),
        "temperature (0.0) must be at least 0.01: for the most probable token each time, take the method greedy",
    ),
    (
        DecodeConfig,
        dict(method="sample", top_p=1.5),
        "top_p (1.5) must be at most 1: 1 draws from all tokens",
    ),
    (DecodeConfig, dict(method="sample", top_k=-2), "top_k (-2) must not be negative: 0 draws from all tokens"),
    (DecodeConfig, dict(method="sample", min_p=2.0), "min_p (2.0) must be at most 1: 0 draws from all tokens"),
    (DecodeConfig, dict(method="sample", seed=-1), "seed (-1) must not be negative"),
    (DecodeConfig, dict(beam=8), "beam (8) is for the method beam and would do nothing: the method is greedy"),
    (
        DecodeConfig,
        dict(method="beam", top_k=3),
        "top_k (3) is for the method sample and would do nothing: the method is beam",
    ),
]


CONFIGS = [*FAMILIES.values(), TrainConfig, CorpusConfig, DecodeConfig]


@pytest.mark.parametrize(("kind", "settings", "text"), REFUSALS, ids=[text for _, _, text in REFUSALS])
def test_a_contradiction_is_refused_with_its_numbers(kind, settings, text):
    with pytest.raises(ValueError) as refusal:
        kind(**settings)
    assert str(refusal.value).startswith(text)


def test_every_fault_is_said_at_once():
    with pytest.raises(Refusal) as refusal:
        ModelConfig(d_model=130, d_ff="wide", dropout=2.0, score="additive", positions="rotary")
    assert [fault.setting for fault in refusal.value.faults] == ["d_ff", "dropout", "d_model", "score"]
    assert str(refusal.value) == (
        "d_ff ('wide') must be a whole number; dropout (2.0) must lie in [0, 1); d_model (130) must be divisible by "
        "n_heads (8), as each head gets an equal part: take 128 or 144, or another number of heads; score ('additive') "
        "cannot go with positions ('rotary'), as only dot products keep the distance of two turned vectors: take other "
        "positions, or dot products"
    )


@pytest.mark.parametrize(
    ("kind", "settings", "faulty"),
    [
        (ModelConfig, dict(d_model="wide", n_heads=0), ["d_model", "n_heads"]),
        (ModelConfig, dict(n_heads=0, positions="rotary"), ["n_heads"]),
        (ModelConfig, dict(d_model=15, n_heads=0), ["n_heads"]),
        (ModelConfig, dict(d_model=15, n_heads=2), ["d_model"]),
        (ModelConfig, dict(vocab_size="many", pad_id=1), ["vocab_size"]),
        (RecurrentConfig, dict(d_model="wide", attention=3, input_feeding=True), ["d_model", "attention"]),
        (ConvolutionalConfig, dict(kernel="big"), ["kernel"]),
        (TrainConfig, dict(schedule="wsd", max_steps=None, warmup_steps="none"), ["max_steps", "warmup_steps"]),
        (CorpusConfig, dict(columns=3, longest="long"), ["columns", "longest"]),
        (DecodeConfig, dict(min_length=9, max_length="long"), ["max_length"]),
        (DecodeConfig, dict(method="best", beam=8, n_best=9), ["method"]),
        (DecodeConfig, dict(method="beam", beam="wide", n_best=9, top_k=-1), ["beam", "top_k"]),
        (DecodeConfig, dict(beam=8, seed=3), ["beam", "seed"]),
    ],
)
def test_a_rule_between_settings_is_asked_where_each_is_sound(kind, settings, faulty):
    with pytest.raises(Refusal) as refusal:
        kind(**settings)
    assert sorted(fault.setting for fault in refusal.value.faults) == sorted(faulty)


@pytest.mark.parametrize("d_model", [6, 63, 130, 4095])
@pytest.mark.parametrize("n_heads", [1, 3, 4])
@pytest.mark.parametrize("positions", ["sinusoidal", "rotary", "none"])
def test_the_widths_that_a_refusal_names_are_accepted(d_model, n_heads, positions):
    try:
        ModelConfig(d_model=d_model, n_heads=n_heads, positions=positions)
    except Refusal as refusal:
        (fault,) = refusal.faults
        widths = [int(word) for word in re.findall(r"\d+", fault.fix)]
        assert widths
        for width in widths:
            ModelConfig(d_model=width, n_heads=n_heads, positions=positions)


@pytest.mark.parametrize("kind", CONFIGS)
def test_the_whole_number_that_a_refusal_names_is_accepted(kind):
    for name in (each.name for each in fields(kind) if each.type in (int, int | None)):
        for value in (0.4, -3.5, 100.5):
            with pytest.raises(Refusal) as refusal:
                kind(**{name: value})
            (fault,) = refusal.value.faults
            taken = int(fault.fix.removeprefix("take "))
            limits = about(kind, name)
            assert limits.least is None or taken >= limits.least
            assert limits.above is None or taken > limits.above
            assert limits.most is None or taken <= limits.most


def test_a_refusal_is_said_in_the_names_that_a_form_has():
    with pytest.raises(Refusal) as refusal:
        ModelConfig(d_model=130)
    (fault,) = refusal.value.faults
    said = fault.sentence({"d_model": "Width", "n_heads": "the {heads}"}.__getitem__, lambda value: f"<{value}>")
    assert said == "Width (<130>) must be divisible by the {heads} (<8>), as each head gets an equal part"


def test_a_refusal_passes_from_one_process_to_another():
    with pytest.raises(Refusal) as refusal:
        ModelConfig(d_model=130)
    again = pickle.loads(pickle.dumps(refusal.value))
    assert str(again) == str(refusal.value) and again.faults == refusal.value.faults


BOUNDED = [(kind, each.name) for kind in CONFIGS for each in fields(kind) if about(kind, each.name).most is not None]


@pytest.mark.parametrize(("kind", "name"), BOUNDED, ids=lambda value: getattr(value, "__name__", value))
@pytest.mark.parametrize("times", [1, 1000, 10**400], ids=["beyond", "far beyond", "beyond a float"])
def test_no_setting_goes_beyond_the_bound_that_it_states(kind, name, times):
    most, way_out = about(kind, name).most, about(kind, name).fix or "take less, or leave it empty"
    with pytest.raises(ValueError, match=rf"^{name} \(\d+\) must be (at most {most:,}(: {way_out})?$|a number$)"):
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
