"""Building a model of whatever family its settings name."""

from typing import overload

from transformer.config import AnyModelConfig, ModelConfig, RecurrentConfig
from transformer.model.kinds import AttentionKind
from transformer.model.recurrent import RecurrentModel, recurrent_hidden, recurrent_parameters
from transformer.model.transformer import Transformer, hidden_count, parameter_count

AnyModel = Transformer | RecurrentModel
"""A model of any family; what all of them can do is `seq2seq.Seq2Seq`."""


@overload
def build_model(config: ModelConfig) -> Transformer: ...
@overload
def build_model(config: RecurrentConfig) -> RecurrentModel: ...
def build_model(config: AnyModelConfig) -> AnyModel:
    """The model of these settings, with random weights."""
    return Transformer(config) if isinstance(config, ModelConfig) else RecurrentModel(config)


def kinds_of(config: AnyModelConfig) -> dict[AttentionKind, int]:
    """Returns the kinds of attention of a model with these settings, each with its number of layers."""
    if isinstance(config, ModelConfig):
        return {kind: kind.n_layers(config) for kind in AttentionKind}
    return {} if config.attention == "none" else {AttentionKind.CROSS: 1}


def count_parameters(config: AnyModelConfig) -> int:
    """Returns the number of trained numbers of such a model, without building it."""
    return parameter_count(config) if isinstance(config, ModelConfig) else recurrent_parameters(config)


def count_hidden(config: AnyModelConfig) -> int:
    """Returns how many of these lie in matrices that Muon steps, which are none of an LSTM's or GRU's."""
    return hidden_count(config) if isinstance(config, ModelConfig) else recurrent_hidden(config)
