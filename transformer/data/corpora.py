"""Parallel text to learn from: generated tasks, the pronoun corpus, and files of one's own, cleaned and split.

Not here: how a generated pair is made (tasks.py, pronouns/), how a file is read (pair_files.py), and how pairs become
batches (data.py).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from transformer.access.ownership import may_use_file
from transformer.config import CorpusConfig
from transformer.data import emoji_names, pronouns
from transformer.data.cleaning import CleaningReport
from transformer.data.pair_files import PairFile, kinds_of_files, read_pairs
from transformer.data.tasks import N_TRAIN, TASKS, AlignmentUnit, GeneratedPairs, Task, held_out_pairs, symbol_task
from transformer.data.unpacking import CorpusError
from transformer.text.pairs import Pair, Split, shuffled, split_of, words
from transformer.text.scripts import unspaced_characters
from transformer.text.tokenizer import Tokenizer, TokenizerError, TokenizerKind, train_tokenizer

TOKENIZER_PAIRS_OF_TASK, TOKENIZER_PAIRS_OF_FILE = 10_000, 100_000
"""Training pairs that a tokenizer learns from at most: generated text has said all its words by then, in 0.3 s."""

_VOCABULARIES = ((5_000, 1_000), (60_000, 4_000), (1_000_000, 8_000))
"""Pieces for up to so many training pairs of a file."""

PRONOUNS = "pronouns-en-fr"
_EMOJI = "emoji-en-"
CORPORA: dict[str, str] = {
    PRONOUNS: "English sentences around it, whose French must choose between il and elle",
    **{name: task.description for name, task in TASKS.items()},
    **{
        f"{_EMOJI}{code}": f"Names of emoji in English and {language}, two to six words each"
        for code, language in emoji_names.LANGUAGES.items()
    },
}
"""The corpora that come with the lab: name and one line on each. A path names a file of one's own instead."""


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """Parallel text in disjoint splits: no source sentence is in two of them."""

    name: str
    description: str
    train: Sequence[Pair]
    """May be lazy: pair i is made when it is asked for."""
    validation: Sequence[Pair]
    held_out: Mapping[str, Sequence[Pair]]
    """Always "random"; "combinations" where known words meet in ways that training never shows; "seen words" and
    "unseen words" where it matters whether training shows every word of a source."""
    tokenizer: TokenizerKind
    """The kind of tokenizer that suits this text."""
    examples: tuple[str, ...]
    """Source sentences to offer, some of them held out."""
    source_name: str
    target_name: str
    task: bool
    """True if pairs are generated, so that a right answer is known for each."""
    primary_metric: Literal["exact_match", "bleu", "chrf"]
    """The first measure of success; BLEU and chrF are computed where it is one of them."""
    alignment_unit: AlignmentUnit = "word"
    """The unit of `Pair.alignment`: `words(text)`, or characters of the text."""
    vocab_size: int | None = None
    """The vocabulary that suits a bpe or unigram tokenizer of it; None takes what the tokenizer takes by itself."""
    vocabulary: tuple[str, ...] = ()
    """Texts whose words a sample of the training pairs might miss."""
    credit: str = ""
    """Whom the text comes from and under which licence, where that must be said."""
    report: CleaningReport | None = None
    """Counts of what cleaning a file dropped."""


def load_corpus(config: CorpusConfig | str) -> Corpus:
    """The corpus of this name or path; CorpusError where there is none, or the file cannot be used."""
    if isinstance(config, str):
        config = CorpusConfig(name=config)
    if config.longest is not None:
        try:
            return _task_corpus(symbol_task(config.name, config.longest), config.seed)
        except ValueError as error:
            raise CorpusError(str(error)) from error
    if config.name in TASKS:
        return _task_corpus(TASKS[config.name], config.seed)
    if config.name == PRONOUNS:
        return _pronoun_corpus()
    if config.name in CORPORA:
        return _emoji_corpus(config.name)
    path = Path(config.name)
    if not path.suffix:
        raise CorpusError(
            f"there is no corpus {config.name!r}: take one of {', '.join(CORPORA)}, or the path of a "
            f"{', '.join(kinds_of_files())} file"
        )
    check_file(config)
    return file_corpus(path, config.columns)


def check_file(config: CorpusConfig) -> None:
    """CorpusError where the corpus is a file of somebody else's run or upload."""
    if config.name not in CORPORA and not may_use_file(Path(config.name)):
        raise CorpusError(f"the file {Path(config.name).name} belongs to somebody else: bring a file of your own")


def names_emoji(name: str) -> bool:
    """Tells whether this is a corpus of names of emoji, which are no sentences."""
    return name in CORPORA and name.startswith(_EMOJI)


