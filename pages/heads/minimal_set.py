"""The smallest set of heads that changes this output, on the Heads page: the goal, the search, its result."""

from collections.abc import Hashable
from dataclasses import replace
from math import comb

import streamlit as st

from pages.heads.choices import HEADS, MAX_EXACT, MAX_HEADS, PAGE, Choices, box, segments
from pages.heads.patterns import OPENS
from pages.heads.work import result_of
from pages.shared.cache import lab_key
from pages.shared.components.tokens import token_chips
from pages.shared.context import Decoded, PageContext, say
from pages.shared.exhibit import exhibit
from pages.shared.wording import bare, duration, number, plain, pronoun_step, token
from transformer.analysis.heads.addresses import HeadAt, Tell, heads_of
from transformer.analysis.heads.minimal_set import WIDTH, Ablation, Goal, MinimalSets, SearchPlan, minimal_set
from transformer.figures.heads.labels import Sublayer, head_name
from transformer.inspection.token_alignment import edit_marks
from transformer.interventions import heads_set_to, merged
from transformer.interventions.names import plural
from transformer.views.heads.minimal_set import MinimalSetOutputs
from transformer.views.heads.subjects import Searched

N_OFFERED = 50
"""The number of tokens offered for what a token is to become, the most probable at that step first."""
UNASKED_S = 120.0
"""A search with a rough estimate above this starts only when the visitor asks for it."""
_NUMBERS_A_SECOND = 2e10
"""Parameters times positions that one thread of a small machine gets through in a second, overhead included."""
_ASKED = "heads-searches-asked"
_OTHER = {"il": "elle", "elle": "il"}


def render_minimal_set(context: Decoded, chosen: Choices) -> None:
    """Renders the whole section."""
    st.markdown(
        "Heads are redundant: often removing one changes nothing. How many must be removed *together* before this "
        "output changes?"
    )
    plan = _plan(context, chosen)
    if plan is None:
        return
    key = ("smallest", lab_key(context.lab), context.inspection.source_ids, *_settings(context, plan))
    if not _wanted(context, plan, key):
        return
    found = _search(context, plan, key)
    if found is not None:
        subject = Searched(context.lab, context.inspection, plan, found)
        exhibit(subject, MinimalSetOutputs(), draw=lambda data: _render_found(context, plan, found), explain=_explain)


def _plan(context: Decoded, chosen: Choices) -> SearchPlan | None:
    """Renders the controls; returns what they ask for."""
    step, into = _default_goal(context)
    goal = chosen.goal or ("any" if into is None else "token")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        segments("goal", "What should change", {"any": "Any token", "token": "One token"}, goal)
        target = Goal()
        if goal == "token":
            target = _token_goal(context, chosen, step, into)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        segments("heads", "Among", HEADS, chosen.heads)
        help = "Every set of up to this many heads is tried; larger ones are built head by head."
        box("exact", "Every set up to", range(1, MAX_EXACT + 1), chosen.exact, _heads, width=126, help=help)
        box("most", "At most", range(1, MAX_HEADS + 1), chosen.most, _heads, width=104)
    off = heads_set_to(context.view.switches, ("zero",))
    heads = tuple(
        at
        for at in heads_of(context.lab.model)
        if chosen.heads in ("all", at.kind) and (at.stack, at.layer, at.sublayer, at.head) not in off
    )
    if not heads:
        st.markdown("All of these heads are off already: remove a switch, or choose other heads.")
        return None
    return SearchPlan(target, heads, exact=min(chosen.exact, chosen.most), most=chosen.most)


def _token_goal(context: Decoded, chosen: Choices, default_step: int, default_into: int | None) -> Goal:
    seen = context.inspection
    n = len(seen.target_tokens)
    step = default_step if chosen.step is None else chosen.step
    if step >= n:
        say(f"The output has tokens 0 to {n - 1}; token {step} does not exist, so token {n - 1} is used.")
        step = n - 1
    into = chosen.into if chosen.step is not None or chosen.into is not None else default_into
    row = seen.log_probs[step]
    never = (seen.target_ids[step], context.lab.model.config.pad_id)
    if into is not None and (into >= len(row) or into in never):
        say(
            f"Token {into} cannot stand there in place of “{_shown(seen.target_tokens[step])}”; anything else is taken."
        )
        into = None
    offered = [int(i) for i in (-row).argsort()[: N_OFFERED + 2] if int(i) not in never][:N_OFFERED]
    extra = [i for i in (into, default_into if step == default_step else None) if i is not None and i not in offered]
    piece = context.lab.tokenizer.piece
    box("step", "This token", range(n), step, lambda i: f"{i} · {_shown(seen.target_tokens[i])}", width=170)
    options: list[int | None] = [None, *dict.fromkeys(extra), *offered]
    box("into", "into", options, into, lambda i: "anything else" if i is None else _shown(piece(i)), width=170)
    return Goal(step, into)


