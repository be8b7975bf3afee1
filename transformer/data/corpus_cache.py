"""A corpus with its tokenizer, made once for all who ask: the page that describes it, and the run that learns it."""

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from transformer.config import CorpusConfig
from transformer.data.corpora import CORPORA, Corpus, check_file, corpus_tokenizer, load_corpus, tokenizer_texts
from transformer.data.statistics import CorpusStats, corpus_stats
from transformer.text.tokenizer import Tokenizer, TokenizerKind, train_nearest

_KEPT, _KEPT_TOKENIZERS = 8, 32


@dataclass(frozen=True)
class LearnedTokenizer:
    """A tokenizer of any kind and size, learned from a corpus whatever suits that."""

    corpus: CorpusConfig
    kind: TokenizerKind
    size: int

    @property
    def tokenizer(self) -> Tokenizer:
        """Returns it, shared, of the nearest size that the text allows; CorpusError or TokenizerError."""
        return _learned(self, stamp(self.corpus))


def prepared(config: CorpusConfig) -> tuple[Corpus, Tokenizer]:
    """The corpus and the tokenizer that a run of this config gets; a file that has changed since is read again.

    Both are shared: change nothing in them. CorpusError or TokenizerError where they cannot be made.
    """
    return loaded(config), _tokenizer(config, stamp(config))


def loaded(config: CorpusConfig) -> Corpus:
    """The corpus alone, the same for every tokenizer."""
    return _corpus(replace(config, tokenizer="auto", vocab_size=None), stamp(config))


def counted(config: CorpusConfig) -> CorpusStats:
    """The statistics of the corpus and its tokens. Raises as `prepared`."""
    return _stats(config, stamp(config))


@lru_cache(maxsize=_KEPT)
def _stats(config: CorpusConfig, stamp: tuple[int, int]) -> CorpusStats:
    return corpus_stats(*prepared(config))


@lru_cache(maxsize=_KEPT)
def _corpus(config: CorpusConfig, stamp: tuple[int, int]) -> Corpus:
    return load_corpus(config)


@lru_cache(maxsize=_KEPT)
def _tokenizer(config: CorpusConfig, stamp: tuple[int, int]) -> Tokenizer:
    return corpus_tokenizer(loaded(config), config)


@lru_cache(maxsize=_KEPT_TOKENIZERS)
def _learned(wanted: LearnedTokenizer, stamp: tuple[int, int]) -> Tokenizer:
    return train_nearest(wanted.kind, tokenizer_texts(loaded(wanted.corpus)), wanted.size)


def stamp(config: CorpusConfig) -> tuple[int, int]:
    """Time of change and size of a file; zeros for a generated corpus, and where there is no file.

    All that is kept of a corpus is found by its stamp, so that here CorpusError refuses what is somebody else's.
    """
    check_file(config)
    if config.name in CORPORA:
        return 0, 0
    try:
        found = Path(config.name).stat()
    except (OSError, ValueError):
        return 0, 0
    return found.st_mtime_ns, found.st_size
