"""The controls that every page shares, in the same place on each: model, sentence, examples, switches.

`frame` draws the head of a page and returns what the visitor is looking at. What was chosen lives in state.py.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Literal

import streamlit as st

from pages.common import loading, wording
from pages.common.state import choose, follow_url, problems, visit, write_url
from pages.common.view import Picture, Place, Problem, View, fit, merged, with_heads
from transformer.attention_edits import BlockOff
from transformer.config import ModelConfig
from transformer.interventions import HeadsOff, MaskKind, MaskOff, parse_intervention
from transformer.lab import KIND_SITES, AttentionKind, Inspection, Lab
from transformer.settings import CheckpointError

_MODEL, _TEXT = "choose-model", "choose-text"
AVERAGE = "average"
_KIND_LABELS: dict[AttentionKind, str] = {
    "encoder_self": ":green[Encoder self]",
    "decoder_self": ":violet[Decoder self]",
    "cross": ":orange[Cross]",
}
_PICTURES: dict[Picture, str] = {"matrix": "Matrix", "lines": "Lines", "bertviz": "bertviz"}
_MASKS: dict[MaskKind, str] = {"causal": "Causal", "padding": "Padding", "cross": "Padding, in cross-attention"}


@dataclass(frozen=True)
class Change:
    """What is different from a similar sentence that was shown before."""

    source: frozenset[int] = frozenset()
    target: frozenset[int] = frozenset()
    sentence: str = ""


@dataclass(frozen=True)
class Scene:
    """What a page shows: the view as it fits the model, the model, and the decoding under the view's switches."""

    view: View
    lab: Lab
    inspection: Inspection
    unseen: Mapping[int, str]
    """Source tokens that stand for something the model never saw."""

    @property
    def layer(self) -> int:
        """The chosen layer, the last one where none was chosen."""
        return n_layers(self.lab.model.config, self.view.kind) - 1 if self.view.layer is None else self.view.layer

    @property
    def head(self) -> int:
        """The chosen head, 0 where none was chosen."""
        return self.view.head or 0

    @property
    def heads_off(self) -> frozenset[tuple[int, int]]:
        """(layer, head) of every head of the chosen kind that is off."""
        stack, block = KIND_SITES[self.view.kind]
        layers = range(n_layers(self.lab.model.config, self.view.kind))
        return frozenset((layer, head) for layer in layers for head in self.view.heads_off(stack, layer, block))


def frame(question: str, own: Mapping[str, str] | None = None) -> Scene:
    """Draws the head of a page (what can be found out here, model, sentence, examples) and returns the scene.

    `own` are query parameters of this page alone. Ends the page where there is nothing to look at yet.
    """
    visit().own = dict(own or {})
    follow_url()
    st.markdown(f"#### {question}")
    found = loading.models()
    if not found:
        _invite_to_train()
    names = [model.name for model in found]
    lab = _lab(names, {model.name: model.shipped for model in found})
    memory = visit()
    memory.view, misfits = fit(memory.view, lab)
    memory.problems += misfits
    inspection = _inspection(lab)
    _choices(names, {model.name: model.shipped for model in found}, lab)
    say(*problems("model", "text"))
    if said := wording.built_without(lab.model.config):
        st.caption(f":material/build: {wording.plain(said)}")
    unseen_words = lab.unknown(memory.view.text)
    if unseen_words:
        st.markdown(wording.unseen(unseen_words))
    write_url()
    return Scene(memory.view, lab, inspection, loading.unseen_tokens(lab, memory.view.text))


def say(*sentences: str) -> None:
    """A sentence for each thing that could not be done, where it belongs."""
    if sentences:
        st.markdown("  \n".join(f":red[:material/error: {wording.plain(sentence)}]" for sentence in sentences))


def n_layers(config: ModelConfig, kind: AttentionKind) -> int:
    """Layers of the stack in which this kind of attention stands."""
    return config.n_encoder_layers if KIND_SITES[kind][0] == "encoder" else config.n_decoder_layers


