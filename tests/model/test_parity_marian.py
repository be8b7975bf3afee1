"""Oracle: transformers.MarianMTModel with our weights, built from a config; nothing is downloaded.

Marian keeps the paper's position table with its sines in the first half and its cosines in the second. Its table is
left alone: our residual stream is permuted on the way over, in every matrix that reads or writes it.
"""

import pytest
import torch
import transformers
from marian_sizes import marian_config
from random_models import half_trained_model, ragged_batch, random_model, reversals
from torch import Tensor, nn

from transformer.decoding.beam import beam_search
from transformer.decoding.greedy import Constraints, greedy, translate_ids
from transformer.model.attention import MultiHeadAttention
from transformer.model.taps import Recorder
from transformer.model.transformer import Transformer

ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": "swish"}


def marian(ours: Transformer) -> nn.Module:
    """Marian with the weights of our model (post-norm, everything tied), in eval mode."""
    c = ours.config
    config = marian_config(
        c,
        activation_function=ACTIVATIONS[c.activation],
        share_encoder_decoder_embeddings=True,
        tie_word_embeddings=True,
        dropout=0.0,
        attn_implementation="eager",
    )
    theirs = transformers.MarianMTModel(config)
    order = torch.cat((torch.arange(0, c.d_model, 2), torch.arange(1, c.d_model, 2)))  # [even | odd]
    theirs.model.shared.weight.data = ours.decoder.embedding.tokens.weight.data[:, order].clone()
    theirs.tie_weights()
    for layer, mine in zip(theirs.model.encoder.layers, ours.encoder.layers, strict=True):
        copy_attention(layer.self_attn, mine.self_attention, order)
        copy_norm(layer.self_attn_layer_norm, mine.add_norm_self.norm, order)
        copy_feed_forward(layer, mine, order)
    for layer, mine in zip(theirs.model.decoder.layers, ours.decoder.layers, strict=True):
        copy_attention(layer.self_attn, mine.self_attention, order)
        copy_norm(layer.self_attn_layer_norm, mine.add_norm_self.norm, order)
        copy_attention(layer.encoder_attn, mine.cross_attention, order)
        copy_norm(layer.encoder_attn_layer_norm, mine.add_norm_cross.norm, order)
        copy_feed_forward(layer, mine, order)
    return theirs.to(ours.projection.weight.dtype).eval()


def copy_attention(theirs: nn.Module, ours: MultiHeadAttention, order: Tensor) -> None:
    for name, linear in (("q_proj", ours.query), ("k_proj", ours.key), ("v_proj", ours.value)):
        getattr(theirs, name).weight.data = linear.weight.data[:, order].clone()
        getattr(theirs, name).bias.data = linear.bias.data.clone()
    theirs.out_proj.weight.data = ours.output.weight.data[order].clone()
    theirs.out_proj.bias.data = ours.output.bias.data[order].clone()


def copy_feed_forward(theirs: nn.Module, ours: nn.Module, order: Tensor) -> None:
    inner, outer = ours.feed_forward.inner, ours.feed_forward.outer
    theirs.fc1.weight.data, theirs.fc1.bias.data = inner.weight.data[:, order].clone(), inner.bias.data.clone()
    theirs.fc2.weight.data, theirs.fc2.bias.data = outer.weight.data[order].clone(), outer.bias.data[order].clone()
    copy_norm(theirs.final_layer_norm, ours.add_norm_ffn.norm, order)


def copy_norm(theirs: nn.LayerNorm, ours: nn.LayerNorm, order: Tensor) -> None:
    theirs.weight.data, theirs.bias.data = ours.weight.data[order].clone(), ours.bias.data[order].clone()


@torch.no_grad()
def run(theirs: nn.Module, source: Tensor, target: Tensor, **options):
    real = {"attention_mask": (source != 0).long(), "decoder_attention_mask": (target != 0).long()}
    return theirs(input_ids=source, decoder_input_ids=target, **real, **options)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)], ids=str)
