"""A model as one zip file, to keep or to hand on, and the way back in.

The archive is a checkpoint: config.json, tokenizer, weights, history, card and note, in one folder. Left out are the
snapshots, the state to resume from and, unless it is asked for, the file that the model learned from. An archive may
come from anywhere, so that nothing in it is believed: see untrusted_zip.py for its frame; here its content is checked.
"""

import hashlib
import json
import os
import shutil
import time
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from io import BufferedReader, BufferedWriter, BytesIO
from pathlib import Path, PurePath
from typing import Any

from transformer.access import audit
from transformer.access.people import acting, for_the_operator
from transformer.checkpoints.settings import (
    ABOUT_FILE,
    CARD_FILE,
    CONFIG_FILE,
    METRICS_FILE,
    SAMPLES_FILE,
    WEIGHTS_FILE,
    CheckpointError,
    Settings,
    find_checkpoint,
    free_names,
    is_pickle,
    read_settings,
    settings_json,
    write_settings,
)
from transformer.checkpoints.store import history, load_checkpoint
from transformer.config import CorpusConfig, ModelConfig
from transformer.data.corpora import CORPORA
from transformer.data.corpus_snapshot import FOLDER, keep_corpus, located
from transformer.data.uploads import MAX_UPLOAD_BYTES, safe_name
from transformer.files import new_folder, replacing, runs_folder, write_json
from transformer.model.families import count_parameters
from transformer.runs.labels import LONGEST_NOTE, about
from transformer.runs.limits.quota import check_quota, write_ticket
from transformer.runs.status import RunError, Status, check_own, read_status, write_status
from transformer.runs.untrusted_zip import ArchiveError, Member, members_of

TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model")
LOADED = "loaded from an archive"
"""Why a run that came in an archive is finished."""
MOST_WEIGHTS = 1_000_000_000
"""Bytes; the paper's base model has 260 million, its big one 850 million."""
MOST_NUMBERS = MOST_WEIGHTS // 4
_LEAST_HEADER = 1_000_000
"""Bytes that the weights' file may hold beside the weights."""
_MOST = {
    CONFIG_FILE: 2**20,
    **dict.fromkeys(TOKENIZER_FILES, 2**25),
    **dict.fromkeys((METRICS_FILE, SAMPLES_FILE), 2**26),
    CARD_FILE: 2**20,
    ABOUT_FILE: 2**16,
}
MODEL_FILES = (*_MOST, WEIGHTS_FILE)
"""The files that make a model in an archive, but for what it learned from."""
_WEIGHTS_RATIO, _TEXT_RATIO = 8.0, 200.0
"""Trained weights shrink by a tenth, the history of a run to a tenth."""
_CORPUS_KINDS = (".tsv", ".txt", ".csv", ".jsonl", ".gz")
_THE_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The same model gives the same archive."""
_NUMBERS = (
    *("loss", "learning_rate", "gradient_norm", "tokens", "tokens_per_s", "perplexity", "exact_match"),
    *("bleu", "chrf", "count", "elapsed_s"),
)


def write_archive(name: str, file: BytesIO | BufferedWriter, *, with_corpus: bool = False) -> None:
    """Writes a run or shipped model as a zip archive. RunError where it has no weights, or no corpus file to add, or is
    somebody else's."""
    try:
        folder = find_checkpoint(name, folders=False)
        settings = read_settings(folder)
    except CheckpointError as error:
        raise RunError(str(error)) from error
    check_own(folder, "download it")
    if not (folder / WEIGHTS_FILE).is_file():
        raise RunError(f"{name} has no weights yet: let it train for a moment first")
    corpus = corpus_file(settings, folder)
    if with_corpus and (corpus is None or not corpus.is_file()):
        raise RunError(f"{name} has no corpus file to add: {settings.corpus.name} is not a file here")
    audit.record("download", folder, with_corpus=with_corpus)
    with zipfile.ZipFile(file, "w") as archive:
        packing = Packing(archive)
        packing.add_model(folder, f"{folder.name}/")
        if with_corpus and corpus is not None:
            packing.add(f"{folder.name}/{_packed_corpus(corpus)}", corpus.read_bytes())


