"""Parallel text to learn from: generated tasks, the pronoun corpus, and files of one's own, cleaned and split.

Not here: how a generated pair is made (tasks.py, pronouns/), and how pairs become batches (data.py).
"""

import csv
import gzip
import io
import json
import unicodedata
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from transformer import pronouns
from transformer.config import CorpusConfig
from transformer.pairs import Pair, Split, split_of, words
from transformer.tasks import N_TRAIN, TASKS, AlignmentUnit, GeneratedPairs, Task, held_out_pairs
from transformer.tokenizer import Tokenizer, TokenizerKind, train_tokenizer

MAX_CHARACTERS = 500
"""Longest side of a pair that cleaning keeps."""
MAX_FILE_BYTES = 256 * 2**20
"""Largest file that is read, measured after decompression."""
TOKENIZER_PAIRS_OF_TASK, TOKENIZER_PAIRS_OF_FILE = 10_000, 100_000
"""Training pairs that a tokenizer learns from at most: generated text has said all its words by then, in 0.3 s."""

PRONOUNS = "pronouns-en-fr"
CORPORA: dict[str, str] = {
    PRONOUNS: "English sentences around it, whose French must choose between il and elle",
    **{name: task.description for name, task in TASKS.items()},
}
"""The corpora that come with the lab: name and one line on each. A path names a file of one's own instead."""


class CorpusError(Exception):
    """A corpus cannot be used; the message says why and what to do."""


@dataclass(frozen=True)
class CleaningReport:
    """What became of the rows of a file. Each dropped row is counted once, under its first reason."""

    read: int
    kept: int
    malformed: int
    """Rows without two columns, or that are not JSON with a source and a target."""
    empty: int
    """Pairs with a side that has no word."""
    too_long: int
    duplicate: int

    def __str__(self) -> str:
        reasons = [
            f"{count:,} {name}"
            for name, count in (
                ("malformed", self.malformed),
                ("with an empty side", self.empty),
                ("too long", self.too_long),
                ("repeated", self.duplicate),
            )
            if count
        ]
        return f"{self.kept:,} of {self.read:,} pairs kept" + (f"; dropped: {', '.join(reasons)}" if reasons else "")


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """Parallel text in disjoint splits: no source sentence is in two of them."""

    name: str
    description: str
    train: Sequence[Pair]
    """May be lazy: pair i is made when it is asked for."""
    validation: Sequence[Pair]
    held_out: Mapping[str, Sequence[Pair]]
    """Always "random"; "combinations" where known words meet in ways that training never shows."""
    tokenizer: TokenizerKind
    """The kind of tokenizer that suits this text."""
    examples: tuple[str, ...]
    """Source sentences to offer, some of them held out."""
    source_name: str
    target_name: str
    task: bool
    """Whether pairs are generated, so that a right answer is known for each."""
    primary_metric: Literal["exact_match", "bleu"]
    alignment_unit: AlignmentUnit = "word"
    """What `Pair.alignment` counts in: `words(text)`, or characters of the text."""
    vocabulary: tuple[str, ...] = ()
    """Texts whose words a sample of the training pairs might miss."""
    report: CleaningReport | None = None
    """What cleaning a file dropped."""


def load_corpus(config: CorpusConfig | str) -> Corpus:
    """The corpus of this name or path; CorpusError where there is none, or the file cannot be used."""
    if isinstance(config, str):
        config = CorpusConfig(name=config)
    if config.name in TASKS:
        return _task_corpus(TASKS[config.name], config.seed)
    if config.name == PRONOUNS:
        return _pronoun_corpus()
    path = Path(config.name)
    if not path.suffix:
        raise CorpusError(
            f"there is no corpus {config.name!r}: take one of {', '.join(CORPORA)}, or the path of a "
            f"{', '.join(_READERS)} file"
        )
    return file_corpus(path)


def corpus_tokenizer(corpus: Corpus, config: CorpusConfig) -> Tokenizer:
    """A tokenizer of the asked kind, learned from the corpus; TokenizerError for a vocabulary that it cannot fill."""
    kind = corpus.tokenizer if config.tokenizer == "auto" else config.tokenizer
    return train_tokenizer(kind, tokenizer_texts(corpus), config.vocab_size)


