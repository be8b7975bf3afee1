"""Heads at their mean over the validation set: read from the checkpoint or measured, and put in before W_O."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from page_models import REVERSE, save_untrained
from random_models import random_ids, random_model

from transformer.analysis.heads.addresses import heads_of
from transformer.analysis.heads.importance import output_effects
from transformer.analysis.heads.statistics import STATISTICS_FILE, head_means
from transformer.analysis.heads.validation_importance import validation_importance
from transformer.checkpoints.store import save_tensors
from transformer.config import CorpusConfig
from transformer.data.batches import make_batch
from transformer.data.corpora import corpus_tokenizer, load_corpus
from transformer.decoding.greedy import teacher_forced_log_probs
from transformer.interventions import AblateHeads, MeanAblateHeads, compile_interventions, parse_intervention
from transformer.lab import load
from transformer.model.taps import Recorder, Site, chain
from transformer.text.pairs import Pair

TEXT = "a b c d"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    runs = tmp_path_factory.mktemp("runs")
    save_untrained(runs)
    return runs / REVERSE


@pytest.fixture
def lab(folder):
    return load(str(folder))


def means_of(model, site):
    return torch.randn(model.config.n_heads, model.config.d_head, generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize(
    ("stack", "layer", "sublayer"), [("encoder", 1, "self"), ("decoder", 0, "self"), ("decoder", 2, "cross")]
)
def test_heads_at_their_mean_equal_contexts_put_in_by_hand(stack, layer, sublayer):
    model, site = random_model(), Site(stack, layer, sublayer, "heads")
    means, source, target = means_of(model, site), random_ids(2, 6), random_ids(2, 5)
    spec = MeanAblateHeads(stack, layer, sublayer, (1, 3)).filled({f"{stack}.{layer}.{sublayer}": means})

    def reference(at, tensor):
        if at != site:
            return tensor
        rows = [[[means[h] if h in (1, 3) else tensor[b, h, q] for q in range(tensor.size(2))] for h in range(4)]
                for b in range(2)]  # fmt: skip
        return torch.stack([torch.stack([torch.stack(queries) for queries in heads]) for heads in rows])

    with torch.no_grad():
        expected = model(source, target, tap=reference)
        assert torch.equal(model(source, target, tap=compile_interventions([spec], model)), expected)
        assert (model(source, target) - expected).abs().max() > 1e-3


def test_a_head_that_is_off_stays_at_zero_though_it_is_at_its_mean_too():
    model, site = random_model(), Site("encoder", 0, "self", "heads")
    mean = MeanAblateHeads("encoder", 0, "self", (0, 1)).filled({"encoder.0.self": means_of(model, site)})
    for specs in ([mean, AblateHeads("encoder", 0, "self", (1,))], [AblateHeads("encoder", 0, "self", (1,)), mean]):
        recorder = Recorder()
        model(random_ids(1, 4), random_ids(1, 3), tap=chain(compile_interventions(specs, model), recorder))
        assert not recorder.recording[site][:, 1].any() and recorder.recording[site][:, 0].any()


def test_means_are_measured_where_the_checkpoint_carries_none(lab):
    found = head_means(lab.checkpoint)
    assert found.measured and found.pairs > 100
    seen = lab.inspect(TEXT, [MeanAblateHeads("decoder", 0, "cross", (0, 2))])
    assert torch.equal(seen.interventions[0].means, found.means["decoder.0.cross"])
    comparison = lab.compare(TEXT, [MeanAblateHeads("decoder", 0, "cross", (0, 1, 2, 3))])
    assert comparison.kl_divergence.max() > 0


def test_means_are_read_where_the_checkpoint_carries_them(folder, lab):
    carried = {f"{sublayer}.mean": torch.full((4, 8), 0.5) for sublayer in ("encoder.0.self", "decoder.0.self")}
    path = folder / STATISTICS_FILE
    try:
        save_tensors(path, carried, {"pairs": "77"})
        with pytest.raises(ValueError, match=r"it lacks decoder\.0\.cross in the shape"):
            head_means(lab.checkpoint)
        save_tensors(path, {**carried, "decoder.0.cross.mean": torch.ones(4, 8)}, {"pairs": "77"})
        found = head_means(lab.checkpoint)
        assert (found.pairs, found.measured) == (77, False)
        assert torch.equal(found.means["decoder.0.cross"], torch.ones(4, 8))
    finally:
        path.unlink()


def test_without_statistics_and_sentences_the_way_out_is_said(lab, monkeypatch):
    from transformer.analysis.heads import statistics
    from transformer.data.corpus_snapshot import AbsentCorpus

    def absent(config, folder):
        raise AbsentCorpus("no sentences")

    monkeypatch.setattr(statistics, "load_own", absent)
    with pytest.raises(ValueError, match=r"comes without them .* publish RUN FOLDER\), or set heads to zero"):
        lab.inspect(TEXT, [MeanAblateHeads("decoder", 0, "cross", (0,))])


def test_a_mean_that_was_not_looked_up_is_refused():
    model = random_model()
    with pytest.raises(ValueError, match="resolve it with the lab first"):
        model(
            random_ids(1, 4),
            random_ids(1, 3),
            tap=compile_interventions([MeanAblateHeads("encoder", 0, "self", (0,))], model),
        )


@given(
    st.sampled_from(["encoder", "decoder"]),
    st.integers(0, 99),
    st.sampled_from(["self", "cross"]),
    st.sets(st.integers(0, 63), min_size=1),
)
def test_heads_at_their_mean_are_read_back_from_what_they_print_and_hash(stack, layer, sublayer, heads):
    spec = MeanAblateHeads(stack, layer, sublayer, tuple(sorted(heads)))
    again = parse_intervention(str(spec))
    assert again == spec and hash(again) == hash(spec)
    assert hash(spec.filled({f"{stack}.{layer}.{sublayer}": torch.zeros(64, 2)})) == hash(spec)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (MeanAblateHeads("decoder", 7, "cross", (0,)), "this model has no attention block decoder.7.cross"),
        (MeanAblateHeads("encoder", 1, "self", (4,)), "head 4 does not exist: this model has heads 0 to 3"),
        (MeanAblateHeads("encoder", 1, "self", ()), "names no head and would do nothing"),
    ],
)
def test_a_mean_that_the_model_lacks_is_refused(spec, said):
    with pytest.raises(ValueError, match=said):
        compile_interventions([spec], random_model())


def every_mean(model, seed=4):
    generator = torch.Generator().manual_seed(seed)
    sublayers = {f"{at.stack}.{at.layer}.{at.sublayer}" for at in heads_of(model)}
    return {
        name: torch.randn(model.config.n_heads, model.config.d_head, generator=generator) for name in sorted(sublayers)
    }


def test_the_effect_of_a_head_at_its_mean_is_that_of_the_switch():
    model = random_model()
    source, means = random_ids(1, 5)[0].tolist(), every_mean(model)
    base = MeanAblateHeads("encoder", 0, "self", (1,)).filled(means)
    target = random_ids(1, 4)[0].tolist()
    effects = output_effects(model, source, target, [base], means=means)
    assert len(effects) == len(heads_of(model)) - 1 and len({effect.log_prob for effect in effects}) > 5
    ids = torch.tensor(target)[:, None]
    scores = {}
    for switches in [(), *((effect.switch,) for effect in effects)]:
        specs = [MeanAblateHeads(s.stack, s.layer, s.sublayer, s.heads).filled(means) for s in switches]
        tap = compile_interventions([base, *specs], model)
        rows = teacher_forced_log_probs(model, torch.tensor([source]), torch.tensor([target]), tap=tap)[0]
        scores[switches] = float(rows.gather(1, ids).sum())
    for effect in effects:
        assert effect.log_prob == pytest.approx(scores[effect.switch,] - scores[()], abs=1e-4)


def test_loss_on_pairs_with_a_head_at_its_mean_is_that_of_the_switch():
    corpus = load_corpus("reverse")
    tokenizer = corpus_tokenizer(corpus, CorpusConfig(name="reverse"))
    model = random_model(vocab_size=tokenizer.vocab_size, n_encoder_layers=1, n_decoder_layers=1)
    means, pairs = every_mean(model), [Pair("a b c", "c b a"), Pair("d", "d"), Pair("e f g h", "h g")]
    found = validation_importance(model, pairs, tokenizer, batch_tokens=16, means=means)
    assert found.heads[0].loss.value != validation_importance(model, pairs, tokenizer).heads[0].loss.value
    for worth in found.heads[::3]:
        spec = MeanAblateHeads(worth.at.stack, worth.at.layer, worth.at.sublayer, (worth.at.head,)).filled(means)
        tap, loss = compile_interventions([spec], model), 0.0
        for pair in pairs:
            batch = make_batch([(tokenizer.encode(pair.source), tokenizer.encode(pair.target))])
            rows = teacher_forced_log_probs(model, batch.source, batch.target_out, tap=tap)
            loss -= float(rows.gather(2, batch.target_out[..., None]).double().sum())
        assert found.loss + worth.loss.value == pytest.approx(loss / found.n_tokens, abs=1e-5)
