"""A checkpoint as a folder that `ctranslate2.Translator` loads.

Tokens go in and come out as pieces, the end mark of the source included: the tokenizer lies beside the model.
"""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from transformer.checkpoints.engines import refuse, transformer_settings
from transformer.checkpoints.settings import CheckpointError
from transformer.checkpoints.store import Checkpoint
from transformer.files import new_folder
from transformer.model.attention import MultiHeadAttention
from transformer.model.layers import DecoderLayer, EncoderLayer
from transformer.model.mask_rules import limits_of
from transformer.model.transformer import Transformer

NAME = "CTranslate2"


def export(checkpoint: Checkpoint, folder: Path) -> None:
    """Writes a new folder, whole or not at all; CheckpointError naming what the format cannot express."""
    model, config = checkpoint.model, transformer_settings(checkpoint, NAME)
    refuse(
        NAME,
        {
            "its positions are rotary, which an encoder-decoder there does not have": config.positions == "rotary",
            "its positions are ALiBi, which an encoder there does not have": config.positions == "alibi",
            "it has no layer norm": config.norm == "none",
            "it has no residual connections": not config.residual,
            f"its attention scores are {config.score}, those of the engine dot products": config.score != "dot",
            "its attention scores are not scaled by 1/√d_k": not config.scale_scores,
            "its decoder has no causal mask": not config.causal_mask,
            "its self-attention is restricted": bool(limits_of(config)),
        },
    )
    entries = checkpoint.tokenizer.vocabulary()
    if len(set(entries)) < len(entries):
        raise CheckpointError(f"{NAME} needs each vocabulary entry once; this tokenizer has one twice")
    spec = _spec(model)
    spec.register_source_vocabulary(entries)
    spec.register_target_vocabulary(entries)
    spec.config.unk_token = "<unk>"
    spec.config.bos_token = spec.config.decoder_start_token = entries[config.bos_id]
    spec.config.eos_token = entries[config.eos_id]
    spec.config.layer_norm_epsilon = config.norm_epsilon
    with new_folder(folder) as temporary:
        spec.validate()
        spec.optimize()
        spec.save(str(temporary))
        checkpoint.tokenizer.save(temporary)


def _spec(model: Transformer) -> Any:
    try:
        from ctranslate2.specs import common_spec, transformer_spec
    except ImportError:
        raise CheckpointError("ctranslate2 is not installed: python -m pip install ctranslate2==4.8.5") from None
    config = model.config
    activations = {
        "relu": common_spec.Activation.RELU,
        "gelu": common_spec.Activation.GELU,
        "swish": common_spec.Activation.SWISH,
    }
    spec = transformer_spec.TransformerSpec.from_config(
        (config.n_encoder_layers, config.n_decoder_layers),
        config.n_heads,
        pre_norm=config.norm == "pre",
        activation=activations[config.activation],
    )
    for side, stack, embeddings in (
        (spec.encoder, model.encoder, spec.encoder.embeddings[0]),
        (spec.decoder, model.decoder, spec.decoder.embeddings),
    ):
        embeddings.weight = _array(stack.embedding.tokens.weight)
        side.scale_embeddings = stack.embedding.scale  # type: ignore[assignment]  # a number is saved as it is
        side.position_encodings.encodings = _positions(model, stack.embedding.positions)
        for layer_spec, layer in zip(side.layer, stack.layers, strict=True):
            _fill_layer(layer_spec, layer)
        if stack.norm is not None:
            _fill_norm(side.layer_norm, stack.norm)
    _fill_linear(spec.decoder.projection, model.projection)
    return spec


def _positions(model: Transformer, positions: nn.Module | None) -> Any:
    """The table; zeros for a model without positions, where the library would otherwise add sinusoids of its own."""
    if positions is None:
        return torch.zeros(model.config.max_length, model.config.d_model).numpy()
    table = positions.table
    assert isinstance(table, Tensor)
    return _array(table)


def _fill_layer(spec: Any, layer: nn.Module) -> None:
    assert isinstance(layer, EncoderLayer | DecoderLayer)
    own = layer.self_attention
    _fill_fused(spec.self_attention.linear[0], own.query, own.key, own.value)
    _fill_linear(spec.self_attention.linear[1], own.output)
    _fill_norm(spec.self_attention.layer_norm, layer.add_norm_self.norm)
    if isinstance(layer, DecoderLayer):
        cross: MultiHeadAttention = layer.cross_attention
        _fill_linear(spec.attention.linear[0], cross.query)
        _fill_fused(spec.attention.linear[1], cross.key, cross.value)
        _fill_linear(spec.attention.linear[2], cross.output)
        _fill_norm(spec.attention.layer_norm, layer.add_norm_cross.norm)
    _fill_linear(spec.ffn.linear_0, layer.feed_forward.inner)
    _fill_linear(spec.ffn.linear_1, layer.feed_forward.outer)
    _fill_norm(spec.ffn.layer_norm, layer.add_norm_ffn.norm)


def _fill_linear(spec: Any, linear: nn.Linear) -> None:
    spec.weight = _array(linear.weight)
    if linear.bias is not None:
        spec.bias = _array(linear.bias)


def _fill_fused(spec: Any, *linears: nn.Linear) -> None:
    spec.weight = _array(torch.cat([linear.weight for linear in linears]))
    spec.bias = _array(torch.cat([linear.bias for linear in linears]))


def _fill_norm(spec: Any, norm: nn.Module | None) -> None:
    assert isinstance(norm, nn.LayerNorm)
    spec.gamma, spec.beta = _array(norm.weight), _array(norm.bias)


def _array(tensor: Tensor) -> Any:
    return tensor.detach().float().contiguous().numpy()
