import pytest
import torch
from random_models import TINY, half_trained_model, ragged_batch, random_model, reversals
from torch.nn import functional as F

from transformer.decoding.greedy import Constraints, greedy, teacher_forced_log_probs, translate_ids
from transformer.interventions import AblateHeads, DisableMask, compile_interventions
from transformer.model.taps import Recorder, chain

DTYPES = pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-12)], ids=str)
NORMS = pytest.mark.parametrize("norm", ["post", "pre"])


def decode(model, source, **options):
    """All steps, the tokens [batch step] and the log-probabilities [batch step vocab]; -10,000 for never."""
    steps = list(greedy(model, source, **{"max_length": 12, **options}))
    log_probs = torch.stack([s.log_probs.clamp(min=-1e4) for s in steps], 1)
    return steps, torch.stack([s.tokens for s in steps], 1), log_probs


@DTYPES
@NORMS
def test_cached_decoding_equals_uncached(within, norm, dtype, tolerance):
    model = half_trained_model(dtype, norm)
    source, _ = reversals(16)
    _, tokens, log_probs = decode(model, source)
    _, uncached_tokens, uncached = decode(model, source, cache=False)
    assert torch.equal(tokens, uncached_tokens)
    assert len({tuple(row) for row in tokens.tolist()}) > 8
    within(log_probs, uncached, tolerance)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "none"])
def test_cached_decoding_equals_uncached_with_every_kind_of_position(within, positions):
    model = random_model(torch.float64, positions=positions)
    source, _ = ragged_batch()
    _, tokens, log_probs = decode(model, source)
    _, uncached_tokens, uncached = decode(model, source, cache=False)
    assert torch.equal(tokens, uncached_tokens)
    within(log_probs, uncached, 1e-12)


@DTYPES
def test_every_step_is_the_teacher_forced_pass_on_what_was_written(within, dtype, tolerance):
    model = half_trained_model(dtype)
    source, _ = reversals(16)
    _, tokens, log_probs = decode(model, source)
    real = tokens != 0
    within(log_probs[real], teacher_forced_log_probs(model, source, tokens)[real], tolerance)
    assert torch.equal(log_probs[real].argmax(-1), tokens[real])
    within(log_probs.exp().sum(-1), torch.ones(tokens.shape), 1e-5)


def test_recorded_rows_of_real_decoding_are_the_rows_of_the_teacher_forced_pass(within):
    model = half_trained_model()
    source, _ = reversals(6)
    steps, tokens, _ = decode(model, source, record=lambda site: site.tensor == "weights")
    whole = Recorder()
    bos = torch.ones(6, 1).long()
    with torch.no_grad():
        model(source, torch.cat((bos, tokens[:, :-1]), dim=1), tap=whole)
    for t, step in enumerate(steps):
        for site, weights in step.recording.items():
            if site.stack == "decoder":
                assert weights.size(2) == 1
                expected = whole.recording[site][:, :, t : t + 1, : weights.size(3)]
                within(weights, expected[step.rows], 5e-6)
    first, second = ({site.stack for site in step.recording} for step in steps[:2])
    assert (first, second) == ({"encoder", "decoder"}, {"decoder"})
    within(steps[0].recording["encoder.1.self.weights"], whole.recording["encoder.1.self.weights"], 0)


def test_recording_changes_nothing_beyond_rounding(within):
    model = half_trained_model()
    source, _ = reversals(8)
    steps, tokens, log_probs = decode(model, source)
    recorded, recorded_tokens, recorded_log_probs = decode(model, source, record=lambda site: True)
    assert torch.equal(tokens, recorded_tokens)
    within(recorded_log_probs, log_probs, 1e-5)
    assert all(step.recording is None for step in steps)
    assert {site for step in recorded for site in step.recording} == set(model.sites())


@DTYPES
def test_a_row_is_decoded_alike_alone_and_in_a_padded_batch(within, dtype, tolerance):
    model = half_trained_model(dtype)
    source, _ = reversals(8)
    outputs = translate_ids(model, source, max_length=12)
    _, _, log_probs = decode(model, source)
    for row in range(8):
        alone = source[row : row + 1, : int((source[row] != 0).sum())]
        assert translate_ids(model, alone, max_length=12) == [outputs[row]]
        _, _, expected = decode(model, alone)
        within(log_probs[row : row + 1, : expected.size(1)], expected, tolerance)
    wider = F.pad(source, (0, 20))
    assert translate_ids(model, wider, max_length=12) == outputs


