"""State that a URL carries: a frozen dataclass whose fields say how they are read, written, limited and reset.

    @dataclass(frozen=True, kw_only=True)
    class Choices(UrlState):
        look: Look = param("steps", words(*get_args(Look)))
        beam: int = param(4, whole(1, 10, clamp=True))
        node: int | None = param(None, whole(0, 9_999), resets=("model", "text", "beam"))

`Choices.read(parameters)` gives the state and a Problem for each value that makes no sense; `state.parameters()` is
what `read` turns into it again. No Streamlit here: `page_state.py` keeps such a state for a visitor.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any, Generic, Self, TypeVar

from pages.shared.texts.catalogue import Texts

Parameters = Mapping[str, str | Sequence[str]]
Value = TypeVar("Value")
State = TypeVar("State", bound="UrlState")

TEXTS = Texts("link")
_QUOTED = 40
"""Characters of a value that a sentence repeats."""
_NOTHING: Any = object()
_NUMBER = re.compile(r"-?\d{1,9}(\.\d{1,6})?", re.ASCII)


class Refused(ValueError):
    """A text in the URL makes no sense as it stands; `instead` is what is taken where that is not the default."""

    def __init__(self, expected: str, instead: Any = _NOTHING) -> None:
        super().__init__(expected)
        self.instead = instead


@dataclass(frozen=True)
class Problem:
    """A sentence about something that could not be used, and the control beside which it belongs."""

    place: str
    sentence: str


@dataclass(frozen=True)
class Form(Generic[Value]):
    """The form of a value in a URL. `read` raises Refused with what was expected, as in "must be a number"."""

    read: Callable[[str], Value]
    write: Callable[[Value], str | None] = str
    """None leaves the value out of the URL."""


@dataclass(frozen=True, kw_only=True)
class Param:
    """A field's description of itself."""

    form: Form
    name: str = ""
    """The query parameter, if it is not called like the field."""
    many: Callable[[Sequence[Any]], Any] | None = None
    """Makes the field's value of all values read, as `tuple` does: the parameter may occur several times."""
    always: bool = False
    """True if it is written although it is the default."""
    among: Callable[[Any], Collection[Any]] | None = None
    """Returns the values that exist, given the rest of the state; a tuple keeps those of its values that exist."""
    offered: Callable[[Any, Any], Collection[Any]] | None = None
    """Returns the values that exist, given the state and a context (a model, a sentence), for `fit(context)`; a tuple
    keeps those of its values that exist."""
    usual: Callable[[Any, Any], Any] | None = None
    """Returns what None stands for in a context, which `fit` also takes in place of a value that is not offered."""
    nearest: bool = False
    """True if the last value that exists is taken in place of one that does not, instead of the default."""
    resets: tuple[str, ...] = ()
    """Changes of these (fields of this state, or what the page shows: "model", "text") put the default back."""
    beside: str = ""
    """The control beside which a problem is told, if that is not the one of the parameter's name."""
    nonsense: str = "any"
    """The name of the sentence for a text that cannot be read, in the catalogue's `link.nonsense`; it may hold {name},
    {text}, {expected}, {used}."""
    absent: str = "any"
    """The name of the sentence for a value that does not exist, in `link.absent`; it may hold {name}, {value}, {first},
    {last}, {used}, {context}, {state}."""


def param(default: Any, form: Form | None = None, **options: Any) -> Any:
    """Returns a dataclass field that travels in the URL; the options are those of `Param`.

    Without a form the state's class describes the field, by its name.
    """
    return field(default=default, metadata={"param": form and Param(form=form, **options)})


