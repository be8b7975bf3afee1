"""Tests of the head survey, recounted cell by cell, and of head similarity, by the definition of each measure."""

import itertools
import math

import numpy as np
import pytest
import torch
from random_models import random_model

from transformer.analysis.heads.addresses import HeadAt, heads_of
from transformer.analysis.heads.patterns import punctuation_of
from transformer.analysis.heads.similarity import group_similar, summed_distances
from transformer.analysis.heads.survey import survey
from transformer.config import CorpusConfig
from transformer.data.batches import make_batch
from transformer.data.corpora import corpus_tokenizer, load_corpus
from transformer.data.tasks import TASKS, held_out_pairs
from transformer.model.taps import Recorder
from transformer.text.pairs import Pair, words
from transformer.training.metrics import merge_to_words

TEXTS = 9


@pytest.fixture(scope="module")
def english():
    """A random model, its tokenizer, a few pairs with alignment and referent, and their survey in several batches."""
    torch.manual_seed(0)
    corpus = load_corpus("pronouns-en-fr")
    tokenizer = corpus_tokenizer(corpus, CorpusConfig(name="pronouns-en-fr"))
    model = random_model(vocab_size=tokenizer.vocab_size)
    pairs = [*corpus.validation[:TEXTS], Pair("The dog .", "Le chien .")]
    return model, tokenizer, pairs, survey(model, pairs, tokenizer, batch_tokens=100)


def weights_alone(model, tokenizer, pair, at):
    """The weights of a head in a pass over one pair, with the ids that went in."""
    batch = make_batch([(tokenizer.encode(pair.source), tokenizer.encode(pair.target))])
    recorder = Recorder()
    model(batch.source, batch.target_in, tap=recorder)
    weights = recorder.recording[f"{at.stack}.{at.layer}.{at.sublayer}.weights"][0, at.head].double().numpy()
    return weights, batch.source[0].tolist(), batch.target_in[0].tolist(), batch.target_out[0].tolist()


def strongest_links(weights):
    """The link from each target unit to the source unit that it looks at most."""
    return {(int(row.argmax()), target) for target, row in enumerate(weights) if row.any()}


def numbered(pair, link):
    """The link of one of many pairs, all as if in one long sentence."""
    return 1000 * pair + link[0], 1000 * pair + link[1]


def wanted_cells(at, pattern, pair, source, read, written, tokenizer):
    """The (query, key) cells of a pattern, spelt out in loops."""
    cross, encoder = at.sublayer == "cross", at.stack == "encoder"
    queries, keys = (source if encoder else read), (read if at.kind == "decoder_self" else source)
    n_source, n_target = len(source) - 1, len(read) - 1
    links = set(pair.alignment)
    pronoun, noun = pair.referent or (None, None)
    for q, k in itertools.product(range(len(queries)), range(len(keys))):
        seen = 1 if encoder or cross else q + 1
        if at.kind == "decoder_self" and (k > q or seen == 1):
            continue
        place = math.floor((q + 0.5) * n_source / n_target) if cross else q
        asks = {t for s, t in links if s == pronoun}
        match pattern:
            case "previous":
                found = k == q - 1
            case "next":
                found = k == q + 1
            case "diagonal":
                found = k == place and (not cross or q < n_target)
            case "anti_diagonal":
                found = k == n_source - 1 - place and q < (n_target if cross else n_source)
            case "same_token":
                found = (written[q] == keys[k] and q < n_target) if cross else queries[q] == keys[k] and q != k
            case "first":
                found = k == 0
            case "end":
                found = k == n_source
            case "punctuation":
                found = tokenizer.piece(keys[k]) in ".,"
            case "alignment":
                found = (k, q) in links
            case "referent" if encoder:
                found = (q, k) == (pronoun, noun)
            case "referent" if cross:
                found = q in asks and k == noun
            case "referent":
                found = q in asks and (noun, k - 1) in links
        if found:
            yield q, k


@pytest.mark.parametrize("name", ["encoder.1.self.2", "decoder.0.self.1", "decoder.2.cross.3"])
def test_mean_weights_and_peaks_are_those_of_one_pair_at_a_time(english, name):
    model, tokenizer, pairs, found = english
    profile = next(profile for profile in found.profiles if str(profile.at) == name)
    assert len(profile.weight) >= 6
    for pattern, mean in profile.weight.items():
        weight, peak, even, rows = 0.0, 0, 0.0, 0
        for pair in pairs:
            weights, source, read, written = weights_alone(model, tokenizer, pair, profile.at)
            cells = list(wanted_cells(profile.at, pattern, pair, source, read, written, tokenizer))
            for query in {q for q, _ in cells}:
                keys = [k for q, k in cells if q == query]
                weight += weights[query, keys].sum()
                peak += weights[query].argmax() in keys
                even += len(keys) / (query + 1 if profile.at.kind == "decoder_self" else len(source))
                rows += 1
        assert rows == found.rows[profile.at.kind][pattern], pattern
        assert mean == pytest.approx(weight / rows, abs=1e-6), pattern
        assert profile.peak[pattern] == pytest.approx(peak / rows), pattern
        assert found.even[profile.at.kind][pattern] == pytest.approx(even / rows), pattern


