"""A line of tokens, each with its probability where one is given."""

from collections.abc import Collection, Mapping, Sequence

from streamlit.components.v2 import component

from pages.shared.components.frontend import NONE_UNSEEN, colours_of, describe_tokens, text_of
from transformer.model.kinds import KindName

_component = component(
    "attention_lab_token_chips",
    html="<div class='root'></div>\n",
    css=text_of("tokens.css", "token_chips.css"),
    js=text_of("tokens.js", "token_chips.js"),
)


def token_chips(
    tokens: Sequence[str],
    *,
    label: str,
    changed: Collection[int] = (),
    unseen: Mapping[int, str] = NONE_UNSEEN,
    probabilities: Sequence[float] | None = None,
    kind: KindName = "cross",
    key: str,
) -> None:
    """Draws the tokens as a labelled line of chips that wraps; `changed` holds indices, `unseen` the words at
    indices that the model never saw."""
    if probabilities is not None and len(probabilities) != len(tokens):
        raise ValueError(f"{len(tokens)} tokens need as many probabilities, not {len(probabilities)}")
    _component(
        key=key,
        data={
            "label": label,
            "tokens": describe_tokens(tokens, changed=changed, unseen=unseen),
            "probabilities": None if probabilities is None else [float(p) for p in probabilities],
            "colours": colours_of(kind),
        },
    )
