"""Which two columns of a table hold the sentences and their translations: by name, by content, or as asked for."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise

from transformer.data.languages import language
from transformer.data.unpacking import CorpusError

Cells = Sequence[str]
_SOURCE = ("source", "src", "input", "question", "prompt")
_TARGET = ("target", "tgt", "trg", "translation", "output", "answer", "response", "completion")
_FILLER = re.compile(r"\b(text|texts|sentence|sentences|phrase|phrases|word|words|segment|seg|translation|column)\b")
"""Words of a header that say nothing of the side: "sentence_en", "source text"."""
_NO_CODES = ("id", "no")
"""Codes of languages that mean something else beside the name of a side: an identifier, a number."""
_MAX_NAME = 30
"""The most characters of a header's cell."""
_ENDING = (*".!?…。！？।", "…")
_MOST_ALIKE = 0.95
_COMMON_START = 8
"""Characters with which the cells of a note begin, such as the attribution of each pair."""
_REPEATED = 20
"""Rows in which the name of a column does not occur again; the code of a language beside each sentence does."""
_OFTEN = 10
"""Times that each value occurs, on average, in a column of labels."""
_NO_SENTENCE = re.compile(r"\S*[\d_/\\@]\S*$|https?:\S+$")
"""A number, a file's name, an address, an identifier."""


class UnclearColumns(CorpusError):
    """A table has more than two columns that may hold the sentences, and nothing says which do."""


@lru_cache(maxsize=1_000)
def role(name: str) -> str:
    """Returns "source" or "target" where the name of a column says so; else ""."""
    side = _side(name)
    return "source" if side in _SOURCE else "target" if side in _TARGET else ""


def known_names(cells: Cells) -> int:
    """Counts the cells that may be names of columns of sentences: sides, and languages."""
    return len({role(cell) or language(_plain(cell)) for cell in cells} - {""})


def is_header(rows: Sequence[Cells]) -> bool:
    """Tells whether the first of these rows holds the names of the columns: at least two that are known, or names above
    columns of sentences or numbers."""
    if not rows or len(rows[0]) < 2:
        return False
    first, others = rows[0], [row for row in rows[1:] if len(row) == len(rows[0])]
    if known_names([cell for i, cell in enumerate(first) if cell not in (row[i] for row in others[:_REPEATED])]) > 1:
        return True
    if len(others) < 20 or not all(_may_be_name(cell) for cell in first if cell.strip()):
        return False
    columns = [[row[i] for row in others] for i in range(len(first))]
    sentences = sum(_share(column, lambda cell: not _may_be_name(cell)) > 0.8 for column in columns)
    return sentences > 1 and len({cell.strip().casefold() for cell in first}) == len(first)


def header_names(rows: Sequence[Cells]) -> tuple[str, ...]:
    """Returns a name for each column of most rows, from the first row; "" where it has none. R writes no name above the
    numbers of the rows, with which each row begins."""
    names = [cell.strip().strip('"') for cell in rows[0]]
    n = n_columns(rows[1:], ()) or len(names)
    if n == len(names) + 1 and _share([row[0] for row in rows[1:] if len(row) == n], _is_text) < 0.2:
        names = ["", *names]
    return tuple([*names, *[""] * n][:n])


def chosen_columns(name: str, rows: Sequence[Cells], names: Sequence[str], noun: str) -> tuple[int, int]:
    """Returns the columns of source and target, from the first rows of a table and the names of its columns.

    By names: source and target, or two languages in their order. Else by content: the two columns of text, without
    numbers, labels, addresses and notes that all begin alike. UnclearColumns where that leaves more than two, and
    CorpusError where it leaves fewer, or the other column counts the rows.
    """
    n = n_columns(rows, names)
    columns = [[row[i] if i < len(row) else "" for row in rows] for i in range(n)]
    if (named := _by_name(names, columns)) is not None:
        return named
    if n == 2:
        if any(map(_counts_up, columns)) and any(map(_holds_text, columns)):
            raise CorpusError(
                f"{name} has one {noun} of text, and one that counts the rows: each row needs a sentence and its "
                "translation"
            )
        return 0, 1
    texts = [i for i, column in enumerate(columns) if _holds_text(column)]
    if len(texts) > 2:
        texts = [i for i in texts if not _starts_alike(columns[i])]
    if len(texts) == 2:
        return texts[0], texts[1]
    found = labels(names, columns)
    if len(texts) < 2:
        texts = list(range(n))
    shown = "; ".join(f"{found[i]}: “{_example(columns[i])}”" for i in texts[:6])
    raise UnclearColumns(f"{name} has {n} {noun}s, and nothing says which two to learn from ({shown}): choose two")


def asked_columns(name: str, asked: str, names: Sequence[str], n: int, noun: str) -> tuple[int, int]:
    """Returns the two columns that a setting names, such as "en,fr" or "2,4"; CorpusError where there are none."""
    found = []
    for part in asked.split(","):
        plain = part.strip()
        if plain in names or role(plain) in names:  # "src" in a file of JSON is called "source"
            found.append(list(names).index(plain if plain in names else role(plain)))
        elif plain.isdecimal() and 1 <= int(plain) <= n:
            found.append(int(plain) - 1)
        else:
            offered = ", ".join(
                f"{i + 1} ({label})" if label else f"{i + 1}" for i, label in enumerate(names or [""] * n)
            )
            raise CorpusError(f"{name} has no {noun} “{plain[:40]}”: there are {offered}")
    return found[0], found[1]


