"""Another family of models decodes, is trained, is changed and is inspected by what its sites say, as a Transformer."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from random_models import AveragingConfig, AveragingModel, random_model, reversals

from pages.shared.url.view_state import View
from transformer.checkpoints.store import Checkpoint
from transformer.config import DecodeConfig
from transformer.data.batches import make_batch
from transformer.decoding.greedy import greedy, log_probs_on_prefixes, translate_ids
from transformer.decoding.methods import decode
from transformer.interventions import AblateHeads, AblateResidual, DisableMask, EditPositions, MaskEntry
from transformer.lab import Lab, load
from transformer.model.kinds import AttentionKind
from transformer.model.seq2seq import Seq2Seq, attention_layers
from transformer.model.taps import Recorder
from transformer.text.pairs import Pair
from transformer.training.evaluation import evaluate, summed_loss

SENTENCE = "a c b"


@pytest.fixture
def lab() -> Lab[AveragingModel]:
    """The averaging model behind the tokenizer of a shipped one."""
    shipped: Checkpoint = load("reverse").checkpoint
    model = AveragingModel(AveragingConfig(vocab_size=shipped.tokenizer.vocab_size)).eval()
    return Lab(replace(shipped, name="averaging", model=model.requires_grad_(False)))


def test_both_families_satisfy_the_protocol(lab):
    assert isinstance(lab.model, Seq2Seq) and isinstance(random_model(), Seq2Seq)


def test_a_model_has_the_kinds_of_attention_that_its_sites_name(lab):
    assert attention_layers(lab.model) == {AttentionKind.CROSS: 1}
    assert attention_layers(random_model()) == {"encoder_self": 2, "decoder_self": 3, "cross": 3}


def test_every_site_comes_by_in_the_order_in_which_it_is_named(lab):
    recorder = Recorder()
    lab.model(*reversals(2), tap=recorder)
    assert tuple(recorder.recording) == lab.model.sites()


def test_it_decodes_greedily_as_its_teacher_forced_pass_says(lab, within):
    source, _ = reversals(3)
    steps = list(greedy(lab.model, source, max_length=8))
    written = torch.stack([step.tokens for step in steps], dim=1)
    for row in range(3):
        ids = written[row : row + 1, : len(translate_ids(lab.model, source[row : row + 1], max_length=8)[0])]
        forced = log_probs_on_prefixes(lab.model, source[row : row + 1], ids)
        found = torch.stack([step.log_probs[row] for step in steps[: ids.size(1)]])
        within(found, forced[0], 1e-5)
        assert torch.equal(forced[..., 1:].argmax(dim=-1) + 1, ids)  # padding is never written


@pytest.mark.parametrize("method", ["greedy", "beam", "sample"])
def test_every_method_of_decoding_takes_it(lab, method):
    outputs = decode(lab.model, reversals(2)[0], None, DecodeConfig(method=method, max_length=6))
    assert len(outputs) == 2 and all(len(found[0].ids) <= 6 for found in outputs)


def test_lab_inspects_the_attention_that_it_has(lab):
    seen = lab.inspect(SENTENCE)
    assert tuple(seen.attentions) == (AttentionKind.CROSS,)
    assert seen.cross.weights.shape == (1, 2, len(seen.target_ids), len(seen.source_ids))
    assert np.allclose(seen.cross.weights.sum(axis=-1), 1, atol=1e-6)
    assert seen.decoder_inputs == ("<s>", *seen.target_tokens[:-1])
    assert not seen.cached and all(reused == 0 for reused in seen.reused[1:])
    with pytest.raises(ValueError, match="this model has no decoder self-attention"):
        seen.attention("decoder_self")


def test_lab_compares_it_with_a_head_off(lab):
    comparison = lab.compare(SENTENCE, [AblateHeads("decoder", 0, "cross", (1,))])
    assert comparison.kl_divergence.max() > 0
    shift = lab.attention_shift(comparison)
    assert tuple(shift.before) == (AttentionKind.CROSS,)


def test_a_forbidden_entry_gets_no_weight(lab):
    seen = lab.inspect(SENTENCE, [MaskEntry("decoder", 0, "cross", 0, 1)])
    assert (seen.cross.weights[0, :, 0, 1] == 0).all() and not seen.cross.mask[0, 0, 1]


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        (AblateHeads("decoder", 0, "self", (0,)), "this model has no attention block decoder.0.self"),
        (AblateHeads("decoder", 0, "cross", (2,)), "this model has heads 0 to 1"),
        (AblateResidual("decoder", 0, "cross"), "without residual connections"),
        (DisableMask("causal"), "no attention with a causal mask"),
        (EditPositions("encoder", "remove"), "this model adds no positions to its embeddings$"),
    ],
    ids=str,
)
def test_what_it_lacks_cannot_be_changed(lab, spec, why):
    with pytest.raises(ValueError, match=why):
        lab.inspect(SENTENCE, [spec])


def test_what_takes_a_transformer_apart_says_so(lab):
    seen = lab.inspect(SENTENCE)
    with pytest.raises(ValueError, match="averaging cannot be walked through"):
        lab.trace(seen)
    with pytest.raises(ValueError, match="averaging is no Transformer"):
        lab.explain_entry(seen, "cross", 0, 0, 0, 0)


def test_it_learns_and_is_evaluated(lab):
    pairs = [Pair(SENTENCE, SENTENCE), Pair("b a", "b a")]
    ids = [(lab.tokenizer.encode(pair.source), lab.tokenizer.encode_target(pair.target)) for pair in pairs]
    batch = make_batch(ids)
    model, cpu = lab.model.requires_grad_(True), torch.device("cpu")
    before = evaluate(model, pairs, lab.tokenizer).loss
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(20):
        optimiser.zero_grad()
        summed_loss(model, batch, cpu).backward()
        optimiser.step()
    assert evaluate(model, pairs, lab.tokenizer).loss < before / 2


def test_a_link_to_attention_that_it_lacks_shows_what_it_has(lab):
    view, problems = View(model="averaging", kind=AttentionKind.ENCODER_SELF, layer=0).fit(lab)
    assert view.kind is AttentionKind.CROSS and view.layer == 0
    assert [problem.sentence for problem in problems] == ["averaging has no encoder self-attention."]
