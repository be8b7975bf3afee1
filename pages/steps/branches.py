"""The branches of one sentence: the model's own output and those on which a token was forced, side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import streamlit as st

from pages.shared import fields, loading, wording
from pages.shared.components.tokens import token_chips
from pages.shared.context import Decoded, PageContext, say
from pages.shared.exhibit import exhibit
from pages.shared.guard import guard
from pages.steps.choices import PAGE, BranchesAs, Choices, Forced, change, complain, complaint, drop, take_branch
from pages.steps.loading import get_branch
from transformer.lab import Inspection
from transformer.views.steps.branches import BranchesData, BranchLines, BranchPair, BranchTree
from transformer.views.steps.subjects import Branches


@dataclass(frozen=True)
class Walk:
    """The selected branch and the step at which the visitor is."""

    branches: tuple[Inspection, ...]
    """The decoded branches; the first is the model's own output."""
    index: int
    step: int

    @property
    def branch(self) -> Inspection:
        """Returns the selected branch."""
        return self.branches[self.index]

    @property
    def written(self) -> int:
        """Returns the id of the token that this step wrote."""
        return self.branch.target_ids[self.step]

    def forcing(self, token: int) -> Forced:
        """Returns the branch that leaves this one at this step with another token."""
        before = tuple((step, forced) for step, forced in self.branch.forced if step < self.step)
        return (*before, (self.step, token))


def decode_branches(context: Decoded, chosen: Choices) -> Walk:
    """Decodes the chosen branches; those that this model cannot write are left out with a sentence."""
    branches, lost = [context.inspection], set()
    for forced in chosen.branches:
        try:
            branches.append(get_branch(context.lab, context.view.text, context.view.switches, forced))
        except ValueError as error:
            lost.add(forced)
            say(f"A branch is left out: {error}.")
    if lost:
        drop(lost)
    index = 0 if lost else min(chosen.branch, len(branches) - 1)
    return Walk(tuple(branches), index, min(chosen.step, len(branches[index].target_ids) - 1))


@guard("The branches")
def render_branches(context: PageContext, walk: Walk, chosen: Choices) -> None:
    """Renders the output and its branches as lines of chips, as one tree or as a pair; and which one is selected."""
    several, subject = len(walk.branches) > 1, Branches(context.lab, walk.branches)
    if not several or chosen.branches_as == "lines":
        baseline = (loading.get_inspection(context.lab, context.view.text),) if context.view.switches else ()
        subject = Branches(context.lab, (*baseline, *walk.branches))
        data = exhibit(subject, BranchLines(), draw=partial(_render_lines, len(baseline)))
        data = data and data[len(baseline) :]
    elif chosen.branches_as == "tree":
        data = exhibit(subject, BranchTree(walked=walk.index))
        st.caption(
            "Alternatives branch off where you forced another token (!). Under each token: its probability. The "
            "selected branch is blue."
        )
    else:
        data = _render_pair(subject, walk, chosen)
    if several and data:
        _render_choice(walk, data, chosen)
    elif not several:
        st.caption("Under each token: its probability when it was written.")
    say(*PAGE.said("road", "beside", "roads_as"))
    if not walk.branch.ended and (walk.index or context.view.switches):  # the frame says it of the plain output
        st.caption(
            f"No end mark was written: the output was cut off at the model's {len(walk.branch.target_ids)} tokens."
        )


def _render_lines(own: int, data: BranchesData) -> None:
    for index, branch in enumerate(data):
        token_chips(
            branch.tokens,
            label=branch.name.partition(":")[0],
            changed=np.flatnonzero(branch.changed).tolist(),
            probabilities=branch.probabilities.tolist(),
            key=f"branch-{index - own}",
        )


