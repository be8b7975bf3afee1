"""The weights drawn at the start: every parameter of every family against the distribution that its source names.

Several small models are drawn and the numbers of each parameter, or of each gate, are pooled over them. The largest
distance between their distribution function and the expected one sees mean, size and shape at once.
"""

import math
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations

import pytest
import torch
from random_models import TINY
from torch import Tensor, nn
from torch.distributions import Distribution, Normal, Uniform

from transformer.config import AnyModelConfig, ConvolutionalConfig, ModelConfig, RecurrentConfig
from transformer.model.convolutional import Convolution
from transformer.model.families import AnyModel, build_model
from transformer.model.positions import LearnedPositions
from transformer.model.scores import Additive, Multiplicative

Law = Distribution | float
"""The distribution of independent draws, or the one value of all."""
MODELS = 8
SIZES = dict(vocab_size=23, d_model=32, n_encoder_layers=2, n_decoder_layers=2)
HEADS = dict(n_heads=2, d_ff=24, max_length=12)
UNTIED = dict(tie_embeddings=False, tie_output=False)
CONFIGS: list[AnyModelConfig] = [
    ModelConfig(**SIZES, **HEADS),
    ModelConfig(**SIZES, **HEADS, **UNTIED, norm="pre", positions="learned", score="additive", output_bias=True),
    ModelConfig(**SIZES, **HEADS, norm="pre", score="multiplicative"),
    RecurrentConfig(**SIZES, cell="lstm", attention="additive"),
    RecurrentConfig(**SIZES, **UNTIED, cell="lstm", attention="general", bidirectional=False),
    RecurrentConfig(**SIZES, cell="gru", attention="dot", input_feeding=True),
    ConvolutionalConfig(**SIZES, **UNTIED),
    ConvolutionalConfig(**SIZES, separable=True, kernel=5),
]
EACH = pytest.mark.parametrize("config", CONFIGS, ids=lambda config: f"{config.family} {CONFIGS.index(config)}")


@EACH
def test_every_parameter_is_drawn_from_the_distribution_that_its_source_names(config):
    pools: dict[tuple[str, int], list[tuple[Tensor, Law]]] = defaultdict(list)
    for _ in range(MODELS):
        for name, part, values, law in parts(build_model(config)):
            pools[name, part].append((values.flatten(), law))
    for where, found in pools.items():
        values, law = torch.cat([values for values, _ in found]), found[0][1]
        if isinstance(law, Distribution):
            assert distance(values, law) < largest_distance(len(values)), where
        else:
            assert (values == law).all(), where


@EACH
def test_no_two_parameters_or_gates_of_a_model_are_drawn_alike(config):
    alike = defaultdict(list)
    for *_, values, law in parts(build_model(config)):
        if isinstance(law, Distribution):
            alike[values.numel()].append(values.flatten())
    for size, group in alike.items():
        for one, other in combinations(group, 2):
            # Of independent draws the cosine has variance 1 / size; among a few hundred pairs none is 6 sigma away.
            assert abs(torch.cosine_similarity(one, other, dim=0)) < 6 / math.sqrt(size)


@pytest.mark.parametrize("both_ways", [True, False])
def test_a_new_lstm_keeps_sigmoid_1_of_its_cell_and_lets_half_of_all_else_through(both_ways, within):
    model = build_model(RecurrentConfig(vocab_size=9, d_model=8, cell="lstm", bidirectional=both_ways))
    for layer in (module for module in model.modules() if isinstance(module, nn.LSTM)):
        # With no input and no hidden state only the biases speak: 1 at the forget gate, 0 at the others.
        zeros, ones = torch.zeros(1, 1, layer.hidden_size), torch.ones(1, 1, layer.hidden_size)
        _, (hidden, cell) = layer(torch.zeros(1, 1, layer.input_size), (zeros, ones))
        within(cell, torch.sigmoid(ones), 1e-6)
        within(hidden, 0.5 * torch.sigmoid(ones).tanh(), 1e-6)


