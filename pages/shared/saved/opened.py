"""A capsule that a visitor has opened: its models found here, its numbers compared, its page to go to."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from io import BytesIO

import streamlit as st

from pages.shared import loading
from transformer.capsules.capsule import Capsule, other_versions, read_capsule, verify
from transformer.capsules.comparison import Compared
from transformer.capsules.contents import CapsuleError, SavedModel
from transformer.capsules.models import OpenedModel, opened, run_here
from transformer.checkpoints.settings import CheckpointError
from transformer.runs.archive import load_archive

_KEY = "capsule-opened"
MODEL_PARAMETERS = ("model", "other")
"""The query parameters that name a model."""


@dataclass(frozen=True)
class OpenedCapsule:
    """A capsule on this machine."""

    file_id: str
    capsule: Capsule
    names: Mapping[str, str]
    """The name here of each model that is here, by its name in the capsule."""
    rows: tuple[Compared, ...] = ()
    """The comparison with a fresh pass."""

    @property
    def missing(self) -> tuple[SavedModel, ...]:
        """Returns the models that are not here yet; the capsule carries those that are not shipped."""
        return tuple(model for model in self.capsule.manifest.models if model.name not in self.names)

    @property
    def parameters(self) -> dict[str, str | list[str]]:
        """Returns the parameters of its page, with the names that its models have here."""
        given = self.capsule.manifest.parameters
        named = {key: value for key, value in given.items() if key in MODEL_PARAMETERS and isinstance(value, str)}
        return {**given, **{key: self.names.get(value, value) for key, value in named.items()}}

    @property
    def versions(self) -> tuple[str, ...]:
        """Says which other versions it was made with."""
        return other_versions(self.capsule.manifest)


def open_capsule(file_id: str, content: bytes) -> OpenedCapsule:
    """Returns the capsule in a file, compared with a fresh pass where its models are here; CapsuleError where it cannot
    be read or trusted. The last one is remembered."""
    held = kept()
    if held is not None and held.file_id == file_id:
        return held
    capsule = read_capsule(BytesIO(content))
    names = {model.name: name for model in capsule.manifest.models if (name := _here(model))}
    return _keep(OpenedCapsule(file_id, capsule, names))


def bring_models(found: OpenedCapsule, content: bytes) -> None:
    """Makes runs of the models that are carried and not here yet; RunError where one is refused."""
    names = dict(found.names)
    for model in found.missing:
        if not model.shipped:
            names[model.name] = load_archive(BytesIO(content), inside=model.folder)
    _keep(replace(found, names=names))


def kept() -> OpenedCapsule | None:
    """Returns the capsule that this visitor opened last; None if there is none, or it was closed."""
    return st.session_state.get(_KEY)


def close() -> None:
    """Forgets the opened capsule; for callbacks."""
    st.session_state.pop(_KEY, None)


def _keep(found: OpenedCapsule) -> OpenedCapsule:
    if not found.missing:
        models = {there: _opened(here) for there, here in found.names.items()}
        found = replace(found, rows=verify(found.capsule, models))
    st.session_state[_KEY] = found
    return found


def _here(model: SavedModel) -> str | None:
    found = loading.models()
    if model.shipped:
        return next((each.name for each in found if each.shipped and each.name == model.name), None)
    return run_here(model, found)


def _opened(name: str) -> OpenedModel:
    try:
        return opened(loading.get_lab(name))
    except CheckpointError as error:
        raise CapsuleError(str(error)) from error
