"""A run as a checkpoint to ship: small, and with what is lost when its corpus stays behind.

The weights may be stored in half the bytes. Statistics of its heads over the validation pairs, which a stranger to the
corpus cannot take again, go into a file and the card. Where its corpus can be had, a survey of its heads is added.
"""

from collections.abc import Sequence
from pathlib import Path

import torch

from transformer.analysis.heads.published import publish_survey
from transformer.analysis.heads.statistics import (
    STATISTICS_FILE,
    STATISTICS_PAIRS,
    BlockStatistics,
    head_statistics,
)
from transformer.checkpoints.settings import CARD_FILE, WEIGHTS_FILE
from transformer.checkpoints.store import export_checkpoint, load_checkpoint, load_tensors, save_tensors
from transformer.config import ModelConfig
from transformer.data.corpus_snapshot import is_own_copy, load_own
from transformer.files import write_text
from transformer.training.evaluation import fitting


def publish(run: Path, folder: Path, *, half: bool = False) -> None:
    """Writes the checkpoint of a run that has finished into a new folder; `half`: weights in float16.

    Errors as `checkpoint.export_checkpoint`, and CorpusError where the run's own corpus is gone.
    """
    settings = load_checkpoint(run).settings
    corpus = load_own(settings.corpus, run)
    export_checkpoint(run, folder)
    if half:
        tensors, notes = load_tensors(folder / WEIGHTS_FILE)
        save_tensors(folder / WEIGHTS_FILE, {name: value.half() for name, value in tensors.items()}, notes)
    published = load_checkpoint(folder)
    if not isinstance(settings.model, ModelConfig):  # of the few heads of others nothing is kept
        _name(folder, settings.name, _stored(half=half))
        return
    pairs = fitting(corpus.validation, published.tokenizer, settings.model.max_length, STATISTICS_PAIRS)
    found = head_statistics(published.model, pairs, published.tokenizer)
    tensors = {f"{sublayer.sublayer}.mean": sublayer.mean.float() for sublayer in found}
    tensors |= {f"{sublayer.sublayer}.entropy": sublayer.entropy.float() for sublayer in found}
    save_tensors(folder / STATISTICS_FILE, tensors, {"pairs": str(len(pairs)), "split": "validation"})
    if not is_own_copy(settings.corpus):  # else the sentences stay behind, without which nobody could check it
        publish_survey(published)
    _name(folder, settings.name, _section(found, len(pairs)) + _stored(half=half))


def _name(folder: Path, run: str, more: str) -> None:
    """Puts the folder's name at the head of the card in place of the run's, and more at its end."""
    card = (folder / CARD_FILE).read_text(encoding="utf-8").replace(f"# {run}\n", f"# {folder.name}\n", 1)
    write_text(folder / CARD_FILE, card + more)


def _stored(*, half: bool) -> str:
    return "\nThe weights are stored in float16 and used in float32.\n" if half else ""


def _section(found: Sequence[BlockStatistics], n_pairs: int) -> str:
    rows = [
        f"| {sublayer.sublayer} | {', '.join(f'{value:.2f}' for value in sublayer.entropy.tolist())} "
        f"| {', '.join(f'{value:.2f}' for value in torch.linalg.vector_norm(sublayer.mean, dim=-1).tolist())} |"
        for sublayer in found
    ]
    return f"""
## Its heads

Over {n_pairs:,} validation pairs, teacher-forced; the mean outputs themselves are in {STATISTICS_FILE}.

| block | mean row entropy of each head, nats | length of its mean output |
|---|---|---|
{chr(10).join(rows)}
"""
