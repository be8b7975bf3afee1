"""Building a model of whatever family its settings name."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, overload

from transformer.config import AnyModelConfig, ConvolutionalConfig, ModelConfig, RecurrentConfig
from transformer.model.convolutional import ConvolutionalModel, convolutional_hidden, convolutional_parameters
from transformer.model.kinds import AttentionKind
from transformer.model.recurrent import RecurrentModel, recurrent_hidden, recurrent_parameters
from transformer.model.transformer import Transformer, hidden_count, parameter_count

AnyModel = Transformer | RecurrentModel | ConvolutionalModel
"""A model of any family; what all of them can do is `seq2seq.Seq2Seq`."""
Kinds = dict[AttentionKind, int]


@dataclass(frozen=True)
class _Family:
    """What can be said of a model by its settings alone."""

    build: Callable[[Any], AnyModel]
    kinds: Callable[[Any], Kinds]
    parameters: Callable[[Any], int]
    hidden: Callable[[Any], int]


def _of_transformer(config: ModelConfig) -> Kinds:
    return {kind: kind.n_layers(config) for kind in AttentionKind}


def _of_recurrent(config: RecurrentConfig) -> Kinds:
    return {} if config.attention == "none" else {AttentionKind.CROSS: 1}


def _of_convolutional(config: ConvolutionalConfig) -> Kinds:
    return {AttentionKind.CROSS: config.n_decoder_layers}


_FAMILIES: dict[str, _Family] = {
    "transformer": _Family(Transformer, _of_transformer, parameter_count, hidden_count),
    "rnn": _Family(RecurrentModel, _of_recurrent, recurrent_parameters, recurrent_hidden),
    "conv": _Family(ConvolutionalModel, _of_convolutional, convolutional_parameters, convolutional_hidden),
}


@overload
def build_model(config: ModelConfig) -> Transformer: ...
@overload
def build_model(config: RecurrentConfig) -> RecurrentModel: ...
@overload
def build_model(config: ConvolutionalConfig) -> ConvolutionalModel: ...
def build_model(config: AnyModelConfig) -> AnyModel:
    """The model of these settings, with random weights."""
    return _FAMILIES[config.family].build(config)


def kinds_of(config: AnyModelConfig) -> Kinds:
    """Returns the kinds of attention of a model with these settings, each with its number of layers."""
    return _FAMILIES[config.family].kinds(config)


def count_parameters(config: AnyModelConfig) -> int:
    """Returns the number of trained numbers of such a model, without building it."""
    return _FAMILIES[config.family].parameters(config)


def count_hidden(config: AnyModelConfig) -> int:
    """Returns how many of these lie in matrices that Muon steps, which are none of an LSTM's or GRU's."""
    return _FAMILIES[config.family].hidden(config)
