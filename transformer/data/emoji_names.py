"""The names of emoji in English and 13 other languages: real translations, two to six words long.

They come with the `emoji` package. A name and its skin-tone variants are one *base name* and stay in one split; of held
out base names only the name without a tone is kept, so that each counts once. Not here: Corpus (corpora.py).
"""

import re
import unicodedata
import zlib
from dataclasses import dataclass
from functools import cache, cached_property

from transformer.text.pairs import Pair, Split, words

LANGUAGES: dict[str, str] = {
    "ar": "Arabic",
    "de": "German",
    "es": "Spanish",
    "fa": "Persian",
    "fr": "French",
    "id": "Indonesian",
    "it": "Italian",
    "ja": "Japanese",
    "ko": "Korean",
    "pt": "Portuguese",
    "ru": "Russian",
    "tr": "Turkish",
    "zh": "Chinese",
}
"""The languages of the package beside English, by its codes."""
CREDIT = (
    "names of emoji from the `emoji` package (New BSD License, Taehoon Kim and Kevin Wurster), which has them from the "
    "Unicode Common Locale Data Repository, CLDR (Unicode License v3, Unicode, Inc.)."
)
EXAMPLES = ("woman golfing", "man running", "woman elf", "man kneeling facing right", "person tipping hand")
"""Held-out names of words that training shows. Both shipped models name the first three right."""

_TONE = re.compile(r" (?:medium-dark|medium-light|dark|light|medium) skin tone\b")
_NAMED, _QUALIFIED = 1, 2
"""`emoji`'s status of components and of whole emoji; the others spell the same names with fewer code points."""


@dataclass(frozen=True)
class EmojiSplits:
    """The pairs of one language. No base name is in two of train, validation and random."""

    train: tuple[Pair, ...]
    validation: tuple[Pair, ...]
    random: tuple[Pair, ...]

    @cached_property
    def seen_words(self) -> tuple[Pair, ...]:
        """Held-out pairs all of whose English words occur in training."""
        return tuple(pair for pair in self.random if self._training_words.issuperset(words(pair.source)))

    @cached_property
    def unseen_words(self) -> tuple[Pair, ...]:
        """Held-out pairs with an English word that training never shows."""
        return tuple(pair for pair in self.random if not self._training_words.issuperset(words(pair.source)))

    @cached_property
    def _training_words(self) -> frozenset[str]:
        return frozenset(word for pair in self.train for word in words(pair.source))


@cache
def split_names(language: str) -> EmojiSplits:
    """The names in this language of LANGUAGES, cleaned and split."""
    splits: dict[Split, dict[Pair, None]] = {"train": {}, "validation": {}, "random": {}}
    for pair in _pairs(language):
        base = base_name(pair.source)
        split = split_of_base(base)
        if split == "train" or pair.source == base:
            splits[split][pair] = None
    return EmojiSplits(*(tuple(splits[split]) for split in ("train", "validation", "random")))


def base_name(name: str) -> str:
    """A cleaned English name without its skin tones: "woman dancing dark skin tone" -> "woman dancing"."""
    return _TONE.sub("", name)


def split_of_base(base: str) -> Split:
    """85 % train, 5 % validation, 10 % random; what `pairs.split_of` holds out is held out here too.

    There are only about 1,900 base names: 5 % of them would be too few to score.
    """
    match zlib.crc32(base.encode()) % 20:
        case 0:
            return "validation"
        case 1 | 2:
            return "random"
        case _:
            return "train"


def cleaned(name: str) -> str:
    """ ":woman_dancing:" -> "woman dancing"."""
    return " ".join(unicodedata.normalize("NFC", name.strip(":").replace("_", " ")).split())


def _pairs(language: str) -> list[Pair]:
    import emoji  # a megabyte of names, for those who ask for them

    emoji.config.load_language(language)
    return [
        Pair(cleaned(names["en"]), cleaned(names[language]))
        for names in emoji.EMOJI_DATA.values()
        if names["status"] in (_NAMED, _QUALIFIED) and language in names
    ]
