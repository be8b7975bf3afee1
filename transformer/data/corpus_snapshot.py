"""A run's own copy of the file that it learns from, with its hash and the rule that splits it.

The copy makes a run independent of the original. A config names it relative to the run's folder, so that it is still
found when the folder is moved or renamed; a checkpoint may come without it. Not here: reading the file (pair_files.py).
"""

import hashlib
import shutil
from dataclasses import replace
from pathlib import Path, PurePath

from transformer.config import CorpusConfig
from transformer.data.corpora import CORPORA, Corpus, load_corpus
from transformer.data.corpus_cache import loaded
from transformer.data.unpacking import CorpusError
from transformer.files import read_json, write_json

FOLDER = "corpus"
SPLIT_RULE = (
    "CRC-32 of the UTF-8 bytes of the source sentence (NFC, single spaces), modulo 20: 0 is validation, 1 is held out "
    "(random), all others are training. Held-out pairs are in the order of their CRC-32, so that the first ones are a "
    "fair sample of a sorted file"
)
_RECORD = "source.json"


class AbsentCorpus(CorpusError):
    """A checkpoint came without its sentences."""


def keep_corpus(config: CorpusConfig, folder: Path) -> CorpusConfig:
    """Writes into `folder` what its corpus is, a file whole; returns the config that names it from there on."""
    (folder / FOLDER).mkdir()
    if config.name in CORPORA:
        longest = {} if config.longest is None else {"longest": config.longest}
        write_json(folder / FOLDER / "generator.json", {"name": config.name, "seed": config.seed, **longest})
        return config
    original = Path(config.name)
    copy = folder / FOLDER / original.name
    shutil.copyfile(original, copy)
    record = {
        "file": copy.name,
        "bytes": copy.stat().st_size,
        "sha256": _sha256(copy),
        "split": SPLIT_RULE,
        "read": str(loaded(config).report),
    }
    write_json(folder / FOLDER / _RECORD, record)
    return replace(config, name=f"{FOLDER}/{copy.name}")


def located(config: CorpusConfig, folder: Path) -> CorpusConfig:
    """The config with the path of the copy in this folder, for a new run or to load; any other config as it is."""
    if not is_own_copy(config):
        return config
    return replace(config, name=str(folder.resolve() / config.name))


def is_own_copy(config: CorpusConfig) -> bool:
    """Tells whether the config names a copy in the folder that the config belongs to."""
    return PurePath(config.name).parts[:-1] == (FOLDER,)


def load_own(config: CorpusConfig, folder: Path) -> Corpus:
    """The corpus of the run or checkpoint in this folder.

    AbsentCorpus where it came without its sentences, CorpusError where the copy is not what the run began with.
    """
    found = located(config, folder)
    if not is_own_copy(config):
        return load_corpus(found)
    path = Path(found.name)
    if not path.is_file():
        raise AbsentCorpus(f"{folder.resolve().name} comes without the sentences that it learned from ({path.name})")
    recorded = read_json(path.parent / _RECORD).get("sha256")
    if recorded is not None and recorded != _sha256(path):
        raise CorpusError(f"{path} is not the file any more that the run began with: put the original back")
    return load_corpus(found)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
