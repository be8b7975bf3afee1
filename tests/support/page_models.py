"""Untrained models for the page tests, and the app opened on one of them. What pages say must hold for any weights."""

import json
import shutil
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import torch
from random_models import random_recurrent, randomise
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

from pages.shared.guard import FAILED
from transformer.checkpoints.settings import Settings
from transformer.checkpoints.store import save_checkpoint
from transformer.config import CorpusConfig, ModelConfig, RecurrentAttentionKind, TrainConfig
from transformer.data.corpora import corpus_tokenizer, load_corpus
from transformer.model.transformer import Transformer
from transformer.text.tokenizer import Tokenizer
from transformer.training.state import weights_of

# Each AppTest would read the metadata of every installed package again: most of the time of a page that opens.
manifest_scanner.scan_component_manifests = cache(manifest_scanner.scan_component_manifests)

APP = Path(__file__).parents[2] / "app.py"
PRONOUNS, REVERSE, OTHER_SEED = "untrained-pronouns", "untrained-reverse", "other-seed"
CLASSIC = "The animal did not cross the street because it was too tired."
WIDE = "The animal did not cross the street because it was too wide."
WAIT_S = 60.0
"""The first import of torch, plotly and the components takes seconds on a busy machine."""


@cache
def _tokenizer(corpus: str) -> Tokenizer:
    return corpus_tokenizer(load_corpus(corpus), CorpusConfig(name=corpus))


def save_untrained(runs: Path, seed: int = 0) -> None:
    """Writes one model of English sentences (two layers) and one of symbols (one layer) into a folder of runs."""
    _save(runs / PRONOUNS, "pronouns-en-fr", n_layers=2, seed=seed)
    _save(runs / REVERSE, "reverse", n_layers=1, seed=seed + 1)


def save_other_seed(runs: Path, elsewhere: Path) -> None:
    """Writes the first model once more, out of another seed, beside those of `save_untrained`: a run that ended, with
    the first model's weights as its snapshot of step 10 and its own as that of step 200."""
    save_untrained(elsewhere, seed=7)
    shutil.copytree(elsewhere / PRONOUNS, runs / OTHER_SEED)
    (runs / OTHER_SEED / "snapshots").mkdir()
    for step, model in ((10, PRONOUNS), (200, OTHER_SEED)):
        shutil.copy(runs / model / "weights.safetensors", runs / OTHER_SEED / "snapshots" / f"{step}.safetensors")
    (runs / OTHER_SEED / "status.json").write_text('{"state": "finished"}')


def save_recurrent(folder: Path, attention: RecurrentAttentionKind = "none") -> None:
    """Writes an untrained recurrent model of short strings of symbols into a folder of its own."""
    save_model(folder, partial(random_recurrent, attention=attention))


def save_model(folder: Path, make: Callable[..., Any]) -> None:
    """Writes an untrained model of short strings of symbols into a folder of its own; `make` takes its sizes."""
    tokenizer = _tokenizer("reverse")
    torch.manual_seed(0)
    model = make(vocab_size=tokenizer.vocab_size, max_length=20)
    corpus = CorpusConfig(name="reverse", longest=6)
    settings = Settings(name=folder.name, model=model.config, train=TrainConfig(), corpus=corpus)
    save_checkpoint(folder, settings, tokenizer, weights_of(model))


def _save(folder: Path, corpus: str, *, n_layers: int, seed: int) -> None:
    tokenizer = _tokenizer(corpus)
    config = ModelConfig(
        vocab_size=tokenizer.vocab_size,
        d_model=32,
        n_heads=4,
        d_ff=32,
        n_encoder_layers=n_layers,
        n_decoder_layers=n_layers,
        max_length=20,
    )
    torch.manual_seed(seed)
    model = Transformer(config)
    randomise(model)
    settings = Settings(name=folder.name, model=config, train=TrainConfig(), corpus=CorpusConfig(name=corpus))
    save_checkpoint(folder, settings, tokenizer, weights_of(model))


@cache
def _registered_pages() -> dict[str, Any]:
    """Returns the pages that app.py registers, under Streamlit's names for them.

    An AppTest learns them in its first run; without this, each page that a test opens would be drawn after Home.
    """
    return AppTest.from_file(str(APP), default_timeout=WAIT_S).run()._registered_pages


def open_page(page: str = "", *, popovers: Sequence[str] = (), **parameters: str | list[str]) -> AppTest:
    """The app after its first run on a page, opened by a link with these query parameters; no exception is left.

    `popovers` are the keys of those that are open from the beginning.
    """
    return checked(visit(page, popovers=popovers, **parameters))


def visit(page: str = "", *, popovers: Sequence[str] = (), **parameters: str | list[str]) -> AppTest:
    """The same, whatever went wrong."""
    at = AppTest.from_file(str(APP), default_timeout=WAIT_S)
    if page:
        at._registered_pages = _registered_pages()
        at.switch_page(f"pages/{page}/page.py")
    for name, value in parameters.items():
        at.query_params[name] = value
    for key in popovers:
        at.session_state[key] = True
    return at.run()


def checked(at: AppTest) -> AppTest:
    """The same, after asserting that the run raised nothing and warned of nothing."""
    assert not at.exception, [element.value for element in at.exception]
    assert not at.error, [element.value for element in at.error]  # a part that failed alone
    assert not at.warning
    return at


def faults_of(at: AppTest) -> list[str]:
    """What a page shows that no visitor should see: tracebacks, and parts that failed by a fault of the app."""
    return [error.value for error in (*at.exception, *at.error) if at.exception or FAILED in error.value]


def field(fields: Iterable[Any], label: str) -> Any:
    """The one control with this label, whatever its key is by now."""
    (found,) = (field for field in fields if field.label == label)
    return found


def texts(at: AppTest) -> str:
    """All that the page says, as one text."""
    return "\n".join(element.value for element in (*at.markdown, *at.caption))


def component(at: AppTest, wanted: str) -> Any:
    """The data of the page's first component that has this field; None where there is none."""
    found = (json.loads(element.proto.json) for element in at.get("bidi_component"))
    return next((data for data in found if wanted in data), None)


def matrix(at: AppTest) -> Any:
    """The data of the large matrix; None where there is none."""
    return component(at, "row_notes")


def follow(at: AppTest, label: str, page: str) -> AppTest:
    """The app after following the link with this label, which must lead to this page."""
    (link,) = (link.proto for link in at.get("page_link") if link.proto.label == label)
    assert link.page == page
    return open_page(
        page, **{name: value if len(value) > 1 else value[0] for name, value in parse_qs(link.query_string).items()}
    )


def heads(model: str = REVERSE, **parameters: str | list[str]) -> AppTest:
    """The page on a model, with few pairs."""
    return open_page("heads", model=model, pairs="50", **parameters)
