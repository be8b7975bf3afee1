"""torch.nn.Transformer as a peer of ours, for the benchmarks that compare the two."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer.config import ModelConfig, TrainConfig
from transformer.data.batches import Batch
from transformer.model.positions import sinusoidal_table


class TorchPeer(nn.Module):
    """torch.nn.Transformer as its users write it: tied embeddings, sinusoids, masks, logits at every position."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.core = nn.Transformer(
            config.d_model,
            config.n_heads,
            config.n_encoder_layers,
            config.n_decoder_layers,
            config.d_ff,
            config.dropout,
            batch_first=True,
        )
        self.core.encoder.norm = self.core.decoder.norm = None
        self.tokens = nn.Embedding(config.vocab_size, config.d_model)
        nn.init.normal_(self.tokens.weight, std=config.d_model**-0.5)
        self.dropout = nn.Dropout(config.embedding_dropout)
        self.register_buffer("positions", sinusoidal_table(config.max_length, config.d_model).float())

    def embed(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids) * math.sqrt(self.tokens.embedding_dim)
        return self.dropout(x + self.positions[: ids.size(1)])

    def loss(self, batch: Batch) -> Tensor:
        """The loss of a batch in nats, summed over its real target tokens."""
        length = batch.target_in.size(1)
        states = self.core(
            self.embed(batch.source),
            self.embed(batch.target_in),
            tgt_mask=torch.ones(length, length, dtype=torch.bool, device=batch.target_in.device).triu(1),
            src_key_padding_mask=~batch.source_mask,
            tgt_key_padding_mask=~batch.target_mask,
            memory_key_padding_mask=~batch.source_mask,
        )
        return loss_of(F.linear(states, self.tokens.weight), batch)


def loss_of(logits: Tensor, batch: Batch) -> Tensor:
    """The label-smoothed cross-entropy of these logits, summed over the real target tokens."""
    labels = batch.target_out.masked_fill(~batch.target_mask, -100)
    return F.cross_entropy(
        logits.float().flatten(0, 1), labels.flatten(), label_smoothing=TrainConfig().label_smoothing, reduction="sum"
    )