class Packing:
    """Writes files into a zip archive whose bytes depend on nothing but theirs, and keeps a checksum of each."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self.checksums: dict[str, str] = {}
        """The SHA-256 of every file so far, by its path in the archive."""

    def add(self, path: str, content: bytes) -> None:
        """Adds a file."""
        info = zipfile.ZipInfo(path, _THE_EPOCH)
        info.external_attr = 0o644 << 16
        # Weights hardly shrink, and take long to.
        stored = PurePath(path).suffix == PurePath(WEIGHTS_FILE).suffix
        info.compress_type = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
        self._archive.writestr(info, content)
        self.checksums[path] = hashlib.sha256(content).hexdigest()

    def add_model(self, folder: Path, inside: str) -> None:
        """Adds what makes a model of a folder, below `inside`; CheckpointError where its settings cannot be read."""
        settings = read_settings(folder)
        corpus = corpus_file(settings, folder)
        own = settings.corpus if corpus is None else replace(settings.corpus, name=_packed_corpus(corpus))
        self.add(inside + CONFIG_FILE, settings_json(replace(settings, corpus=own)).encode())
        for path in sorted(folder.iterdir()):
            if path.name in (*TOKENIZER_FILES, WEIGHTS_FILE, CARD_FILE):
                self.add(inside + path.name, path.read_bytes())
            elif path.name in (METRICS_FILE, SAMPLES_FILE):  # whole rows: the trainer may be at work on the last one
                content = path.read_bytes()
                self.add(inside + path.name, content[: content.rfind(b"\n") + 1])
        if note := about(folder).note:
            self.add(inside + ABOUT_FILE, json.dumps({"note": note}, ensure_ascii=False).encode())


def save_archive(name: str, path: Path, *, with_corpus: bool = False) -> None:
    """`write_archive` into a file, which is there whole or not at all; FileExistsError where it is there already."""
    if path.exists():
        raise FileExistsError(f"{path} is already there; choose another name or remove it first")
    with replacing(path) as temporary, temporary.open("wb") as file:
        write_archive(name, file, with_corpus=with_corpus)


def corpus_file(settings: Settings, folder: Path) -> Path | None:
    """The file that the model in a folder learned from; None for a generated corpus."""
    return None if settings.corpus.name in CORPORA else Path(located(settings.corpus, folder).name)


def _packed_corpus(corpus: Path) -> str:
    """The path in an archive of the file that a model learned from."""
    return f"{FOLDER}/{safe_name(corpus.name)}"


def load_archive(file: BytesIO | BufferedReader, *, inside: str = "") -> str:
    """The id of the run that the archive becomes: its own name, with a number where that is taken.

    Of an archive that holds more than a model, `inside` is the folder of the model, with a / at its end. The run
    belongs to whom the code runs for. RunError, in a sentence, for an archive that is damaged, foreign, of another
    version or not to be trusted; nothing is left behind then.
    """
    owner = acting().id
    check_quota(owner, adding=file.seek(0, os.SEEK_END))
    file.seek(0)
    try:
        return _load(model_members(file, inside), owner)
    except (ArchiveError, CheckpointError, ValueError, RecursionError) as error:
        raise RunError(f"the archive was not loaded: {error}") from error
    except OSError as error:
        raise RunError(f"the archive could not be stored: {error.strerror or error}") from error


def _load(members: Mapping[str, Member], owner: str) -> str:
    root = runs_folder()
    wanted = str(_config(members).get("name", ""))
    for name in free_names(wanted):
        try:
            with new_folder(root / name) as folder:
                unpack_model(members, folder, name)
                write_ticket(folder, owner, read_status(folder).elapsed_s)
        except FileExistsError:  # another process took the name in this moment
            continue
        return name
    raise AssertionError("names do not run out")


def model_members(file: BytesIO | BufferedReader, inside: str = "") -> dict[str, Member]:
    """The files of the one model in an archive, or in a folder of it; ArchiveError where that is not one."""
    return _own_members({path: member for path, member in members_of(file).items() if path.startswith(inside)})


def unpack_model(members: Mapping[str, Member], folder: Path, name: str) -> None:
    """Writes the files of a model into a new folder, and checks that it is a model; ArchiveError where it is none."""
    try:
        _fill(folder, members, name)
    except CheckpointError as error:  # which names a temporary folder
        raise ArchiveError(_without(str(error), folder)) from error


def _fill(folder: Path, members: Mapping[str, Member], name: str) -> None:
    for file in (CONFIG_FILE, *TOKENIZER_FILES, METRICS_FILE, SAMPLES_FILE, CARD_FILE):
        if file in members:
            (folder / file).write_bytes(members[file].read())
    settings = read_settings(folder)
    _check_sizes(settings, members[WEIGHTS_FILE])
    members[WEIGHTS_FILE].copy_to(folder / WEIGHTS_FILE)
    _check_texts(folder)
    checkpoint = load_checkpoint(folder)
    write_settings(folder, replace(settings, name=name, corpus=_bring_corpus(settings.corpus, members, folder)))
    if note := _note(members):
        write_json(folder / ABOUT_FILE, {"note": note})
    seconds = max((row["elapsed_s"] for row in history(folder)), default=0.0)
    write_status(
        folder, Status(state="finished", step=checkpoint.step, elapsed_s=seconds, reason=LOADED, heartbeat=time.time())
    )


def _bring_corpus(corpus: CorpusConfig, members: Mapping[str, Member], folder: Path) -> CorpusConfig:
    """Writes what the model learned from, where it came along; returns the config that names it.

    That is only ever a file in this folder: an archive must not choose what else is read here.
    """
    if corpus.name in CORPORA:
        return keep_corpus(corpus, folder)
    own = replace(corpus, name=f"{FOLDER}/{safe_name(corpus.name)}")
    if own.name not in members or Path(own.name).suffix.lower() not in _CORPUS_KINDS:
        return own
    members[own.name].check(most=MAX_UPLOAD_BYTES, ratio=_TEXT_RATIO)
    incoming = folder / ".incoming"
    incoming.mkdir()
    members[own.name].copy_to(incoming / Path(own.name).name)
    # The folder gets its owner once it is whole: until then nobody but the operator may read its file.
    for_the_operator(keep_corpus)(replace(corpus, name=str(incoming / Path(own.name).name)), folder)
    shutil.rmtree(incoming)
    return own


def _own_members(found: Mapping[str, Member]) -> dict[str, Member]:
    """The files of the one model in an archive by their path in its folder; ArchiveError where that is not one."""
    if pickled := [path for path in found if is_pickle(PurePath(path))]:
        raise ArchiveError(
            f"it holds {pickled[0]}, and pickled weights are refused because reading them can run any code"
        )
    configs = [member for member in found.values() if member.name == CONFIG_FILE and not _is_litter(member.path)]
    if not configs:
        raise ArchiveError(f"it is no model: it has no {CONFIG_FILE}")
    if len(configs) > 1:
        raise ArchiveError(f"it holds {len(configs)} models, {configs[0].path} and others: pack one at a time")
    prefix = configs[0].path.removesuffix(CONFIG_FILE)
    own = {path.removeprefix(prefix): member for path, member in found.items() if path.startswith(prefix)}
    if WEIGHTS_FILE not in own:
        raise ArchiveError(f"it has no {WEIGHTS_FILE}")
    if not any(name in own for name in TOKENIZER_FILES):
        raise ArchiveError(f"it has no tokenizer: neither {' nor '.join(TOKENIZER_FILES)} is there")
    for name, most in _MOST.items():
        if name in own:
            own[name].check(most=most, ratio=_TEXT_RATIO)
    own[WEIGHTS_FILE].check(most=MOST_WEIGHTS, ratio=_WEIGHTS_RATIO)
    return own


def _is_litter(path: str) -> bool:
    """Tells whether macOS added this to an archive."""
    return path.startswith("__MACOSX/")


def _config(members: Mapping[str, Member]) -> dict[str, Any]:
    try:
        content = json.loads(members[CONFIG_FILE].read())
    except (ValueError, RecursionError) as error:
        raise ArchiveError(f"its {CONFIG_FILE} cannot be read: it is not JSON") from error
    return content if isinstance(content, dict) else {}


def _check_sizes(settings: Settings, weights: Member) -> None:
    """Before anything is built: a config may ask for more than there is, and weights may be longer than it needs."""
    m = settings.model
    numbers = _most_numbers(m) if isinstance(m, ModelConfig) else count_parameters(m)
    if numbers > MOST_NUMBERS:
        raise ArchiveError(f"its model has about {numbers:,} weights, and at most {MOST_NUMBERS:,} are read")
    weights.check(most=4 * numbers + _LEAST_HEADER, ratio=_WEIGHTS_RATIO)


def _most_numbers(m: ModelConfig) -> int:
    """Returns no less than the number of a Transformer's weights."""
    attention, inner = 4 * m.d_model * (m.d_model + 1), m.d_ff * (2 * m.d_model + 1) + m.d_model
    layers = m.n_encoder_layers * (attention + inner) + m.n_decoder_layers * (2 * attention + inner)
    norms = 2 * m.d_model * (2 * m.n_encoder_layers + 3 * m.n_decoder_layers + 2)
    return layers + norms + 3 * m.d_model * (m.vocab_size + 1) + 2 * m.d_model * m.max_length


