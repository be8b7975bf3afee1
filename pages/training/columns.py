"""The choice of the two columns of a file that hold the sentences and their translations."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import streamlit as st

from pages.shared.cache import cached
from pages.shared.fields import box
from transformer.config import CorpusConfig
from transformer.data.corpora import CORPORA, CorpusError
from transformer.data.corpus_cache import stamp
from transformer.data.pair_files import Columns, offered_columns

_SIDES = ("source", "target")
_Chosen = Mapping[str, int | None]
"""The column of each side, from 0; None where it is not chosen yet."""


def offered_of(config: CorpusConfig) -> Columns | None:
    """Returns the columns of a corpus to choose from; None where it is no file, or one that cannot be read."""
    return None if config.name in CORPORA else _offered(config)


def choose_columns(offered: Columns, take: Callable[[str], None], *, key: str, swap: bool = True) -> None:
    """Renders a choice of the columns of source and target, and a button that swaps them where `swap` is set; nothing
    where the choice is none.

    `take` gets both, as `CorpusConfig.columns` has them, in a callback. A column chosen for one side while the other
    has none is kept until then.
    """
    if len(offered.labels) < 2 + (not swap):
        return
    chosen: _Chosen = dict(zip(_SIDES, offered.chosen or (None, None), strict=True)) | _half(key, offered)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        for side in _SIDES:
            box(
                f"{side.title()} column",
                range(len(offered.labels)),
                chosen[side],
                partial(_choose, offered, take, key, chosen, side),
                key=f"{key}-{side}",
                names=partial(_label, offered),
                placeholder="Choose a column",
                width=240,
            )
        if swap and offered.chosen is not None:
            swapped = (offered, take, key, chosen, "source", offered.chosen[1])
            st.button("Swap", icon=":material/swap_horiz:", key=f"{key}-swap", on_click=_choose, args=swapped)


def _half(key: str, offered: Columns) -> dict[str, int]:
    """Returns the side that alone has a column yet, if one has, of the file with these columns."""
    of, half = st.session_state.get(f"{key}-half", (None, {}))
    return half if of == offered else {}


def _choose(offered: Columns, take: Callable[[str], None], key: str, others: _Chosen, side: str, place: int) -> None:
    """Takes over the column of a side; the other side's, where both are one, becomes the one that was here."""
    chosen = {**others, side: place}
    other = "target" if side == "source" else "source"
    if chosen[other] == place:
        chosen[other] = others[side]
    source, target = chosen["source"], chosen["target"]
    if source is None or target is None:
        st.session_state[f"{key}-half"] = offered, {side: place}
        return
    st.session_state.pop(f"{key}-half", None)
    take(f"{source + 1},{target + 1}")


def _label(offered: Columns, place: int) -> str:
    example = offered.examples[place]
    return f"{offered.labels[place][:30]}: {example[:40]}" if example else offered.labels[place][:30]


@cached(max_entries=12, spinner="Reading the corpus", shared=True, also=stamp)
def _offered(config: CorpusConfig) -> Columns | None:
    try:
        return offered_columns(Path(config.name), config.columns)
    except CorpusError:  # kept too: finding it again would take as long
        return None
