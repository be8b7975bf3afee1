"""A text and a tokenizer: one that a model has, or one learned from a corpus."""

from dataclasses import dataclass

from transformer.data.corpus_cache import LearnedTokenizer
from transformer.lab import Lab
from transformer.views.subjects import Text, model_origin
from transformer.views.view import Origin


@dataclass(frozen=True)
class CutText:
    """A text, and whatever has the tokenizer that cuts it."""

    source: Lab | LearnedTokenizer
    text: str

    @property
    def origin(self) -> Origin:
        """Loads the model or names the corpus, and writes the text."""
        last = f"text = {self.text!r}"
        if isinstance(self.source, Lab):
            found = model_origin(self.source)
            return found.then("source = lab", last, caption=f"{found.caption} · {self.text}")
        found = Text(self.source.corpus).origin
        made = f"source = LearnedTokenizer(corpus, {self.source.kind!r}, {self.source.size})"
        imports = ["from transformer.data.corpus_cache import LearnedTokenizer"]
        caption = f"{self.source.kind}, {self.source.size}, learned from {found.caption} · {self.text}"
        return found.then(made, last, imports=imports, caption=caption)