def n_columns(rows: Sequence[Cells], names: Sequence[str]) -> int:
    """Returns the number of columns: of the names, or else of most rows."""
    counts = Counter(len(row) for row in rows)
    return len(names) or (counts.most_common(1)[0][0] if counts else 0)


def labels(names: Sequence[str], columns: Sequence[object]) -> tuple[str, ...]:
    """Returns what each column is called: its name, with its number where it has none."""
    return tuple(names[i] if names and names[i] else f"column {i + 1}" for i in range(len(columns)))


def side_names(names: Sequence[str], chosen: tuple[int, int]) -> tuple[str, str]:
    """Returns the names of source and target: their languages where these are known."""
    given = tuple(names[i] if i < len(names) else "" for i in chosen)
    found = tuple(_language(name) or role(name) or shown_name(name) for name in given)
    source, target = found if found[0] != found[1] else map(shown_name, given)
    return source or "source", target or "target"


def shown_name(name: str) -> str:
    """Returns the name of a column as it may stand in any text: without marks that mean something there, and short."""
    return " ".join(re.sub(r"[^\w .()-]", " ", name).split())[:_MAX_NAME].strip()


def _plain(name: str) -> str:
    words = re.sub(r"[_\W]+", " ", name).strip().casefold() if not language(name) else name
    return " ".join(_FILLER.sub("", words).split()) or words


def _side(name: str) -> str:
    """Returns the name of a column without a language beside it: "source" of "Source (EN)" and "en_source"."""
    plain = _plain(name)
    return " ".join(word for word in plain.split() if word in _NO_CODES or not language(word)) or plain


def _language(name: str) -> str:
    """Returns the language that the name of a column says, alone or beside a side; "" where it says none."""
    plain = _plain(name)
    beside = {language(word) for word in plain.split()} - {""} if role(name) and _side(name) != plain else set()
    return language(plain) or (beside.pop() if len(beside) == 1 else "")


def _by_name(names: Sequence[str], columns: Sequence[Cells]) -> tuple[int, int] | None:
    """Returns the columns that their names choose; None where they do not."""
    source, target = (_of_role(names, columns, part) for part in (_SOURCE, _TARGET))
    if source is not None and target is not None:
        return source, target
    languages = [i for i, name in enumerate(names) if language(_plain(name))]
    if len(languages) == 2 and len({language(_plain(names[i])) for i in languages}) == 2:
        return languages[0], languages[1]
    one = source if target is None else target
    others = [i for i, column in enumerate(columns) if i != one and _holds_text(column)]
    if one is None or len(others) != 1:
        return None
    return (one, others[0]) if target is None else (others[0], one)


def _of_role(names: Sequence[str], columns: Sequence[Cells], known: Sequence[str]) -> int | None:
    """Returns the column with the first of these names, one of labels only where there is no other."""
    sides = [(_side(name), _side(name) != _plain(name), i) for i, name in enumerate(names)]
    found = sorted((known.index(side), has_more, i) for side, has_more, i in sides if side in known)
    places = [i for *_, i in found]
    return next((i for i in places if not _is_label(columns[i])), places[0] if places else None)


def _holds_text(column: Cells) -> bool:
    """Tells whether a column holds sentences, not numbers, labels, addresses or notes."""
    cells = [cell.strip() for cell in column if cell.strip()]
    return len(cells) >= len(column) / 2 and not _is_label(column) and _share(cells, _is_text) > 0.8


def _is_text(cell: str) -> bool:
    letters = sum(character.isalpha() for character in cell)
    return letters * 2 >= len(cell.replace(" ", "")) and not _NO_SENTENCE.match(cell)


def _is_label(column: Cells) -> bool:
    cells = [cell.strip() for cell in column if cell.strip()]
    return len(cells) >= 2 * _OFTEN and len(set(cells)) * _OFTEN <= len(cells)


def _starts_alike(cells: Cells) -> bool:
    """Tells whether nearly all cells begin with the same characters: an attribution, an address."""
    starts = Counter(cell.strip()[:_COMMON_START] for cell in cells if len(cell) > _COMMON_START)
    return len(cells) > 1 and bool(starts) and starts.most_common(1)[0][1] >= _MOST_ALIKE * len(cells)


def _counts_up(column: Cells) -> bool:
    """Tells whether the cells are whole numbers, each one more than the one before."""
    cells = [cell.strip() for cell in column]
    if len(cells) < 20 or not all(cell.isdecimal() and len(cell) < 16 for cell in cells):
        return False
    return all(int(after) == int(before) + 1 for before, after in pairwise(cells))


def _may_be_name(cell: str) -> bool:
    cell = cell.strip()
    return 0 < len(cell) <= _MAX_NAME and not cell.endswith(_ENDING) and len(cell.split()) <= 3 and not cell.isdecimal()


def _share(cells: Cells, holds: Callable[[str], bool]) -> float:
    return sum(map(holds, cells)) / len(cells) if cells else 0.0


def _example(column: Cells) -> str:
    return next((cell.strip()[:30] for cell in column if cell.strip()), "")
