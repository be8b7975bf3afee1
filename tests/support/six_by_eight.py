"""An untrained model of 6 layers and 8 heads, and a sentence of 128 tokens that it turns into 128 others."""

from pathlib import Path

import torch
from random_models import randomise

from transformer.checkpoints.settings import Settings
from transformer.checkpoints.store import save_checkpoint
from transformer.config import CorpusConfig, ModelConfig, TrainConfig
from transformer.model.transformer import Transformer
from transformer.text.tokenizer import EOS, train_tokenizer
from transformer.training.state import weights_of

NAME = "six-by-eight"
N_TOKENS = 128
WORDS = [f"word{index}" for index in range(40)]


def sentence(first: int = 0) -> str:
    """127 words from this one on; the end mark is the 128th token."""
    return " ".join(WORDS[(first + 7 * index) % 40] for index in range(N_TOKENS - 1))


SENTENCE = sentence()


def save_six_by_eight(runs: Path, *, d_model: int) -> None:
    """Writes the model into a folder of runs. It never writes an end mark, so its outputs are 128 tokens long."""
    tokenizer = train_tokenizer("words", [" ".join(WORDS)])
    config = ModelConfig(
        vocab_size=tokenizer.vocab_size,
        d_model=d_model,
        n_heads=8,
        d_ff=4 * d_model,
        n_encoder_layers=6,
        n_decoder_layers=6,
        max_length=N_TOKENS,
        output_bias=True,
    )
    torch.manual_seed(0)
    model = Transformer(config)
    randomise(model)
    with torch.no_grad():
        model.projection.bias[EOS] = -1e4
    settings = Settings(name=NAME, model=config, train=TrainConfig(), corpus=CorpusConfig(name="reverse"))
    save_checkpoint(runs / NAME, settings, tokenizer, weights_of(model))