def _check_texts(folder: Path) -> None:
    """The history and the card, which pages draw and show."""
    for name in (METRICS_FILE, SAMPLES_FILE, CARD_FILE):
        path = folder / name
        if not path.is_file():
            continue
        try:
            path.read_bytes().decode("utf-8")
        except UnicodeDecodeError as error:
            raise ArchiveError(f"its {name} is not UTF-8 text") from error
    for row in _rows(folder, METRICS_FILE):
        _check_row(METRICS_FILE, row, ("split",))
        for name in _NUMBERS:
            if not _is_number(row.get(name)):
                raise ArchiveError(f"its {METRICS_FILE} has the {name} {str(row[name])[:40]!r}, which is not a number")
        if row.get("elapsed_s") is None:
            raise ArchiveError(f"its {METRICS_FILE} has a row without elapsed_s")
    for row in _rows(folder, SAMPLES_FILE):
        _check_row(SAMPLES_FILE, row, ("source", "translation"))


def _rows(folder: Path, file: str) -> Iterator[dict[str, Any]]:
    """Yields the rows of a file, without lines that a crash cut short.

    ArchiveError for a line that no trainer writes.
    """
    path = folder / file
    for line in path.read_bytes().splitlines() if path.is_file() else ():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        except RecursionError as error:
            raise ArchiveError(f"its {file} has a line of too many brackets") from error
        if not isinstance(row, dict):
            raise ArchiveError(f"its {file} has a line that is not an object")
        yield row


def _check_row(file: str, row: Mapping[str, Any], texts: tuple[str, ...]) -> None:
    step = row.get("step")
    if isinstance(step, bool) or not isinstance(step, int) or not 0 <= step < 10**12:
        raise ArchiveError(f"its {file} has the step {str(step)[:40]!r}, which is not a whole number")
    for name in texts:
        if not isinstance(row.get(name), str):
            raise ArchiveError(f"its {file} has the {name} {str(row.get(name))[:40]!r}, which is not a text")


def _is_number(value: object) -> bool:
    if value is None:
        return True
    return isinstance(value, int | float) and not isinstance(value, bool) and not abs(value) > 1e300


def _note(members: Mapping[str, Member]) -> str:
    if ABOUT_FILE not in members:
        return ""
    try:
        content = json.loads(members[ABOUT_FILE].read())
    except (ValueError, RecursionError):
        return ""
    note = content.get("note") if isinstance(content, dict) else None
    return note[:LONGEST_NOTE] if isinstance(note, str) else ""


def _without(text: str, folder: Path) -> str:
    """A message without the path of a folder that is gone by now."""
    return text.replace(f"{folder}/", "its ").replace(str(folder), "it")
