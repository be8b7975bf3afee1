"""Actions on the selected run: rename, note, download, repeat, delete."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from io import BytesIO

import streamlit as st

from pages.runs.run_table_state import CHOICES, Doing, select_run, sweep_over, table_state
from pages.shared import wording
from pages.shared.context import say, sentence
from pages.shared.visitors.sharing import share_button
from pages.training.compare import Entry
from pages.training.plans import plan_of
from pages.training.train_state import CHOSEN, show_run
from transformer.access.ownership import may_take
from transformer.access.people import for_this_person
from transformer.checkpoints.settings import Settings, is_name
from transformer.data.corpus_snapshot import located
from transformer.data.unpacking import CorpusError
from transformer.runs import run_folder
from transformer.runs.archive import corpus_file, write_archive
from transformer.runs.labels import LONGEST_NOTE, rename, set_note
from transformer.runs.run_folder import Run
from transformer.runs.status import RunError
from transformer.runs.warm_start import same_start
from transformer.text.tokenizer import TokenizerError

REFUSALS = (RunError, CorpusError, TokenizerError, ValueError, OSError)
"""Errors with which an action is refused; each says why in a sentence."""
_SEED = re.compile(r"-seed-\d+$")


@contextmanager
def refusal_kept(before: str = "") -> Iterator[None]:
    """Keeps the reason for the page where the block is refused, as a sentence that may have a beginning of its own."""
    try:
        yield
    except REFUSALS as error:
        table_state().refusals = (f"{before}: {error}." if before else sentence(str(error)),)


def render_actions(entry: Entry, *, runs_here: list[Run]) -> None:
    """Renders a row of buttons, and below it the form of the one that was pressed; none for who may only look."""
    run, own = entry.run, entry.run is not None
    if not may_take(entry.folder):
        say(*table_state().refusals)
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if own:
            _opens("Rename", "rename", disabled=entry.active, why="Pause or stop it first")
            _opens("Note", "note")
        if run is None or run.loadable:
            _download(entry)
            st.page_link(
                "pages/train/page.py",
                label="Continue with other settings",
                icon="",
                help=_CONTINUE,
                query_params=continue_link(entry),
            )
        again = st.button("Repeat with another seed", key="action-again", type="tertiary", help=_AGAIN)
        if st.button(
            "Sweep over a setting", key="action-sweep", type="tertiary", on_click=sweep_over, args=(entry.name,)
        ):
            st.rerun()
        if run is not None:
            share_button(run)
        if own and not entry.active:
            _opens("Delete", "delete")
    if again:
        _repeat(entry, runs_here)
    match table_state().doing:
        case "rename" if own and not entry.active:
            _rename(entry.name)
        case "note" if own:
            _note(entry)
        case "delete" if own and not entry.active:
            _confirm(entry.name)
    say(*table_state().refusals)


_CONTINUE = "Opens Train with everything filled in; the new run starts from the weights of this one."
_AGAIN = "Starts the same run again at once, with the next seed that has not been tried."


def continue_link(entry: Entry) -> dict[str, str | list[str]]:
    """Returns the query parameters with which the Train page is filled in for a run that continues this one."""
    settings = replace(entry.settings, name=entry.name)
    return replace(plan_of(settings), start_from=entry.name).parameters()


def archive_bytes(name: str, *, with_corpus: bool) -> bytes:
    """Makes the archive of a run."""
    file = BytesIO()
    write_archive(name, file, with_corpus=with_corpus)
    return file.getvalue()


def next_seed(settings: Settings, found: list[Run]) -> int:
    """Returns the seed after the highest of all runs that have everything else in common with these settings."""
    alike = [
        other.settings.train.seed
        for other in found
        if other.settings.model == settings.model
        and replace(other.settings.train, seed=0) == replace(settings.train, seed=0)
        and other.settings.corpus == settings.corpus
        and other.settings.parent == settings.parent
    ]
    return max([settings.train.seed, *alike]) + 1


def _opens(label: str, doing: Doing, *, disabled: bool = False, why: str | None = None) -> None:
    st.button(
        label,
        key=f"action-{doing}",
        type="tertiary",
        disabled=disabled,
        help=why if disabled else None,
        on_click=_open,
        args=(doing,),
    )


def _open(doing: Doing) -> None:
    now = table_state()
    now.doing, now.refusals = "" if now.doing == doing else doing, ()


def _download(entry: Entry) -> None:
    source = corpus_file(entry.settings, entry.folder)
    with st.popover("Download", type="tertiary", key="action-download"):
        left_out = "Snapshots and the state needed to resume stay here"
        st.caption(
            f"One zip file: settings, tokenizer, weights, history, card and note. {left_out}"
            + ("." if source is None else f", and so does {wording.plain(source.name)} unless you add it.")
        )
        add = source is not None and source.is_file()
        with_corpus = add and st.checkbox("Add the file it learned from", key="action-with-corpus")
        st.download_button(
            f"Download {entry.name}.zip",
            data=for_this_person(lambda: archive_bytes(entry.name, with_corpus=with_corpus)),
            file_name=f"{entry.name}.zip",
            mime="application/zip",
            key="action-archive",
            on_click="ignore",
            icon=":material/download:",
        )


def _rename(name: str) -> None:
    with (
        st.form("action-rename-form", border=False),
        st.container(horizontal=True, vertical_alignment="bottom", gap="small"),
    ):
        wanted = st.text_input("New name", value=name, key=f"action-name-{name}", max_chars=80, width=320)
        pressed = st.form_submit_button("Save name", type="primary")
        st.form_submit_button("Cancel", on_click=_open, args=("rename",))
    st.caption(
        "Letters, digits, dots, hyphens and underscores; a space becomes a hyphen. Links to the old name still lead "
        "here."
    )
    if pressed:
        _renamed(name, "-".join(wanted.split()))


def _renamed(name: str, wanted: str) -> None:
    with refusal_kept():
        rename(name, wanted)
        CHOICES.change(shown=tuple(wanted if shown == name else shown for shown in CHOICES.now.shown or ()))
        select_run(wanted)
        if CHOSEN.now.run == name:
            show_run(wanted)
    st.rerun()


def _note(entry: Entry) -> None:
    with st.form("action-note-form", border=False):
        text = st.text_area(
            "Note", value=entry.note, key=f"action-note-{entry.name}", height=96, max_chars=LONGEST_NOTE, width=640
        )
        with st.container(horizontal=True, gap="small"):
            pressed = st.form_submit_button("Save note", type="primary")
            st.form_submit_button("Cancel", on_click=_open, args=("note",))
    if pressed:
        with refusal_kept():
            set_note(entry.name, text)
            table_state().doing, table_state().refusals = "", ()
        st.rerun()


def _confirm(name: str) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(
            f"Delete {wording.plain(name)} with its weights and its curves? This cannot be undone.", width="content"
        )
        st.button("Delete for good", key="action-confirm", type="primary", on_click=_delete, args=(name,))
        st.button("Keep it", key="action-keep", on_click=_open, args=("delete",))


def _delete(name: str) -> None:
    table_state().doing = ""
    with refusal_kept(f"{name} could not be deleted"):
        run_folder.delete(name)


def _repeat(entry: Entry, runs_here: list[Run]) -> None:
    settings = entry.settings
    seed = next_seed(settings, runs_here)
    name = f"{re.sub(_SEED, '', entry.name)}-seed-{seed}"
    with refusal_kept("The run was not started"), st.spinner("Preparing the corpus and starting the trainer"):
        made = run_folder.create_run(
            settings.model,
            replace(settings.train, seed=seed),
            located(settings.corpus, entry.folder),
            pinned=settings.pinned,
            name=name if is_name(name) else None,
            credit=settings.credit,
            start_from=same_start(entry.folder, settings),
        )
        select_run(made, made)
        run_folder.start(made)
    st.rerun()
