"""The pinned sentences of a run, as training improves their translations."""

from collections.abc import Mapping, Sequence

from streamlit.components.v2 import component

from pages.shared.components.frontend import text_of

_component = component(
    "attention_lab_run_sentences",
    html="<div class='root'></div>\n",
    css=text_of("run_sentences.css"),
    js=text_of("run_sentences.js"),
)


def run_sentences(sources: Sequence[str], samples: Mapping[str, Sequence[tuple[int, str]]], *, key: str) -> None:
    """Draws each source with its newest translation large and the earlier ones as a small history."""
    sentences = [
        {
            "source": source,
            "samples": [{"step": step, "translation": text} for step, text in samples.get(source, ())],
        }
        for source in sources
    ]
    _component(key=key, data={"sentences": sentences})