def test_entropy_evenness_and_the_largest_weight_leave_out_rows_without_a_choice(english):
    model, tokenizer, pairs, found = english
    profile = next(profile for profile in found.profiles if str(profile.at) == "decoder.1.self.0")
    entropy, evenness, largest = [], [], []
    for pair in pairs:
        weights, *_ = weights_alone(model, tokenizer, pair, profile.at)
        for query in range(1, len(weights)):
            row = weights[query, : query + 1]
            entropy.append(-(row * np.log(row)).sum())
            evenness.append(entropy[-1] / math.log(query + 1))
            largest.append(row.max())
    assert profile.entropy == pytest.approx(np.mean(entropy), abs=1e-6)
    assert profile.evenness == pytest.approx(np.mean(evenness), abs=1e-6)
    assert profile.largest == pytest.approx(np.mean(largest), abs=1e-6)
    assert found.n_rows["decoder_self"] == len(entropy)


def alignment_error_rate(predicted, gold):
    """1 - 2 |predicted and gold| / (|predicted| + |gold|), as Och and Ney (2003) with every gold link sure."""
    found, right = set(predicted), set(gold)
    return 1 - 2 * len(found & right) / (len(found) + len(right))


def test_alignment_errors_are_those_of_the_metric_over_all_pairs(english):
    model, tokenizer, pairs, found = english
    assert pairs[-1].alignment == ()
    at = HeadAt("decoder", 2, "cross", 1)
    for shift, score in ((0, found.by_head[at].written), (1, found.by_head[at].read)):
        predicted, gold, aligned = [], [], 0
        for number, pair in enumerate(pairs[:-1]):
            weights, *_ = weights_alone(model, tokenizer, pair, at)
            n = len(words(pair.target))
            between = merge_to_words(weights[shift : n + shift], range(n), [*range(len(words(pair.source))), -1])
            predicted += [numbered(number, link) for link in strongest_links(between)]
            gold += [numbered(number, link) for link in pair.alignment]
            aligned += len({target for _, target in pair.alignment})
        assert score.error_rate == pytest.approx(alignment_error_rate(predicted, gold))
        assert score.accuracy == pytest.approx(len(set(predicted) & set(gold)) / aligned)
    assert found.n_links == sum(len(pair.alignment) for pair in pairs)
    assert found.n_referents == sum(pair.referent is not None for pair in pairs) > 0


def looking_at_the_aligned_word(pair, shift):
    """A recorder's call under which one head looks only at aligned words, `shift` steps after they are written."""

    def overwritten(recorder, site, tensor):
        if str(site) == "decoder.0.cross.weights":
            tensor = tensor.clone()
            tensor[:, 0] = 0
            for source, target in pair.alignment:
                tensor[0, 0, target + shift, source] = 1
        recorder.recording.keep(site, tensor)
        return tensor

    return overwritten


@pytest.mark.parametrize("shift", [0, 1])
def test_a_word_is_aligned_by_the_row_that_writes_it_or_by_the_row_that_reads_it_one_step_later(english, shift):
    model, tokenizer, pairs, _ = english
    for pair in [pair for pair in pairs if len(pair.alignment) > 3]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Recorder, "__call__", looking_at_the_aligned_word(pair, shift))
            found = survey(model, [pair], tokenizer).by_head[HeadAt("decoder", 0, "cross", 0)]
        perfect, other = (found.written, found.read) if shift == 0 else (found.read, found.written)
        assert perfect.accuracy == 1 and other.accuracy < 1 and perfect.error_rate < other.error_rate


def test_it_says_how_much_was_measured(english):
    model, tokenizer, pairs, found = english
    assert found.n_pairs == len(pairs)
    assert found.n_source == sum(len(tokenizer.encode(pair.source)) + 1 for pair in pairs)
    assert found.n_target == sum(len(tokenizer.encode(pair.target)) + 1 for pair in pairs)
    assert tuple(profile.at for profile in found.profiles if profile.at.kind == "cross") == tuple(
        at for at in heads_of(model) if at.kind == "cross"
    )


def test_subwords_and_characters_are_measured_against_words_and_characters():
    """A head that looks only at the right character has no wrong link; spaces belong to no link."""
    corpus = load_corpus("dates")
    tokenizer = corpus_tokenizer(corpus, CorpusConfig(name="dates"))
    model = random_model(vocab_size=tokenizer.vocab_size)
    pairs = held_out_pairs(TASKS["dates"], 0, "validation")[:5]
    found = survey(model, pairs, tokenizer, unit="character")
    assert found.n_links == sum(len(pair.alignment) for pair in pairs)
    at = HeadAt("decoder", 0, "cross", 0)
    predicted, gold = [], []
    for number, pair in enumerate(pairs):
        weights, *_ = weights_alone(model, tokenizer, pair, at)
        links = strongest_links(weights[: len(pair.target), : len(pair.source)])
        predicted += [numbered(number, link) for link in links]
        gold += [numbered(number, link) for link in pair.alignment]
    score = found.by_head[at].written
    assert score is not None and score.error_rate == pytest.approx(alignment_error_rate(predicted, gold))


