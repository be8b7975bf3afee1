"""Measures training speed against torch.nn.Transformer and transformers' Marian: `python benchmarks/training.py`.

All train on the same batches of pronouns-en-fr, padding included, with the same sizes, dropout, label smoothing,
clipping and optimiser, torch's fused AdamW, which treats every parameter alike. Muon, which today's recipes use, would
not be the same work: it steps whole matrices, and torch.nn packs query, key and value into one. Rounds alternate
between the contenders; a row gives each one's best round in real target tokens a second, and the ratios to ours. Then,
at d_model 512: which part of the machine's matrix-product speed a step reaches. Measure on a quiet machine.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
sys.path.insert(0, str(Path(__file__).parents[1]))
os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1")

import torch
from arguments import read_options
from marian_sizes import marian_config
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode
from torch_peer import TorchPeer, loss_of
from transformers import MarianMTModel

from transformer.config import PRESETS, CorpusConfig, ModelConfig, Precision, TrainConfig
from transformer.data.batches import Batch, BatchStream
from transformer.data.corpora import corpus_tokenizer, load_corpus
from transformer.model.transformer import Transformer
from transformer.training.devices import autocast
from transformer.training.evaluation import summed_loss
from transformer.training.loss import Smoothing
from transformer.training.optimizer import build_adamw

CPU = torch.device("cpu")
CONFIG = TrainConfig()
SETTINGS = (("tiny", 0), ("small", 0), ("small", 4_000))
"""Preset, and a vocabulary to pretend (0: the corpus's own)."""
WIDTH = 15
Loss = Callable[[Batch], Tensor]


def main(arguments: list[str]) -> None:
    """Prints a table of ratios, and the fraction of the matrix-product speed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--batch-tokens", type=int, default=2_048)
    options = read_options(parser, arguments, smoke={"threads": 1, "rounds": 1, "steps": 1, "batch_tokens": 64})
    torch.set_num_threads(options.threads)
    names = ("precision", "ours tok/s", "torch.nn", "Marian", "ours/torch.nn", "ours/Marian")
    _row("model", *names)
    for preset, vocabulary in SETTINGS:
        _race(preset, vocabulary, options)
    _fraction(options)


def _race(preset: str, vocabulary: int, options: argparse.Namespace) -> None:
    batches, own = _batches(options.steps, options.batch_tokens)
    config = replace(PRESETS[preset], vocab_size=vocabulary or own)
    torch.manual_seed(0)
    ours, theirs, marian = Transformer(config), TorchPeer(config), _marian(config)
    losses: dict[str, tuple[nn.Module, Loss]] = {
        "ours": (ours, lambda batch: summed_loss(ours, batch, CPU, Smoothing(CONFIG.label_smoothing))),
        "torch.nn": (theirs, theirs.loss),
        "Marian": (marian, lambda batch: _marian_loss(marian, batch)),
    }
    speeds: dict[tuple[str, Precision], float] = {}
    optimizers = {name: build_adamw(model, CONFIG) for name, (model, _) in losses.items()}
    for round_number in range(options.rounds + 1):  # the first one warms up
        for precision in ("float32", "bfloat16"):
            for name, (model, loss) in losses.items():
                speed = _speed(model.train(), loss, optimizers[name], batches, precision)
                if round_number:
                    speeds[name, precision] = max(speed, speeds.get((name, precision), 0.0))
    for precision in ("float32", "bfloat16"):
        a, b, c = (speeds[name, precision] for name in losses)
        label = f"{preset}, V = {config.vocab_size:,}"
        _row(label, precision, f"{a:,.0f}", f"{b:,.0f}", f"{c:,.0f}", f"{a / b:.2f}", f"{a / c:.2f}")
    best = max(speeds["ours", "float32"], speeds["ours", "bfloat16"])
    b, c = speeds["torch.nn", "float32"], speeds["Marian", "float32"]
    _row("", "faster", f"{best:,.0f}", "float32", "float32", f"{best / b:.2f}", f"{best / c:.2f}")


def _row(label: str, *cells: str) -> None:
    print(label.ljust(22) + "".join(cell.rjust(WIDTH) for cell in cells), flush=True)


def _speed(
    model: nn.Module, loss: Loss, optimizer: torch.optim.Optimizer, batches: list[Batch], precision: Precision
) -> float:
    start = time.perf_counter()
    for batch in batches:
        with autocast(CPU, precision):
            value = loss(batch) / batch.n_tokens
        value.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CONFIG.clip_norm)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return sum(batch.n_tokens for batch in batches) / (time.perf_counter() - start)


def _batches(count: int, batch_tokens: int) -> tuple[list[Batch], int]:
    """Training batches of the pronoun corpus, and its vocabulary size."""
    config = CorpusConfig(name="pronouns-en-fr")
    corpus = load_corpus(config)
    tokenizer = corpus_tokenizer(corpus, config)
    stream = BatchStream(corpus.train, tokenizer, batch_tokens=batch_tokens, seed=0, max_length=64, width_multiple=4)
    return [batch for batch, _ in islice(stream, count)], tokenizer.vocab_size


def _marian(config: ModelConfig) -> MarianMTModel:
    return MarianMTModel(
        marian_config(config, activation_function="relu", dropout=config.dropout, attn_implementation="sdpa")
    )


def _marian_loss(model: MarianMTModel, batch: Batch) -> Tensor:
    logits = model(
        input_ids=batch.source,
        attention_mask=batch.source_mask.long(),
        decoder_input_ids=batch.target_in,
        decoder_attention_mask=batch.target_mask.long(),
        use_cache=False,
    ).logits
    return loss_of(logits, batch)


def _fraction(options: argparse.Namespace) -> None:
    """Floating-point operations a second of a training step at d_model 512, against a plain matrix product's."""
    batches, vocab_size = _batches(min(3, options.steps), options.batch_tokens)
    config = replace(PRESETS["paper-base"], vocab_size=vocab_size, n_encoder_layers=2, n_decoder_layers=2)
    model = Transformer(config).train()
    optimizer = build_adamw(model, CONFIG)

    def loss(batch: Batch) -> Tensor:
        return summed_loss(model, batch, CPU, Smoothing(CONFIG.label_smoothing))

    with FlopCounterMode(display=False) as counter:
        _speed(model, loss, optimizer, batches, "float32")
    rows = options.batch_tokens
    for precision, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):
        a, b = torch.randn(rows, 512).to(dtype), torch.randn(512, 2_048).to(dtype)
        product = min(_seconds(lambda a=a, b=b: a @ b) for _ in range(4 * options.rounds))
        peak = 2 * rows * 512 * 2_048 / product
        step = min(
            _seconds(lambda p=precision: _speed(model, loss, optimizer, batches, p)) for _ in range(options.rounds)
        )
        reached = counter.get_total_flops() / step
        print(
            f"d_model 512, {precision}: a step does {reached / 1e9:,.0f} GFLOP/s, a {rows} x 512 x 2048 product "
            f"{peak / 1e9:,.0f}: {reached / peak:.2f} of it",
            flush=True,
        )


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    main(sys.argv[1:])