@pytest.mark.parametrize("activation", ACTIVATIONS)
@torch.no_grad()
def test_logits_equal_marian_s(within, activation, dtype, tolerance):
    ours = random_model(dtype, activation=activation)
    source, target = ragged_batch()
    real = target != 0
    expected = run(marian(ours), source, target).logits[real]
    within(ours(source, target)[real], expected, tolerance)
    within(ours(source, target, tap=Recorder())[real], expected, tolerance)


@torch.no_grad()
def test_the_memory_and_every_head_s_weights_equal_marian_s(within):
    ours = random_model(torch.float64)
    source, target = ragged_batch()
    seen = Recorder()
    ours(source, target, tap=seen)
    theirs = run(marian(ours), source, target, output_attentions=True)
    source_real, target_real = source != 0, target != 0
    for stack, sublayer, weights, rows in (
        ("encoder", "self", theirs.encoder_attentions, source_real),
        ("decoder", "self", theirs.decoder_attentions, target_real),
        ("decoder", "cross", theirs.cross_attentions, target_real),
    ):
        assert len(weights) == len(getattr(ours, stack).layers)
        for layer, expected in enumerate(weights):
            recorded = seen.recording[f"{stack}.{layer}.{sublayer}.weights"]
            within(recorded.transpose(1, 2)[rows], expected.transpose(1, 2)[rows], 1e-12)
    order = torch.cat((torch.arange(0, 16, 2), torch.arange(1, 16, 2)))
    memory = ours.encode(source)[..., order]
    within(memory[source_real], theirs.encoder_last_hidden_state[source_real], 1e-12)


@pytest.mark.parametrize("cache", [True, False], ids=["cached", "uncached"])
def test_greedy_decoding_writes_what_marian_generates(within, cache):
    ours = half_trained_model(torch.float64)
    source, _ = reversals(12)
    generated = marian(ours).generate(
        source,
        attention_mask=(source != 0).long(),
        num_beams=1,
        do_sample=False,
        max_length=20,
        use_cache=cache,
        output_logits=True,
        return_dict_in_generate=True,
    )
    steps = list(greedy(ours, source, max_length=19, cache=cache))
    tokens = torch.stack([step.tokens for step in steps], dim=1)
    assert torch.equal(tokens, generated.sequences[:, 1:])
    alive = torch.ones(len(source), dtype=torch.bool)
    for step, logits in zip(steps, generated.logits, strict=True):
        within(step.log_probs[alive], logits[alive].double().log_softmax(-1), 2e-6)  # generate() rounds to float32
        alive = ~step.finished
    assert 0 < int((tokens == 2).sum()) < len(source)  # rows that end and rows that do not are both compared
    assert len({tuple(row) for row in tokens.tolist()}) > len(source) / 2
    for row, ids in zip(tokens.tolist(), translate_ids(ours, source, max_length=19), strict=True):
        assert ids == (row[: row.index(2)] if 2 in row else row)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("early_stopping", [True, False])
@pytest.mark.parametrize("ngram", [0, 2])
def test_beam_search_writes_what_marian_generates(within, alpha, early_stopping, ngram):
    """Their `length_penalty` is our alpha with the norm "length"; their "never" is our early_stopping=False."""
    ours = half_trained_model(torch.float64)
    source, _ = reversals(12)
    generated = marian(ours).generate(
        source,
        attention_mask=(source != 0).long(),
        num_beams=4,
        num_return_sequences=4,
        do_sample=False,
        max_length=13,
        length_penalty=alpha,
        early_stopping=True if early_stopping else "never",
        no_repeat_ngram_size=ngram,
        output_scores=True,
        return_dict_in_generate=True,
    )
    *_, last = beam_search(
        ours,
        source,
        size=4,
        max_length=12,
        alpha=alpha,
        norm="length",
        early_stopping=early_stopping,
        constraints=Constraints(no_repeat_ngram=ngram),
    )
    rows = generated.sequences[:, 1:].tolist()
    theirs = [row[: row.index(2) + 1] if 2 in row else row for row in rows]  # they fill up with eos
    mine = [list(hypothesis.ids) for result in last.finished for hypothesis in result]
    assert mine == theirs
    scores = torch.tensor([hypothesis.score for result in last.finished for hypothesis in result])
    within(scores, generated.sequences_scores, 1e-5)  # generate() scores in float32