def test_rows_end_at_eos_and_are_padded_after_it():
    steps, _, _ = decode(half_trained_model(), reversals(16)[0])
    ended = torch.zeros(16, dtype=torch.bool)
    for index, step in enumerate(steps):
        assert step.index == index
        assert (step.tokens[ended] == 0).all() and (step.tokens[~ended] != 0).all()
        ended |= step.tokens == 2
        assert torch.equal(step.finished, ended)
    assert ended.any() and (ended.all() or len(steps) == 12)


def test_rows_that_have_ended_leave_the_batch():
    steps, _, _ = decode(half_trained_model(), reversals(16)[0], record=lambda site: site.tensor == "weights")
    going = torch.arange(16)
    for step in steps:
        assert torch.equal(step.rows, going) and len(step.row_log_probs) == len(going)
        assert len(step.recording["decoder.0.cross.weights"]) == len(going)
        assert (step.log_probs.argmax(dim=1) == 0).sum() == 16 - len(going)
        going = (~step.finished).nonzero()[:, 0]
    assert len(steps[-1].rows) < 8


def test_decoding_stops_at_once_when_every_row_has_ended():
    model = random_model()
    steps, tokens, _ = decode(model, ragged_batch()[0], tap=force(2))
    assert len(steps) == 1 and (tokens == 2).all()
    assert translate_ids(half_trained_model(), reversals(3)[0], max_length=1) != []


def force(token):
    """A tap under which `token` gets the highest logit."""

    def tap(site, tensor):
        if site.tensor != "logits":
            return tensor
        tensor = tensor.clone()
        tensor[..., token] += 1e3
        return tensor

    return tap


def test_padding_is_never_written():
    steps, tokens, log_probs = decode(random_model(), ragged_batch()[0], tap=force(0))
    assert (tokens != 0).all() and len(steps) == 12
    assert (log_probs[..., 0] > -1e-6).all()  # what the model said is reported unchanged


def test_translations_hold_neither_eos_nor_padding():
    model, (source, _) = half_trained_model(), reversals(16)
    _, tokens, _ = decode(model, source)
    for ids, row in zip(translate_ids(model, source, max_length=12), tokens.tolist(), strict=True):
        assert ids == (row[: row.index(2)] if 2 in row else row)


@pytest.mark.parametrize("max_length", [0, TINY["max_length"] + 1])
def test_a_length_that_the_model_cannot_write_is_refused(max_length):
    with pytest.raises(ValueError) as refusal:
        next(greedy(random_model(), ragged_batch()[0], max_length=max_length))
    assert str(refusal.value) == f"max_length ({max_length}) must lie between 1 and the model's 64"


def test_as_many_tokens_as_the_model_s_length_can_be_written():
    steps, _, _ = decode(random_model(max_length=10), ragged_batch()[0], max_length=10, tap=force(5))
    assert len(steps) == 10


def test_decoding_neither_keeps_gradients_nor_switches_them_off_outside():
    model = random_model()
    for step in greedy(model, ragged_batch()[0], max_length=3, record=lambda site: True):
        assert torch.is_grad_enabled()
        assert not step.log_probs.requires_grad
    assert not any(parameter.grad is not None for parameter in model.parameters())


def test_a_forced_token_is_written_and_what_follows_is_decoded_from_it(within):
    model, (source, _) = half_trained_model(torch.float64), reversals(8)
    _, free, _ = decode(model, source)
    _, tokens, log_probs = decode(model, source, constraints=Constraints(forced={0: 9, 2: 4}))
    assert (tokens[:, 0] == 9).all() and (tokens[:, 2] == 4).all()
    assert not torch.equal(free[:, :2], tokens[:, :2])
    real = tokens != 0
    within(log_probs[real], teacher_forced_log_probs(model, source, tokens)[real], 1e-12)
    for step in (1, 3):
        assert torch.equal(log_probs[:, step].argmax(-1)[real[:, step]], tokens[:, step][real[:, step]])


def test_an_output_has_its_least_length_and_repeats_no_ngram():
    model, (source, _) = random_model(), ragged_batch()
    _, tokens, _ = decode(model, source, max_length=30, constraints=Constraints(min_length=20, no_repeat_ngram=3))
    for row in tokens.tolist():
        triples = list(zip(row, row[1:], row[2:], strict=False))[:18]
        assert len(set(triples)) == len(triples) and 2 not in row[:19]
    _, free, _ = decode(model, source, max_length=30)
    assert not torch.equal(free, tokens)