def choose_head(scene: Scene) -> None:
    """One row: kind, layer, head, and what to switch off."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        choose_kind(scene)
        choose_layer(scene, width=80)
        heads = list(range(scene.lab.model.config.n_heads))
        _box("choose-head", "Head", heads, scene.head, lambda head: choose(head=head), width=80)
        _head_switches(scene)
    say(*problems("kind", "layer", "head"))


def choose_kind(scene: Scene) -> None:
    """Which of the three attentions."""
    _segments("choose-kind", "Attention", list(_KIND_LABELS), scene.view.kind, "kind", _KIND_LABELS.__getitem__)


def choose_layer_or_average(scene: Scene) -> None:
    """Layer and head, where the mean over the heads can be chosen too."""
    left, right = st.columns(2)
    with left:
        choose_layer(scene)
    with right:
        heads = [AVERAGE, *range(scene.lab.model.config.n_heads)]
        head = AVERAGE if scene.view.head is None else scene.head
        _box("choose-head", "Head", heads, head, lambda h: choose(head=None if h == AVERAGE else h), _head_name)
    say(*problems("layer", "head"))


def choose_layer(scene: Scene, *, width: int | Literal["stretch"] = "stretch") -> None:
    """A box with the layers of the stack."""
    layers = list(range(n_layers(scene.lab.model.config, scene.view.kind)))
    _box("choose-layer", "Layer", layers, scene.layer, lambda layer: choose(layer=layer), width=width)


def choose_picture(scene: Scene) -> None:
    """How the chosen head is drawn."""
    _segments("choose-picture", "Picture", list(_PICTURES), scene.view.picture, "picture", _PICTURES.__getitem__)
    say(*problems("picture"))


def _head_switches(scene: Scene) -> None:
    """A toggle for the head that is shown, one for all heads of its block, and the rest behind a button."""
    stack, block = KIND_SITES[scene.view.kind]
    layer, head, n_heads = scene.layer, scene.head, scene.lab.model.config.n_heads
    off = scene.view.heads_off(stack, layer, block)
    everything = frozenset(range(n_heads))

    def set_heads(heads: frozenset[int]) -> None:
        choose(switches=with_heads(visit().view, stack, layer, block, heads).switches)

    with st.container(horizontal=True, vertical_alignment="center", gap="medium", width="content"):
        _toggle(f"Head {head} off", "switch-head", head in off, lambda on: set_heads(_flipped(off, head, on)))
        _toggle(
            f"All {n_heads} off",
            "switch-block",
            off == everything,
            lambda on: set_heads(everything if on else frozenset()),
        )
        with st.popover("More switches"):
            more_switches(scene)


def more_switches(scene: Scene) -> None:
    """Any heads of any block, and the masks."""
    options = [
        HeadsOff(site.stack, site.layer, site.block, (head,))  # type: ignore[arg-type]
        for site in scene.lab.model.sites()
        if site.tensor == "heads"
        for head in range(scene.lab.model.config.n_heads)
    ]
    chosen = [
        HeadsOff(s.stack, s.layer, s.block, (head,))
        for s in scene.view.switches
        if isinstance(s, HeadsOff)
        for head in s.heads
    ]
    masks = [spec.mask for spec in scene.view.switches if isinstance(spec, MaskOff)]

    memory = visit()
    if memory.in_popover != scene.view.switches:
        memory.in_popover = scene.view.switches
        memory.popovers += 1
    heads_key, masks_key = f"switch-heads-{memory.popovers}", f"switch-masks-{memory.popovers}"
    st.session_state.setdefault(heads_key, chosen)
    st.session_state.setdefault(masks_key, masks)

    def take() -> None:
        names: list[MaskKind] = st.session_state[masks_key]
        others = [spec for spec in memory.view.switches if not isinstance(spec, HeadsOff | MaskOff)]
        choose(switches=merged([*st.session_state[heads_key], *map(MaskOff, names), *others]))
        memory.in_popover = memory.view.switches

    st.pills(
        "Masks off",
        [mask for mask in _MASKS if mask != "causal" or scene.lab.model.config.causal_mask],
        key=masks_key,
        selection_mode="multi",
        format_func=_MASKS.__getitem__,
        on_change=take,
    )
    st.multiselect(
        "Heads off, in any block",
        options,
        key=heads_key,
        format_func=_head_option,
        on_change=take,
        placeholder="Choose heads",
    )
    _block_switches(scene)
    st.caption("A switch changes the forward pass itself, for you alone.")


def _block_switches(scene: Scene) -> None:
    """Whole blocks, and any switch by its name."""
    memory = visit()
    blocks = [
        BlockOff(site.stack, site.layer, site.block)  # type: ignore[arg-type]
        for site in scene.lab.model.sites()
        if site.tensor == "output"
    ]
    blocks_key, typed_key = f"switch-blocks-{memory.popovers}", f"switch-typed-{memory.popovers}"
    st.session_state.setdefault(blocks_key, [spec for spec in scene.view.switches if isinstance(spec, BlockOff)])

    def take() -> None:
        others = [spec for spec in memory.view.switches if not isinstance(spec, BlockOff)]
        choose(switches=merged([*others, *st.session_state[blocks_key]]))
        memory.in_popover = memory.view.switches

    def take_typed() -> None:
        try:
            spec = parse_intervention(st.session_state[typed_key].strip())
            spec.sites(scene.lab.model)
        except ValueError as error:
            memory.touched = True
            memory.problems = (Problem("switch", _sentence(str(error))),)
        else:
            choose(switches=merged([*memory.view.switches, spec]))

    st.multiselect(
        "Whole blocks off: output zero, bias included",
        blocks,
        key=blocks_key,
        format_func=lambda spec: f"{spec.stack} {spec.layer} {spec.block}",
        on_change=take,
        placeholder="Choose blocks",
    )
    st.text_input(
        "Or type a switch",
        key=typed_key,
        placeholder="forbid:decoder.0.cross:3,5",
        help="block:decoder.1.ffn · residual:off:decoder.1.ffn · forbid:decoder.0.cross:3,5 (query, key) · "
        "row:decoder.0.cross.2:3:uniform · "
        "row:decoder.0.cross.2:3:5 (head 2, row 3, all on key 5)",
        on_change=take_typed,
    )


def switch_chips(scene: Scene) -> None:
    """A chip for each switch that is on; clicking it takes the switch back."""
    say(*problems("switch"))
    if not scene.inspection.ended and not scene.view.switches:
        st.caption(f"No end mark was written: the output was cut off at {len(scene.inspection.target_tokens)} tokens.")
    if not scene.view.switches:
        return
    with st.container(horizontal=True, gap="small"):
        for spec in scene.view.switches:
            st.button(
                wording.switch_label(spec),
                key=f"remove-{spec}",
                icon=":material/close:",
                icon_position="right",
                help="Take this switch back",
                on_click=lambda spec=spec: choose(switches=visit().view.without(spec).switches),
            )
        if len(scene.view.switches) > 1:
            st.button("Take all back", key="remove-all", type="tertiary", on_click=lambda: choose(switches=()))


def change_text(text: str) -> None:
    """Takes a sentence where the model can read it; else leaves it in the field, with a sentence saying why."""
    memory = visit()
    text = text.strip()
    try:
        loading.get_inspection(loading.get_lab(memory.view.model), text, memory.view.switches)
    except (ValueError, CheckpointError) as error:
        memory.draft = text
        memory.touched = True
        memory.problems = (Problem("text", f"{_sentence(str(error))} Below is still the last sentence."),)
    else:
        memory.draft = None
        choose(text=text)


def change(scene: Scene) -> Change:
    """What is different from the sentence shown before, where the two are alike."""
    text = visit().previous.get(scene.lab.name)
    if text is None or text == scene.view.text:
        return Change()
    try:
        before = loading.get_inspection(scene.lab, text, scene.view.switches)
    except ValueError:
        return Change()
    now = scene.inspection
    gone, new = edit_marks(before.source_tokens, now.source_tokens)
    if 2 * len(new) > len(now.source_tokens) or 2 * len(gone) > len(before.source_tokens):
        return Change()
    _, written = edit_marks(before.target_tokens, now.target_tokens)
    return Change(new, written, wording.change_of(before.target_tokens, now.target_tokens))


def edit_marks(a: tuple[str, ...], b: tuple[str, ...]) -> tuple[frozenset[int], frozenset[int]]:
    """The tokens of both that the fewest edits touch."""
    gone: set[int] = set()
    new: set[int] = set()
    for operation, a0, a1, b0, b1 in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if operation != "equal":
            gone |= set(range(a0, a1))
            new |= set(range(b0, b1))
    return frozenset(gone), frozenset(new)


def _lab(names: list[str], shipped: dict[str, bool]) -> Lab:
    """The chosen model, or the first that can be opened, with a sentence where that is another one."""
    memory = visit()
    wanted = memory.view.model or loading.first_choice(loading.models())
    faults: list[Problem] = []
    for name in dict.fromkeys((wanted, loading.first_choice(loading.models()), *names)):
        try:
            lab = loading.get_lab(name)
        except CheckpointError as error:
            faults.append(Problem("model", _sentence(str(error))))
            continue
        if faults:
            memory.problems = (*memory.problems, *faults[:1], Problem("model", f"Shown instead: {name}."))
        memory.view = replace(memory.view, model=name)
        return lab
    for fault in faults:
        say(fault.sentence)
    st.stop()


def _inspection(lab: Lab) -> Inspection:
    """The decoding of the chosen sentence, or of one that the model can read where it cannot read that."""
    memory = visit()
    offered = loading.examples(lab)
    wanted = memory.view.text or memory.texts.get(lab.name) or (offered[0] if offered else "a")
    try:
        inspection = loading.get_inspection(lab, wanted, memory.view.switches)
    except ValueError as error:
        memory.draft = wanted
        memory.problems = (*memory.problems, Problem("text", f"{_sentence(str(error))} Below is an example."))
        wanted = offered[0] if offered else "a"
        inspection = loading.get_inspection(lab, wanted, memory.view.switches)
    memory.view = replace(memory.view, text=wanted)
    if (shown := memory.texts.get(lab.name)) not in (None, wanted):
        memory.previous[lab.name] = shown
    memory.texts[lab.name] = wanted
    return inspection


def _choices(names: list[str], shipped: dict[str, bool], lab: Lab) -> None:
    memory = visit()
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        label = "Model" if shipped[lab.name] else "Model · your run"
        _box(_MODEL, label, names, lab.name, _change_model, width=200)
        st.session_state[_TEXT] = memory.view.text if memory.draft is None else memory.draft
        st.text_input("Sentence", key=_TEXT, width="stretch", on_change=lambda: change_text(st.session_state[_TEXT]))
        # A popover that was used is drawn anew, closed, over the new result.
        with st.popover("Examples", key=f"examples-{memory.changes}"):
            for text in loading.examples(lab):
                st.button(text, key=f"example-{text}", type="tertiary", on_click=change_text, args=(text,))
        with st.popover("More"):
            _about(lab)


def _about(lab: Lab) -> None:
    config, settings = lab.model.config, lab.checkpoint.settings
    st.markdown(
        f"**{lab.name}** learned *{settings.corpus.name}* in {lab.checkpoint.step:,} steps. "
        f"{lab.model.n_parameters():,} parameters: {config.n_encoder_layers} encoder and {config.n_decoder_layers} "
        f"decoder layers, {config.n_heads} heads each, d_model {config.d_model}, {config.positions} positions."
    )
    entries = lab.tokenizer.vocabulary()
    wanted = st.text_input("Search its vocabulary", key="search-vocabulary", placeholder="a word, or a part of one")
    shown = [(i, entry) for i, entry in enumerate(entries) if wanted.lower() in entry.lower()]
    st.caption(f"{len(shown):,} of {len(entries):,} entries")
    st.dataframe(
        {"id": [i for i, _ in shown], "token": [entry for _, entry in shown]},
        hide_index=True,
        height=240,
        width="stretch",
    )


def _change_model(name: str) -> None:
    """Another model with the same sentence where it knows its words, else with one of its own."""
    memory = visit()
    memory.draft = None
    text = memory.view.text
    try:
        lab = loading.get_lab(name)
        known = not lab.unknown(text)
    except CheckpointError:
        known = True  # the page will say what is wrong with the model
    choose(model=name, text=text if known else memory.texts.get(name, ""))


def _invite_to_train() -> None:
    st.markdown("There is no model here yet. Train one: about 20 s for *reverse*, on two cores.")
    write_url()
    st.stop()


def _box(
    key: str,
    label: str,
    options: list,
    value: object,
    apply: Callable,
    format_func: Callable[..., str] = str,
    width: int | Literal["stretch"] = "stretch",
) -> None:
    st.session_state[key] = value
    st.selectbox(
        label,
        options,
        key=key,
        format_func=format_func,
        width=width,
        on_change=lambda: apply(st.session_state[key]),
    )


def _segments(key: str, label: str, options: list, value: object, name: Place, format_func: Callable[..., str]) -> None:
    st.session_state[key] = value
    st.segmented_control(
        label,
        options,
        key=key,
        format_func=format_func,
        required=True,
        label_visibility="collapsed",
        on_change=lambda: choose(**{name: st.session_state[key]}),
    )


def _toggle(label: str, key: str, value: bool, apply: Callable[[bool], None]) -> None:
    st.session_state[key] = value
    st.toggle(label, key=key, on_change=lambda: apply(st.session_state[key]))


def _flipped(off: frozenset[int], head: int, on: bool) -> frozenset[int]:
    return off | {head} if on else off - {head}


def _head_name(head: int | str) -> str:
    return "average of all" if head == AVERAGE else str(head)


def _head_option(spec: HeadsOff) -> str:
    return f"{spec.stack} {spec.layer} {spec.block} · head {spec.heads[0]}"


def _sentence(text: str) -> str:
    text = text.strip().rstrip(".")
    return f"{text[:1].upper()}{text[1:]}."