def test_a_head_is_named_after_what_it_looks_at(english):
    """A first head whose weights are overwritten: all on the token before."""
    model, tokenizer, pairs, _ = english

    def overwritten(recorder, site, tensor):
        if str(site) == "encoder.0.self.weights":
            tensor = tensor.clone()
            tensor[:, 0] = torch.diag(torch.ones(tensor.size(-1) - 1), -1)
            tensor[:, 0, 0, 0] = 1
        recorder.recording.keep(site, tensor)
        return tensor

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Recorder, "__call__", overwritten)
        found = survey(model, pairs, tokenizer)
    profile = found.by_head[HeadAt("encoder", 0, "self", 0)]
    assert profile.weight["previous"] == 1 and profile.peak["previous"] == 1 and profile.weight["next"] == 0
    assert found.main_patterns(profile).patterns == ("previous",) and found.main_patterns(profile).clear
    assert found.main_patterns(found.by_head[HeadAt("encoder", 0, "self", 1)]).patterns != ("previous",)


def test_punctuation_is_what_unicode_says(english):
    _, tokenizer, _, _ = english
    entries = tokenizer.vocabulary()
    found = {entries[i] for i in punctuation_of(tokenizer).nonzero()[:, 0].tolist()}
    assert {".", ","} <= found and not found & {"animal", "l'", "</s>", "<s>"}


def test_progress_ends_at_all_and_may_stop_the_work(english):
    model, tokenizer, pairs, _ = english
    seen: list[float] = []
    survey(model, pairs, tokenizer, batch_tokens=100, tell=seen.append)
    assert seen == sorted(seen) and seen[-1] == 1 and len(seen) > 1

    def stop(share):
        raise InterruptedError

    with pytest.raises(InterruptedError):
        survey(model, pairs, tokenizer, tell=stop)
    with pytest.raises(ValueError, match="no pairs"):
        survey(model, [], tokenizer)


def divergence(p, q):
    """Jensen-Shannon in bits, by Kullback-Leibler divergences from the middle."""
    middle = (p + q) / 2
    return sum(0.5 * sum(x * math.log2(x / m) for x, m in zip(r, middle, strict=True) if x > 0) for r in (p, q))


def test_distances_are_jensen_shannons_by_its_definition():
    torch.manual_seed(1)
    weights = torch.rand(3, 6, 5).softmax(dim=-1)
    weights[0, :4] = torch.eye(4, 5)
    weights[1, :4] = torch.eye(4, 5).flip(1)
    found = summed_distances(weights)
    for a, b in itertools.product(range(3), range(3)):
        rows = zip(weights[a].double().numpy(), weights[b].double().numpy(), strict=True)
        slow = sum(math.sqrt(max(0.0, divergence(p, q))) for p, q in rows)
        assert found[a, b].item() == pytest.approx(slow, abs=1e-6)
    apart = summed_distances(weights[:2, :4])
    assert apart[0, 1].item() == pytest.approx(3)  # no key in common in three rows, the same key in one


def test_groups_are_those_of_average_linkage_computed_anew_at_each_step():
    distances = np.random.default_rng(3).random((9, 9))
    distances = (distances + distances.T) / 2
    np.fill_diagonal(distances, 0)

    def slow(closest):
        groups: list[tuple[int, ...]] = [(i,) for i in range(9)]
        while len(groups) > 1:
            mean = {(a, b): distances[np.ix_(a, b)].mean() for a, b in itertools.combinations(groups, 2)}
            a, b = min(mean, key=lambda pair: mean[pair])
            if mean[a, b] > closest:
                break
            groups = [g for g in groups if g not in (a, b)] + [tuple(sorted(a + b))]
        return set(groups)

    for closest in (0.0, 0.1, 0.3, 0.45, 0.5, 1.0):
        assert set(group_similar(distances, closest)) == slow(closest)
    assert group_similar(distances, 1.0) == (tuple(range(9)),)


def test_the_distances_of_a_survey_are_means_over_rows(english):
    model, tokenizer, pairs, found = english
    places = [profile.at for profile in found.of_kind("decoder_self")]
    a, b = places[1], places[6]
    total, rows = 0.0, 0
    for pair in pairs:
        (first, *_), (second, *_) = (weights_alone(model, tokenizer, pair, at) for at in (a, b))
        for query in range(1, len(first)):
            total += math.sqrt(max(0.0, divergence(first[query], second[query])))
            rows += 1
    assert found.distances["decoder_self"][1, 6] == pytest.approx(total / rows, abs=1e-5)