def _render_pair(subject: Branches, walk: Walk, chosen: Choices) -> BranchesData | None:
    others = [index for index in range(len(walk.branches)) if index != walk.index]
    beside = chosen.beside if chosen.beside in others else others[0]
    pair = exhibit(subject, BranchPair(first=walk.index, second=beside))
    if pair is None:
        return None
    own, other = (f"{wording.plain(branch.name)}: {wording.number(branch.log_prob)}" for branch in pair)
    st.caption(
        f"How probable each token was when it was written. {own} nats in all; {other}. The first is "
        f"e^({wording.number(pair[0].log_prob - pair[1].log_prob)}) times as probable."
    )
    data = BranchLines().data(subject.lab, subject.branches)
    names = [branch.name for branch in data]
    if len(others) > 1:
        take = PAGE.take("beside")
        fields.box("Compare with", others, beside, take, key="beside", names=names.__getitem__)
    return data


def _render_choice(walk: Walk, data: BranchesData, chosen: Choices) -> None:
    """Renders which branch is selected and how all are drawn."""
    names = [wording.plain(branch.name) for branch in data]
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        fields.segments(
            "Branch", range(len(names)), walk.index, PAGE.take("branch"), key="select-branch", names=names.__getitem__
        )
        ways: dict[BranchesAs, str] = {"lines": "As lines", "tree": "As a tree", "pair": "Two side by side"}
        fields.segments("Branches", ways, chosen.branches_as, PAGE.take("branches_as"), key="branches-as")
        st.button(
            "Discard other branches",
            key="discard",
            type="tertiary",
            on_click=lambda: change(branches=(), branch=0, beside=0),
        )
    totals = []
    for branch in data:
        said = f"{branch.name.partition(':')[0]}: log-probability {wording.number(branch.log_prob)} nats"
        if branch.unreached is not None:
            said += f", ended before the token forced at step {branch.unreached}"
        totals.append(said)
    st.caption(" · ".join(totals))


def render_other_tokens(context: PageContext, walk: Walk, offered: Sequence[int]) -> None:
    """Renders a box of tokens, one of which is forced at this step, and a field for the words before it."""

    def force() -> None:
        token = st.session_state["force"]
        st.session_state["force"] = None
        if token is not None:
            force_token(context, walk, token)

    written = context.lab.tokenizer.decode(walk.branch.target_ids[: walk.step])
    typed = st.session_state.get("begin", written) if complaint() else written  # what was typed wrongly stays
    left, right = st.columns(2)
    with left:
        st.selectbox(
            f"Write another token at step {walk.step}",
            offered,
            key="force",
            index=None,
            placeholder="a candidate (most probable first)",
            format_func=lambda token: _piece(context, token),
            on_change=force,
        )
    with right:
        fields.line(
            f"Or edit the words before step {walk.step}",
            typed,
            lambda text: _force_beginning(context, text),
            key="begin",
            placeholder="some words",
        )
    if complaint():
        say(complaint())


def force_token(context: PageContext, walk: Walk, token: int) -> None:
    """Forces a token at this step and selects the new branch; for callbacks."""
    config = context.lab.model.config
    if token == walk.written:
        change()
        complain(f"This branch already writes {_piece(context, token)} at step {walk.step}.")
    elif token in (config.pad_id, config.bos_id):
        change()
        complain(f"{_piece(context, token)} only pads or starts sentences and cannot be written.")
    else:
        take_branch(walk.forcing(token), walk.step)


def _force_beginning(context: PageContext, text: str) -> None:
    tokenizer, longest = context.lab.tokenizer, context.lab.model.config.max_length
    ids = tokenizer.encode_target(text.strip())
    unseen = wording.unseen(tokenizer, tokenizer.sentence(text), markdown=False)
    change()
    if unseen:
        complain(f"{unseen} These words cannot be forced.")
    elif len(ids) > longest - 1:
        complain(
            f"These words have {len(ids)} tokens; {context.lab.name} writes at most {longest}, its end mark included."
        )
    elif ids:
        take_branch(tuple(enumerate(ids)), min(len(ids), longest - 1))


def _piece(context: PageContext, token: int) -> str:
    return context.lab.tokenizer.piece(token)