@dataclass(frozen=True)
class UrlState:
    """Base of dataclasses whose fields are made by `param`."""

    @classmethod
    def plain_param(cls, name: str) -> Param:
        """Describes the field of this name, which was given no form."""
        raise TypeError(f"{cls.__name__}.{name} has no form")

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Returns the names of the query parameters that carry this state."""
        return tuple(_name(each, said) for each, said in _params(cls))

    @classmethod
    def read(cls, parameters: Parameters, base: "UrlState | None" = None) -> tuple[Self, tuple[Problem, ...]]:
        """Returns the state in these query parameters, and a problem for each value that could not be taken as it is.

        A parameter that is missing has its field's default, or the value that it has in `base`.
        """
        found: dict[str, Any] = {}
        problems: list[Problem] = []
        for each, said in _params(cls):
            given = parameters.get(_name(each, said), ())
            if not (texts := (given,) if isinstance(given, str) else given):
                continue
            values = [_read(text, each, said, problems) for text in (texts if said.many else texts[-1:])]
            values = [value for value in values if value is not _NOTHING]
            if said.many:
                found[each.name] = said.many(values)
            elif values:
                found[each.name] = values[0]
        state = cls(**(vars(base) if base else {}) | found)
        for each, said in _params(cls):
            value = getattr(state, each.name)
            if said.among and value != each.default and value not in (options := said.among(state)):
                used = _fitting(each, said, state, options, None)
                if used != value:
                    problems.append(_absent(each, said, state, options, used, None))
                    state = replace(state, **{each.name: used})
        return state, tuple(problems)

    def parameters(self, base: "UrlState | None" = None) -> dict[str, str | list[str]]:
        """Returns the query parameters that `read` turns into this state; defaults or the values of `base` stay out."""
        found: dict[str, str | list[str]] = {}
        for each, said in _params(type(self)):
            value = getattr(self, each.name)
            default = getattr(base, each.name) if base else each.default
            if value == default and not said.always:
                continue
            if said.many:
                found[_name(each, said)] = [str(said.form.write(one)) for one in value]
            elif (text := said.form.write(value)) is not None:
                found[_name(each, said)] = text
        return found

    def fit(self, context: Any) -> tuple[Self, tuple[Problem, ...]]:
        """Returns the state with values that exist in the context, and a problem for each value that does not."""
        state, problems = self, []
        for each, said in _params(type(self)):
            value = getattr(state, each.name)
            if value == each.default and said.usual:
                state = replace(state, **{each.name: said.usual(state, context)})
            elif value != each.default and said.offered:
                options = said.offered(state, context)
                used = _fitting(each, said, state, options, context)
                if used != value:
                    problems.append(_absent(each, said, state, options, used, context))
                    state = replace(state, **{each.name: used})
        return state, tuple(problems)

    def changed(self, **changes: Any) -> Self:
        """Returns the state with these changes, and with the default of every other field that they reset."""
        return replace(self.reset_by(*changes), **changes)

    def reset_by(self, *names: str) -> Self:
        """Returns the state after a change of the fields of these names, or of what the page shows."""
        again = {f.name: f.default for f, said in _params(type(self)) if set(said.resets) & set(names)}
        return replace(self, **again) if again else self


def words(*options: Any) -> Form:
    """Returns the form of one of these values, each written as `str` does."""
    by_text = {str(option): option for option in options}
    listed = ", ".join([text for text in by_text if text][:12]) + (" …" if len(by_text) > 12 else "")

    def read(text: str) -> Any:
        if text in by_text:
            return by_text[text]
        raise Refused(TEXTS("expected.words", options=listed))

    return Form(read)


def whole(least: int, most: int, *, clamp: bool = False, multiple_of: int = 1) -> Form[int]:
    """Returns the form of an integer from `least` to `most`; `clamp` takes the nearest one for a number outside."""

    def read(text: str) -> int:
        expected = TEXTS("expected.whole", least=least, most=most)
        if not _NUMBER.fullmatch(text):
            raise Refused(expected)
        value = int(min(max(float(text), least), most))
        if not (text.isdecimal() and least <= int(text) <= most):
            raise Refused(expected, value) if clamp else Refused(expected)
        if value % multiple_of:
            raise Refused(TEXTS("expected.multiple", of=multiple_of), value - value % multiple_of)
        return value

    return Form(read)


def decimal(least: float, most: float, *, clamp: bool = False) -> Form[float]:
    """Returns the form of a number from `least` to `most`; `clamp` takes the nearest one for a number outside."""

    def read(text: str) -> float:
        expected = TEXTS("expected.decimal", least=least, most=most)
        if not _NUMBER.fullmatch(text):
            raise Refused(expected)
        value = float(text)
        if not least <= value <= most:
            raise Refused(expected, min(max(value, least), most)) if clamp else Refused(expected)
        return value

    return Form(read, "{:g}".format)


def flag(word: str) -> Form[bool]:
    """Returns the form of a switch that is on if the URL holds this word."""

    def read(text: str) -> bool:
        if text != word:
            raise Refused(TEXTS("expected.flag", word=word))
        return True

    return Form(read, lambda on: word if on else None)


def several(form: Form) -> Form[tuple]:
    """Returns the form of values with commas between them, each once and in order."""

    def read(text: str) -> tuple:
        return tuple(sorted({form.read(part) for part in text.split(",")}))

    return Form(read, lambda values: ",".join(str(form.write(value)) for value in values))


def text(longest: int) -> Form[str]:
    """Returns the form of a text; a longer one is cut when it is read, and not written."""

    def read(text: str) -> str:
        if len(text) > longest:
            raise Refused(TEXTS("expected.text", length=len(text), longest=longest), text[:longest])
        return text

    return Form(read, lambda text: text if len(text) <= longest else None)


def nested(cls: type[State], plain: str) -> Form[State]:
    """Returns the form of a state within a state, as in "heads:1;without:positions"; `plain` is all of its defaults."""

    def read(text: str) -> State:
        given = [pair.partition(":") for pair in text.split(";") if pair and text != plain]
        state, problems = cls.read({name: value for name, _, value in given})
        if problems or any(name not in cls.names() for name, _, _ in given):
            raise Refused(TEXTS("expected.nested"), state)
        return state

    return Form(read, lambda state: ";".join(f"{n}:{v}" for n, v in state.parameters().items()) or plain)


@cache
def _params(cls: type[UrlState]) -> tuple[tuple[Any, Param], ...]:
    carried = [f for f in fields(cls) if "param" in f.metadata]
    return tuple((f, f.metadata["param"] or cls.plain_param(f.name)) for f in carried)


def _name(each: Any, said: Param) -> str:
    return said.name or each.name


def _read(text: str, each: Any, said: Param, problems: list[Problem]) -> Any:
    """Returns the value of a text; _NOTHING, with a problem, if the default is taken."""
    try:
        return said.form.read(text)
    except Refused as refused:
        name = _name(each, said)
        used = each.default if refused.instead is _NOTHING else refused.instead
        quoted = text if len(text) <= _QUOTED else f"{text[:_QUOTED]}…"
        values = {"name": name, "text": quoted, "expected": refused, "used": _used(said, used)}
        sentence = TEXTS(f"nonsense.{said.nonsense}", **values)
        problems.append(Problem(said.beside or name, sentence))
        return refused.instead


def _fitting(each: Any, said: Param, state: Any, options: Collection[Any], context: Any) -> Any:
    """Returns the field's value if it is offered, else what is taken instead."""
    value = getattr(state, each.name)
    if isinstance(value, tuple):
        return tuple(one for one in value if one in options)
    if value in options:
        return value
    if said.usual:
        return said.usual(state, context)
    return max(options) if said.nearest else each.default


def _absent(each: Any, said: Param, state: Any, options: Collection[Any], used: Any, context: Any) -> Problem:
    name, all_ = _name(each, said), list(options)
    value = getattr(state, each.name)
    if said.many:
        shown = ", ".join(str(said.form.write(one)) for one in value if one not in all_)
    else:
        shown = str(said.form.write(value))
    sentence = TEXTS(
        f"absent.{said.absent}",
        name=name,
        value=shown if len(shown) <= _QUOTED else f"{shown[:_QUOTED]}…",
        first=all_[0] if all_ else TEXTS("none"),
        last=all_[-1] if all_ else TEXTS("none"),
        used=_used(said, used),
        context=context,
        state=state,
    )
    return Problem(said.beside or name, sentence)


def _used(said: Param, value: Any) -> str:
    """Says what is taken in place of nonsense: "10 is used"; does not repeat long text."""
    if value is None or value in ("", ()) or said.many or said.form.write(value) is None:
        return TEXTS("used.nothing")
    if not (text := str(said.form.write(value))):
        return TEXTS("used.none_of_it")
    return TEXTS("used.this", text=text) if len(text) <= _QUOTED else TEXTS("used.first", n=len(text))
