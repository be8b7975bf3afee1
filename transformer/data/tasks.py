"""Generated tasks whose right answer and alignment are known: copy, reverse, sort, addition, dates.

Pair i is made when it is asked for, from (task, seed, split, i) alone, so nothing is generated in advance and every
process sees the same pairs. Not here: what training makes of them (corpora.py, data.py).
"""

import datetime
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Literal, overload

from transformer.text.pairs import Pair, Split, split_of

SYMBOLS = tuple("abcdefghijklmnopqrst")
MAX_SYMBOLS = 10
MAX_DIGITS = 3
N_TRAIN = 200_000
N_HELD_OUT = 1_000
_MONTHS = tuple("January February March April May June July August September October November December".split())
_WEEKDAYS = tuple("Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split())
_FIRST_DAY, _LAST_DAY = datetime.date(1900, 1, 1), datetime.date(2099, 12, 31)

AlignmentUnit = Literal["word", "character"]


def random_bits(*key: object) -> int:
    """512 random bits that depend on the key alone: a few microseconds, less than seeding a generator takes.

    A task reads its choices off as digits, `bits, choice = divmod(bits, n)`. No pair needs more than 300 bits, so
    the bias of a choice is under 2**-200.
    """
    return int.from_bytes(hashlib.blake2b(":".join(map(str, key)).encode(), digest_size=64).digest())


@dataclass(frozen=True)
class Task:
    """A generated task. `generate` makes a pair of random bits; `split_key` is what decides the pair's split."""

    name: str
    description: str
    generate: Callable[[int], Pair]
    split_key: Callable[[Pair], str]
    tokenizer: Literal["words", "char"]
    alignment_unit: AlignmentUnit
    vocabulary: tuple[str, ...]
    """Texts that between them hold every word (or character) that the task can ever show."""
    examples: tuple[str, ...]
    source_name: str
    target_name: str


@dataclass(frozen=True)
class GeneratedPairs(Sequence[Pair]):
    """The first `size` pairs of one split of a task. Lazy; a pair may occur twice, as it may in any random sample."""

    task: Task
    seed: int
    split: Split
    size: int

    def __len__(self) -> int:
        return self.size

    @overload
    def __getitem__(self, index: int) -> Pair: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Pair, ...]: ...
    def __getitem__(self, index: int | slice) -> Pair | tuple[Pair, ...]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(self.size)))
        if not -self.size <= index < self.size:
            raise IndexError(f"pair {index} of {self.size}")
        return self._draw_until_in_split(index % self.size)

    def _draw_until_in_split(self, index: int) -> Pair:
        attempt = 0
        while True:
            pair = self.task.generate(random_bits(self.task.name, self.seed, self.split, index, attempt))
            if split_of(self.task.split_key(pair)) == self.split:
                return pair
            attempt += 1


@dataclass(frozen=True)
class DistinctPairs(Sequence[Pair]):
    """The first `size` pairs with different sources among `pairs`, all found at the first look (0.1 s for 1,000)."""

    pairs: GeneratedPairs
    size: int

    def __len__(self) -> int:
        return self.size

    @overload
    def __getitem__(self, index: int) -> Pair: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Pair, ...]: ...
    def __getitem__(self, index: int | slice) -> Pair | tuple[Pair, ...]:
        return self._found[index]

    @cached_property
    def _found(self) -> tuple[Pair, ...]:
        found: dict[str, Pair] = {}
        for pair in self.pairs:
            found.setdefault(pair.source, pair)
            if len(found) == self.size:
                return tuple(found.values())
        raise AssertionError(f"{len(self.pairs)} pairs hold only {len(found)} different ones, not {self.size}")


@cache
def held_out_pairs(task: Task, seed: int, split: Split) -> DistinctPairs:
    """The N_HELD_OUT pairs of a split to evaluate on."""
    return DistinctPairs(GeneratedPairs(task, seed, split, 100 * N_HELD_OUT), N_HELD_OUT)


def copy(bits: int, longest: int = MAX_SYMBOLS) -> Pair:
    """A string of symbols and itself."""
    symbols = _symbols(bits, longest)
    return _rearranged(symbols, range(len(symbols)))


def reverse(bits: int, longest: int = MAX_SYMBOLS) -> Pair:
    """A string of symbols, and the same read from its end."""
    symbols = _symbols(bits, longest)
    return _rearranged(symbols, range(len(symbols) - 1, -1, -1))


def sort(bits: int, longest: int = MAX_SYMBOLS) -> Pair:
    """A string of symbols, and the same in alphabetical order; equal symbols keep their order."""
    symbols = _symbols(bits, longest)
    return _rearranged(symbols, sorted(range(len(symbols)), key=symbols.__getitem__))


def addition(bits: int) -> Pair:
    """Two numbers of one to three digits each, and their sum, most significant digit first.

    Characters are aligned by place: a digit of the sum with the digits of that place in both numbers, and a digit
    that is nothing but a carry with the leading digits that it comes from.
    """
    bits, first = _number(bits)
    _, second = _number(bits)
    left, right, target = str(first), str(second), str(first + second)
    source = f"{left} + {right}"
    links = set()
    for place in range(len(target)):
        seen = min(place, max(len(left), len(right)) - 1)
        for end, digits in ((len(left), left), (len(source), right)):
            if seen < len(digits):
                links.add((end - 1 - seen, len(target) - 1 - place))
    return Pair(source, target, tuple(sorted(links)))


