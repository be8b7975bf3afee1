"""Tests of mask leakage: against loops, teacher forcing against single steps, and a row that may attend to nothing."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from random_models import half_trained_model, random_ids, random_model

from transformer.analysis.attention.mask_leakage import (
    is_forcing_honest,
    measure_leak,
    see_empty_row,
)
from transformer.decoding.greedy import translate_ids
from transformer.interventions import DisableMask, compile_interventions
from transformer.model.kinds import AttentionKind
from transformer.model.taps import Recorder, chain

OFF = [DisableMask("padding"), DisableMask("causal"), DisableMask("cross")]
ON_LATER = "on later tokens, decoder self-attention"


def on_padding(reading):
    """The shares on padding by kind of attention."""
    return {kind: reading.shares[f"on padding, {kind.phrase}"] for kind in AttentionKind}


@pytest.fixture
def model():
    return half_trained_model()


@pytest.fixture
def source():
    ids = random_ids(3, 7, 12)
    ids[1, 4:] = ids[2, 2:] = 0
    return ids


def test_with_all_masks_nothing_leaks(model, source):
    leak = measure_leak(model, source, ())
    assert leak.intact.shares[ON_LATER] == 0 and set(on_padding(leak.intact).values()) == {0.0}
    assert leak.intact.outputs == leak.lifted.outputs
    np.testing.assert_array_equal(leak.intact.losses, leak.lifted.losses)


def test_in_a_padded_batch_each_sentence_is_translated_as_alone(model, source):
    outputs = measure_leak(model, source, ()).intact.outputs
    for row, output in zip(source, outputs, strict=True):
        alone = translate_ids(model, row[row != 0][None], max_length=64)[0]
        assert list(output[: len(alone)]) == alone


@pytest.mark.parametrize("off", [[OFF[0]], [OFF[1]], [OFF[2]], OFF])
def test_loss_and_attention_are_what_loops_over_the_recorded_pass_count(model, source, off):
    leak = measure_leak(model, source, off)
    target = torch.tensor([[*out, *[0] * (leak.target.shape[1] - len(out))] for out in leak.intact.outputs])
    recorder = Recorder()
    tap = chain(compile_interventions(off, model), recorder)
    with torch.no_grad():
        log_probs = model(source, torch.tensor(leak.target), tap=tap).log_softmax(dim=-1).double()
    lost = []
    for row in range(3):
        tokens = [int(t) for t in target[row] if t]
        lost.append([-float(log_probs[row, t, token]) for t, token in enumerate(tokens)])
        assert leak.lifted.losses[row] == pytest.approx(np.mean(lost[-1]), abs=1e-6)
    assert leak.lifted.loss == pytest.approx(np.mean(np.concatenate(lost)), abs=1e-6)
    for kind in AttentionKind:
        stack, sublayer = ("decoder", "cross") if kind == "cross" else (kind.split("_")[0], "self")
        keys = leak.target if kind == "decoder_self" else leak.source
        queries = leak.source if kind == "encoder_self" else leak.target
        masses, future = [], []
        for row in range(3):
            for query in range(queries.shape[1]):
                if queries[row, query] == 0:
                    continue
                empty = later = 0.0
                for layer in range(2):
                    weights = recorder.recording[f"{stack}.{layer}.{sublayer}.weights"][row, :, query].double()
                    empty += sum(float(weights[:, k].mean()) / 2 for k in range(keys.shape[1]) if keys[row, k] == 0)
                    later += sum(
                        float(weights[:, k].mean()) / 2 for k in range(query + 1, keys.shape[1]) if keys[row, k]
                    )
                masses.append(empty)
                if kind == "decoder_self" and (keys[row, query + 1 :] != 0).any():
                    future.append(later)
        assert on_padding(leak.lifted)[kind] == pytest.approx(np.mean(masses), abs=1e-9)
        if kind == "decoder_self":
            assert leak.lifted.shares[ON_LATER] == pytest.approx(np.mean(future), abs=1e-9)


def test_attention_beyond_a_window_is_what_loops_count(source):
    model, off = random_model(window=2, vocab_size=12), [DisableMask("window"), DisableMask("padding")]
    leak, recorder = measure_leak(model, source, off), Recorder()
    with torch.no_grad():
        model(source, torch.tensor(leak.target), tap=chain(compile_interventions(off, model), recorder))
    for stack, ids, n_layers in (("encoder", leak.source, 2), ("decoder", leak.target, 3)):
        found = []
        for row in range(3):
            real = [place for place, token in enumerate(ids[row]) if token]
            for query in real:
                far = [key for key in real if abs(key - query) > 2]
                layers = [recorder.recording[f"{stack}.{i}.self.weights"][row, :, query] for i in range(n_layers)]
                found += [float(torch.stack(layers).double()[..., far].sum(dim=-1).mean())] if far else []
        name = f"beyond the window, {stack} self-attention"
        assert leak.intact.shares[name] == 0 < 0.01 < leak.lifted.shares[name]
        assert leak.lifted.shares[name] == pytest.approx(np.mean(found), abs=1e-9)


@pytest.mark.parametrize("off", [[], [OFF[1]]], ids=["all masks", "no causal mask"])
def test_a_sentence_s_numbers_do_not_depend_on_what_stands_beside_it_in_the_batch(model, source, off):
    """Against each sentence alone, by a loop in double precision: an end mark is predicted and never read."""
    leak, precise = measure_leak(model, source, off), half_trained_model(torch.float64)
    lengths = [len(out) for out in leak.intact.outputs]
    assert min(lengths) < max(lengths) and any(leak.intact.ended)
    later = []
    for row, out in enumerate(leak.intact.outputs):
        alone = measure_leak(model, source[row][source[row] != 0][None], off)
        read = [1, *(token for token in out if token != 2)][: len(out)]
        assert alone.target.tolist() == [read] and leak.target[row].tolist() == read + [0] * (max(lengths) - len(read))
        assert (leak.lifted.outputs[row],) == alone.lifted.outputs and (leak.lifted.ended[row],) == alone.lifted.ended
        assert leak.lifted.losses[row] == pytest.approx(alone.lifted.loss, abs=1e-5)
        for kind in AttentionKind:
            n_queries, n_keys = alone.lifted.masks[kind].shape[1:]
            np.testing.assert_array_equal(
                leak.lifted.masks[kind][row, :n_queries, :n_keys], alone.lifted.masks[kind][0]
            )
            assert not leak.lifted.masks[kind][row, :, n_keys:].any() and on_padding(alone.lifted)[kind] == 0
        recorder = Recorder()
        ids = source[row][source[row] != 0][None], torch.tensor([read])
        with torch.no_grad():
            rows = precise(*ids, tap=chain(compile_interventions(off, precise), recorder))[0].log_softmax(dim=-1)
        slow = -sum(float(rows[step, token]) for step, token in enumerate(out)) / len(out)
        assert leak.lifted.losses[row] == pytest.approx(slow, abs=1e-4)
        for query in range(len(read) - 1):
            weights = [
                recorder.recording[f"decoder.{layer}.self.weights"][0, :, query, query + 1 :] for layer in (0, 1)
            ]
            later.append(float(torch.stack(weights).sum(dim=-1).mean()))
    assert leak.lifted.shares[ON_LATER] == pytest.approx(np.mean(later), abs=1e-6)
    assert (leak.lifted.shares[ON_LATER] > 0.01) == bool(off) and set(on_padding(leak.lifted).values()) == {0.0}


def test_an_output_that_never_ends_is_cut_off_by_its_own_length_and_marked(model, source, monkeypatch):
    def scripted(model, source, *, max_length, tap):
        rows = [[5, 6, 2, 0, 0], [5, 6, 7, 8, 2], [2, 0, 0, 0, 0]] if tap is None else [[5] * max_length] * 3
        return (SimpleNamespace(tokens=torch.tensor(column)) for column in zip(*rows, strict=True))

    monkeypatch.setattr("transformer.analysis.attention.mask_leakage.greedy", scripted)
    leak = measure_leak(model, source, [OFF[1]])
    assert leak.intact.outputs == ((5, 6, 2), (5, 6, 7, 8, 2), (2,)) and leak.intact.ended == (True,) * 3
    assert [len(out) for out in leak.lifted.outputs] == [10, 14, 6] and leak.lifted.ended == (False,) * 3


def test_the_mask_of_a_pass_is_padding_and_causal_together(model, source):
    leak = measure_leak(model, source, ())
    for row in range(3):
        real = leak.target[row] != 0
        np.testing.assert_array_equal(leak.intact.masks["decoder_self"][row], np.tril(np.tile(real, (len(real), 1))))
        np.testing.assert_array_equal(
            leak.intact.masks["encoder_self"][row], np.broadcast_to(leak.source[row] != 0, (7, 7))
        )


def test_without_the_padding_mask_padding_is_looked_at(model, source):
    assert on_padding(measure_leak(model, source, [DisableMask("padding")]).lifted)["encoder_self"] > 0.01
    assert on_padding(measure_leak(model, source, [DisableMask("cross")]).lifted)["cross"] > 0.01
    assert measure_leak(model, source, [DisableMask("causal")]).lifted.shares[ON_LATER] > 0.01


def test_teacher_forcing_under_the_mask_sees_nothing_of_what_it_predicts(model, source):
    forcing = is_forcing_honest(model, source[0].tolist())
    assert forcing.from_steps < 1e-5
    assert forcing.masked_change == 0
    assert forcing.unmasked_change > 1e-3


def test_a_row_without_keys_is_zero_and_its_output_the_bias(model, source):
    row = see_empty_row(model, source[0].tolist())
    assert np.isnan(row.plain).all()
    np.testing.assert_allclose(row.floored, 1 / 7, atol=1e-7)
    assert not row.here.any()
    assert row.from_bias == 0 and row.gradient == 0
