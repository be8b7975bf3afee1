"""A Marian checkpoint of transformers read into one of ours."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from transformer.checkpoints.engines import refuse
from transformer.checkpoints.engines.marian import EPSILON, WEIGHTS, halves, moved, names
from transformer.checkpoints.settings import CheckpointError, Settings
from transformer.checkpoints.store import load_tensors, save_checkpoint
from transformer.config import CorpusConfig, ModelConfig, TrainConfig
from transformer.model.positions import sinusoidal_table
from transformer.model.transformer import Transformer
from transformer.text.two_sided_tokenizer import read_two_sided
from transformer.training.state import check_values, check_weights

PICKLED = "pytorch_model.bin"
NEVER = -1e9
"""Bias of a token that is never to be written: its probability is exactly 0."""
_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": "swish", "silu": "swish"}


def read(folder: Path, name: str, into: Path, command: str) -> None:
    """Makes a checkpoint of ours in `into` of a Marian folder.

    CheckpointError naming what is missing, pickled or not to be expressed here; FileExistsError where `into` is there.
    """
    theirs = _read_config(folder)
    tensors = _read_weights(folder)
    vocabulary = _read_vocabulary(folder, theirs)
    _check(theirs)
    order, copied = _order_of_ids(theirs, vocabulary)
    bias = tensors.get("final_logits_bias")
    bias = torch.zeros(len(order)) if bias is None else bias.flatten().float()[order].clone()
    if copied:
        bias[1] = NEVER
    try:
        config = _our_config(theirs, len(order), output_bias=bool(bias.any()))
        _check_positions(config, tensors)
        ours = _our_weights(config, tensors, order, bias)
    except ValueError as error:
        raise CheckpointError(f"{folder}: {error}") from error
    pieces = [vocabulary[token] for token in order]
    try:
        tokenizer = read_two_sided(folder / "source.spm", folder / "target.spm", pieces)
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{folder}: {error}") from error
    settings = Settings(
        name=name,
        model=config,
        train=TrainConfig(label_smoothing=0.0),
        corpus=CorpusConfig(name=f"imported from {folder.resolve().name}"),
        command=command,
    )
    card = f"# {name}\n\nImported from a Marian checkpoint by `{command}`. What it learned from is not known here.\n"
    save_checkpoint(into, settings, tokenizer, ours, card=card)


def _our_config(theirs: Mapping[str, Any], vocab_size: int, *, output_bias: bool) -> ModelConfig:
    """Our settings of such a model; ValueError where they are beyond what a model may have here."""
    return ModelConfig(
        vocab_size=vocab_size,
        d_model=theirs["d_model"],
        n_heads=theirs["encoder_attention_heads"],
        d_ff=theirs["encoder_ffn_dim"],
        n_encoder_layers=theirs["encoder_layers"],
        n_decoder_layers=theirs["decoder_layers"],
        activation=_ACTIVATIONS[theirs["activation_function"]],  # type: ignore[arg-type]
        max_length=theirs["max_position_embeddings"],
        output_bias=output_bias,
        norm_epsilon=EPSILON,
    )


def _our_weights(
    config: ModelConfig, tensors: Mapping[str, Tensor], order: Sequence[int], bias: Tensor
) -> dict[str, Tensor]:
    """Our weights of Marian's tensors; ValueError where one is missing or has another shape."""
    back = torch.argsort(halves(config.d_model))
    try:
        ours = {mine: moved(their, tensors[their].float(), back) for their, mine in names(config).items()}
        embedding = ours["encoder.embedding.tokens.weight"][order].clone()
    except KeyError as error:
        raise ValueError(f"{WEIGHTS} lacks {error.args[0]}") from error
    except IndexError as error:
        raise ValueError(f"{WEIGHTS} holds a matrix that is smaller than config.json says") from error
    ours["encoder.embedding.tokens.weight"] = embedding
    if config.output_bias:
        ours["projection.bias"] = bias
    with torch.device("meta"):
        check_weights(Transformer(config), ours)
    return ours


