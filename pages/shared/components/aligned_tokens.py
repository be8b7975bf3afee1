"""Two outputs aligned: what stands for what is one above the other, a gap where only one of them wrote a token."""

from collections.abc import Sequence

from streamlit.components.v2 import component

from pages.shared.components.frontend import colours_of, describe_tokens, text_of
from transformer.inspection.token_alignment import Aligned
from transformer.model.kinds import KindName

_component = component(
    "attention_lab_aligned_tokens",
    html="<div class='root'></div>\n",
    css=text_of("tokens.css", "token_chips.css", "aligned_tokens.css"),
    js=text_of("tokens.js", "aligned_tokens.js"),
)

Line = tuple[Sequence[str], Sequence[float]]
"""Tokens, and the probability of each when it was written."""


def aligned_tokens(
    above: Line, below: Line, alignment: Aligned, *, labels: tuple[str, str], kind: KindName = "cross", key: str
) -> None:
    """Draws both lines of tokens in columns that wrap together; what differs is marked."""
    for tokens, probabilities in (above, below):
        if len(tokens) != len(probabilities):
            raise ValueError(f"{len(tokens)} tokens need as many probabilities, not {len(probabilities)}")
    (a, p), (b, q) = above, below
    same = [(i, j) for i, j in alignment if i is not None and j is not None and a[i] == b[j]]
    first = describe_tokens(a, changed=set(range(len(a))) - {i for i, _ in same})
    second = describe_tokens(b, changed=set(range(len(b))) - {j for _, j in same})
    _component(
        key=key,
        data={
            "labels": list(labels),
            "columns": [
                [
                    None if i is None else {**first[i], "probability": float(p[i])},
                    None if j is None else {**second[j], "probability": float(q[j])},
                ]
                for i, j in alignment
            ],
            "colours": colours_of(kind),
        },
    )