def tokenizer_texts(corpus: Corpus) -> Iterator[str]:
    """What a tokenizer learns from: both sides of evenly spaced training pairs, and the corpus' own vocabulary."""
    n_pairs = min(len(corpus.train), TOKENIZER_PAIRS_OF_TASK if corpus.task else TOKENIZER_PAIRS_OF_FILE)
    for i in range(n_pairs):
        pair = corpus.train[i * len(corpus.train) // n_pairs]
        yield pair.source
        yield pair.target
    yield from corpus.vocabulary


def file_corpus(path: Path) -> Corpus:
    """The corpus in a TSV, CSV or JSONL file, cleaned and split by source sentence; CorpusError where it cannot be."""
    rows = read_rows(path)
    pairs, report = clean_pairs(rows)
    splits: dict[Split, list[Pair]] = {"train": [], "validation": [], "random": []}
    for pair in pairs:
        splits[split_of(pair.source)].append(pair)
    if not all(splits.values()):
        raise CorpusError(
            f"{path.name} has too few sentences to train on and to hold some out ({report}): bring at least 200"
        )
    return Corpus(
        name=path.name,
        description=f"{report.kept:,} pairs from {path.name}",
        train=tuple(splits["train"]),
        validation=tuple(splits["validation"]),
        held_out={"random": tuple(splits["random"])},
        tokenizer="bpe",
        examples=_examples([*splits["random"], *splits["validation"]]),
        source_name="source",
        target_name="target",
        task=False,
        primary_metric="bleu",
        report=report,
    )


def read_rows(path: Path) -> list[tuple[str, str] | None]:
    """The two sides of each row of a file, None for a row that has not two; CorpusError where it cannot be read.

    By its name: .tsv or .txt (source, tab, target; further columns are ignored), .csv (the same, comma-separated) or
    .jsonl ({"source": ..., "target": ...} or [source, target] on each line), each also with .gz. UTF-8 only. A first
    row "source, target" is a header.
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    compressed = suffixes[-1:] == [".gz"]
    kind = "".join(suffixes[:-1][-1:] if compressed else suffixes[-1:])
    if kind not in _READERS:
        raise CorpusError(f"{path.name} is not a kind of file that can be read: bring {', '.join(_READERS)} or its .gz")
    text = _read_text(path, compressed)
    try:
        rows = list(_READERS[kind](text))
    except csv.Error as error:
        raise CorpusError(f"{path.name} is not a well-formed CSV file: {error}") from error
    first = rows[0] if rows else None
    is_header = first is not None and [side.strip().lower() for side in first] == ["source", "target"]
    return rows[is_header:]


def clean_pairs(rows: Iterable[tuple[str, str] | None]) -> tuple[list[Pair], CleaningReport]:
    """The usable pairs among these rows, in order, and what was dropped.

    Text is normalised to NFC, and white space to single spaces. Dropped are rows that are None, pairs with a side that
    has no word or more than MAX_CHARACTERS characters, and repeated pairs. Several translations of one source stay.
    """
    kept: dict[tuple[str, str], Pair] = {}
    read = malformed = empty = too_long = duplicate = 0
    for row in rows:
        read += 1
        if row is None:
            malformed += 1
            continue
        source, target = (" ".join(unicodedata.normalize("NFC", side).split()) for side in row)
        if max(len(source), len(target)) > MAX_CHARACTERS:
            too_long += 1
        elif not (words(source) and words(target)):
            empty += 1
        elif (source, target) in kept:
            duplicate += 1
        else:
            kept[source, target] = Pair(source, target)
    return list(kept.values()), CleaningReport(read, len(kept), malformed, empty, too_long, duplicate)


def _task_corpus(task: Task, seed: int) -> Corpus:
    return Corpus(
        name=task.name,
        description=task.description,
        train=GeneratedPairs(task, seed, "train", N_TRAIN),
        validation=held_out_pairs(task, seed, "validation"),
        held_out={"random": held_out_pairs(task, seed, "random")},
        tokenizer=task.tokenizer,
        examples=task.examples,
        source_name=task.source_name,
        target_name=task.target_name,
        task=True,
        primary_metric="exact_match",
        alignment_unit=task.alignment_unit,
        vocabulary=task.vocabulary,
    )


def _pronoun_corpus() -> Corpus:
    splits = pronouns.split()
    return Corpus(
        name=PRONOUNS,
        description=CORPORA[PRONOUNS],
        train=splits.train,
        validation=splits.validation,
        held_out=splits.held_out,
        tokenizer="words",
        examples=pronouns.EXAMPLES,
        source_name="English",
        target_name="French",
        task=True,
        primary_metric="exact_match",
    )


def _examples(pairs: Sequence[Pair]) -> tuple[str, ...]:
    """Up to five different sources, evenly spaced, of 3 to 12 words where there are such."""
    sources = dict.fromkeys(pair.source for pair in pairs)
    good = [source for source in sources if 3 <= len(words(source)) <= 12]
    offered = good or list(sources)
    return tuple(offered[:: -(-len(offered) // 5)])


def _read_text(path: Path, compressed: bool) -> str:
    try:
        with gzip.open(path) if compressed else path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError as error:
        raise CorpusError(f"there is no file {path}") from error
    except (OSError, EOFError, zlib.error) as error:
        raise CorpusError(f"{path.name} cannot be read: {error}") from error
    if len(content) > MAX_FILE_BYTES:
        raise CorpusError(f"{path.name} is larger than {MAX_FILE_BYTES:,} bytes: bring a part of it")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CorpusError(f"{path.name} is not UTF-8 text (byte {error.start:,}): save it as UTF-8") from error


def _tsv_rows(text: str) -> Iterator[tuple[str, str] | None]:
    # Not the csv module: a quotation mark in a TSV file is a character like any other.
    for line in text.split("\n"):
        if line.strip():
            yield _two(line.split("\t"))


def _csv_rows(text: str) -> Iterator[tuple[str, str] | None]:
    for cells in csv.reader(io.StringIO(text, newline="")):
        if cells:
            yield _two(cells)


def _jsonl_rows(text: str) -> Iterator[tuple[str, str] | None]:
    for line in text.split("\n"):
        if line.strip():
            yield _from_json(line)


_READERS: dict[str, Callable[[str], Iterator[tuple[str, str] | None]]] = {
    ".tsv": _tsv_rows,
    ".txt": _tsv_rows,
    ".csv": _csv_rows,
    ".jsonl": _jsonl_rows,
}


def _two(cells: Sequence[str]) -> tuple[str, str] | None:
    return (cells[0], cells[1]) if len(cells) >= 2 else None


def _from_json(line: str) -> tuple[str, str] | None:
    try:
        match json.loads(line):
            case {"source": str(source), "target": str(target)} | [str(source), str(target), *_]:
                (source + target).encode()  # JSON can spell lone surrogates, which are no text
                return source, target
    except (ValueError, RecursionError):
        pass  # counted as malformed
    return None
