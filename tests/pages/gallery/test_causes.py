"""The causes that the gallery names: each measured again string by string, and seen in no model that has the part."""

from collections.abc import Callable
from functools import partial
from math import log

import numpy as np
import pytest
import torch
from fakes.plain_bench import PlainBench

from pages.gallery import causes, failures
from pages.gallery.failures import BY_ADAM, FAILURES, MANY, WHOLE
from pages.shared.bench.bench import Pairs
from transformer.analysis.reach.input_gradients import untrained
from transformer.decoding.greedy import log_probs_on_prefixes, teacher_forced_log_probs
from transformer.model.taps import Recorder
from transformer.model.transformer import Transformer
from transformer.text.tokenizer import EOS

BENCH = PlainBench()
MODELS = (WHOLE, BY_ADAM, *(failure.model for failure in FAILURES))


@pytest.fixture(scope="module")
def many() -> Pairs:
    return failures.tested()


@pytest.fixture(scope="module")
def few(many: Pairs) -> Pairs:
    return many[:12]


@pytest.fixture(scope="module")
def learned(few: Pairs) -> list[str]:
    """The models that write most strings backwards."""
    return [model for model in MODELS if np.mean(BENCH.right(model, few)) > 0.6]


def _source(name: str, text: str) -> torch.Tensor:
    return torch.tensor([BENCH.lab(name).sentence(text).ids])


def _fresh(name: str) -> Transformer:
    lab = BENCH.lab(name)
    return untrained(lab.transformer, lab.checkpoint.settings.train.seed)


def _predicted(name: str, few: Pairs, measure: Callable[..., torch.Tensor]) -> list[bool]:
    """Tells of each letter of the targets whether it is predicted from the source of the pair before."""
    model, found = BENCH.lab(name).model, []
    for (source, _), (_, shown) in zip((few[-1], *few[:-1]), few, strict=True):
        target = torch.tensor([[*BENCH.lab(name).tokenizer.encode(shown), EOS]])
        with torch.no_grad():
            predicted = measure(model, _source(name, source), target).argmax(-1)
        found += (predicted == target)[0, :-1].tolist()
    return found


@pytest.mark.parametrize("name", ["reverse-without-mask", WHOLE])
def test_only_the_model_without_a_mask_predicts_what_it_is_shown(name: str, few: Pairs, many: Pairs):
    assert causes.copied(BENCH, name, few) == pytest.approx(np.mean(_predicted(name, few, teacher_forced_log_probs)))
    hidden = np.mean(_predicted(name, few, log_probs_on_prefixes))  # the next letter is not there
    assert hidden < 0.2
    for model in MODELS:
        assert (causes.copied(BENCH, model, many) > 0.3) == (model == "reverse-without-mask")


def test_only_without_positions_a_model_that_learned_reads_a_set(learned: list[str], many: Pairs):
    palindromes = sum(source == target for source, target in many)
    for model in learned:
        assert causes.same_in_any_order(BENCH, model, many) == palindromes, model
    assert causes.same_in_any_order(BENCH, "reverse-without-positions", many) == MANY


def test_without_scaling_rows_are_harder_and_their_softmax_flatter(few: Pairs, many: Pairs):
    (text, target), model = few[0], "reverse-without-scaling"
    for name in (model, WHOLE):
        recorder = Recorder(lambda site: site.tensor == "weights")
        _fresh(name).encode(_source(name, text), tap=recorder)
        rows = torch.cat([weights.detach()[0].flatten(0, 1) for weights in recorder.recording.values()]).double()
        slopes = [torch.autograd.functional.jacobian(partial(torch.softmax, dim=0), row.log()).trace() for row in rows]
        measured = causes.softmax_slope(BENCH, name, [(text, target)])
        assert measured == pytest.approx((rows.amax(-1).mean().item(), np.mean(slopes)), abs=1e-6)
    hard, flat = causes.softmax_slope(BENCH, model, many)
    for other in MODELS:
        if other != model:
            largest, slope = causes.softmax_slope(BENCH, other, many)
            assert hard > 1.3 * largest and flat < 0.7 * slope, other


