"""Marian of the same sizes as a model of ours, for the tests and benchmarks that compare the two."""

from typing import Any

import transformers  # which loads its parts when they are asked for

from transformer.config import ModelConfig


def marian_config(config: ModelConfig, **options: Any) -> Any:
    """Marian's configuration for these sizes and special tokens; `options` say what else it is."""
    return transformers.MarianConfig(
        vocab_size=config.vocab_size,
        decoder_vocab_size=config.vocab_size,
        d_model=config.d_model,
        encoder_layers=config.n_encoder_layers,
        decoder_layers=config.n_decoder_layers,
        encoder_attention_heads=config.n_heads,
        decoder_attention_heads=config.n_heads,
        encoder_ffn_dim=config.d_ff,
        decoder_ffn_dim=config.d_ff,
        max_position_embeddings=config.max_length,
        scale_embedding=True,
        attention_dropout=0.0,
        activation_dropout=0.0,
        pad_token_id=config.pad_id,
        bos_token_id=config.bos_id,
        eos_token_id=config.eos_id,
        decoder_start_token_id=config.bos_id,
        forced_eos_token_id=None,
        **options,
    )
