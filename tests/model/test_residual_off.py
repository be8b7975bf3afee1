"""A residual connection switched off in one pass: what goes on is the block's output alone."""

import pytest
import torch
from random_models import ragged_batch, random_model

from transformer.interventions import AblateResidual, DisableMask, compile_interventions, parse_intervention
from transformer.model.taps import Recorder


class TestResidualOff:
    @pytest.mark.parametrize("norm", ["post", "pre"])
    @pytest.mark.parametrize("sublayer", [("encoder", 1, "self"), ("decoder", 0, "cross"), ("decoder", 2, "ffn")])
    def test_what_goes_on_is_the_sublayer_s_output_alone(self, within, norm, sublayer):
        model = random_model(torch.float64, norm=norm)
        stack, layer, name = sublayer
        recorder = Recorder()
        torch.manual_seed(1)
        source, target = ragged_batch()
        seen = []
        around = getattr(getattr(model, stack).layers[layer], f"add_norm_{name}")
        around.register_forward_hook(lambda module, given, out: seen.append(out))

        def watched(site, tensor):
            return recorder(site, switch(site, tensor))

        switch = compile_interventions([AblateResidual(stack, layer, name)], model)
        with torch.no_grad():
            logits = model(source, target, tap=watched)
            output = recorder.recording[f"{stack}.{layer}.{name}.output"]
            within(seen[0], around.norm(output) if norm == "post" else output, 1e-12)
            assert (logits - model(source, target)).abs().max() > 1e-3

    def test_all_residuals_off_is_the_model_trained_without(self, within):
        model = random_model(torch.float64)
        bare = random_model(torch.float64, residual=False)
        bare.load_state_dict(model.state_dict())
        everywhere = [AblateResidual(s.stack, s.layer, s.sublayer) for s in model.sites() if s.tensor == "residual"]
        source, target = ragged_batch()
        with torch.no_grad():
            off = model(source, target, tap=compile_interventions(everywhere, model))
            within(off, bare(source, target), 1e-12)
        assert len(everywhere) == 2 * 2 + 3 * 3

    def test_it_prints_parses_and_hashes(self):
        spec = AblateResidual("decoder", 0, "ffn")
        assert str(spec) == "residual:off:decoder.0.ffn"
        assert parse_intervention(str(spec)) == spec and hash(parse_intervention(str(spec))) == hash(spec)
        for text in ("residual:off:decoder.ffn", "residual:on:decoder.0.ffn", "residual:off:decoder.final"):
            with pytest.raises(ValueError, match="is not a"):
                parse_intervention(text)

    @pytest.mark.parametrize(
        ("changes", "spec", "said"),
        [
            ({}, AblateResidual("decoder", 9, "ffn"), "this model has no block decoder.9.ffn with a residual"),
            ({}, AblateResidual("encoder", 0, "cross"), "this model has no block encoder.0.cross with a residual"),
            (
                dict(residual=False),
                AblateResidual("decoder", 0, "ffn"),
                "this model was trained without residual connections, so there is none to switch off",
            ),
            (
                dict(causal_mask=False),
                DisableMask("causal"),
                "this model was trained without a causal mask, so there is none to lift",
            ),
        ],
    )
    def test_what_the_model_lacks_is_refused(self, changes, spec, said):
        with pytest.raises(ValueError) as refusal:
            compile_interventions([spec], random_model(**changes))
        assert str(refusal.value) == said