def test_an_output_may_end_where_every_other_token_is_forbidden():
    rules = Constraints(no_repeat_ngram=1)
    steps, tokens, _ = decode(
        random_model(vocab_size=8), reversals(2)[0] % 8, max_length=20, constraints=rules, tap=force(5)
    )
    assert len(steps) <= 7 and (tokens[:, -1] != 5).all() and steps[-1].finished.all()


@pytest.mark.parametrize(
    ("rules", "sentence"),
    [
        (dict(forced={0: 23}), "the forced token 23 is not in the vocabulary of 23"),
        (dict(forced={0: -1}), "the forced token -1 is not in the vocabulary of 23"),
        (dict(forced={0: 0}), "the forced token 0 fills sentences and cannot be written"),
        (dict(forced={12: 5}), "a token is forced at step 12, but there are only steps 0 to 11"),
        (dict(min_length=13), "min_length (13) must lie between 0 and max_length (12)"),
        (dict(no_repeat_ngram=-1), "no_repeat_ngram (-1) must not be negative"),
    ],
)
def test_constraints_that_cannot_be_met_are_refused(rules, sentence):
    with pytest.raises(ValueError) as refusal:
        decode(random_model(), ragged_batch()[0], constraints=Constraints(**rules))
    assert str(refusal.value) == sentence


def test_a_start_mark_that_a_model_wrote_can_be_forced_again():
    source = reversals(1)[0]
    model = random_model()
    model.projection = torch.nn.Linear(16, 23)
    with torch.no_grad():
        model.projection.bias[1] = 100.0  # of bos
    _, written, _ = decode(model, source, max_length=3)
    rules = Constraints(forced=dict(enumerate(written[0].tolist())))
    assert written.tolist() == [[1, 1, 1]]
    assert decode(model, source, max_length=3, constraints=rules)[1].tolist() == written.tolist()


def test_every_step_says_what_it_computed_and_what_it_reused():
    model, (source, _) = half_trained_model(), reversals(4)
    for cache in (True, False):
        for step in decode(model, source, cache=cache)[0]:
            assert (step.computed, step.reused) == ((1, step.index) if cache else (step.index + 1, 0))


@pytest.mark.parametrize("chained", [False, True])
def test_a_lifted_causal_mask_recomputes_the_whole_prefix_even_inside_a_chain(within, chained):
    model = half_trained_model(torch.float64)
    source, _ = reversals(8)
    tap = compile_interventions([DisableMask("causal")], model)
    asked = chain(tap, Recorder(lambda site: False)) if chained else tap
    steps, tokens, log_probs = decode(model, source, tap=asked, record=lambda site: site.tensor == "weights")
    _, expected_tokens, expected = decode(model, source, tap=tap, cache=False)
    assert torch.equal(tokens, expected_tokens)
    within(log_probs, expected, 0)
    assert steps[3].recording["decoder.0.self.weights"].shape[2:] == (4, 4)
    # A cache would have been wrong: the switch really lets earlier states see later tokens.
    _, _, plain = decode(model, source)
    assert (plain[:, :3] - log_probs[:, :3]).abs().max() > 1e-3


def test_heads_off_may_keep_the_cache(within):
    model = half_trained_model(torch.float64)
    source, _ = reversals(8)
    tap = compile_interventions(
        [AblateHeads("decoder", 0, "self", (1,)), AblateHeads("decoder", 1, "cross", (0, 2))], model
    )
    steps, tokens, log_probs = decode(model, source, tap=tap, record=lambda site: site.tensor == "weights")
    _, uncached_tokens, uncached = decode(model, source, tap=tap, cache=False)
    assert torch.equal(tokens, uncached_tokens)
    within(log_probs, uncached, 1e-12)
    assert steps[3].recording["decoder.0.self.weights"].shape[2:] == (1, 4)


@pytest.mark.parametrize("mask", ["padding", "cross"])
def test_lifted_padding_masks_may_keep_the_cache(within, mask):
    model = half_trained_model(torch.float64)
    source, _ = reversals(8)
    tap = compile_interventions([DisableMask(mask)], model)
    _, tokens, log_probs = decode(model, source, tap=tap)
    _, uncached_tokens, uncached = decode(model, source, tap=tap, cache=False)
    real = tokens != 0
    assert torch.equal(tokens, uncached_tokens)
    within(log_probs[real], uncached[real], 1e-12)