@pytest.mark.parametrize(
    ("changes", "gain"),
    [
        (dict(d_model=64), 0.5),
        (dict(d_model=8), 1.0),
        (dict(d_model=64, tie_output=False), 1.0),
        (dict(d_model=64, residual=False), 1.0),
    ],
    ids=str,
)
def test_only_a_final_norm_that_would_copy_its_input_to_tied_weights_begins_with_a_smaller_gain(changes, gain):
    model = build_model(ModelConfig(**{**TINY, "norm": "pre", **changes}))
    gains = {path: module.weight for path, module in model.named_modules() if isinstance(module, nn.LayerNorm)}
    assert (gains.pop("decoder.norm") == gain).all()
    assert len(gains) == 2 * 2 + 3 * 3 + 1 and all((weight == 1).all() for weight in gains.values())


def parts(model: AnyModel) -> Iterator[tuple[str, int, Tensor, Law]]:
    """Gives the name, the number of the gate, the values and the expected law of each part of each parameter."""
    seen = set()
    for path, module in model.named_modules():
        for kind, weights in module.named_parameters(recurse=False):
            if id(weights) in seen:
                continue
            seen.add(id(weights))
            laws = laws_of(path, module, kind, model.config)
            for i, (values, law) in enumerate(zip(weights.detach().chunk(len(laws)), laws, strict=True)):
                yield f"{path}.{kind}", i, values, law


def laws_of(path: str, module: nn.Module, kind: str, config: AnyModelConfig) -> list[Law]:
    """Returns the expected law of each of the equal parts of a parameter: the gates of an LSTM or GRU, else one."""
    match module:
        case nn.Embedding() | LearnedPositions():  # times sqrt(d_model) of unit variance
            return [Normal(0.0, config.d_model**-0.5)]
        case Multiplicative():  # the scores then vary as much as q · k / sqrt(d_head)
            return [Normal(0.0, config.d_head**-0.5)]
        case Additive():  # a sum of d_head numbers below 1 is then of order 1
            return [Normal(0.0, config.d_head**-0.5)]
        case nn.LayerNorm():
            is_quiet = path == "decoder.norm" and config.tie_output
            return [(4 / config.d_model**0.5 if is_quiet else 1.0) if kind == "weight" else 0.0]
        case nn.LSTM() | nn.GRU():
            gates = 4 if isinstance(module, nn.LSTM) else 3
            if kind.startswith("weight"):
                return [xavier(module.hidden_size, getattr(module, kind).size(1))] * gates
            return [0.0, 1.0, 0.0, 0.0] if isinstance(module, nn.LSTM) and kind == "bias_ih_l0" else [0.0] * gates
        case Convolution():  # the weights of a channel, over the window
            return [Normal(0.0, module.depthwise.size(0) ** -0.5)]
        case nn.Linear() if kind == "bias":
            return [0.0]
        case nn.Linear() if path.endswith("convolution.mix"):  # Gehring et al. 2017, section 3.5
            return [Normal(0.0, (4 / module.in_features) ** 0.5)]
        case nn.Linear():
            return [xavier(module.out_features, module.in_features)]
    raise AssertionError(f"say how {path}.{kind} is drawn")


def xavier(rows: int, columns: int) -> Uniform:
    """Returns the uniform law of Glorot and Bengio 2010, eq. 16."""
    bound = math.sqrt(6 / (rows + columns))
    return Uniform(-bound, bound, validate_args=False)


def distance(values: Tensor, law: Distribution) -> float:
    """Returns the largest distance between the distribution function of these values and that of the law."""
    ranks = torch.arange(len(values) + 1, dtype=torch.float64) / len(values)
    expected = law.cdf(values.double().sort().values)
    return float(torch.maximum(ranks[1:] - expected, expected - ranks[:-1]).max())


def largest_distance(n: int) -> float:
    """Returns a distance that n draws exceed once in a million times at most: P(distance > x) <= 2 exp(-2 n x^2)
    (Massart 1990)."""
    return math.sqrt(math.log(2e6) / (2 * n))