@pytest.mark.parametrize("fresh", [True, False])
def test_without_residual_the_encoder_cannot_tell_letters_apart(
    fresh: bool, learned: list[str], few: Pairs, many: Pairs
):
    model, cosines = "reverse-without-residual", []
    encoder = _fresh(model) if fresh else BENCH.lab(model).transformer
    for text, _ in few:
        with torch.no_grad():
            vectors = encoder.encode(_source(model, text))[0].double().numpy()
        unit = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
        cosines += (unit @ unit.T)[~np.eye(len(unit), dtype=bool)].tolist()
    assert causes.likeness(BENCH, model, few, fresh=fresh) == pytest.approx(np.mean(cosines), abs=1e-6)
    alike = causes.likeness(BENCH, model, many, fresh=fresh)
    for other in learned if not fresh else MODELS:
        if other != model:
            assert causes.likeness(BENCH, other, many, fresh=fresh) < alike - 0.2, other


def test_without_norm_numbers_grow_but_not_far(few: Pairs, many: Pairs):
    model, sizes = "reverse-without-norm", []
    for text, _ in few:
        recorder = Recorder(lambda site: site == causes.EMBEDDING)
        with torch.no_grad():
            leaves = BENCH.lab(model).transformer.encode(_source(model, text), tap=recorder)
        enters = recorder.recording[causes.EMBEDDING]
        sizes.append([(vectors**2).sum(-1).double().numpy()[0] for vectors in (enters, leaves)])
    width = BENCH.lab(model).transformer.config.d_model
    expected = [np.sqrt(np.concatenate(rows).mean() / width) for rows in zip(*sizes, strict=True)]
    assert causes.growth(BENCH, model, few) == pytest.approx(expected, rel=1e-5)
    enters, leaves = causes.growth(BENCH, model, many)
    assert 1.5 * enters < leaves < 10 * enters


def test_one_head_finds_every_letter_and_models_that_learned_nothing_do_not(few: Pairs, many: Pairs):
    model, found = "reverse-with-one-head", []
    for source, target in few:
        seen = BENCH.seen(model, source)
        assert seen.translation == target
        places = seen.attention("cross").weights[-1, 0].argmax(-1)[: len(target.split())]
        found += (places == np.arange(len(places))[::-1]).tolist()
    assert causes.found_by_one_head(BENCH, model, few) == pytest.approx(np.mean(found))
    assert causes.found_by_one_head(BENCH, model, many) > 0.98
    assert causes.found_by_one_head(BENCH, "reverse-without-residual", many) < 0.5


def test_guessing_costs_the_entropy_of_the_letters():
    assert causes.guessing((("a b", "b a"), ("a", "a"))) == pytest.approx(-0.8 * log(0.4) - 0.2 * log(0.2))


@pytest.mark.parametrize(
    ("model", "cause", "measured", "said"),
    [
        ("reverse-without-mask", "copied", 0.4321, "it predicts 43 %"),
        ("reverse-without-positions", "same_in_any_order", 77, "the same for 77 of"),
        ("reverse-without-scaling", "softmax_slope", (0.1234, 0.777), "a row is 0.12 on"),
        ("reverse-without-scaling", "softmax_slope", (0.1234, 0.777), "w(1 − w), 0.78"),
        ("reverse-without-residual", "likeness", 0.4321, "after the training 0.43"),
        ("reverse-without-norm", "growth", (0.111, 2.222), "from 0.11 to 2.22"),
        ("reverse-with-one-head", "found_by_one_head", 0.4321, "43.2 % of the letters"),
        ("reverse-diverged", "guessing", 4.444, "alone (4.44)"),
    ],
)
def test_the_sentence_says_what_was_measured(
    model: str, cause: str, measured: object, said: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(failures, cause, lambda *_, **__: measured)
    symptom = next(failure.symptom for failure in failures.FAILURES if failure.model == model)
    assert said in symptom(BENCH)
