"""Beam search against everything that could be written, against greedy decoding, and against teacher-forced passes."""

from itertools import pairwise, product

import pytest
import torch
from random_models import half_trained_model, random_model, reversals

from transformer.decoding.beam import ENDED, GOES_ON, PRUNED, beam_search, length_norm
from transformer.decoding.greedy import Constraints, greedy, teacher_forced_log_probs, translate_ids
from transformer.interventions import AblateHeads, DisableMask, compile_interventions
from transformer.model.taps import Recorder

LONGEST = 4
NORMS = pytest.mark.parametrize("norm", ["paper", "length"])
ALPHAS = pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])


def search(model, source, **options):
    """All steps, and the results: the last step's finished hypotheses of every sentence."""
    steps = list(beam_search(model, source, **{"size": 4, "max_length": 12, **options}))
    return steps, steps[-1].finished


def everything(model, source):
    """Every output of up to four tokens over seven (no padding), with its log-probability."""
    tokens = [token for token in range(8) if token != 0]
    shapes = [(*body, 2) for n in range(LONGEST) for body in product([t for t in tokens if t != 2], repeat=n)]
    shapes += list(product([t for t in tokens if t != 2], repeat=LONGEST))
    padded = torch.tensor([[*ids, *[0] * (LONGEST - len(ids))] for ids in shapes])
    log_probs = teacher_forced_log_probs(model, source.expand(len(shapes), -1), padded)
    each = log_probs.gather(2, padded[:, :, None])[:, :, 0].masked_fill(padded == 0, 0.0)
    return dict(zip(shapes, each.sum(1).tolist(), strict=True))


@pytest.fixture(scope="module")
def small():
    """A model of eight tokens, a sentence for it, and everything that it could write."""
    torch.manual_seed(3)
    model = random_model(torch.float64, vocab_size=8)
    source = torch.tensor([[4, 5, 6, 2]])
    return model, source, everything(model, source)


@NORMS
@ALPHAS
@pytest.mark.parametrize("early_stopping", [True, False])
def test_a_wide_beam_finds_the_best_of_everything_that_could_be_written(small, norm, alpha, early_stopping):
    model, source, outputs = small
    scores = {ids: log_prob / length_norm(len(ids), alpha, norm) for ids, log_prob in outputs.items()}
    ranked = sorted(scores, key=lambda ids: -scores[ids])
    _, (found,) = search(
        model, source, size=252, max_length=LONGEST, alpha=alpha, norm=norm, early_stopping=early_stopping
    )
    assert [hypothesis.ids for hypothesis in found[:20]] == ranked[:20]
    assert {h.ended for h in found} == {True, False}
    for hypothesis in found:
        assert hypothesis.log_prob == pytest.approx(outputs[hypothesis.ids], abs=1e-12)
        assert hypothesis.score == pytest.approx(scores[hypothesis.ids], abs=1e-12)


def test_the_length_norm_matters_to_what_is_best(small):
    model, source, _ = small
    best = {alpha: search(model, source, size=252, max_length=LONGEST, alpha=alpha)[1][0][0].ids for alpha in (0, 10)}
    assert best[0] != best[10]


def test_both_length_norms_are_what_their_names_say():
    assert length_norm(7, 0.6, "paper") == pytest.approx(2**0.6)
    assert length_norm(7, 0.6, "length") == pytest.approx(7**0.6)
    assert length_norm(7, 0, "paper") == length_norm(7, 0, "length") == 1
    assert length_norm(1, 3, "paper") == length_norm(1, 3, "length") == 1


@NORMS
@ALPHAS
def test_a_beam_of_one_that_stops_early_or_has_no_norm_is_greedy(norm, alpha):
    model, (source, _) = half_trained_model(), reversals(16)
    _, results = search(model, source, size=1, alpha=alpha, norm=norm, early_stopping=alpha > 0)
    written = [[token for token in result[0].ids if token != 2] for result in results]
    assert written == translate_ids(model, source, max_length=12)


def test_reported_scores_are_the_teacher_forced_ones():
    model, (source, _) = half_trained_model(torch.float64), reversals(12)
    _, results = search(model, source, alpha=1.0, norm="length")
    assert len({h.ids for result in results for h in result}) > 12
    for row, result in enumerate(results):
        assert [h.score for h in result] == sorted((h.score for h in result), reverse=True)
        for hypothesis in result:
            target = torch.tensor([hypothesis.ids])
            log_probs = teacher_forced_log_probs(model, source[row : row + 1], target)
            total = log_probs.gather(2, target[:, :, None]).sum().item()
            assert hypothesis.log_prob == pytest.approx(total, abs=1e-10)
            assert hypothesis.score == pytest.approx(total / len(hypothesis.ids), abs=1e-10)


