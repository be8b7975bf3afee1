"""The pronoun corpus: English sentences around "it", whose French must say il or elle, numbered and split.

"The animal did not cross the street because it was too tired." -> "... parce qu'il était trop fatigué."
"The animal did not cross the street because it was too wide."  -> "... parce qu'elle était trop large."

**What "it" refers to.** Every reason has exactly one reading, by this rule:
1. An adjective that fits only one of the two nouns speaks of that noun: animals are tired, streets are wide.
2. Where it fits both nouns, the main verb decides (linguists call it implicit causality). One *avoids* or *admires*
   something for what it is: the reason is the object's. One *frightens* or *blocks* something by what one is oneself:
   the reason is the subject's (so with block, frighten, disturb, overtake and reach). With catch alone, negation and
   adjective decide together: the slow, the weak and the old are caught, and do not catch. "The cat caught the mouse
   because it was slow" is about the mouse, "did not catch" about the cat.
The generator uses the reasons that make sense with a verb, affirmed or denied (verbs.py lists them); the rule
itself also reads other sentences (reading.py). What it does not settle is not in the language.

**The index.** Verb, reason, nouns, tense and order of clauses are a number in mixed radix. Each of these sentences
stands there twice: plain, and decorated ("this dog", "the old dog", "very") by arithmetic from the number. No pair
is made before it is asked for.

**The splits** share no English sentence. `held_out["combinations"]` holds every sentence whose reason says an
adjective of a noun for which it is reserved (by arithmetic: one noun in seven, a masculine and a feminine noun of a
kind together), and every sentence in which the animal crosses the street, the classic one among them. Training never
joins these words, but uses each of them. Of the other sentences, every 61st is for validation and every 61st is
`held_out["random"]`.
"""

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate
from typing import overload

from transformer.data.pronouns.grammar import (
    PLAIN,
    TENSES,
    THIS,
    Dress,
    noun_phrase,
    reason_clause,
    sentence,
    verb_phrase,
)
from transformer.data.pronouns.lexicon import ADJECTIVES, NOUNS, Adjective, Noun
from transformer.data.pronouns.verbs import EITHER, OBJECT, SUBJECT, VERBS, Reasons, Verb
from transformer.text.pairs import Pair

N_PAIRS = 1_419_808
"""The number of pairs: `len` of the two spaces together."""

EXAMPLES = (
    "The animal did not cross the street because it was too tired.",
    "The animal did not cross the street because it was too wide.",
    "Because it was too wide, the animal did not cross the street.",
    "The cat caught the mouse because it was slow.",
    "The cat did not catch the mouse because it was slow.",
    "The cat did not catch the mouse because it was too fast.",
    "The tractor frightened the cow because it was too noisy.",
    "The tractor will avoid the cow because it is too noisy.",
    "Because it is too heavy, the hippopotamus does not carry the wardrobe.",
    "The old hedgehog had not seen the beautiful bird.",
)

_STRIDE = 61  # prime, and no factor of the size of the space: every stride passes all tenses, orders and verbs
_RESERVED_PERIOD = 7
_CLASSIC = ("animal", "cross", "street")


_VARIANTS = 4
_OTHER_DEGREE = {"too": "very", "very": "too"}


@dataclass(frozen=True, slots=True)
class Frame:
    """A verb, affirmed or denied, perhaps with a reason, and the (subject, object) pairs that may fill it."""

    verb: Verb
    denied: bool
    reason: Adjective | None
    about_subject: bool
    """True if the reason speaks of the subject; without a reason, False."""
    degree: str
    """The degree of the reason in the plain variant: "too" or "very"."""
    pairs: tuple[tuple[Noun, Noun], ...]

    def __len__(self) -> int:
        return len(self.pairs) * len(TENSES) * _VARIANTS