def _default_goal(context: Decoded) -> tuple[int, int | None]:
    """Returns the pronoun's token and the other pronoun; if the output has none, its first token."""
    step = pronoun_step(context.inspection)
    if step is None:
        return 0, None
    other = _OTHER[bare(context.inspection.target_tokens[step])]
    ids = context.lab.tokenizer.encode_target(other)
    return (step, ids[0]) if len(ids) == 1 and not context.lab.unknown(other) else (0, None)


def _settings(context: Decoded, plan: SearchPlan) -> tuple[Hashable, ...]:
    return (context.inspection.target_ids, tuple(map(str, context.view.switches)), plan)


def _wanted(context: Decoded, plan: SearchPlan, key: Hashable) -> bool:
    """Renders the offer to begin a long search; returns whether the search may begin."""
    positions = len(context.inspection.source_ids) + len(context.inspection.target_ids)
    estimate_s = plan.n_ablations * positions * context.lab.model.n_parameters() / _NUMBERS_A_SECOND
    asked: set[Hashable] = st.session_state.setdefault(_ASKED, set())
    if estimate_s <= UNASKED_S or key in asked:
        return True
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"{plan.n_ablations:,} sets to try, roughly {duration(estimate_s)}.", width="content")
        st.button("Search", key="heads-search", type="primary", on_click=asked.add, args=(key,))
    return False


def _search(context: Decoded, plan: SearchPlan, key: Hashable) -> MinimalSets | None:
    lab, seen = context.lab, context.inspection

    def compute(tell: Tell) -> MinimalSets:
        return minimal_set(
            lab.model,
            seen.source_ids,
            seen.target_ids,
            plan.goal,
            plan.heads,
            switches=seen.interventions,
            exact=plan.exact,
            most=plan.most,
            tell=tell,
        )

    return result_of("smallest", key, compute, f"Trying up to {plan.n_ablations:,} sets of heads")


def _render_found(context: Decoded, plan: SearchPlan, found: MinimalSets) -> None:
    what = _goal_said(context, plan.goal)
    tried = _tried(plan, found)
    if not found.sets:
        _render_none(context, plan, found, what, tried)
        return
    best = found.sets[0]
    size = _heads(found.size)
    how = "" if found.exact else ", though fewer might do"
    others = f" {found.n_sets:,} sets of that size do." if found.n_sets > 1 else " It is the only set of that size."
    st.markdown(f"## {size}{' together' if found.size > 1 else ''} {_verb(what, found.size)}")
    st.markdown(f"**{_named(best)}**{how}.{others if found.exact else ''} {tried}")
    if not found.exact:
        _try_more(plan)
    _draw_outputs(context, best)
    endless = "" if best.ended else f" No end mark was written: it was cut off at {len(best.written)} tokens."
    st.caption(f"Decoded again without these heads, token by token.{endless}")
    _list_sets(context, found)


def _render_none(context: PageContext, plan: SearchPlan, found: MinimalSets, what: str, tried: str) -> None:
    st.markdown(f"## None found up to {_heads(found.size)}")
    st.markdown(f"Of the sets of heads that were tried, none would {what}. {tried}")
    nearest = found.nearest
    st.markdown(
        f"{_heads(len(nearest.heads)).capitalize()} come nearest ({_named(nearest)}): they miss it by "
        f"{number(nearest.margin)} nats of log-probability."
        if len(nearest.heads) > 1
        else f"{_named(nearest)} comes nearest: it misses by {number(nearest.margin)} nats of log-probability."
    )
    _link(context, nearest, "See what these do on the Attention page")
    if found.exact:
        st.caption("Every set of these sizes was tried, so there is none.")
    else:
        st.caption("Not all larger sets were tried: the search may have missed one.")
        _try_more(plan)
    if PAGE.now.heads != "all":
        st.button("Search all heads", key="heads-all", on_click=lambda: PAGE.change(heads="all"))


