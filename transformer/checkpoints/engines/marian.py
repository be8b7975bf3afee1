"""A checkpoint as transformers keeps Marian's, and what both ways between the two share; marian_import.py reads one.

Marian's position table is the paper's with its sines in the first half of d_model and its cosines in the second, so the
residual stream is permuted on the way, in every matrix that reads or writes it.
"""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from transformer.checkpoints.engines import refuse, transformer_settings
from transformer.checkpoints.store import Checkpoint, save_tensors
from transformer.config import ModelConfig
from transformer.files import new_folder, write_json
from transformer.model.mask_rules import limits_of
from transformer.text.tokenizer import SentencePieceTokenizer
from transformer.text.two_sided_tokenizer import TwoSidedTokenizer

NAME = "Marian"
WEIGHTS = "model.safetensors"
EPSILON = 1e-5  # nn.LayerNorm's, which Marian's code does not change
_ATTENTION = {"q_proj": "query", "k_proj": "key", "v_proj": "value", "out_proj": "output"}


def export(checkpoint: Checkpoint, folder: Path) -> None:
    """Writes a new folder, whole or not at all; CheckpointError naming what the format cannot express."""
    config = transformer_settings(checkpoint, NAME)
    refuse(
        NAME,
        {
            f"its positions are {config.positions}, where Marian has sinusoidal ones": config.positions != "sinusoidal",
            "it is pre-norm, where Marian is post-norm": config.norm == "pre",
            "it has no layer norm": config.norm == "none",
            "its source and target embeddings are two": not config.tie_embeddings,
            "its output projection is not the target embedding": not config.tie_output,
            f"its layer norms add {config.norm_epsilon:g}, where Marian adds {EPSILON:g}": (
                config.norm_epsilon != EPSILON
            ),
            "it has no residual connections": not config.residual,
            f"its attention scores are {config.score}, those of the engine dot products": config.score != "dot",
            "its attention scores are not scaled by 1/√d_k": not config.scale_scores,
            "its decoder has no causal mask": not config.causal_mask,
            "its self-attention is restricted": bool(limits_of(config)),
        },
    )
    order = halves(config.d_model)
    ours = checkpoint.model.state_dict()
    theirs = {name: moved(name, ours[mine], order) for name, mine in names(config).items()}
    bias = ours.get("projection.bias")
    theirs["final_logits_bias"] = torch.zeros(1, config.vocab_size) if bias is None else bias[None].clone()
    with new_folder(folder) as temporary:
        save_tensors(
            temporary / WEIGHTS, {name: tensor.contiguous() for name, tensor in theirs.items()}, {"format": "pt"}
        )
        write_json(temporary / "config.json", _their_config(config))
        write_json(temporary / "generation_config.json", _generation(config))
        entries = checkpoint.tokenizer.vocabulary()
        write_json(temporary / "vocab.json", {entry: token for token, entry in enumerate(entries)})
        _write_pieces(checkpoint, temporary)


def has_pieces(checkpoint: Checkpoint) -> bool:
    """Tells whether Marian's tokenizer can read this model's tokens: sentencepiece can be read, whole words cannot."""
    return isinstance(checkpoint.tokenizer, SentencePieceTokenizer | TwoSidedTokenizer)


def halves(d_model: int) -> Tensor:
    """[even | odd]: where each of Marian's dimensions stands in ours."""
    return torch.cat((torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)))


def names(config: ModelConfig) -> dict[str, str]:
    """Our name of each of Marian's tensors."""
    found = {"model.shared.weight": "encoder.embedding.tokens.weight"}
    for stack, n_layers in (("encoder", config.n_encoder_layers), ("decoder", config.n_decoder_layers)):
        for layer in range(n_layers):
            theirs, ours = f"model.{stack}.layers.{layer}", f"{stack}.layers.{layer}"
            pairs = {"fc1": "feed_forward.inner", "fc2": "feed_forward.outer", "final_layer_norm": "add_norm_ffn.norm"}
            sublayers = {"self_attn": "self"} if stack == "encoder" else {"self_attn": "self", "encoder_attn": "cross"}
            for sublayer, mine in sublayers.items():
                pairs |= {f"{sublayer}.{a}": f"{mine}_attention.{b}" for a, b in _ATTENTION.items()}
                pairs[f"{sublayer}_layer_norm"] = f"add_norm_{mine}.norm"
            for their, mine in pairs.items():
                for kind in ("weight", "bias"):
                    found[f"{theirs}.{their}.{kind}"] = f"{ours}.{mine}.{kind}"
    return found


def moved(name: str, tensor: Tensor, order: Tensor) -> Tensor:
    """A tensor of Marian's name with those of its axes that are the residual stream's in another order."""
    *_, part, kind = name.split(".")
    if part == "shared" or (part in ("q_proj", "k_proj", "v_proj", "fc1") and kind == "weight"):
        return tensor[:, order].clone()
    if part in ("out_proj", "fc2") or part.endswith("layer_norm"):
        return tensor[order].clone()
    return tensor.clone()


def _their_config(config: ModelConfig) -> dict[str, Any]:
    return {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        "vocab_size": config.vocab_size,
        "decoder_vocab_size": config.vocab_size,
        "d_model": config.d_model,
        "encoder_layers": config.n_encoder_layers,
        "decoder_layers": config.n_decoder_layers,
        "encoder_attention_heads": config.n_heads,
        "decoder_attention_heads": config.n_heads,
        "encoder_ffn_dim": config.d_ff,
        "decoder_ffn_dim": config.d_ff,
        "activation_function": config.activation,
        "max_position_embeddings": config.max_length,
        "scale_embedding": True,
        "share_encoder_decoder_embeddings": True,
        "tie_word_embeddings": True,
        "dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "activation_dropout": config.activation_dropout,
        "is_encoder_decoder": True,
        **_specials(config),
        "forced_eos_token_id": None,
        "dtype": "float32",
    }


def _generation(config: ModelConfig) -> dict[str, Any]:
    """Returns settings that decode as this lab does: padding is never written."""
    return {**_specials(config), "bad_words_ids": [[config.pad_id]], "max_length": config.max_length, "num_beams": 1}


def _specials(config: ModelConfig) -> dict[str, int]:
    return {
        "pad_token_id": config.pad_id,
        "bos_token_id": config.bos_id,
        "eos_token_id": config.eos_id,
        "decoder_start_token_id": config.bos_id,
    }


def _write_pieces(checkpoint: Checkpoint, folder: Path) -> None:
    tokenizer = checkpoint.tokenizer
    if isinstance(tokenizer, SentencePieceTokenizer):
        models = (tokenizer.model, tokenizer.model)
    elif isinstance(tokenizer, TwoSidedTokenizer):
        models = (tokenizer.source_model, tokenizer.target_model)
    else:
        return
    for side, model in zip(("source", "target"), models, strict=True):
        (folder / f"{side}.spm").write_bytes(model)
    names = {"unk_token": "<unk>", "eos_token": "</s>", "pad_token": "<pad>", "model_max_length": 512}
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": "MarianTokenizer", **names})
