"""Heads left out many at a time, against one honest pass for each; the smallest set, against brute force."""

from itertools import combinations

import numpy as np
import pandas
import pytest
import torch
from random_models import half_trained_model, random_ids, random_model

from transformer.analysis.heads import validation_importance as validation_importance_module
from transformer.analysis.heads.ablations import forced_under
from transformer.analysis.heads.addresses import heads_of
from transformer.analysis.heads.importance import output_effects
from transformer.analysis.heads.leave_one_out import faithfulness, leave_one_out, mean_ranks, received, spearman
from transformer.analysis.heads.minimal_set import Goal, minimal_set, n_ablations, reaches
from transformer.analysis.heads.validation_importance import intervals, resamples, validation_importance
from transformer.config import CorpusConfig
from transformer.data.batches import make_batch
from transformer.data.corpora import corpus_tokenizer, load_corpus
from transformer.decoding.greedy import greedy, teacher_forced_log_probs, translate_ids
from transformer.interventions import AblateHeads, DisableMask, MaskEntry, compile_interventions
from transformer.model.transformer import Transformer
from transformer.text.pairs import Pair


def written(model: Transformer, source, switches=(), longest=16) -> list[int]:
    tap = compile_interventions(switches, model)
    return [int(step.tokens[0]) for step in greedy(model, torch.tensor([source]), max_length=longest, tap=tap)]


@pytest.fixture(scope="module")
def reverser():
    """A model that half knows how to reverse, with a sentence."""
    model = half_trained_model()
    return model, [4, 9, 7, 5, 2]


def forced(model, source, target, switches):
    tap = compile_interventions(switches, model)
    return teacher_forced_log_probs(model, torch.tensor([source]), torch.tensor([target]), tap=tap)[0]


@pytest.mark.parametrize(
    "base", [(), (AblateHeads("encoder", 0, "self", (1,)), MaskEntry("decoder", 0, "cross", 1, 2))]
)
def test_a_row_without_some_heads_is_a_pass_without_them(reverser, base, within):
    model, source = reverser
    if base:
        base = (base[0], MaskEntry("encoder", 0, "self", 1, 2))
    target = written(model, source, base)
    heads = heads_of(model)
    sets = [(), heads[:1], (heads[2], heads[9]), (heads[2], heads[3], heads[-1]), heads]
    rows = forced_under(model, source, target, sets, tap=compile_interventions(base, model))
    for off, row in zip(sets, rows, strict=True):
        within(row, forced(model, source, target, [*base, *(at.switch for at in off)]), 2e-5)


def test_without_a_causal_mask_each_row_sees_no_later_token(reverser):
    model, source = reverser
    lifted = [DisableMask("causal")]
    target = written(model, source, lifted)
    tap = compile_interventions(lifted, model)
    found = forced_under(model, source, target, [(), (heads_of(model)[-1],)], tap=tap)
    assert found[0].argmax(dim=-1).tolist() == target
    longer = forced_under(model, source, [*target, 4, 5], [()], tap=tap)
    torch.testing.assert_close(longer[0, : len(target)], found[0], atol=1e-5, rtol=0)


def test_the_change_of_log_probability_is_that_of_two_passes(reverser):
    model, source = reverser
    target = written(model, source)
    base = forced(model, source, target, ())
    ids = torch.tensor(target)[:, None]
    effects = output_effects(model, source, target)
    assert len({effect.log_prob for effect in effects}) > 5
    for effect in effects:
        moved = (forced(model, source, target, [effect.switch]) - base).gather(1, ids).sum()
        assert effect.log_prob == pytest.approx(float(moved), abs=1e-4)


def test_effects_under_switches_start_from_them_and_leave_out_heads_that_are_off(reverser):
    model, source = reverser
    off = AblateHeads("decoder", 1, "cross", (0, 2))
    target = written(model, source, [off])
    effects = output_effects(model, source, target, [off])
    assert len(effects) == len(heads_of(model)) - 2
    assert not {(e.switch.stack, e.switch.layer, e.switch.sublayer, *e.switch.heads) for e in effects} & {
        ("decoder", 1, "cross", 0),
        ("decoder", 1, "cross", 2),
    }
    for effect in effects[:4]:
        without = written(model, source, [off, effect.switch])
        assert (without != target) == (effect.instead is not None)


