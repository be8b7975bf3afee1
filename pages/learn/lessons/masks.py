"""Lesson 6: masks, and why a model must not see the word it has to guess."""

from pages.learn.lesson import Control, Estimate, Lesson, Options, Part, Scene, Settings, Step, Truth
from pages.shared import wording
from pages.shared.bench.bench import Bench
from pages.shared.bench.strings import backwards, held_out, letters, marked, percent
from transformer.analysis.attention.mask_leakage import Leak
from transformer.analysis.training.progress import progress_of
from transformer.interventions import DisableMask
from transformer.model.kinds import AttentionKind
from transformer.views.masks import LeakData, MaskLeak, SentenceMasks
from transformer.views.subjects import Batch, Runs
from transformer.views.training.runs import ComparedRuns

MODEL, UNMASKED = "reverse", "reverse-without-mask"
TEXTS = (letters(6), "g h i", "k l m n o p q r")
"""A batch of sentences of different lengths."""
_CAUSAL = Control(name="causal", label="Causal mask", options={"off": "lifted", "on": "on"})
_PADDING = Control(name="padding", label="Padding mask", options={"off": "lifted", "on": "on"})


def _leak(bench: Bench, *off: str) -> Leak:
    return bench.lab(MODEL).leak(TEXTS, [DisableMask(mask) for mask in off])  # type: ignore[arg-type]


def _measured(bench: Bench, *off: str) -> LeakData:
    return MaskLeak().data(bench.lab(MODEL), _leak(bench, *off))


def _seen_truth(bench: Bench) -> Truth:
    leak = _leak(bench)
    row = leak.intact.masks[AttentionKind.DECODER_SELF][0]
    n_seen, places = int(row[2].sum()), row.shape[-1]
    return Truth(
        n_seen,
        f"It sees {n_seen} of {places} places: the start mark and the two letters that it has written. The mask is a "
        "triangle: each row may see one place more than the row above.",
    )


def _triangle_scene(bench: Bench, settings: Settings) -> Scene:
    view = SentenceMasks(kind="decoder_self", row=0)
    return Scene(parts=(Part(Batch(bench.lab(MODEL), _leak(bench, *_off(settings))), view),))


def _lifted_truth(bench: Bench) -> Truth:
    found = _measured(bench, "causal")
    before, after = found.loss.tolist()
    if abs(after - before) < 0.01:
        option = 0
    elif after < before:
        option = 3
    else:
        option = 1 if found.changed else 2
    return Truth(
        option,
        f"The loss goes from {before:.3g} to {after:.3g} nats per letter, {after / before:.0f} times as much, and "
        f"{len(found.changed) or 'none'} of the {len(TEXTS)} outputs change. The loss is measured with the whole right "
        "answer laid before the decoder; there, the lifted mask lets in letters that it has never seen in training. "
        "While it *writes*, letters to come do not exist yet. And the loss asks how probable the right letter is, the "
        "output only which letter is the most probable.",
    )


def _lifted_scene(bench: Bench, settings: Settings) -> Scene:
    return Scene(_outputs(_measured(bench, *_off(settings))), _triangle_scene(bench, settings).parts)


def _unmasked_truth(bench: Bench) -> Truth:
    pairs = held_out(6)
    right = percent(bench.right(UNMASKED, pairs))
    losses = [progress_of(bench.lab(name).checkpoint.folder).last("validation", "loss") for name in (UNMASKED, MODEL)]
    return Truth(
        right,
        f"{right:.0f} % of {len(pairs)} strings. Yet its loss ended at {losses[0]:.3f} nats, as low as the "
        f"{losses[1]:.3f} of the model with the mask. In training it could see each letter that it had to guess, and "
        "learned to copy it. When it writes by itself, there is nothing to copy.",
    )


def _unmasked_scene(bench: Bench, settings: Settings) -> Scene:
    text = letters(6)
    folders = tuple(bench.lab(name).checkpoint.folder for name in (MODEL, UNMASKED))
    said = f"*{UNMASKED}* reads `{text}` and writes {marked(bench.seen(UNMASKED, text).translation, backwards(text))}"
    return Scene((said,), (Part(Runs(folders), ComparedRuns(quantity=settings["quantity"])),))


def _padding_truth(bench: Bench) -> Truth:
    found = _measured(bench, "padding")
    longest = max(range(len(TEXTS)), key=lambda i: len(TEXTS[i]))
    option = 2 if len(found.changed) == len(TEXTS) else 0 if found.changed == (longest,) else 1
    outputs = wording.listed([f"`{' '.join(found.written[1][i].split())}`" for i in found.changed])
    return Truth(
        option,
        f"{len(found.changed)} of {len(TEXTS)} outputs change, to {outputs}; the longest string, which has no padding, "
        f"does not. The loss goes from {found.loss[0]:.2g} to {found.loss[1]:.2g} nats per letter.",
    )