def dates(bits: int) -> Pair:
    """A day between 1900 and 2099 in one of four English forms, and in ISO 8601: "3 May 2021" -> "2021-05-03".

    Characters are aligned by field: year digits one by one, both month digits with every letter of the month's
    name, day digits one by one ("0" with the only digit there is).
    """
    bits, days = divmod(bits, (_LAST_DAY - _FIRST_DAY).days + 1)
    day = _FIRST_DAY + datetime.timedelta(days)
    month = _MONTHS[day.month - 1]
    match bits % 4:
        case 0:
            source = f"{day.day} {month} {day.year}"
        case 1:
            source = f"{month} {day.day}, {day.year}"
        case 2:
            source = f"{_WEEKDAYS[day.weekday()]}, {day.day} {month} {day.year}"
        case _:
            source = f"the {day.day}{_ordinal(day.day)} of {month} {day.year}"
    day_at, month_at, year_at = source.index(str(day.day)), source.index(month), len(source) - 4
    links = [(year_at + i, i) for i in range(4)]
    links += [(month_at + i, target) for target in (5, 6) for i in range(len(month))]
    links += [(day_at, 8), (day_at + len(str(day.day)) - 1, 9)]
    return Pair(source, day.isoformat(), tuple(sorted(links)))


@cache
def symbol_task(name: str, longest: int) -> Task:
    """Copy, reverse or sort with strings of 1 to `longest` symbols; ValueError for another task."""
    if name not in _REARRANGING:
        raise ValueError(f"longest ({longest}) is for {', '.join(_REARRANGING)}; {name} has no such length")
    task = TASKS[name]
    if longest == MAX_SYMBOLS:
        return task
    said = task.description.replace(f"1 to {MAX_SYMBOLS} ", f"1 to {longest} ")
    return replace(task, description=said, generate=partial(_REARRANGING[name], longest=longest))


@cache
def pairs_of_length(name: str, length: int, count: int) -> tuple[Pair, ...]:
    """Up to `count` different held-out pairs of copy, reverse or sort, each of exactly `length` symbols.

    They are drawn from the split "random", in which no training pair of any seed or longest string is. There are fewer
    where the split has no more: of 20 strings of one symbol, about one is held out.
    """
    rearranged = _REARRANGING[name]
    found: dict[str, Pair] = {}
    for index in range(100 * count):
        bits = random_bits(name, "length", length, index)
        pair = rearranged(bits * length + length - 1, longest=length)
        if split_of(pair.source) == "random":
            found.setdefault(pair.source, pair)
        if len(found) == count:
            break
    return tuple(found.values())


def _symbols(bits: int, longest: int) -> list[str]:
    bits, extra = divmod(bits, longest)
    symbols = []
    for _ in range(1 + extra):
        bits, symbol = divmod(bits, len(SYMBOLS))
        symbols.append(SYMBOLS[symbol])
    return symbols


def _rearranged(symbols: list[str], order: Sequence[int]) -> Pair:
    """The pair whose target word t is source word order[t]."""
    alignment = tuple(sorted((source, target) for target, source in enumerate(order)))
    return Pair(" ".join(symbols), " ".join(symbols[i] for i in order), alignment)


def _number(bits: int) -> tuple[int, int]:
    """The bits left, and a number of 1 to MAX_DIGITS digits, each count of digits as likely as another."""
    bits, extra = divmod(bits, MAX_DIGITS)
    least = 10**extra if extra else 0
    bits, above = divmod(bits, 10 ** (extra + 1) - least)
    return bits, least + above


def _ordinal(day: int) -> str:
    return "th" if 11 <= day <= 13 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")


def _source(pair: Pair) -> str:
    return pair.source


def _target(pair: Pair) -> str:
    return pair.target


def _symbol_task(name: str, description: str, generate: Callable[[int], Pair], target_name: str) -> Task:
    return Task(
        name=name,
        description=description,
        generate=generate,
        split_key=_source,
        tokenizer="words",
        alignment_unit="word",
        vocabulary=(" ".join(SYMBOLS),),
        examples=("a b c d e", "t h e q r s t", "m m a a m"),
        source_name="symbols",
        target_name=target_name,
    )


_REARRANGING: dict[str, Callable[..., Pair]] = {"copy": copy, "reverse": reverse, "sort": sort}
TASKS: dict[str, Task] = {
    "copy": _symbol_task("copy", "1 to 10 symbols, written again", copy, "copied"),
    "reverse": _symbol_task("reverse", "1 to 10 symbols, written from the last to the first", reverse, "reversed"),
    "sort": _symbol_task("sort", "1 to 10 symbols, written in alphabetical order", sort, "sorted"),
    "addition": Task(
        name="addition",
        description="the sum of two numbers of up to three digits: 347 + 85 -> 432",
        generate=addition,
        split_key=_source,
        tokenizer="char",
        alignment_unit="character",
        vocabulary=("0123456789 + ",),
        examples=("347 + 85", "999 + 1", "5 + 7"),
        source_name="sum",
        target_name="result",
    ),
    "dates": Task(
        name="dates",
        description="English dates in ISO form: 3 May 2021 -> 2021-05-03",
        generate=dates,
        split_key=_target,  # a day held out in one form is held out in all four
        tokenizer="char",
        alignment_unit="character",
        vocabulary=(" ".join(_MONTHS), ", ".join(_WEEKDAYS), "the 1st 2nd 3rd 4th of", "0123456789-"),
        examples=("3 May 2021", "May 3, 2021", "Monday, 3 May 2021", "the 29th of February 2024"),
        source_name="English date",
        target_name="ISO date",
    ),
}
"""The generated tasks by name."""