def every_output(model, source, heads, most):
    """Returns the greedy output, token by token, with each set of up to `most` heads switched off."""
    sets = [off for size in range(1, most + 1) for off in combinations(heads, size)]
    return {off: written(model, source, [at.switch for at in off], 24) for off in sets}


@pytest.mark.parametrize("base", [(), (AblateHeads("decoder", 0, "self", (0,)),)])
def test_any_change_is_found_by_brute_force_too(reverser, base):
    model, source = reverser
    target = written(model, source, base)
    heads = [at for at in heads_of(model) if at.sublayer == "cross"]
    found = minimal_set(model, source, target, Goal(), heads, switches=base)

    sets = {
        off
        for off in combinations(heads, found.size)
        if written(model, source, [*base, *(at.switch for at in off)], 24) != target
    }
    smaller = [
        off
        for size in range(1, found.size)
        for off in combinations(heads, size)
        if written(model, source, [*base, *(at.switch for at in off)], 24) != target
    ]
    assert found.exact and not smaller and found.n_sets == len(sets) > 0
    assert {trial.heads for trial in found.sets} <= sets


def test_a_token_turned_into_another_is_found_by_brute_force_too(reverser):
    model, source = reverser
    target = written(model, source)
    heads = heads_of(model)[16:]
    outputs = every_output(model, source, heads, 2)
    sizes = set()
    for step in range(4):
        for token in {*range(4, 12), 2} - {target[step]}:
            goal = Goal(step, token)
            sets = {off for off, ids in outputs.items() if reaches(ids, target, goal)}
            size = min(map(len, sets), default=None)
            found = minimal_set(model, source, target, goal, heads, exact=2, most=2)
            sizes.add(size)
            if size is None:
                assert found.sets == () and found.n_sets == 0 and found.size == 2 and found.exact
                assert found.nearest.margin > 0
            else:
                sets = {off for off in sets if len(off) == size}
                assert found.size == size and found.n_sets == len(sets)
                assert {trial.heads for trial in found.sets} <= sets
                assert all(trial.margin <= 0 and reaches(trial.written, target, goal) for trial in found.sets)
    assert sizes == {1, 2, None}, "all cases are to be met"


def test_past_the_exact_sizes_heads_are_added_to_the_nearest_set(reverser):
    model, source = reverser
    target = written(model, source)
    heads = heads_of(model)
    goal = Goal(2, next(t for t in range(4, 12) if t != target[2]))
    found = minimal_set(model, source, target, goal, heads, exact=1, most=4, width=1)
    n = len(heads)
    assert found.tried[0] == n and list(found.tried[1:]) == [n - 1, n - 2, n - 3][: len(found.tried) - 1]
    assert found.exact == (len(found.tried) == 1)
    for trial in found.sets:
        assert reaches(written(model, source, [at.switch for at in trial.heads], 24), target, goal)


def test_the_number_of_trials_is_known_before():
    assert n_ablations(24, exact=3, most=3) == 24 + 276 + 2024
    assert n_ablations(24, exact=3, most=5, width=1) == 24 + 276 + 2024 + 21 + 20
    assert n_ablations(4, exact=1, most=8, width=1) == 4 + 3 + 2 + 1
    assert n_ablations(4, exact=1, most=8, width=100) == 4 + 6 + 4 + 1


def test_a_beam_wide_enough_for_all_sets_is_exact(reverser):
    model, source = reverser
    target = written(model, source)
    heads = heads_of(model)[16:]
    for token in (4, 6, 11):
        goal = Goal(1, token)
        every = minimal_set(model, source, target, goal, heads, exact=3, most=3)
        grown = minimal_set(model, source, target, goal, heads, exact=1, most=3, width=1000)
        assert (grown.size, grown.n_sets, grown.tried) == (every.size, every.n_sets, every.tried)
        assert {trial.heads for trial in grown.sets} == {trial.heads for trial in every.sets}


