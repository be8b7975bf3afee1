"""The survey of a model's heads over all its validation pairs, kept in a file beside its weights.

The file holds the survey's sums with a key: a hash of the weights, the settings, the tokenizer, the pairs and the sums
themselves. A file whose key is not that of the model and the pairs at hand counts as none, so what is shown is what
this model does on these pairs, and a check can measure it again.
"""

from collections.abc import Mapping
from dataclasses import fields
from hashlib import blake2b

import torch
from numpy import ndarray

from transformer.analysis.heads.addresses import Tell
from transformer.analysis.heads.pair_sample import PairSample, validation_sample
from transformer.analysis.heads.survey import Survey, survey, survey_of
from transformer.checkpoints.store import Checkpoint, CheckpointError, load_tensors, save_tensors

SURVEY_FILE = "head_survey.safetensors"
"""The file in which a checkpoint carries the survey of its heads."""
VERSION = 2
"""The version of what a survey measures: raised when its numbers change, as files of another one are not read."""


def publish_survey(checkpoint: Checkpoint, *, tell: Tell | None = None) -> Survey:
    """Surveys the heads over all validation pairs and writes the file; CorpusError or ValueError without such pairs."""
    sample = validation_sample(checkpoint)
    found = survey(checkpoint.model, sample.pairs, checkpoint.tokenizer, unit=sample.unit, tell=tell)
    tensors = {name: torch.from_numpy(rows) for name, rows in found.sums.items()}
    save_tensors(checkpoint.folder / SURVEY_FILE, tensors, {"key": _key(checkpoint, sample, found.sums)})
    return found


def published_survey(checkpoint: Checkpoint, sample: PairSample) -> Survey | None:
    """Returns the survey that a checkpoint carries; None where it has none of these weights over these pairs."""
    try:
        tensors, notes = load_tensors(checkpoint.folder / SURVEY_FILE)
    except CheckpointError:
        return None
    sums = {name: value.numpy() for name, value in tensors.items()}
    if notes.get("key") != _key(checkpoint, sample, sums):
        return None
    return survey_of(checkpoint.model, sums, published=True)


def _key(checkpoint: Checkpoint, sample: PairSample, sums: Mapping[str, ndarray]) -> str:
    """Returns a hash of all that a survey depends on, and of its sums."""
    settings = checkpoint.settings.model
    others = {own.name: value for own in fields(settings) if (value := getattr(settings, own.name)) != own.default}
    found = blake2b(repr((VERSION, others, sample.digest)).encode(), digest_size=32)
    for path in sorted(checkpoint.folder.glob("tokenizer.*")):
        found.update(path.read_bytes())
    arrays = {name: value.numpy() for name, value in checkpoint.model.named_parameters()}
    for name, value in [*sorted(arrays.items()), *sorted(sums.items())]:
        found.update(repr((name, value.shape, value.dtype.str)).encode())
        found.update(value.tobytes())
    return found.hexdigest()
