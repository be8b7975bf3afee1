"""Checks of head analyses: they hold of honest numbers, and of one that is wrong they do not."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from random_models import half_trained_model, random_model

from transformer.analysis.heads import ablation_checks
from transformer.analysis.heads import validation_importance as validation_importance_module
from transformer.analysis.heads.ablation_checks import (
    check_minimal_set,
    check_output_effects,
    check_validation_importance,
)
from transformer.analysis.heads.addresses import heads_of
from transformer.analysis.heads.importance import output_effects
from transformer.analysis.heads.leave_one_out import faithfulness, leave_one_out, received
from transformer.analysis.heads.leave_one_out_checks import check_faithfulness, check_leave_one_out, check_received
from transformer.analysis.heads.minimal_set import Goal, SearchPlan, minimal_set
from transformer.analysis.heads.pair_sample import PairSample, validation_sample
from transformer.analysis.heads.published import published_survey
from transformer.analysis.heads.similarity import group_similar
from transformer.analysis.heads.survey import survey
from transformer.analysis.heads.survey_checks import check_similarity, check_survey, value_of
from transformer.analysis.heads.validation_importance import RESAMPLES, intervals, validation_importance
from transformer.checkpoints.settings import find_checkpoint
from transformer.checkpoints.store import load_checkpoint
from transformer.config import CorpusConfig
from transformer.data.corpora import corpus_tokenizer, load_corpus
from transformer.data.tasks import TASKS, AlignmentUnit, held_out_pairs
from transformer.decoding.greedy import greedy
from transformer.interventions import AblateHeads, DisableMask, compile_interventions
from transformer.text.pairs import Pair

COLUMNS = ("entropy", "evenness", "largest", "error_rate", "accuracy", "error_rate_read")


def held(checks) -> list[bool]:
    return [check.holds for check in checks]


def surveyed(corpus: str, pairs, unit: AlignmentUnit = "word", **parts):
    tokenizer = corpus_tokenizer(load_corpus(corpus), CorpusConfig(name=corpus))
    torch.manual_seed(0)
    model = random_model(vocab_size=tokenizer.vocab_size, **parts)
    return model, PairSample(tuple(pairs), len(pairs), unit=unit), tokenizer, survey(model, pairs, tokenizer, unit=unit)


def shown(found, columns):
    return [value_of(found, *column) for column in columns]


@pytest.fixture(scope="module")
def english():
    pairs = [*load_corpus("pronouns-en-fr").validation[:9], Pair("The dog .", "Le chien .")]
    return surveyed("pronouns-en-fr", pairs)


def every_column(found):
    for profile in found.profiles:
        for name in profile.weight:
            yield from ((profile.at, name), (profile.at, f"{name} peak"), (profile.at, f"{name} even"))
        yield from ((profile.at, name) for name in COLUMNS)


def test_every_column_of_a_survey_is_counted_again(english):
    columns = list(every_column(english[-1]))
    assert held(check_survey(*english, columns, shown(english[-1], columns))) == [True, True]


@pytest.mark.parametrize("parts", [{"causal_mask": False}, {"n_encoder_layers": 1, "n_decoder_layers": 1}])
def test_columns_of_other_models_and_units_are_counted_again(parts):
    pairs = held_out_pairs(TASKS["dates"], 0, "validation")[:2]
    made = surveyed("dates", pairs, "character", **parts)
    columns = list(every_column(made[-1]))
    assert held(check_survey(*made, columns, shown(made[-1], columns))) == [True, True]


def test_equal_weights_share_what_the_largest_one_counts_for():
    """Rounding alone would choose among them, another way in each batch."""
    pairs = held_out_pairs(TASKS["reverse"], 0, "validation")[:60]
    tokenizer = corpus_tokenizer(load_corpus("reverse"), CorpusConfig(name="reverse"))
    torch.manual_seed(0)
    model = random_model(vocab_size=tokenizer.vocab_size)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if ".query." in name:
                parameter *= 1e-6
    found = survey(model, pairs, tokenizer)
    columns = list(every_column(found))
    made = model, PairSample(tuple(pairs), len(pairs)), tokenizer, found
    assert held(check_survey(*made, columns, shown(found, columns))) == [True, True]
    for profile in found.profiles:
        assert profile.peak == pytest.approx(found.even[profile.at.kind], abs=1e-6)
    words = [len(pair.source.split()) for pair in pairs]
    assert found.of_kind("cross")[0].written.accuracy == pytest.approx(len(words) / sum(words), abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["reverse-diverged", "reverse-without-positions", "reverse-without-warmup"])
def test_every_column_of_a_shipped_model_that_looks_at_all_alike_is_counted_again(name):
    checkpoint = load_checkpoint(find_checkpoint(name))
    sample = validation_sample(checkpoint)
    found = published_survey(checkpoint, sample)
    assert found is not None
    columns = list(every_column(found))
    made = checkpoint.model, sample, checkpoint.tokenizer, found
    assert held(check_survey(*made, columns, shown(found, columns))) == [True, True]


def test_one_wrong_share_is_noticed(english):
    columns = [(profile.at, "previous") for profile in english[-1].of_kind("encoder_self")]
    first, *others = shown(english[-1], columns)
    assert held(check_survey(*english, columns, [first + 0.01, *others])) == [True, False]


def test_a_survey_that_counts_wrongly_is_noticed(english, monkeypatch):
    from transformer.analysis.heads import survey

    honest = survey.patterns_of

    def shifted(*arguments):
        found = honest(*arguments)
        return {**found, "previous": found["previous"].roll(1, dims=1)} if "previous" in found else found

    monkeypatch.setattr(survey, "patterns_of", shifted)
    columns = [(profile.at, "previous") for profile in english[-1].of_kind("encoder_self")]
    assert held(check_survey(*english, columns, shown(english[-1], columns))) == [False, False]


@pytest.mark.parametrize("kind", ["encoder_self", "decoder_self", "cross"])
def test_distances_and_groups_are_checked_and_a_wrong_one_is_noticed(english, kind):
    distances = english[-1].distances[kind]
    closest = float(np.median(distances))
    groups = group_similar(distances, closest)
    assert len(groups) > 1 and max(map(len, groups)) > 1

    def checked(groups, by=0.0):
        order = [head for group in groups for head in group]
        drawn = distances[np.ix_(order, order)] + np.eye(len(order)) * by
        return held(check_similarity(*english, kind, groups, closest, drawn))

    assert checked(groups) == [True] * 4
    assert checked([(head,) for head in range(len(distances))], 0.01) == [True, True, False, False]
    assert checked([tuple(range(len(distances)))]) == [True, True, True, False]


@pytest.fixture(scope="module")
def reverser():
    """A model that half knows how to reverse, with a sentence and what becomes of it."""
    model, source = half_trained_model(), [4, 9, 7, 5, 2]
    return model, source, written(model, source)


def written(model, source, switches=()):
    tap = compile_interventions(switches, model)
    return [int(step.tokens[0]) for step in greedy(model, torch.tensor([source]), max_length=16, tap=tap)]


def means_for(model):
    generator = torch.Generator().manual_seed(7)
    sublayers = sorted({f"{at.stack}.{at.layer}.{at.sublayer}" for at in heads_of(model)})
    return {
        sublayer: torch.randn(model.config.n_heads, model.config.d_head, generator=generator) for sublayer in sublayers
    }


@pytest.mark.parametrize("at_mean", [False, True])
@pytest.mark.parametrize("switches", [(), (AblateHeads("decoder", 0, "cross", (1,)), DisableMask("causal"))])
def test_effects_are_those_of_a_rewritten_output_matrix(reverser, at_mean, switches, monkeypatch):
    monkeypatch.setattr(ablation_checks, "MOST_HEADS", 5)
    model, source, _ = reverser
    target, means = written(model, source, switches), means_for(model) if at_mean else None
    effects = output_effects(model, source, target, switches, means=means)
    assert held(check_output_effects(model, source, target, switches, effects, means)) == [True] * 5
    off = (replace(effects[0], log_prob=effects[0].log_prob + 0.01), *effects[1:])
    assert held(check_output_effects(model, source, target, switches, off, means)) == [False, True, True, True, True]
    apart = max(range(4), key=lambda i: abs(effects[i].before - effects[i].after))
    first = effects[apart]
    for changes, expected in (
        ({"kl_divergence": first.kl_divergence + 0.01}, [True, False, True, True, True]),
        ({"before": first.after, "after": first.before}, [True, True, False, True, True]),
    ):
        off = (*effects[:apart], replace(first, **changes), *effects[apart + 1 :])
        assert held(check_output_effects(model, source, target, switches, off, means)) == expected
    other = next(token for token in range(4, 12) if token not in (effects[0].instead, target[effects[0].step]))
    off = (replace(effects[0], instead=other), *effects[1:])
    assert held(check_output_effects(model, source, target, switches, off, means))[:4] == [True, True, True, False]
    swapped = None if at_mean else means_for(model)
    assert not all(held(check_output_effects(model, source, target, switches, effects, swapped)))


@pytest.mark.slow_variants
@pytest.mark.parametrize("at_mean", [False, True])
def test_loss_match_and_interval_over_pairs_are_measured_again(at_mean):
    model, sample, tokenizer, _ = surveyed("reverse", [Pair("a b c", "c b a"), Pair("d", "d"), Pair("e f", "f zebra")])
    means = means_for(model) if at_mean else None
    found = validation_importance(model, sample.pairs, tokenizer, means=means)

    def checked(found):
        return held(check_validation_importance(model, sample.pairs, tokenizer, found, means))

    assert checked(found) == [True] * 8
    if at_mean:
        return
    first = found.heads[1]
    for field, place in (("value", 1), ("low", 2), ("high", 2)):
        wrong = replace(first, loss=replace(first.loss, **{field: getattr(first.loss, field) + 0.01}))
        assert checked(replace(found, heads=(found.heads[0], wrong, *found.heads[2:])))[place] is False
    assert checked(replace(found, exact_match=found.exact_match + 0.4))[4] is False


@pytest.mark.slow_variants
@pytest.mark.parametrize(("name", "value"), [("LEVEL", 0.8), ("LEVEL", 0.99), ("resamples", None)])
def test_an_interval_of_another_level_or_of_other_samples_is_noticed(monkeypatch, name, value):
    """Its check shares neither the level nor the samples with the interval."""

    def once_each(n):
        yield np.ones((RESAMPLES, n), dtype=np.int64) + np.eye(n, dtype=np.int64)[np.arange(RESAMPLES) % n]

    monkeypatch.setattr(validation_importance_module, name, once_each if value is None else value)
    words = ("abc", "d", "ef", "gab", "hc", "b", "fed", "a", "cab", "gg", "ha", "bed")
    model, sample, tokenizer, _ = surveyed("reverse", [Pair(" ".join(w), " ".join(w[::-1])) for w in words])
    found = validation_importance(model, sample.pairs, tokenizer)
    checks = held(check_validation_importance(model, sample.pairs, tokenizer, found, measures=("loss",)))
    assert checks == [True, True, False, False]


def test_losses_of_many_nats_round_in_proportion():
    words = ("abc", "d", "ef", "gab", "hc", "b", "fed", "a")
    model, sample, tokenizer, _ = surveyed(
        "reverse", [Pair(" ".join(w), " ".join(w[::-1])) for w in words], norm="none"
    )
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "query" in name or "key" in name:
                parameter.mul_(4)  # an attention to one key alone, which rounding moves elsewhere
    found = validation_importance(model, sample.pairs, tokenizer)
    assert held(check_validation_importance(model, sample.pairs, tokenizer, found, measures=("loss",))) == [True] * 4


@pytest.mark.parametrize("seed", range(4))
def test_intervals_over_a_few_pairs_hold_however_skewed(seed):
    """With one pair in eight that matters, the samples are far from normal, and counts have eight steps."""
    generator = np.random.default_rng(seed)
    skewed, counts, lengths = generator.exponential(size=(6, 8)) ** 4, generator.integers(-1, 2, (6, 8)), np.ones(8)
    for moved in (skewed, counts.astype(float)):
        shown = intervals(moved, lengths)
        assert held(ablation_checks._changes("loss", shown, moved, lengths, "")) == [True] * 3
        shifted = [replace(change, high=change.value) for change in shown]
        assert held(ablation_checks._changes("loss", shifted, moved, lengths, "")) == [True, False, False]


@pytest.mark.parametrize("goal", [Goal(), Goal(1)])
def test_the_smallest_set_is_decoded_again_and_its_parts_are(reverser, goal):
    model, source, target = reverser
    plan = SearchPlan(goal, heads_of(model))

    def checked(found):
        checks = check_minimal_set(model, source, target, plan, (), found)
        return {check.claim: check.holds for check in checks}

    found = minimal_set(model, source, target, goal, plan.heads)
    assert all(checked(found).values())
    off = replace(found.sets[-1], margin=found.sets[-1].margin - 0.01)
    assert not checked(replace(found, sets=(*found.sets[:-1], off)))["The margin by which each set reaches it"]
    first = checked(replace(found, sets=(replace(found.sets[0], written=tuple(target)),)))
    assert not first["The output without each set"] and not first["Each of these outputs is what was asked for"]
    more = replace(found.sets[0], heads=(*found.sets[0].heads, heads_of(model)[-1]))
    assert not checked(replace(found, sets=(more,)))["No part of the set reaches the goal"]


def test_a_set_that_comes_nearest_is_measured_again(reverser):
    model, source, target = reverser
    for goal in [Goal(step, token) for step in range(3) for token in range(4, 12) if token != target[step]]:
        plan = SearchPlan(goal, heads_of(model)[:4], exact=1, most=1)
        found = minimal_set(model, source, target, goal, plan.heads, exact=1, most=1)
        if found.sets:
            continue
        assert all(held(check_minimal_set(model, source, target, plan, (), found)))
        off = replace(found, nearest=replace(found.nearest, margin=found.nearest.margin + 0.1))
        failing = [check for check in check_minimal_set(model, source, target, plan, (), off) if not check.holds]
        assert [check.claim for check in failing] == ["The margin by which the nearest set misses it"]
        return
    raise AssertionError("every goal was reached")


@pytest.mark.parametrize("how", ["hidden", "cross"])
@pytest.mark.parametrize("switches", [(), (DisableMask("causal"), DisableMask("padding"))])
def test_erased_tokens_are_erased_again(reverser, how, switches):
    model, source, _ = reverser
    target = written(model, source, switches)
    effect = leave_one_out(model, source, target, how, switches)
    assert held(check_leave_one_out(model, source, target, how, switches, effect)) == [True]
    wrong = effect.copy()
    wrong[1, 2] += 0.01
    assert held(check_leave_one_out(model, source, target, how, switches, wrong)) == [False]


def test_rank_correlations_are_counted_one_by_one():
    generator = np.random.default_rng(0)
    weights, effect = generator.integers(0, 4, (5, 6)) / 4, generator.normal(size=(5, 6))
    found = faithfulness(weights, effect)
    assert held(check_faithfulness(weights, effect, found)) == [True] * 3
    assert held(check_faithfulness(weights, effect, replace(found, per_token=found.per_token + 0.01))) == [
        False,
        True,
        True,
    ]
    assert held(check_faithfulness(weights, effect, replace(found, pooled=found.pooled + 0.01))) == [True, True, False]
    shown = [received(weights, effect)]
    assert (
        check_received([weights], effect, shown).holds
        and not check_received([weights], effect, [shown[0] + 0.01]).holds
    )
    short = np.zeros((2, 2))
    assert held(check_faithfulness(short, short, faithfulness(short, short))) == [True] * 3  # nothing can be ranked