@pytest.mark.parametrize(
    "goal, said",
    [(Goal(99, 4), "token 99 does not exist"), (Goal(0, 99), "outside the vocabulary of 12"), (Goal(0, 0), "padding")],
)
def test_a_goal_that_the_output_has_no_place_for_is_refused(reverser, goal, said):
    model, source = reverser
    with pytest.raises(ValueError, match=said):
        minimal_set(model, source, written(model, source), goal, heads_of(model))
    with pytest.raises(ValueError, match="no head"):
        minimal_set(model, source, written(model, source), Goal(), [])


@pytest.fixture(scope="module")
def symbols():
    corpus = load_corpus("reverse")
    tokenizer = corpus_tokenizer(corpus, CorpusConfig(name="reverse"))
    torch.manual_seed(0)
    model = random_model(vocab_size=tokenizer.vocab_size, n_encoder_layers=1, n_decoder_layers=1)
    texts = ("a b c", "d", "e f g h", "b a")
    pairs = []
    for number, text in enumerate(texts):  # what the model itself writes, so that some match and some do not
        ids = translate_ids(model, torch.tensor([[*tokenizer.encode(text), 2]]), max_length=9)[0]
        pairs.append(Pair(text, tokenizer.decode(ids) if number % 2 and len(ids) < 9 else text))
    return model, tokenizer, [*pairs, Pair("a b", "a zebra")]


def test_loss_and_exact_match_without_a_head_are_those_of_one_pair_at_a_time(symbols):
    model, tokenizer, pairs = symbols
    found = validation_importance(model, pairs, tokenizer, batch_tokens=16)
    for at, worth in [(None, None), *((worth.at, worth) for worth in found.heads[::3])]:
        tap = compile_interventions([] if at is None else [at.switch], model)
        loss, tokens, matches = 0.0, 0, 0
        for pair in pairs:
            batch = make_batch([(tokenizer.encode(pair.source), tokenizer.encode(pair.target))])
            log_probs = teacher_forced_log_probs(model, batch.source, batch.target_out, tap=tap)
            loss -= float(log_probs.gather(2, batch.target_out[..., None]).double().sum())
            tokens += batch.n_tokens
            steps = greedy(model, batch.source, max_length=7, tap=tap)
            ids = [int(step.tokens[0]) for step in steps]
            matches += ids[-1] == 2 and tokenizer.decode(ids[:-1]) == pair.target
        if worth is None:
            assert found.loss == pytest.approx(loss / tokens, abs=1e-5)
            assert found.exact_match == pytest.approx(matches / len(pairs))
        else:
            assert found.loss + worth.loss.value == pytest.approx(loss / tokens, abs=1e-5)
            assert found.exact_match + worth.exact_match.value == pytest.approx(matches / len(pairs))
    assert found.n_pairs == len(pairs) and found.n_tokens == tokens


def test_intervals_are_those_of_resampling_pair_by_pair():
    """Against the bootstrap spelt out: the same counts, drawn item by item."""
    moved = np.random.default_rng(1).normal(size=(2, 7))
    sizes = np.arange(1.0, 8.0)
    (drawn,) = resamples(7)
    assert drawn.shape == (2000, 7) and (drawn.sum(axis=1) == 7).all()
    for row, change in zip(moved, intervals(moved, sizes), strict=True):
        samples = []
        for counts in drawn:
            items = np.repeat(np.arange(7), counts)
            samples.append(row[items].sum() / sizes[items].sum())
        low, high = np.percentile(samples, [2.5, 97.5])
        assert (change.value, change.low, change.high) == pytest.approx((row.sum() / 28, low, high))
        assert change.low < change.value < change.high