def frames() -> Iterator[Frame]:
    """Every frame of the language, held-out combinations included."""
    for verb in VERBS:
        for denied in (False, True):
            reasons = verb.denied if denied else verb.affirmed
            for subjects in verb.subjects:
                for objects in verb.objects:
                    pairs = _noun_pairs(subjects, objects)
                    yield Frame(verb, denied, None, False, reasons.usually, pairs)
                    for role, names in ((SUBJECT, reasons.subject), (OBJECT, reasons.object)):
                        for reason in map(ADJECTIVES.__getitem__, names):
                            if role_of(reason, reasons, subjects, objects) == role:
                                yield Frame(verb, denied, reason, role == SUBJECT, reasons.usually, pairs)


def role_of(adjective: Adjective, reasons: Reasons, subjects: str, objects: str) -> str | None:
    """SUBJECT or OBJECT: which noun the adjective speaks of, given their kinds; None where nothing settles it."""
    fits_subject, fits_object = subjects in adjective.fits, objects in adjective.fits
    if not (fits_subject and fits_object):
        return SUBJECT if fits_subject else OBJECT if fits_object else None
    if reasons.blames != EITHER:
        return reasons.blames
    if adjective.english in reasons.subject:
        return SUBJECT
    return OBJECT if adjective.english in reasons.object else None


@cache
def _noun_pairs(subjects: str, objects: str) -> tuple[tuple[Noun, Noun], ...]:
    return tuple((subject, object) for subject in NOUNS[subjects] for object in NOUNS[objects] if subject != object)


@cache
def is_reserved(noun: Noun, adjective: Adjective) -> bool:
    """Tells whether training never says this adjective of this noun."""
    return (noun.couple + _ranks()[adjective.english]) % _RESERVED_PERIOD == 0


@cache
def _ranks() -> Mapping[str, int]:
    return {name: rank for rank, name in enumerate(ADJECTIVES)}


def _is_combination(frame: Frame, subject: Noun, object: Noun) -> bool:
    if (subject.english, frame.verb.base, object.english) == _CLASSIC:
        return True
    return frame.reason is not None and is_reserved(subject if frame.about_subject else object, frame.reason)


class Space(Sequence[Pair]):
    """Every pair of some frames, each made when asked for, in an order in which neighbours have little in common."""

    def __init__(self, frames: Sequence[Frame]) -> None:
        self._frames = frames
        self._ends = list(accumulate(map(len, frames)))
        self._step = _coprime_step(self._ends[-1])

    def __len__(self) -> int:
        return self._ends[-1]

    @overload
    def __getitem__(self, index: int) -> Pair: ...
    @overload
    def __getitem__(self, index: slice) -> list[Pair]: ...
    def __getitem__(self, index):
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        number = _checked(index, len(self)) * self._step % len(self)
        rank = bisect_right(self._ends, number)
        return _pair(self._frames[rank], self._ends[rank] - 1 - number, _mixed(number))


class Part(Sequence[Pair]):
    """Returns `width` of every `_STRIDE` neighbours in a space, from the `first` on."""

    def __init__(self, space: Space, first: int, width: int) -> None:
        self._space, self._first, self._width = space, first, width

    def __len__(self) -> int:
        rounds, rest = divmod(len(self._space), _STRIDE)
        return rounds * self._width + min(max(rest - self._first, 0), self._width)

    @overload
    def __getitem__(self, index: int) -> Pair: ...
    @overload
    def __getitem__(self, index: slice) -> list[Pair]: ...
    def __getitem__(self, index):
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        rounds, rest = divmod(_checked(index, len(self)), self._width)
        return self._space[rounds * _STRIDE + self._first + rest]


def _checked(index: int, length: int) -> int:
    if not -length <= index < length:
        raise IndexError(f"index {index} is outside the {length:,} pairs")
    return index % length


def _coprime_step(size: int) -> int:
    """The first number past the golden section of `size` without a common factor: its multiples visit every index."""
    step = round(size * (math.sqrt(5) - 1) / 2)
    while math.gcd(step, size) != 1:
        step += 1
    return step