def _read_config(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        raise CheckpointError(f"there is no folder {folder}")
    if not (folder / "config.json").is_file():
        raise CheckpointError(f"{folder} is no Marian checkpoint: it has no config.json")
    content = _read_object(folder / "config.json")
    if (kind := content.get("model_type")) != "marian":
        raise CheckpointError(f"{folder} is no Marian checkpoint: its model_type is {kind!r}")
    generation = folder / "generation_config.json"
    if "decoder_start_token_id" not in content and generation.is_file():
        content = _read_object(generation) | content
    return _DEFAULTS | content


def _read_object(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise CheckpointError(f"{path} cannot be read: it is not an object")
    return content


_DEFAULTS: dict[str, Any] = {
    "encoder_layers": 12,
    "decoder_layers": 12,
    "encoder_ffn_dim": 4096,
    "decoder_ffn_dim": 4096,
    "encoder_attention_heads": 16,
    "decoder_attention_heads": 16,
    "d_model": 1024,
    "activation_function": "gelu",
    "max_position_embeddings": 1024,
    "scale_embedding": False,
    "share_encoder_decoder_embeddings": True,
    "tie_word_embeddings": True,
    "eos_token_id": 0,
    "pad_token_id": 58100,
    "decoder_start_token_id": 58100,
    "normalize_before": False,
    "normalize_embedding": False,
}
"""The defaults of transformers for a Marian config."""


def _read_weights(folder: Path) -> dict[str, Tensor]:
    if not (folder / WEIGHTS).is_file():
        if (folder / PICKLED).is_file():
            raise CheckpointError(
                f"{folder} holds {PICKLED}, and pickled weights are refused because reading them can run any code. "
                "Where you trust it, convert it: "
                f'python -c "from transformers import MarianMTModel as M; M.from_pretrained({str(folder)!r})'
                f'.save_pretrained({str(folder)!r})"'
            )
        raise CheckpointError(f"{folder} has no {WEIGHTS}")
    tensors, _ = load_tensors(folder / WEIGHTS)
    try:
        check_values(tensors)
    except ValueError as error:
        raise CheckpointError(f"{folder / WEIGHTS}: {error}") from error
    for name in ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"):
        if name in tensors:
            shared = tensors.setdefault("model.shared.weight", tensors[name])
            if not torch.equal(shared, tensors[name]):
                raise CheckpointError(f"{folder}: {name} is another matrix than the shared embedding; only one is read")
    return tensors


def _read_vocabulary(folder: Path, theirs: Mapping[str, Any]) -> list[str]:
    """The pieces by Marian's ids."""
    if (folder / "target_vocab.json").is_file():
        raise CheckpointError(f"{folder} has a vocabulary for each side; only one that both share is read")
    try:
        content = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
        by_id = {int(token): piece for piece, token in content.items()}
    except FileNotFoundError:
        raise CheckpointError(f"{folder} has no vocab.json") from None
    except (OSError, ValueError, AttributeError, TypeError, OverflowError, RecursionError) as error:
        raise CheckpointError(f"{folder / 'vocab.json'} cannot be read: {error}") from error
    size = theirs.get("vocab_size", len(by_id))
    if size != len(by_id) or sorted(by_id) != list(range(len(by_id))) or "<unk>" not in content:
        raise CheckpointError(
            f"{folder / 'vocab.json'} must give each of {size!r} ids (vocab_size) once, one of them to <unk>; "
            f"it gives {len(by_id)} ids"
        )
    return [by_id[token] for token in range(len(by_id))]


def _check(theirs: Mapping[str, Any]) -> None:
    """CheckpointError naming what this model here has no part for."""
    refuse(
        "Attention Lab",
        {
            f"its activation is {theirs['activation_function']}": (
                theirs["activation_function"] not in list(_ACTIVATIONS)
            ),
            "its embeddings are not scaled by √d_model": not theirs["scale_embedding"],
            "its source and target embeddings are two": not theirs["share_encoder_decoder_embeddings"],
            "its output projection is not the target embedding": not theirs["tie_word_embeddings"],
            "its encoder and decoder have different numbers of heads": (
                theirs["encoder_attention_heads"] != theirs["decoder_attention_heads"]
            ),
            "its encoder and decoder have feed-forwards of different widths": (
                theirs["encoder_ffn_dim"] != theirs["decoder_ffn_dim"]
            ),
            "it is pre-norm": bool(theirs["normalize_before"]),
            "it normalises its embeddings": bool(theirs["normalize_embedding"]),
        },
    )


def _check_positions(config: ModelConfig, tensors: Mapping[str, Tensor]) -> None:
    for name, table in tensors.items():
        if not name.endswith("embed_positions.weight"):
            continue
        expected = sinusoidal_table(len(table) if table.dim() else 0, config.d_model)[:, halves(config.d_model)]
        if table.shape != expected.shape or (table.float() - expected).abs().max() > 1e-4:
            raise ValueError(f"{name} is not Marian's sinusoidal table: learned positions are not read")


def _order_of_ids(theirs: Mapping[str, Any], vocabulary: Sequence[str]) -> tuple[list[int], bool]:
    """Marian's id at each of ours (pad, start, eos, unk, then all others); and whether the start is a copy of another.

    Marian starts a target with its padding token. Here padding is masked wherever it stands, so that start is a token
    of its own, with the same vector, which is never written.
    """
    pad, eos = theirs["pad_token_id"], theirs["eos_token_id"]
    start, unk = theirs["decoder_start_token_id"], list(vocabulary).index("<unk>")
    for name, token in (("pad_token_id", pad), ("eos_token_id", eos), ("decoder_start_token_id", start)):
        if not isinstance(token, int) or not 0 <= token < len(vocabulary):
            raise CheckpointError(f"{name} ({token}) must lie in 0..{len(vocabulary) - 1}, the vocabulary")
    if len({pad, eos, unk}) < 3:
        raise CheckpointError(f"pad, eos and unk have the ids {(pad, eos, unk)}, which must be three different ones")
    copied = start in (pad, eos, unk)
    first = [pad, start, eos, unk]
    return [*first, *(token for token in range(len(vocabulary)) if token not in first)], copied