@pytest.mark.parametrize("switches", [(), (AblateHeads("decoder", 0, "self", (1,)), DisableMask("causal"))], ids=str)
def test_cached_equals_uncached_and_recorded_equals_unrecorded(within, switches):
    model, (source, _) = half_trained_model(torch.float64), reversals(8)
    tap = compile_interventions(switches, model)
    steps, results = search(model, source, tap=tap)
    for options in ({"cache": False}, {"record": lambda site: True}):
        other_steps, other = search(model, source, tap=tap, **options)
        assert [[h.ids for h in result] for result in other] == [[h.ids for h in result] for result in results]
        for a, b in zip(steps, other_steps, strict=True):
            within(a.log_probs[a.alive], b.log_probs[b.alive], 1e-12)
    assert all(step.reused == (0 if DisableMask("causal") in switches else step.index) for step in steps)
    assert all(step.computed + step.reused == step.index + 1 for step in steps)


def test_each_hypothesis_knows_its_rows_in_every_recording(within):
    """Attention of the search, gathered by rows, is that of a teacher-forced pass over what the hypothesis wrote."""
    model, (source, _) = half_trained_model(torch.float64), reversals(6)
    steps, results = search(model, source, record=lambda site: site.tensor == "weights")
    for row, result in enumerate(results):
        for hypothesis in result:
            target = torch.tensor([hypothesis.ids])
            recorder = Recorder()
            teacher_forced_log_probs(model, source[row : row + 1], target, tap=recorder)
            whole = recorder.recording
            for t, place in enumerate(hypothesis.rows):
                own = steps[t].recording["decoder.1.self.weights"][place, :, 0]
                within(own, whole["decoder.1.self.weights"][0, :, t, : t + 1], 1e-12)
                cross = steps[t].recording["decoder.0.cross.weights"][place, :, 0, : int((source[row] != 0).sum())]
                within(cross, whole["decoder.0.cross.weights"][0, :, t, : cross.size(1)], 1e-12)


def test_a_sentence_is_searched_alike_alone_and_in_a_padded_batch():
    model, (source, _) = half_trained_model(torch.float64), reversals(8)
    steps, results = search(model, source)
    for row in range(8):
        alone = source[row : row + 1, : int((source[row] != 0).sum())]
        _, (expected,) = search(model, alone)
        assert [h.ids for h in results[row]] == [h.ids for h in expected]
    assert len(steps[-1].sentences) < 8, "sentences whose search is over leave the batch"


def test_every_candidate_has_a_fate_and_those_that_go_on_are_the_next_hypotheses():
    model, (source, _) = half_trained_model(), reversals(5)
    steps, _ = search(model, source, size=3)
    for step, after in pairwise(steps):
        for i, sentence in enumerate(step.sentences.tolist()):
            fates = step.fates[i].tolist()
            assert set(fates) <= {GOES_ON, ENDED, PRUNED} and fates.count(GOES_ON) <= 3
            if sentence in after.sentences.tolist():
                j = after.sentences.tolist().index(sentence)
                added = zip(step.parents[i].tolist(), step.tokens[i].tolist(), fates, strict=True)
                kept = [[*step.prefixes[i, p].tolist(), token] for p, token, fate in added if fate == GOES_ON]
                assert after.prefixes[j][after.alive[j]].tolist() == kept


def test_without_early_stopping_the_best_is_never_worse():
    model, (source, _) = half_trained_model(), reversals(16)
    _, early = search(model, source, size=2, alpha=1.0, norm="length", early_stopping=True)
    _, late = search(model, source, size=2, alpha=1.0, norm="length")
    assert all(b[0].score >= a[0].score for a, b in zip(early, late, strict=True))


def test_constraints_hold_for_every_hypothesis():
    model, (source, _) = half_trained_model(), reversals(8)
    rules = Constraints(forced={0: 7, 1: 5}, min_length=6, no_repeat_ngram=2)
    _, results = search(model, source, constraints=rules)
    for hypothesis in (h for result in results for h in result):
        ids = hypothesis.ids
        assert ids[0] == 7 and ids[1] == 5 and len(ids) >= 6
        pairs = list(pairwise(ids))
        assert len(set(pairs)) == len(pairs)
    steps, results = search(model, source, constraints=Constraints(forced={1: 2}))
    assert len(steps) == 2 and all(h.ids[1] == 2 for result in results for h in result)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (dict(size=0), "beam (0) must be at least 1"),
        (dict(size=10_000), "beam (10000) must be at most 256"),
        (dict(alpha=float("nan")), "alpha (nan) must be a number"),
        (dict(max_length=65), "max_length (65) must lie between 1 and the model's 64"),
    ],
)
def test_a_search_that_cannot_be_is_refused(options, sentence):
    with pytest.raises(ValueError) as refusal:
        search(random_model(), torch.tensor([[4, 2]]), **options)
    assert str(refusal.value) == sentence


def test_greedy_and_beam_agree_on_the_first_distribution(within):
    model, (source, _) = half_trained_model(torch.float64), reversals(4)
    first = next(greedy(model, source, max_length=5)).log_probs
    within(next(beam_search(model, source, size=3, max_length=5)).log_probs[:, 0], first, 1e-12)