def _try_more(plan: SearchPlan) -> None:
    """Offers to try every set of one head more."""
    size = plan.exact + 1
    if size <= min(MAX_EXACT, plan.most):
        st.button(
            f"Also try all {comb(len(plan.heads), size):,} sets of {size} heads",
            key="heads-more",
            on_click=lambda: PAGE.change(exact=size),
        )


def _tried(plan: SearchPlan, found: MinimalSets) -> str:
    """Says how many sets of each size were tried."""
    names = {1: "single heads", 2: "pairs"}
    every = [
        f"all {n:,} {names.get(size, f'sets of {size}')}" for size, n in enumerate(found.tried, 1) if size <= plan.exact
    ]
    said = f"Tried: {_listed(every)}"
    if len(found.tried) > plan.exact:
        said += (
            f"; then one more head at a time was added to the nearest sets ({sum(found.tried[plan.exact :]):,} more)"
        )
    return f"{said}."


def _goal_said(context: Decoded, goal: Goal) -> str:
    if goal.step is None:
        return "change this output"
    before = token(context.inspection.target_tokens[goal.step])
    if goal.token is None:
        return f"turn {before} into something else"
    return f"turn {before} into {token(context.lab.tokenizer.piece(goal.token))}"


def _draw_outputs(context: Decoded, ablation: Ablation) -> None:
    """Renders the output before and after."""
    before = context.inspection.target_tokens
    after = tuple(map(context.lab.tokenizer.piece, ablation.written))
    gone, new = edit_marks(before, after)
    token_chips(before, label="before", changed=gone, key="heads-before")
    token_chips(after, label="after", changed=new, key="heads-after")


def _list_sets(context: PageContext, found: MinimalSets) -> None:
    for ablation in found.sets:
        ids = ablation.written[:-1] if ablation.written[-1:] == (context.lab.model.config.eos_id,) else ablation.written
        written = plain(context.lab.tokenizer.decode(ids)[:120])
        cut = "" if ablation.ended else f" · cut off at {len(ids)} tokens, no end mark"
        _link(context, ablation, f"{_named(ablation)} · {written}{cut}")
    if found.n_sets > len(found.sets):
        st.caption(f"The clearest {len(found.sets)} of {found.n_sets:,}.")


def _link(context: PageContext, ablation: Ablation, label: str) -> None:
    """Returns the view of the Attention page with these heads off."""
    at = ablation.heads[0]
    switches = merged([*context.view.switches, *ablation.switches])
    view = replace(context.view.at_head(at.kind, at.layer, at.head), switches=switches)
    st.page_link("pages/attention/page.py", label=label, icon=OPENS, query_params=view.parameters())


def _named(ablation: Ablation) -> str:
    """Returns the names of heads, block by block: "encoder 1 · head 3 and decoder 1 cross · heads 0, 2"."""
    sublayers: dict[str, list[HeadAt]] = {}
    for at in sorted(ablation.heads):
        sublayers.setdefault(Sublayer.of(str(at)).name, []).append(at)
    several = {name: ", ".join(str(at.head) for at in heads) for name, heads in sublayers.items()}
    return _listed(
        [
            head_name(str(heads[0])) if len(heads) == 1 else f"{name} · heads {several[name]}"
            for name, heads in sublayers.items()
        ]
    )


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _verb(what: str, n: int) -> str:
    """Turns "change this output" into what so many heads do."""
    verb, rest = what.split(" ", 1)
    return f"{verb}s {rest}" if n == 1 else what


def _heads(n: int) -> str:
    return f"{n} {plural(n, 'head')}"


def _shown(piece: str) -> str:
    return piece.strip("▁") or piece


def _explain() -> None:
    st.markdown(
        "A set of heads is removed by setting their contexts to zero before $W^O$. Greedy decoding diverges at "
        "the first token that is no longer the most probable one, so a single pass over the output, with each "
        "set as one row of a batch, tells exactly which sets change anything. With *One token*, the tokens "
        "before it must stay; what follows may change. Every set up to the size you choose is tried. Beyond that "
        f"the search is greedy: to the {WIDTH} sets nearest to the goal, every other head is added in turn, and "
        "so on (forward selection with a beam). Sets that reach the goal are then decoded token by token. Your "
        "switches hold throughout, and heads that are off already are left out."
    )