def corpus_tokenizer(corpus: Corpus, config: CorpusConfig) -> Tokenizer:
    """A tokenizer of the asked kind, learned from the corpus; TokenizerError for a vocabulary that it cannot fill.

    Where the config leaves the kind open, characters of scripts without spaces are pieces by themselves, beside those
    that suit the corpus: pieces of many characters would be whole clauses, each too rare to be learned. Where it leaves
    the size open and what suits the corpus has no room for its characters, or is more than the text can fill, it is
    what the tokenizer takes by itself.
    """
    kind = corpus.tokenizer if config.tokenizer == "auto" else config.tokenizer
    suited = corpus.vocab_size if kind in ("bpe", "unigram") else None
    apart = unspaced_characters(tokenizer_texts(corpus)) if suited is not None and config.tokenizer == "auto" else ()
    try:
        return train_tokenizer(
            kind, tokenizer_texts(corpus), config.vocab_size or (suited and suited + len(apart)), apart=apart
        )
    except TokenizerError:
        if suited is None or config.vocab_size is not None:
            raise
        return train_tokenizer(kind, tokenizer_texts(corpus), apart=apart)


def tokenizer_texts(corpus: Corpus) -> Iterator[str]:
    """Yields the texts for a tokenizer: both sides of evenly spaced training pairs, and the corpus' own vocabulary."""
    n_pairs = min(len(corpus.train), TOKENIZER_PAIRS_OF_TASK if corpus.task else TOKENIZER_PAIRS_OF_FILE)
    for i in range(n_pairs):
        pair = corpus.train[i * len(corpus.train) // n_pairs]
        yield pair.source
        yield pair.target
    yield from corpus.vocabulary


def file_corpus(path: Path, columns: str | None = None) -> Corpus:
    """The corpus in a file of pairs, cleaned and split by source sentence; CorpusError where it cannot be."""
    return corpus_of_pairs(read_pairs(path, columns))


def corpus_of_pairs(file: PairFile) -> Corpus:
    """The corpus of the pairs of a file; CorpusError where they are too few to learn from."""
    name = file.name
    pairs, report = file.clean()
    splits: dict[Split, list[Pair]] = {"train": [], "validation": [], "random": []}
    for pair in pairs:
        splits[split_of(pair.source)].append(pair)
    if not all(splits.values()):
        raise CorpusError(_too_few(file, report, len({pair.source for pair in pairs})))
    return Corpus(
        name=name,
        description=f"{report.kept:,} pairs from {name}",
        train=tuple(splits["train"]),
        validation=shuffled(splits["validation"]),
        held_out={"random": shuffled(splits["random"])},
        tokenizer="bpe",
        vocab_size=suited_vocabulary(len(splits["train"])),
        examples=_examples([*splits["random"], *splits["validation"]]),
        source_name=file.source_name,
        target_name=file.target_name,
        task=False,
        primary_metric="bleu",
        report=report,
    )


def suited_vocabulary(n_pairs: int) -> int:
    """Returns how many pieces suit so many pairs: each should be seen often enough to be learned."""
    return next((pieces for most, pieces in _VOCABULARIES if n_pairs <= most), 32_000)


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


def _emoji_corpus(name: str) -> Corpus:
    language = name.removeprefix(_EMOJI)
    splits = emoji_names.split_names(language)
    return Corpus(
        name=name,
        description=CORPORA[name],
        train=splits.train,
        validation=splits.validation,
        held_out={
            "random": splits.random,
            "seen words": splits.seen_words,
            "unseen words": splits.unseen_words,
        },
        tokenizer="bpe",
        vocab_size=1_000,
        examples=emoji_names.EXAMPLES,
        source_name="English",
        target_name=emoji_names.LANGUAGES[language],
        task=False,
        primary_metric="chrf",
        credit=emoji_names.CREDIT,
    )


def _examples(pairs: Sequence[Pair]) -> tuple[str, ...]:
    """Up to five different sources, evenly spaced, of 3 to 12 words where there are such."""
    sources = dict.fromkeys(pair.source for pair in pairs)
    good = [source for source in sources if 3 <= len(words(source)) <= 12]
    offered = good or list(sources)
    return tuple(offered[:: -(-len(offered) // 5)])


def _too_few(file: PairFile, report: CleaningReport, n_sources: int) -> str:
    """Why so few rows were kept, where one reason stands out."""
    name = file.name
    if report.read and report.dropped.get("malformed") == report.read:
        return (
            f"{name} has no row with two columns, a sentence and its translation ({report}); "
            f"its first row is {file.rows[0][0][:60]!r}. In .tsv and .txt a tab stands between them, in .csv a comma, "
            'and .jsonl has {"source": ..., "target": ...} on each line'
        )
    if report.kept > 1 and n_sources < report.kept / 2:
        return (
            f"{name} has too few different sources ({n_sources:,} in {report.kept:,} pairs) to train on some and to "
            "hold others out: bring at least 200"
        )
    return f"{name} has too few sentences to train on and to hold some out ({report}): bring at least 200"
