"""Lesson 6: masks, and why a model must not see the word it has to guess."""

from collections.abc import Sequence

import numpy as np

from pages.learn.lesson import TEXTS, Control, Estimate, Lesson, Options, Part, Scene, Settings, Step, Truth
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
STRINGS = (letters(6), "g h i", "k l m n o p q r")
"""A batch of sentences of different lengths."""
_CAUSAL = Control(name="causal", values=("on", "off"), default="off")
_PADDING = Control(name="padding", values=("on", "off"), default="off")


def _leak(bench: Bench, *off: str, texts: Sequence[str] = STRINGS) -> Leak:
    return bench.lab(MODEL).leak(texts, [DisableMask(mask) for mask in off])  # type: ignore[arg-type]


def _measured(bench: Bench, *off: str) -> LeakData:
    return MaskLeak().data(bench.lab(MODEL), _leak(bench, *off))


def _seen_truth(bench: Bench) -> Truth:
    leak = _leak(bench, texts=STRINGS[:1])
    row = leak.intact.masks[AttentionKind.DECODER_SELF][0]
    n_seen, places = int(row[2].sum()), row.shape[-1]
    return Truth(n_seen, TEXTS("masks.seen.told", n_seen=n_seen, places=places))


def _sureness(bench: Bench, *switches: str) -> float:
    """Returns the mean probability of the tokens that the model writes for the strings."""
    return float(np.concatenate([bench.seen(MODEL, text, *switches).probabilities for text in STRINGS]).mean())


def _triangle_scene(bench: Bench, settings: Settings) -> Scene:
    leak = _leak(bench, *_off(settings), texts=STRINGS[:1])
    return Scene(parts=(Part(Batch(bench.lab(MODEL), leak), SentenceMasks(kind="decoder_self", row=0)),))


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
        TEXTS(
            "masks.lifted.told",
            before=before,
            after=after,
            times=after / before,
            later=100 * found.shares[1, -1],
            changed=TEXTS("how_many", n=len(found.changed)),
            n_outputs=len(STRINGS),
            writing=100 * _sureness(bench, str(DisableMask("causal"))),
            whole=100 * _sureness(bench),
        ),
    )


def _lifted_scene(bench: Bench, settings: Settings) -> Scene:
    return Scene(_outputs(_measured(bench, *_off(settings))), _triangle_scene(bench, settings).parts)


def _unmasked_truth(bench: Bench) -> Truth:
    pairs = held_out(6)
    right = percent(bench.right(UNMASKED, pairs))
    losses = [progress_of(bench.lab(name).checkpoint.folder).last("validation", "loss") for name in (UNMASKED, MODEL)]
    return Truth(right, TEXTS("masks.untrained.told", right=right, n=len(pairs), loss=losses[0], whole=losses[1]))


def _unmasked_scene(bench: Bench, settings: Settings) -> Scene:
    text = letters(6)
    folders = tuple(bench.lab(name).checkpoint.folder for name in (MODEL, UNMASKED))
    said = TEXTS(
        "reads_and_writes",
        model=UNMASKED,
        text=text,
        written=marked(bench.seen(UNMASKED, text).translation, backwards(text)),
    )
    return Scene((said,), (Part(Runs(folders), ComparedRuns(quantity=settings["quantity"])),))


def _padding_truth(bench: Bench) -> Truth:
    found = _measured(bench, "padding")
    longest = max(range(len(STRINGS)), key=lambda i: len(STRINGS[i]))
    option = 2 if len(found.changed) == len(STRINGS) else 0 if found.changed == (longest,) else 1
    outputs = wording.listed([f"`{' '.join(found.written[1][i].split())}`" for i in found.changed])
    return Truth(
        option,
        TEXTS(
            "masks.padding.told",
            changed=len(found.changed),
            n_outputs=len(STRINGS),
            outputs=outputs,
            before=found.loss[0],
            after=found.loss[1],
            causal=_measured(bench, "causal").loss[1],
        ),
    )


def _padding_scene(bench: Bench, settings: Settings) -> Scene:
    view = SentenceMasks(kind="encoder_self", row=1)
    leak = _leak(bench, *_off(settings))
    return Scene(_outputs(_measured(bench, *_off(settings))), (Part(Batch(bench.lab(MODEL), leak), view),))


def _off(settings: Settings) -> tuple[str, ...]:
    return tuple(name for name, value in settings.items() if value == "off")


def _outputs(found: LeakData) -> tuple[str, ...]:
    """Returns a line for each output, and one for the loss."""
    written = zip(STRINGS, found.written[1], strict=True)
    loss = TEXTS("masks.lifted.loss", after=found.loss[1])
    return (*(f"`{text}` → {marked(out, backwards(text))}" for text, out in written), loss)


MASKS = Lesson(
    slug="masks",
    minutes=8,
    page="masks",
    view={"model": MODEL},
    steps=(
        Step(
            name="masks.seen",
            answer=Estimate(least=0, most=9, close=0),
            truth=_seen_truth,
            expects=(3, 3),
            controls=(Control(name="causal", values=("on", "off")),),
            scene=_triangle_scene,
        ),
        Step(
            name="masks.lifted",
            answer=Options("masks.lifted"),
            truth=_lifted_truth,
            expects=(2, 2),
            controls=(_CAUSAL,),
            scene=_lifted_scene,
        ),
        Step(
            name="masks.untrained",
            answer=Estimate(least=0, most=100, unit=" %", close=10),
            truth=_unmasked_truth,
            expects=(0, 5),
            controls=(Control(name="quantity", values=("validation loss", "exact match")),),
            scene=_unmasked_scene,
        ),
        Step(
            name="masks.padding",
            answer=Options("masks.padding"),
            truth=_padding_truth,
            expects=(1, 1),
            controls=(_PADDING,),
            scene=_padding_scene,
        ),
    ),
)