def _padding_scene(bench: Bench, settings: Settings) -> Scene:
    view = SentenceMasks(kind="encoder_self", row=1)
    leak = _leak(bench, *_off(settings))
    return Scene(_outputs(_measured(bench, *_off(settings))), (Part(Batch(bench.lab(MODEL), leak), view),))


def _off(settings: Settings) -> tuple[str, ...]:
    return tuple(name for name, value in settings.items() if value == "off")


def _outputs(found: LeakData) -> tuple[str, ...]:
    """Returns a line for each output, and one for the loss."""
    written = zip(TEXTS, found.written[1], strict=True)
    loss = f"**Loss: {found.loss[1]:.3g} nats per letter**"
    return (*(f"`{text}` → {marked(out, backwards(text))}" for text, out in written), loss)


MASKS = Lesson(
    slug="masks",
    title="Masks",
    question="What must a model not see, and what happens if it does?",
    minutes=8,
    page="masks",
    onwards="Lift masks over your own sentences on *Masks*",
    view={"model": MODEL},
    steps=(
        Step(
            title="No peeking at the answer",
            text="In training, a decoder learns all letters of an answer **at once**: at each place it is to guess the "
            "next letter. But the whole answer lies before it. So a **causal mask** hides from each place what comes "
            f"after it. *{MODEL}* reads `{TEXTS[0]}`; its decoder reads a start mark, then what has been written.",
            question="How many places of the decoder's own text may it see while it guesses the **third** letter?",
            answer=Estimate(least=0, most=7, close=0),
            truth=_seen_truth,
            expects=(3, 3),
            do="Rows look, columns are looked at; what is crossed out is hidden. Lift the causal mask and see the "
            "triangle fill.",
            controls=(Control(name="causal", label="Causal mask", options={"on": "on", "off": "lifted"}),),
            scene=_triangle_scene,
            keep="The causal mask makes training honest: each place guesses without seeing what it has to guess.",
        ),
        Step(
            title="Lift it after training",
            text="We take the finished model and lift the mask in every layer, for three strings. The **loss** says "
            "how badly it predicts each letter of the right answer: −ln of the probability it gives that letter, on "
            "average. It is measured in *nats*; 0 would be perfect.",
            question="What happens to the loss, and to what the model writes?",
            answer=Options(
                (
                    "nothing changes",
                    "the loss rises, and the outputs break",
                    "the loss rises many times over, and the outputs stay as they are",
                    "the loss falls: now it can see the answer",
                )
            ),
            truth=_lifted_truth,
            expects=(2, 2),
            do="Switch the mask on and off, and compare the outputs and the loss.",
            controls=(_CAUSAL,),
            scene=_lifted_scene,
            keep="Loss and output ask different things: how sure the model is, and which letter comes first.",
        ),
        Step(
            title="Train without it",
            text=f"*{UNMASKED}* was trained like *{MODEL}*, but never had a causal mask. While it trained, every place "
            "could see the whole answer. Its loss fell at once, lower and lower.",
            question="How many of 100 strings does it write backwards correctly?",
            answer=Estimate(least=0, most=100, unit=" %", close=10),
            truth=_unmasked_truth,
            expects=(0, 5),
            do="Compare the two trainings: first the loss, then the share of right answers.",
            controls=(
                Control(
                    name="quantity",
                    label="Curve",
                    options={"validation loss": "loss", "exact match": "right answers"},
                ),
            ),
            scene=_unmasked_scene,
            keep="Without the causal mask training is cheating: a low loss that is worth nothing.",
        ),
        Step(
            title="Padding: places that are not there",
            text="Strings of different lengths go through the model together, as one rectangle. The short ones are "
            "filled up with a padding mark, and a **padding mask** hides it from everyone. Now we lift that one. The "
            f"batch holds strings of {', '.join(str(len(text.split())) for text in TEXTS)} letters.",
            question="Which outputs change?",
            answer=Options(("only that of the longest string", "only those of shorter strings", "all of them")),
            truth=_padding_truth,
            expects=(1, 1),
            do="Compare the outputs with the mask on and lifted. The figure shows the mask of the shortest string.",
            controls=(_PADDING,),
            scene=_padding_scene,
            keep="Padding is an accident of the batch. Without its mask, a sentence depends on its neighbours.",
        ),
    ),
)
