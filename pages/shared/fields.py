"""Fields that show a value which the page holds, and hand back what the visitor chose.

A value goes to the browser twice. As the field's default it is there when the field is first painted; through the
session state it reaches a field that stands already, where the page changed the value meanwhile. The session state
alone does not do: a page that runs twice before the browser paints would leave the field at 0, empty or at its first
option, and the next press of any button would send that back as the visitor's choice.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any, Literal

import streamlit as st

Take = Callable[[Any], None]
"""What takes over what the visitor chose; called as a callback, before the page runs again."""
Width = int | Literal["stretch"]


def box(
    label: str,
    options: Sequence[Any],
    value: object,
    take: Take,
    *,
    key: str,
    names: Callable[[Any], str] = str,
    width: Width = "stretch",
    hide_label: bool = False,
    help: str | None = None,
    placeholder: str | None = None,
) -> None:
    """A select box; `placeholder` stands in it where nothing is chosen."""
    st.selectbox(
        label,
        options,
        index=options.index(value) if value in options else None,
        key=_held(key, value),
        format_func=names,
        width=width,
        label_visibility="collapsed" if hide_label else "visible",
        help=help,
        placeholder=placeholder,
        on_change=_taken(key, take),
    )


def segments(
    label: str,
    options: Sequence[Any],
    value: object,
    take: Take,
    *,
    key: str,
    names: Callable[[Any], str] = str,
    hide_label: bool = True,
) -> None:
    """A few words in a row, one of them chosen. A hidden label is for screen readers."""
    st.segmented_control(
        label,
        options,
        default=value,
        key=_held(key, value),
        format_func=names,
        required=True,
        label_visibility="collapsed" if hide_label else "visible",
        on_change=_taken(key, take),
    )


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
    """Words in a row, any number of them chosen. A hidden label is for screen readers."""
    chosen = [option for option in options if option in values]
    st.pills(
        label,
        options,
        default=chosen,
        key=_held(key, chosen),
        selection_mode="multi",
        format_func=names,
        label_visibility="collapsed" if hide_label else "visible",
        on_change=_taken(key, take),
    )


def several(
    label: str,
    options: Sequence[Any],
    values: Collection[Any],
    take: Take,
    *,
    key: str,
    placeholder: str | None = None,
    names: Callable[[Any], str] = str,
    width: Width = "stretch",
) -> None:
    """A box that takes any number of its options."""
    chosen = [option for option in options if option in values]
    st.multiselect(
        label,
        options,
        default=chosen,
        key=_held(key, chosen),
        placeholder=placeholder,
        format_func=names,
        width=width,
        on_change=_taken(key, take),
    )


def number(
    label: str,
    value: float | None,
    take: Take,
    *,
    key: str,
    step: float,
    format: str,
    least: float | None = None,
    most: float | None = None,
    width: Width = "stretch",
    help: str | None = None,
) -> None:
    """A number; whole where value and step are. A visitor cannot empty it: the browser puts the value back."""
    st.number_input(
        label,
        least,
        most,
        value=value,
        step=step,
        format=format,
        key=_held(key, value),
        width=width,
        help=help,
        on_change=_taken(key, take),
    )


def slider(
    label: str,
    least: float,
    most: float,
    value: float,
    take: Take,
    *,
    key: str,
    step: float,
    width: Width = "stretch",
) -> None:
    """A number between two ends; whole where both ends, value and step are."""
    st.slider(label, least, most, value, step, key=_held(key, value), width=width, on_change=_taken(key, take))


def stepped(
    label: str, options: Sequence[Any], value: object, take: Take, *, key: str, names: Callable[[Any], str] = str
) -> None:
    """One of some values that have an order."""
    st.select_slider(label, options, value, format_func=names, key=_held(key, value), on_change=_taken(key, take))


def line(
    label: str,
    value: str,
    take: Take,
    *,
    key: str,
    width: Width = "stretch",
    placeholder: str | None = None,
    help: str | None = None,
) -> None:
    """A line of text."""
    st.text_input(
        label,
        value,
        key=_held(key, value),
        width=width,
        placeholder=placeholder,
        help=help,
        on_change=_taken(key, take),
    )


def lines(label: str, value: str, take: Take, *, key: str, height: int, help: str | None = None) -> None:
    """Several lines of text."""
    st.text_area(label, value, key=_held(key, value), height=height, help=help, on_change=_taken(key, take))


def toggle(label: str, value: bool, take: Take, *, key: str, help: str | None = None) -> None:
    """A switch."""
    st.toggle(label, value, key=_held(key, value), help=help, on_change=_taken(key, take))


def _held(key: str, value: object) -> str:
    """Puts the value into the session state, only where it differs: what is being typed stays untouched."""
    if key not in st.session_state or st.session_state[key] != value:
        st.session_state[key] = value
    return key


def _taken(key: str, take: Take) -> Callable[[], None]:
    return lambda: take(st.session_state[key])
