"""A setting of a config: how it is declared, and what is refused of its value, alone or beside other settings."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from string import Formatter
from types import NoneType
from typing import Any, Literal, get_args, get_origin


@dataclass(frozen=True, kw_only=True)
class About:
    """The label, help and limits of a setting."""

    label: str
    """The name in a form or at the head of a column."""
    help: str
    """A sentence or two, for the form and the command line."""
    noun: str = ""
    """The name within a sentence, where the label does not read well there: "the number of heads"."""
    least: float | None = None
    above: float | None = None
    """Numbers are greater than this."""
    share: bool = False
    """True if it lies in [0, 1)."""
    most: float | None = None
    """The largest number."""
    step: float = 1
    """The amount that one press of + adds."""
    empty: str = ""
    """The meaning of an empty field in a word, such as "never", where it may be left empty."""
    fix: str = ""
    """The way out of a number beyond the limits, where there is a better one than another number."""


def setting(
    default: Any,
    label: str,
    help: str,
    *,
    noun: str = "",
    least: float | None = None,
    above: float | None = None,
    share: bool = False,
    most: float | None = None,
    step: float = 1,
    empty: str = "",
    fix: str = "",
) -> Any:
    """A field of a config that says everything about itself; the arguments are those of `About`."""
    about = About(
        label=label,
        help=help,
        noun=noun,
        least=least,
        above=above,
        share=share,
        most=most,
        step=step,
        empty=empty,
        fix=fix,
    )
    return field(default=default, metadata={"about": about, "help": help})


def about(config: type, name: str) -> About:
    """Returns the label, help and limits of this setting."""
    return config.__dataclass_fields__[name].metadata["about"]


@dataclass(frozen=True)
class Fault:
    """A rule that the value of a setting breaks."""

    setting: str
    """The setting to change first; where the fault lies between several, the one at which a form shows it."""
    rule: str
    """The predicate of the sentence, in which other settings stand in braces: "must be divisible by {n_heads}"."""
    fix: str
    """The way out, such as "take 128 or 132"; empty where the rule says it."""
    values: Mapping[str, Any]
    """The values of all settings that the rule names."""

    def sentence(self, called: Callable[[str], str] = str, shown: Callable[[Any], str] = repr) -> str:
        """Returns the rule with the names and values of its settings, without the way out; `called` makes a name of
        each setting, `shown` a text of each value."""
        named = {name: f"{called(name)} ({shown(value)})" for name, value in self.values.items()}
        return f"{named[self.setting]} {self.rule.format_map(named)}"

    def __str__(self) -> str:
        return self.sentence() + (f": {self.fix}" if self.fix else "")


class Refusal(ValueError):
    """Settings that a config cannot have; as text, every fault in a sentence, with the way out."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        super().__init__("; ".join(map(str, faults)))
        self.faults = faults
        """One for each setting that cannot be as it is."""

    def __reduce__(self) -> tuple[type["Refusal"], tuple[Any, ...]]:
        return Refusal, (self.faults,)


class Check:
    """The check of a config while it is built: values that its settings cannot have are faults from the start, and the
    config adds those that lie between settings."""

    def __init__(self, config: Any) -> None:
        self._config = config
        self._found: dict[str, Fault] = {}
        for each in fields(config):
            self._check_type(each.name, each.type)
            if self.sound(each.name) and "about" in each.metadata:
                self._check_limits(each.name, each.metadata["about"])

    def sound(self, *settings: str) -> bool:
        """Tells whether none of these settings has a fault so far, so that a rule between them can be asked."""
        return not self._found.keys() & set(settings)

    def add(self, setting: str, rule: str, fix: str = "") -> None:
        """Notes the fault of a setting, described as in `Fault`; the first of each is kept."""
        named = {setting, *(name for _, name, _, _ in Formatter().parse(rule) if name)}
        self._found.setdefault(
            setting, Fault(setting, rule, fix, {name: getattr(self._config, name) for name in sorted(named)})
        )

    def refuse(self) -> None:
        """Raises a Refusal with all that was found; does nothing if all is well."""
        if self._found:
            raise Refusal(tuple(self._found.values()))

    def _check_type(self, name: str, kind: Any) -> None:
        """Finds text, fractions and not-a-number where a number is due, and words that are not among a setting's, as a
        hand-edited file may hold them."""
        value, kinds = getattr(self._config, name), get_args(kind) or (kind,)
        if get_origin(kind) is Literal:
            if value not in kinds:
                self.add(name, f"must be one of: {', '.join(kinds)}" if len(kinds) > 1 else f"must be {kinds[0]}")
        elif value is None and NoneType in kinds:
            pass
        elif int in kinds:
            if not isinstance(value, int) or isinstance(value, bool):
                fraction = isinstance(value, float) and math.isfinite(value)
                self.add(name, "must be a whole number", f"take {self._nearest(name, value)}" if fraction else "")
        elif float in kinds:
            if not _is_finite_number(value):
                self.add(name, "must be a number")
        elif bool in kinds:
            if not isinstance(value, bool):
                self.add(name, "must be true or false")
        elif str in kinds and not isinstance(value, str):
            self.add(name, "must be a text")

    def _nearest(self, name: str, value: float) -> int:
        """Returns the whole number nearest to a fraction, within the limits of the setting."""
        about = self._config.__dataclass_fields__[name].metadata.get("about")
        nearest = round(value)
        if about is None:
            return nearest
        least = math.floor(about.above) + 1 if about.above is not None else about.least
        nearest = nearest if least is None else max(nearest, math.ceil(least))
        return nearest if about.most is None else min(nearest, math.floor(about.most))

    def _check_limits(self, name: str, about: About) -> None:
        """Finds a number outside of what its setting allows; an empty one is no number."""
        value = getattr(self._config, name)
        if value is None:
            return
        if about.share and not 0 <= value < 1:
            self.add(name, "must lie in [0, 1)")
        elif about.above is not None and value <= about.above:
            self.add(name, f"must be above {about.above:g}", _fix(about, "more"))
        elif about.least is not None and value < about.least:
            rule = f"must be at least {about.least:g}" if about.least else "must not be negative"
            self.add(name, rule, _fix(about, "more"))
        elif about.most is not None and value > about.most:
            self.add(name, f"must be at most {about.most:,}", _fix(about, "less"))


def _fix(about: About, way: Literal["more", "less"]) -> str:
    """Returns the way out of a number beyond a limit."""
    return about.fix or (f"take {way}, or leave it empty" if about.empty else "")


def _is_finite_number(value: object) -> bool:
    """Tells whether a float can hold it; JSON may have whole numbers of any length."""
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False
