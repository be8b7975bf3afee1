"""Every example of a view, and the analyses that make its subject, on a model of every build and on runs of no step:
there is something to show of which every check holds, or an error that pages say as a sentence. Which views and
analyses those are is read from the examples; the shipped model of symbols, of which they are, is another one here.
"""

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any

import pytest
import torch
import view_examples
from page_models import save_model
from page_runs import NO_STEP, run_of_no_step
from random_models import COMBINED_BUILDS, DECODER_BUILDS, EVERY_SETTING, random_model
from view_examples import EXAMPLES, Example, checks_of, data_of

from pages.shared.exhibit import CANNOT_SHOW
from transformer.checkpoints.store import load_checkpoint
from transformer.config import ModelConfig
from transformer.lab import Lab
from transformer.model.transformer import Transformer
from transformer.runs.status import run_folder
from transformer.views.attention.plane import AttentionInPlane
from transformer.views.experiments import Claims, ExperimentCurves, ExperimentFindings
from transformer.views.reach.bottleneck import Bottleneck
from transformer.views.study.learning import StudyLearning
from transformer.views.study.lengths import StudyLengths
from transformer.views.study.verdict import StudyVerdict
from transformer.views.tokens.vocabulary import VocabularySizes
from transformer.views.training.plan import LearningRate, SentenceLengths, TrainingMemory

SHARED = ("recurrent_lab", "load")
"""What the examples keep of no model of theirs."""
OF_NO_MODEL = (
    AttentionInPlane,
    Bottleneck,
    Claims,
    ExperimentCurves,
    ExperimentFindings,
    LearningRate,
    SentenceLengths,
    StudyLearning,
    StudyLengths,
    StudyVerdict,
    TrainingMemory,
    VocabularySizes,
)
"""Views that no build changes: test_views.py proves them once."""


def forget() -> None:
    """Forgets all subjects that examples made of another model."""
    for name, made in vars(view_examples).items():
        if hasattr(made, "cache_clear") and name not in SHARED:
            made.cache_clear()
    for example in EXAMPLES:
        if hasattr(example.subject, "cache_clear"):
            example.subject.cache_clear()


@pytest.fixture
def examples_of(monkeypatch) -> Iterator[Callable[[Lab], None]]:
    """Makes the examples those of another model."""

    def take(lab: Lab) -> None:
        forget()
        monkeypatch.setattr(view_examples, "lab", lambda: lab)
        monkeypatch.setattr(view_examples, "load", lambda name: lab)
        monkeypatch.setattr(view_examples, "find_checkpoint", lambda name: lab.checkpoint.folder)

    yield take
    forget()


def offered(view: Any, lab: Lab) -> Any:
    """The view with heads and layers that the model has: pages offer no others."""
    if isinstance(lab.model.config, ModelConfig):
        return view
    names = {field.name for field in fields(view)}
    chosen = {name: 0 for name in ("layer", "head") if isinstance(getattr(view, name, None), int)}
    chosen |= {"heads": (0,)} if isinstance(getattr(view, "heads", None), tuple) else {}
    chosen |= {name: (0, 0) for name in ("left", "right", "chosen") if isinstance(getattr(view, name, None), tuple)}
    chosen |= {"of": offered(view.of, lab)} if "of" in names else {}
    return replace(view, **chosen)


def of_a_model() -> list[Example]:
    """Returns an example of every view of a model."""
    examples = {type(example.view): example for example in EXAMPLES}
    return [example for kind, example in examples.items() if kind not in OF_NO_MODEL]


def faults(examples: list[Example], lab: Lab | None = None) -> list[str]:
    """What the examples raise that no page says, and the checks that do not hold, one line each."""
    found = []
    for example in examples:
        view = example.view if lab is None else offered(example.view, lab)
        try:
            subject = example.subject()
            data = data_of(view, subject)
            view.figure(data)
            view.tables(data)
            checks = tuple(checks_of(view, subject, data))
            assert checks
            found += [f"{view!r}: {check}" for check in checks if not check.holds]
        except CANNOT_SHOW as error:
            assert str(error)
        except Exception as error:
            place = error.__traceback__
            while place.tb_next is not None:
                place = place.tb_next
            code = place.tb_frame.f_code
            found.append(f"{view!r}: {type(error).__name__}: {error} ({code.co_filename}:{place.tb_lineno})")
    return found


@pytest.mark.slow_variants
@pytest.mark.parametrize("build", list(reversed(EVERY_SETTING)))  # those of other families take less time
def test_every_view_of_a_model_of_every_build_is_shown_and_proved_or_says_why_not(build, examples_of, tmp_path):
    save_model(tmp_path / "model", EVERY_SETTING[build])
    lab = Lab(load_checkpoint(tmp_path / "model"))
    examples_of(lab)
    found = faults(of_a_model(), lab)
    assert not found, "\n".join(found)


def test_what_no_build_changes_holds_no_model(examples_of, tmp_path):
    save_model(tmp_path / "model", EVERY_SETTING["convolutional"])
    lab = Lab(load_checkpoint(tmp_path / "model"))
    examples_of(lab)
    for example in EXAMPLES:
        if isinstance(example.view, OF_NO_MODEL):
            held = vars(example.subject()).values()
            assert lab not in held and str(lab.checkpoint.folder) not in repr([*held]), example.view


def with_large_scores(**sizes: int) -> Transformer:
    """A model without layer norm, whose vectors grow from layer to layer, with larger queries and keys."""
    model = random_model(norm="none", **sizes)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith(("query.weight", "key.weight")):
                parameter *= 4
    return model


@pytest.mark.slow_variants
def test_every_check_holds_where_scores_are_large(examples_of, tmp_path):
    """Such numbers round in proportion to their size, which is no fault of what is shown."""
    save_model(tmp_path / "model", with_large_scores)
    lab = Lab(load_checkpoint(tmp_path / "model"))
    examples_of(lab)
    found = faults(of_a_model(), lab)
    assert not found, "\n".join(found)


def test_the_combined_builds_leave_no_setting_out():
    assert {pair for build in DECODER_BUILDS for pair in build.items()} == {
        pair for build in COMBINED_BUILDS for pair in build.items()
    }


@pytest.mark.slow_variants
@pytest.mark.parametrize("state", NO_STEP)
def test_every_view_of_a_run_of_no_step_is_shown_and_proved_or_says_why_not(state, room, monkeypatch):
    forget()
    folder = run_folder(run_of_no_step(state))
    monkeypatch.setattr(view_examples, "find_checkpoint", lambda name: folder)
    monkeypatch.setattr(view_examples, "load", lambda name: Lab(load_checkpoint(folder)))
    monkeypatch.setattr(view_examples, "lab", lambda: Lab(load_checkpoint(folder)))
    found = faults([example for example in EXAMPLES if not isinstance(example.view, OF_NO_MODEL)])
    forget()
    assert not found, "\n".join(found)
