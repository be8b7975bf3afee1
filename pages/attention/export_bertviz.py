"""What is taken away of bertviz: the drawing, its weights, the neuron view's q and k, the lines that make it."""

from pages.attention.bertviz_view import FRAME, Framed, first_row, is_causal
from pages.attention.picture_data import Source
from pages.attention.picture_sides import groups
from pages.shared.context import PageContext
from pages.shared.exports import Export, InFrame, opening_lines
from transformer.figures.tables import head_tables

_BUILDERS = {"bertviz": "head_view", "bertviz-model": "model_view", "bertviz-neuron": "neuron_view"}
_NOTE = "figure.html is the document; numbers there have four decimals, here all"


def bertviz_away(context: PageContext, source: Source, framed: Framed) -> Export:
    """The drawing above, as it stands there."""
    shown, vectors = framed.shown, framed.vectors
    tables = head_tables(shown.weights, shown.queries, shown.keys)
    if vectors is not None:
        dimensions = [str(index) for index in range(vectors.q.shape[-1])]
        tables += head_tables(vectors.q, shown.queries, dimensions, name=" q")
        tables += head_tables(vectors.k, shown.keys, dimensions, name=" k")
    held = "" if vectors is None else "; files hold weights, q and k of every head"
    name = f"{context.lab.name}-{context.view.kind}-{context.view.picture}"
    said = " · ".join(filter(None, (context.view.kind.label, framed.said)))
    lines = python_of(context, source, framed)
    return Export(name, InFrame(FRAME, framed.view.html), tables, lines, f"{_NOTE}{held}", said)


def python_of(context: PageContext, source: Source, framed: Framed) -> str:
    """Lines that make the very document."""
    view, builder = context.view, _BUILDERS[context.view.picture]
    imports = [f"from transformer.figures.bertviz import Shown, {builder}"]
    labels, steps, vectors = "attention.queries, attention.keys", ["numbers = attention.weights"], []
    given = "shown"
    if framed.vectors is None:
        cut, wanted = _cut(source)
        steps, imports = [*steps, *cut], [*imports, *wanted]
        if view.words or view.specials != "shown":
            labels = "rows, columns"
            steps += [f"rows = {list(framed.shown.queries)!r}", f"columns = {list(framed.shown.keys)!r}"]
    else:
        stack, sublayer = view.kind.where
        imports.append("from transformer.analysis.attention.vectors import record_vectors")
        vectors = [
            f"vectors = record_vectors(lab.model, seen.source_ids, seen.interventions, {stack!r}, {sublayer!r})",
        ]
        given = f"shown, vectors.q, vectors.k, row={first_row(source)!r}, causal={is_causal(source)!r}"
    shown = framed.shown
    more = [
        f"{name}=frozenset({sorted(heads)!r})"
        for name, heads in (("off", shown.off), ("at_mean", shown.at_mean))
        if heads
    ]
    more += [f"said={shown.said!r}"] * bool(shown.said)
    return "\n".join(
        [
            *opening_lines(context, imports),
            f"attention = seen.{view.kind}",
            *steps,
            *vectors,
            f"shown = Shown({', '.join(['numbers', labels, f'layer={source.layer}', f'head={source.head}', *more])})",
            f"figure = {builder}({given})",
        ]
    )


def _cut(source: Source) -> tuple[list[str], list[str]]:
    """The lines that merge, leave out and hide as the page does, and what they import."""
    view, steps, wanted = source.view, [], []
    combine = "from transformer.analysis.attention.aggregation import {}".format
    rows, columns = source.sides(words=view.words)
    if view.words:
        wanted.append(combine("merge_words"))
        steps.append(f"numbers = merge_words(numbers, {groups(rows)!r}, {groups(columns)!r})")
    if view.specials != "shown":
        wanted.append(combine("leave_out"))
        steps += [
            "n_layers, n_heads, _, n_keys = numbers.shape",
            f"gone, gone_keys = {list(rows.special)!r}, {list(columns.special)!r}",
            "kept, _ = leave_out(numbers.reshape(-1, n_keys), gone * (n_layers * n_heads), gone_keys)",
        ]
        if view.specials == "renormalised":
            wanted.append(combine("renormalise"))
            steps.append("kept = renormalise(kept)")
        steps.append("numbers = kept.reshape(n_layers, n_heads, -1, kept.shape[-1])")
    if view.threshold:
        wanted += ["import numpy as np", combine("below")]
        steps.append(f"numbers = np.where(below(numbers, {view.threshold!r})[0], np.float32(0), numbers)")
    return steps, wanted