def _pair(frame: Frame, number: int, draws: int) -> Pair:
    """Pair `number` of a frame, decorated by the digits of `draws` where the number asks for decoration."""
    core, variant = divmod(number, _VARIANTS)
    nouns, tense = divmod(core, len(TENSES))
    subject, object = frame.pairs[nouns]
    verb = verb_phrase(frame.verb, TENSES[tense], frame.denied)
    if frame.reason is None:
        dresses = _dresses(subject, object, None, bool(variant & 1), bool(variant & 2), draws)
        return sentence(noun_phrase(subject, dresses[0]), verb, noun_phrase(object, dresses[1]))
    reason_first, decorated = divmod(variant, 2)
    degree, choice = frame.degree, 0
    if decorated:
        draws, choice = divmod(draws, 3)  # the degree alone, the subject too, the object too
        draws, rank = divmod(draws, 4)
        degree = ("", _OTHER_DEGREE[frame.degree], frame.degree, frame.degree)[rank if choice else rank % 2]
    dresses = _dresses(subject, object, frame.reason, choice == 1, choice == 2, draws)
    referent = subject if frame.about_subject else object
    return sentence(
        noun_phrase(subject, dresses[0]),
        verb,
        noun_phrase(object, dresses[1]),
        reason_clause(frame.reason, referent.feminine, TENSES[tense], degree),
        reason_first=bool(reason_first),
        about_subject=frame.about_subject,
    )


def _dresses(
    subject: Noun, object: Noun, reason: Adjective | None, dress_subject: bool, dress_object: bool, draws: int
) -> tuple[Dress, Dress]:
    """Returns the determiners of both nouns; PLAIN for one that is not dressed."""
    first: Dress = PLAIN
    second: Dress = PLAIN
    if dress_subject:
        wardrobe = _wardrobe(subject, reason)
        draws, rank = divmod(draws, len(wardrobe))
        first = wardrobe[rank]
    if dress_object:
        wardrobe = _wardrobe(object, reason)
        second = wardrobe[draws % len(wardrobe)]
    return first, second


@cache
def _wardrobe(noun: Noun, reason: Adjective | None) -> tuple[Dress, ...]:
    """THIS and every adjective that may stand beside the noun in a sentence with this reason."""
    return (
        THIS,
        *(
            adjective
            for adjective in ADJECTIVES.values()
            if noun.kind in adjective.describes
            and not is_reserved(noun, adjective)
            and (reason is None or (adjective != reason and (not reason.scale or adjective.scale != reason.scale)))
        ),
    )


def _mixed(number: int) -> int:
    """Sixty-four well-mixed bits (the finaliser of SplitMix64), the same in every process."""
    number = (number + 0x9E3779B97F4A7C15) * 0xBF58476D1CE4E5B9 & 0xFFFFFFFFFFFFFFFF
    number = (number ^ number >> 27) * 0x94D049BB133111EB & 0xFFFFFFFFFFFFFFFF
    return number ^ number >> 31


@dataclass(frozen=True)
class PronounSplits:
    """Disjoint parts of the language."""

    train: Sequence[Pair]
    validation: Sequence[Pair]
    held_out: Mapping[str, Sequence[Pair]]


def split() -> PronounSplits:
    """The parts of the corpus, by the rule above. Takes milliseconds: every pair is made when asked for."""
    ordinary, combinations = _spaces()
    return PronounSplits(
        train=Part(ordinary, 2, _STRIDE - 2),
        validation=Part(ordinary, 0, 1),
        held_out={"random": Part(ordinary, 1, 1), "combinations": combinations},
    )


def pair(index: int) -> Pair:
    """Pair `index` of the whole language, 0 <= index < N_PAIRS: the held-out combinations come last."""
    ordinary, combinations = _spaces()
    _checked(index, N_PAIRS)
    return ordinary[index] if index < len(ordinary) else combinations[index - len(ordinary)]


@cache
def _spaces() -> tuple[Space, Space]:
    """Everything but the held-out combinations, and these."""
    ordinary, combinations = [], []
    for frame in frames():
        kept: list[tuple[Noun, Noun]] = []
        reserved: list[tuple[Noun, Noun]] = []
        for subject, object in frame.pairs:
            (reserved if _is_combination(frame, subject, object) else kept).append((subject, object))
        if kept:
            ordinary.append(replace(frame, pairs=tuple(kept)))
        if reserved:
            combinations.append(replace(frame, pairs=tuple(reserved)))
    return Space(ordinary), Space(combinations)
