"""Fields that show a value which the page holds, and hand back what the visitor chose.

A value goes to the browser twice. As the field's default it is there when the field is first painted; through the
session state it reaches a field that stands already, where the page changed the value meanwhile. The session state
alone does not do: a page that runs twice before the browser paints would leave the field at 0, empty or at its first
option, and the next press of any button would send that back as the visitor's choice.

Options that differ from their labels are given with them, as a mapping, or `names` says the label of each. Further
options of a field are Streamlit's. A hidden label is for screen readers.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal

import streamlit as st

from pages.shared.texts.catalogue import Texts
from pages.shared.url.cause import is_look
from pages.shared.url.session import is_late

TEXTS = Texts("frame.controls")
_REPLACED = "attention-lab-replaced"

Take = Callable[[Any], None]
"""Takes over what the visitor chose; called as a callback, before the page runs again."""
Width = int | Literal["stretch"]
Options = Sequence[Any] | Mapping[Any, str]
"""The options of a choice, alone or with their labels."""


def box(
    label: str,
    options: Options,
    value: object,
    take: Take,
    *,
    key: str,
    names: Callable[[Any], str] = str,
    hide_label: bool = False,
    **further: Any,
) -> None:
    """Renders a select box. What it no longer offers is not taken: a browser keeps the label that it showed before its
    options changed."""
    offered = list(options)
    index = offered.index(value) if value in offered else None
    shown = {"index": index, "format_func": _labels(options, names), "label_visibility": _visibility(hide_label)}

    def take_offered(chosen: Any) -> None:
        if chosen in offered:
            take(chosen)

    _render(st.selectbox, label, offered, key=key, value=value, take=take_offered, **shown, **further)


def one_of(
    label: str, options: Sequence[Any], value: object, take: Take, *, key: str, captions: Sequence[str] = ()
) -> None:
    """Renders a list of which one is chosen, each with a caption below it."""
    index = options.index(value) if value in options else None
    shown = {"captions": captions or None, "label_visibility": "collapsed"}
    _render(st.radio, label, options, key=key, value=value, take=take, index=index, **shown)


def segments(
    label: str,
    options: Options,
    value: object,
    take: Take,
    *,
    key: str,
    names: Callable[[Any], str] = str,
    hide_label: bool = True,
) -> None:
    """Renders a few words in a row, one of them chosen; none where the value is not among them."""
    value = value if value in options else None
    shown = {"default": value, "format_func": _labels(options, names), "label_visibility": _visibility(hide_label)}
    _render(st.segmented_control, label, list(options), key=key, value=value, take=take, required=True, **shown)


def pills(
    label: str,
    options: Sequence[Any],
    values: Collection[Any],
    take: Take,
    *,
    key: str,
    names: Callable[[Any], str] = str,
    hide_label: bool = True,
) -> None:
    """Renders words in a row, any number of them chosen."""
    chosen = [option for option in options if option in values]
    shown = {"default": chosen, "format_func": names, "label_visibility": _visibility(hide_label)}
    _render(st.pills, label, options, key=key, value=chosen, take=take, selection_mode="multi", **shown)


def several(
    label: str,
    options: Sequence[Any],
    values: Collection[Any],
    take: Take,
    *,
    key: str,
    names: Callable[[Any], str] = str,
    **further: Any,
) -> None:
    """Renders a box that takes any number of its options."""
    chosen = [option for option in options if option in values]
    shown = {"default": chosen, "format_func": names}
    _render(st.multiselect, label, options, key=key, value=chosen, take=take, **shown, **further)


def number(
    label: str,
    value: float | None,
    take: Take,
    *,
    key: str,
    least: float | None = None,
    most: float | None = None,
    **further: Any,
) -> None:
    """Renders a number; whole where value and step are. A visitor cannot empty it: the browser puts the value back."""
    _render(st.number_input, label, least, most, value, key=key, value=value, take=take, **further)


def slider(label: str, least: float, most: float, value: float, take: Take, *, key: str, **further: Any) -> None:
    """Renders a number between two ends; whole where both ends, value and step are."""
    _render(st.slider, label, least, most, value, key=key, value=value, take=take, **further)


def stepped(
    label: str, options: Sequence[Any], value: object, take: Take, *, key: str, names: Callable[[Any], str] = str
) -> None:
    """Renders one of some values that have an order."""
    _render(st.select_slider, label, options, value, key=key, value=value, take=take, format_func=names)


def line(label: str, value: str, take: Take, *, key: str, **further: Any) -> None:
    """Renders a line of text."""
    _render(st.text_input, label, value, key=key, value=value, take=take, **further)


def lines(label: str, value: str, take: Take, *, key: str, **further: Any) -> None:
    """Renders several lines of text."""
    _render(st.text_area, label, value, key=key, value=value, take=take, **further)


def toggle(label: str, value: bool, take: Take, *, key: str, **further: Any) -> None:
    """Renders a switch."""
    _render(st.toggle, label, value, key=key, value=value, take=take, **further)


def popover(
    label: str, render: Callable[[], object], *, key: str, icon: str | None = None, quiet: bool = False
) -> None:
    """Renders a button over what `render` renders. While it is closed there is nothing of that: it costs nothing, and
    the browser does not go on sending what its fields held."""
    look = "tertiary" if quiet else "secondary"
    with st.popover(label, icon=icon, type=look, key=key, on_change="rerun") as box:
        if box.open:
            render()


def drawer(render: Callable[[], object], *, key: str, label: str = "") -> None:
    """Renders a button over the fields that few visitors need."""
    popover(label or TEXTS("more"), render, key=key, icon=":material/tune:")


def _render(
    widget: Callable[..., object],
    *args: Any,
    key: str,
    value: object,
    take: Take,
    **options: Any,
) -> None:
    """Renders a widget that holds a value; the session state changes only where it differs, under no one's typing."""
    if key not in st.session_state:
        st.session_state[key] = value
    elif (before := st.session_state[key]) != value:
        st.session_state[key], _replaced()[key] = value, before
    widget(*args, key=key, on_change=lambda: _hand_back(key, value, take), **options)


def _hand_back(key: str, value: object, take: Take) -> None:
    """Hands back what a visitor chose, but no value that the page has replaced since: a browser that has not seen that
    yet sends it with whatever it asks for, such as the next look at a run in progress."""
    chosen = st.session_state[key]
    if key in _replaced() and _replaced()[key] == chosen and (is_late() or is_look()):
        st.session_state[key] = value  # else the visitor's choice of the one before would be no change
    else:
        take(chosen)


def _replaced() -> dict[str, Any]:
    """Returns the value of each field before the page last changed it."""
    return st.session_state.setdefault(_REPLACED, {})


def _labels(options: Options, names: Callable[[Any], str]) -> Callable[[Any], str]:
    return options.__getitem__ if isinstance(options, Mapping) else names


def _visibility(hide_label: bool) -> str:
    return "collapsed" if hide_label else "visible"
