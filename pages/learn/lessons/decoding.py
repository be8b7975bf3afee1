"""Lesson 9: from probabilities to a text: greedy, sampled, searched."""

import numpy as np

from pages.learn.lesson import TEXTS, Control, Estimate, Lesson, Options, Part, Scene, Settings, Step, Truth
from pages.shared.bench.bench import Bench
from transformer.analysis.steps.samples import Sampling, draw_samples
from transformer.analysis.steps.search_tree import SearchTree, search_tree
from transformer.config import DecodeConfig
from transformer.lab import Translation
from transformer.views.steps.beam_search import BeamTree
from transformer.views.steps.candidates import StepCandidates
from transformer.views.steps.sampling import SampleTree
from transformer.views.steps.subjects import Search
from transformer.views.subjects import Decoding

MODEL, TEXT = "pronouns-en-fr", "The animal did not cross the street because it was too tired."
LARGER, SENTENCE, BEAM = "everyday-en-fr", "We must leave here at once.", 4
N_SAMPLES = 20
_TEMPERATURE = Control(name="temperature", values=("1.0", "0.5", "1.5"))


def _product_truth(bench: Bench) -> Truth:
    seen = bench.seen(MODEL, TEXT)
    whole = 100 * float(np.exp(np.log(seen.probabilities).sum()))
    return Truth(
        whole,
        TEXTS(
            "decoding.greedy.told",
            n=len(seen.probabilities),
            least=seen.probabilities.min(),
            most=seen.probabilities.max(),
            whole=whole,
        ),
    )


def _product_scene(bench: Bench, settings: Settings) -> Scene:
    seen = bench.seen(MODEL, TEXT)
    view = StepCandidates(step=int(settings["step"]), logarithmic=True)
    return Scene((f"*{seen.translation}*",), (Part(Decoding(bench.lab(MODEL), seen), view),))


def _different(bench: Bench, temperature: float) -> int:
    source = bench.seen(MODEL, TEXT).source_ids
    found = draw_samples(bench.lab(MODEL).model, source, (), Sampling(temperature=temperature), n=N_SAMPLES, seed=0)
    return len(found)


def _samples_truth(bench: Bench) -> Truth:
    hot, cool = _different(bench, 1.0), _different(bench, 0.5)
    return Truth(hot, TEXTS("decoding.sampling.told", n=N_SAMPLES, hot=hot, cool=cool))


def _samples_scene(bench: Bench, settings: Settings) -> Scene:
    view = SampleTree(temperature=float(settings["temperature"]), n=N_SAMPLES)
    return Scene(parts=(Part(Decoding(bench.lab(MODEL), bench.seen(MODEL, TEXT)), view),))


def _outputs(bench: Bench) -> tuple[Translation, Translation]:
    """Returns the greedy output and the best of a beam search."""
    lab = bench.lab(LARGER)
    beam = lab.translations([SENTENCE], DecodeConfig(method="beam", beam=BEAM))[0][0]
    return lab.translations([SENTENCE])[0][0], beam


def _tree(bench: Bench, alpha: float) -> SearchTree:
    source = bench.seen(LARGER, SENTENCE).source_ids
    return search_tree(bench.lab(LARGER).model, source, (), size=BEAM, alpha=alpha, norm="paper")


def _beam_truth(bench: Bench) -> Truth:
    greedy, beam = _outputs(bench)
    if beam.text == greedy.text:
        option = 0
    else:
        option = 1 if beam.log_prob > greedy.log_prob else 2
    return Truth(
        option,
        TEXTS(
            "decoding.beam.told",
            greedy=greedy.text,
            greedy_log_prob=greedy.log_prob,
            beam=beam.text,
            beam_log_prob=beam.log_prob,
        ),
    )


def _beam_scene(bench: Bench, settings: Settings) -> Scene:
    lab, seen = bench.lab(LARGER), bench.seen(LARGER, SENTENCE)
    return Scene(parts=(Part(Search(lab, seen, _tree(bench, float(settings["alpha"]))), BeamTree()),))


DECODING = Lesson(
    slug="decoding",
    minutes=7,
    page="steps",
    view={"model": MODEL, "text": TEXT},
    steps=(
        Step(
            name="decoding.greedy",
            answer=Estimate(least=0, most=100, unit=" %", close=10),
            truth=_product_truth,
            expects=(10, 30),
            controls=(Control(name="step", values=("0", "5", "10", "13")),),
            scene=_product_scene,
        ),
        Step(
            name="decoding.sampling",
            answer=Estimate(least=1, most=N_SAMPLES, close=3),
            truth=_samples_truth,
            expects=(12, 20),
            controls=(_TEMPERATURE,),
            scene=_samples_scene,
        ),
        Step(
            name="decoding.beam",
            answer=Options("decoding.beam"),
            truth=_beam_truth,
            expects=(2, 2),
            controls=(Control(name="alpha", values=("0.6", "0.0")),),
            scene=_beam_scene,
        ),
    ),
)