def test_samples_of_many_items_are_drawn_some_at_a_time_and_are_the_same(monkeypatch):
    (whole,) = resamples(7)
    monkeypatch.setattr(validation_importance_module, "_DRAWN_AT_ONCE", 7 * 300)
    parts = list(resamples(7))
    assert [len(part) for part in parts] == [300] * 6 + [200] and np.array_equal(np.concatenate(parts), whole)


def test_a_model_without_a_causal_mask_has_no_honest_loss(symbols):
    _, tokenizer, pairs = symbols
    model = random_model(vocab_size=tokenizer.vocab_size, causal_mask=False)
    with pytest.raises(ValueError, match="sees the words that it has to predict"):
        validation_importance(model, pairs, tokenizer)


def test_a_token_that_is_hidden_is_a_token_that_is_padding(reverser):
    model, source = reverser
    target = written(model, source)
    effect = leave_one_out(model, source, target, "hidden")
    assert effect.shape == (len(target), len(source))
    ids, out = torch.tensor([source]), torch.tensor([target])
    whole = teacher_forced_log_probs(model, ids, out)[0]
    for key in range(len(source)):
        real = torch.ones_like(ids, dtype=torch.bool)
        real[0, key] = False
        lost = (whole - teacher_forced_log_probs(model, ids, out, real)[0]).gather(1, out.T)[:, 0]
        np.testing.assert_allclose(effect[:, key], lost.numpy(), atol=1e-5)


def test_a_token_hidden_from_cross_attention_alone_is_a_column_of_forbidden_cells(reverser):
    model, source = reverser
    target, off = written(model, source), AblateHeads("decoder", 0, "cross", (1,))
    effect = leave_one_out(model, source, target, "cross", [off])
    ids, whole = torch.tensor(target)[:, None], forced(model, source, target, [off])
    for key in range(len(source)):
        cells = [MaskEntry("decoder", layer, "cross", q, key) for layer in (0, 1) for q in range(len(target))]
        lost = (whole - forced(model, source, target, [off, *cells])).gather(1, ids)[:, 0]
        np.testing.assert_allclose(effect[:, key], lost.numpy(), atol=1e-5)
    assert np.abs(effect - leave_one_out(model, source, target, "hidden", [off])).max() > 1e-3


def test_rank_correlations_are_pandas_with_ties():
    draw = np.random.default_rng(5)
    for _ in range(20):
        a, b = draw.integers(0, 5, 9).astype(float), draw.normal(size=9).round(1)
        expected = pandas.DataFrame({"a": a, "b": b}).corr(method="spearman").loc["a", "b"]
        assert spearman(a, b) == pytest.approx(expected, nan_ok=True)
    assert mean_ranks(np.array([3.0, 1.0, 3.0, 2.0])).tolist() == [3.5, 1, 3.5, 2]
    assert np.isnan(spearman(np.ones(4), np.arange(4.0))) and np.isnan(spearman(np.arange(2.0), np.arange(2.0)))
    assert spearman(np.arange(5.0), -np.arange(5.0)) == pytest.approx(-1)


def test_a_heads_agreement_is_the_mean_over_output_tokens_that_can_be_ranked():
    weights = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6], [1 / 3, 1 / 3, 1 / 3]])
    effect = np.array([[3.0, 2.0, 1.0], [1.0, 3.0, 2.0], [0.0, 1.0, 2.0]])
    found = faithfulness(weights, effect)
    assert found.n_tokens == 2 and found.per_token == pytest.approx((1 + 0.5) / 2)
    assert found.pooled == pytest.approx(spearman(weights.ravel(), effect.ravel()))
    assert received(weights, effect) == pytest.approx(spearman(weights.mean(axis=0), np.array([4.0, 6.0, 5.0])))


def test_random_sources_leave_rows_without_effect_out_of_no_count():
    model = random_model()
    source, target = random_ids(1, 5)[0].tolist(), random_ids(1, 4)[0].tolist()
    effect = leave_one_out(model, source, target, "hidden")
    assert np.isfinite(effect).all() and np.abs(effect).max() > 0
