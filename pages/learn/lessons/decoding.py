"""Lesson 9: from probabilities to a text: greedy, sampled, searched."""

import numpy as np

from pages.learn.lesson import Control, Estimate, Lesson, Options, Part, Scene, Settings, Step, Truth
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
_TEMPERATURE = Control(name="temperature", label="Temperature", options={"1.0": "1", "0.5": "0.5", "1.5": "1.5"})


def _product_truth(bench: Bench) -> Truth:
    seen = bench.seen(MODEL, TEXT)
    whole = 100 * float(np.exp(np.log(seen.probabilities).sum()))
    return Truth(
        whole,
        f"Its {len(seen.probabilities)} tokens have probabilities from {seen.probabilities.min():.3f} to "
        f"{seen.probabilities.max():.3f}, and their product is {whole:.0f} %. Every token is nearly sure, and the "
        "whole is not: probabilities multiply.",
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
    return Truth(
        hot,
        f"{N_SAMPLES} samples at temperature 1 give {hot} different outputs; at temperature 0.5, {cool}. At each token "
        "there is a chance of about one in ten to draw another one, and after a strange word all that follows is "
        "strange. Temperature 0.5 squares each probability before drawing, which leaves the rare ones almost nothing.",
    )


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
        f"Greedy decoding writes *{greedy.text}* (log-probability {greedy.log_prob:.2f}), beam search *{beam.text}* "
        f"({beam.log_prob:.2f}, which is less). A beam search compares outputs of different lengths, and longer ones "
        "have lower products. So it divides by a **length penalty** first (Wu et al. 2016; section 6.1), and its "
        "favourite need not be the most probable output.",
    )


def _beam_scene(bench: Bench, settings: Settings) -> Scene:
    lab, seen = bench.lab(LARGER), bench.seen(LARGER, SENTENCE)
    return Scene(parts=(Part(Search(lab, seen, _tree(bench, float(settings["alpha"]))), BeamTree()),))


DECODING = Lesson(
    slug="decoding",
    title="Decoding",
    question="A model gives probabilities. How does a text come out of them?",
    minutes=7,
    page="steps",
    onwards="Sample, search and force words on *Decoder steps*",
    view={"model": MODEL, "text": TEXT},
    steps=(
        Step(
            title="Nearly sure, sixteen times",
            text="At each step a decoder gives every token of its vocabulary a probability. **Greedy decoding** writes "
            f"the most probable one and goes on. *{MODEL}* writes a translation of 16 tokens, end mark included, and "
            "gives each of them a probability of about 0.9.",
            question="How probable is the whole translation?",
            answer=Estimate(least=0, most=100, unit=" %", close=10),
            truth=_product_truth,
            expects=(10, 30),
            do="Look at the candidates of some steps, on a logarithmic scale.",
            controls=(Control(name="step", label="Step", options={str(i): str(i) for i in (0, 5, 10, 13)}),),
            scene=_product_scene,
            keep="The probability of a text is the product of the probabilities of its tokens.",
        ),
        Step(
            title="Draw instead of choosing",
            text="**Sampling** draws each token with its probability, like a loaded die. **Temperature** changes the "
            "die: below 1 the probable tokens become more probable still, above 1 they become more alike.",
            question=f"We draw {N_SAMPLES} translations at temperature 1. How many different ones are there?",
            answer=Estimate(least=1, most=N_SAMPLES, close=3),
            truth=_samples_truth,
            expects=(12, 20),
            do="Change the temperature. Thicker lines were sampled more often.",
            controls=(_TEMPERATURE,),
            scene=_samples_scene,
            keep="A temperature below 1 makes samples alike and safe, above 1 varied and wild.",
        ),
        Step(
            title="Look further ahead",
            text=f"Greedy decoding cannot take a step back. **Beam search** keeps the {BEAM} best beginnings at once "
            f"and picks the best finished one. *{LARGER}* translates “{SENTENCE}”",
            question="What does beam search find?",
            answer=Options(
                (
                    "the same as greedy decoding",
                    "a more probable translation",
                    "a translation with a lower probability",
                )
            ),
            truth=_beam_truth,
            expects=(2, 2),
            do="Follow the branches. With a length penalty of 0, the search compares plain probabilities.",
            controls=(Control(name="alpha", label="Length penalty", options={"0.6": "0.6 (the paper's)", "0.0": "0"}),),
            scene=_beam_scene,
            keep="Beam search looks for the best score, and the score is a choice of its own.",
        ),
    ),
)
