"""The options of the corpus field: corpora that come with the lab, uploaded files, the file that a run holds.

A corpus is named so that a URL can carry it and nobody can reach another file by it: the name of a corpus of the lab,
the key of an upload, or "run:ID" for the file in the folder of a run. No Streamlit here.
"""

import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from transformer.checkpoints.settings import CheckpointError, Settings, find_checkpoint, is_name, read_settings
from transformer.config import CorpusConfig
from transformer.data.corpora import CORPORA, CorpusError, check_file
from transformer.data.corpus_snapshot import FOLDER, located
from transformer.data.file_recipes import recipe_for
from transformer.data.recipes import Recipe
from transformer.data.uploads import find_upload, list_uploads
from transformer.files import read_json

_KEY = re.compile(r"[0-9a-f]{24}")
_RUN = "run:"


def offered() -> tuple[str, ...]:
    """Returns the corpora to choose from: the lab's, then one's own uploads, the newest first."""
    return (*CORPORA, *(upload.key for upload in list_uploads()))


def is_known(corpus: str) -> bool:
    """Tells whether there is such a corpus."""
    try:
        config_name(corpus)
    except CorpusError:
        return False
    return True


def config_name(corpus: str) -> str:
    """Returns what CorpusConfig.name takes: a name of the lab or a path. CorpusError where the file is not here."""
    if corpus in CORPORA:
        return corpus
    if _KEY.fullmatch(corpus):
        return str(find_upload(corpus).path)
    run = corpus.removeprefix(_RUN)
    if run == corpus or not is_name(run):
        raise CorpusError(f"there is no corpus “{corpus[:40]}”; there are {', '.join(CORPORA)}, and your uploads")
    try:
        folder = find_checkpoint(run, folders=False)
        found = located(read_settings(folder).corpus, folder)
    except CheckpointError as error:
        raise CorpusError(f"the corpus of {run} is not here: {error}") from error
    check_file(found)
    return found.name


def of_run(settings: Settings) -> str:
    """Returns the corpus of a run, as `config_name` takes it."""
    if settings.corpus.name in CORPORA:
        return settings.corpus.name
    key = _key_of_copy(settings.name)
    return key if key and is_known(key) else f"{_RUN}{settings.name}"


def recipe_of(
    corpus: str, columns: str | None = None, tokenizer: str | None = None, vocab_size: float | None = None
) -> Recipe:
    """Returns the recipe of a corpus, or of these columns of a file cut by this tokenizer, where such a one can be;
    of a file that is not here, one for few pairs."""
    try:
        config = CorpusConfig(name=config_name(corpus), columns=columns)
    except (CorpusError, ValueError):
        return recipe_for(CorpusConfig(name=""))
    with suppress(ValueError, TypeError):
        config = replace(config, tokenizer=tokenizer or "auto", vocab_size=vocab_size)
    return recipe_for(config)


def of_path(upload: Path) -> str:
    """Returns the name of an uploaded file, as the field has it."""
    return upload.parent.name


def title(corpus: str) -> str:
    """Returns a corpus's label in the field; for an upload the name of its file."""
    if corpus in CORPORA:
        return corpus
    try:
        file = Path(config_name(corpus)).name
    except CorpusError:
        return corpus
    return f"{file}, of {corpus.removeprefix(_RUN)}" if corpus.startswith(_RUN) else file


def titles(corpora: Sequence[str]) -> dict[str, str]:
    """Returns the label of each corpus; files of one name are told apart by their keys."""
    found = {corpus: title(corpus) for corpus in corpora}
    counts = Counter(found.values())
    return {corpus: f"{name} · {corpus[:4]}" if counts[name] > 1 else name for corpus, name in found.items()}


def is_upload(corpus: str) -> bool:
    """Tells whether the corpus is a file, not one that comes with the lab."""
    return corpus not in CORPORA


def _key_of_copy(run: str) -> str:
    """Returns the key that the run's own copy of a file would have as an upload; empty where it has none."""
    try:
        found = read_json(find_checkpoint(run, folders=False) / FOLDER / "source.json")
    except CheckpointError:
        return ""
    return str(found.get("sha256", ""))[:24]
