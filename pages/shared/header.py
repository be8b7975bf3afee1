"""The head of every page that looks at one sentence: the page's question, model, sentence, examples.

`frame` draws it and returns the context of the page.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, NoReturn

import streamlit as st

from pages.shared import loading, wording
from pages.shared.context import PageContext, is_transformer, say, sentence, with_usable_switches
from pages.shared.fields import line
from pages.shared.model_picker import choose_model
from pages.shared.registry import PAGES
from pages.shared.texts.catalogue import Texts
from pages.shared.url.page_state import PageState
from pages.shared.url.session import choose, follow_url, problems, session, start_afresh, write_url
from pages.shared.url.url_state import Problem
from pages.shared.url.view_state import View
from transformer.analysis.trace.steps import is_traced
from transformer.checkpoints.settings import CheckpointError, Found
from transformer.data.corpora import CORPORA, names_emoji
from transformer.lab import Lab
from transformer.model.seq2seq import attention_layers
from transformer.text.pairs import clean_text

TEXTS = Texts("frame")

Needs = Literal["any model", "attention", "known steps", "a Transformer"]


def frame(
    question: str,
    page: PageState | None = None,
    needs: Needs = "any model",
    opens_on: tuple[str | None, str] = (None, ""),
) -> PageContext:
    """Draws the head of a page (its question, model, sentence, examples) and returns its context.

    `page` is the state of this page alone, which follows the URL here. `opens_on` is the model and the sentence that
    show what the page is about; what the visitor has chosen, here or on another page, goes before it. Ends the page
    where there is nothing to look at yet, or the model has not what the page `needs`.
    """
    session().own = page.follow_url().parameters() if page else {}
    follow_url()
    st.markdown(f"# {question}")
    found = loading.models()
    if not found:
        _invite_to_train()
    _open_on(found, *opens_on)
    lab, memory = _lab(found), session()
    memory.view, misfits = memory.view.fit(lab)
    memory.problems += misfits
    _settle_text(lab)
    memory.view, misfits = with_usable_switches(memory.view, lab)
    memory.problems += misfits
    _choices(found, lab)
    say(*problems("model", "text"))
    _tell_of_switches()
    if said := wording.built_without(lab.model.config):
        st.caption(f":material/build: {wording.plain(said)}")
    if names_emoji(corpus := lab.checkpoint.settings.corpus.name):
        learned = wording.plain(CORPORA[corpus])
        st.caption(f":material/mood: {TEXTS('emoji', corpus=learned)}")
    read = loading.get_sentence(lab, memory.view.text)
    if said := wording.unseen(lab.tokenizer, read):
        st.markdown(said)
    write_url()
    if said := _lacking(lab, needs):
        _leave(said, memory.view, lab)
    return PageContext(memory.view, lab, read)


def change_text(text: str) -> None:
    """Takes a sentence where the model can read it; else leaves it in the field, with a sentence saying why."""
    memory = session()
    text = clean_text(text)
    try:
        loading.get_sentence(loading.get_lab(memory.view.model), text)
    except (ValueError, CheckpointError) as error:
        memory.draft = text
        memory.problems = (Problem("text", TEXTS("text_kept", problem=sentence(str(error)))),)
    else:
        memory.draft = None
        choose(text=text)


def _lacking(lab: Lab, needs: Needs) -> str:
    """Says why there is nothing to see here of a model; empty if it has all that the page needs."""
    name, config = wording.plain(lab.name), lab.model.config
    if needs == "attention" and not attention_layers(lab.model):
        return TEXTS("lacking.attention", model=name, d_model=config.d_model)
    if needs == "known steps" and not is_traced(lab.model):
        return TEXTS("lacking.known_steps", model=name, kind=config.kind_in_words)
    if needs == "a Transformer" and not is_transformer(lab):
        return TEXTS("lacking.transformer", model=name, kind=config.kind_in_words)
    return ""


def _leave(said: str, view: View, lab: Lab) -> NoReturn:
    """Says why there is nothing to see, links to where there is, and ends the page."""
    st.markdown(said)
    filled = view.parameters()
    for page in PAGES:
        shows_attention = page.folder == "attention" and attention_layers(lab.model)
        if shows_attention or lab.model.config.family in page.families:
            st.page_link(page.path, label=page.title, icon=":material/arrow_forward:", query_params=filled)
    st.stop()


def _open_on(found: Sequence[Found], model: str | None, text: str) -> None:
    """Shows what the page opens on, unless the visitor has chosen a model, a sentence or a switch."""
    memory = session()
    name = model if model in {each.name for each in found} else loading.first_choice(found)
    if not memory.chosen and memory.view.model != name:
        memory.view = memory.view.changed(model=name, text=text if name == model else "")


def _tell_of_switches() -> None:
    """Says that switches of another page still apply, and offers to do without."""
    memory = session()
    if not memory.view.switches or memory.switched_on in ("", memory.page):
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="still-switched"):
        st.markdown(TEXTS("still_switched", page=memory.switched_on), width="content")
        st.button(TEXTS("own_example"), key="start-afresh", on_click=start_afresh)


def _lab(found: Sequence[Found]) -> Lab:
    """Returns the chosen model, or the first that can be opened, with a sentence if that is another one."""
    memory, first = session(), loading.first_choice(found)
    faults: list[Problem] = []
    for name in dict.fromkeys((memory.view.model or first, first, *(model.name for model in found))):
        try:
            lab = loading.get_lab(name)
        except CheckpointError as error:
            faults.append(Problem("model", sentence(str(error))))
            continue
        if faults:
            memory.problems = (*memory.problems, *faults[:1], Problem("model", TEXTS("shown_instead", model=name)))
        memory.view = replace(memory.view, model=name)
        return lab
    for fault in faults:
        say(fault.sentence)
    st.stop()


def _settle_text(lab: Lab) -> None:
    """Takes the chosen sentence, or one that the model can read where it cannot read that."""
    memory = session()
    offered = loading.examples(lab)
    wanted = memory.view.text or memory.texts.get(lab.name) or (offered[0] if offered else "a")
    try:
        loading.get_sentence(lab, wanted)
    except ValueError as error:
        memory.draft = wanted
        memory.problems = (*memory.problems, Problem("text", TEXTS("example_shown", problem=sentence(str(error)))))
        wanted = offered[0] if offered else "a"
    memory.view = replace(memory.view, text=wanted)
    if (shown := memory.texts.get(lab.name)) not in (None, wanted):
        memory.previous[lab.name] = shown
    memory.texts[lab.name] = wanted


def _choices(found: Sequence[Found], lab: Lab) -> None:
    memory = session()
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="frame-choices"):
        choose_model(found, lab.name)
        text = memory.view.text if memory.draft is None else memory.draft
        line(TEXTS("sentence"), text, change_text, key="choose-text")
        # A popover that was used is drawn anew, closed, over the new result.
        with st.popover(TEXTS("examples"), key=f"examples-{memory.changes}"):
            for text in loading.examples(lab):
                label = wording.plain(text)
                st.button(label, key=f"example-{text}", type="tertiary", on_click=change_text, args=(text,))
            if memory.chosen:
                label = TEXTS("own_example")
                st.button(label, key="own-example", type="tertiary", icon=":material/undo:", on_click=start_afresh)
        with st.popover(TEXTS("more")):
            _about(lab)


def _about(lab: Lab) -> None:
    config, settings = lab.model.config, lab.checkpoint.settings
    kind = TEXTS("about.heads", n=config.n_heads) if is_transformer(lab) else ""
    learned = TEXTS("about.learned", model=lab.name, corpus=wording.plain(settings.corpus.name), n=lab.checkpoint.step)
    sizes = TEXTS(
        "about.sizes",
        parameters=lab.model.n_parameters(),
        encoder=config.n_encoder_layers,
        decoder=config.n_decoder_layers,
        heads=kind,
        d_model=config.d_model,
        positions=config.positions,
    )
    st.markdown(f"{learned} {sizes}")
    entries = lab.tokenizer.vocabulary()
    wanted = st.text_input(TEXTS("about.search"), key="search-vocabulary", placeholder=TEXTS("about.part"))
    shown = [(i, entry) for i, entry in enumerate(entries) if wanted.lower() in entry.lower()]
    st.caption(TEXTS("about.entries", shown=len(shown), total=len(entries)))
    st.dataframe(
        {"id": [i for i, _ in shown], "token": [entry for _, entry in shown]},
        hide_index=True,
        height=240,
        width="stretch",
    )


def _invite_to_train() -> None:
    st.markdown(TEXTS("no_model"))
    write_url()
    st.stop()
