"""Source tokens above, target tokens below, and between them a line for every weight."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from streamlit.components.v2 import component

from pages.shared.components.frontend import NONE_UNSEEN, colours_of, describe_tokens, packed, text_of
from transformer.model.kinds import KindName

_component = component(
    "attention_lab_token_lines",
    html="<div class='root'></div>\n",
    css=text_of("tokens.css", "token_lines.css"),
    js=text_of("tokens.js", "scales.js", "token_lines.js"),
)


def token_lines(
    source: Sequence[str],
    target: Sequence[str],
    weights: Float[ndarray, "target source"],
    *,
    kind: KindName = "cross",
    source_unseen: Mapping[int, str] = NONE_UNSEEN,
    target_unseen: Mapping[int, str] = NONE_UNSEEN,
    source_changed: Collection[int] = (),
    target_changed: Collection[int] = (),
    source_label: str = "source",
    target_label: str = "target",
    top: float = 1.0,
    off: bool = False,
    key: str,
) -> None:
    """Draws both lines of tokens and the weights between them, a line's opacity being its weight.

    Pointing at a token, or moving to it with Tab and arrows, leaves only its lines, shades the tokens at their other
    ends and writes the weights beside them; Enter or a click keeps it so. The indices count tokens; `source_unseen`
    and `target_unseen` give the words that were typed where the model never saw them. A weight of `top` has the
    strongest line; lines of what is `off` are grey.
    """
    if weights.shape != (len(target), len(source)):
        raise ValueError(
            f"weights of shape {weights.shape} do not fit {len(target)} target and {len(source)} source tokens"
        )
    _component(
        key=key,
        data={
            "source": describe_tokens(source, changed=source_changed, unseen=source_unseen),
            "target": describe_tokens(target, changed=target_changed, unseen=target_unseen),
            "weights": packed(weights.astype(np.float32)),
            "labels": {"source": source_label, "target": target_label},
            "top": float(top),
            "off": off,
            "colours": colours_of(kind),
        },
    )
