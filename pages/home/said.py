"""Home's sentences about a translation and a changed sentence. Plain strings in and out; nothing is drawn here."""

from collections.abc import Sequence
from difflib import SequenceMatcher

from pages.shared import wording
from pages.shared.texts.catalogue import Texts
from transformer.analysis.heads.importance import OutputEffect
from transformer.data.pronouns.lexicon import Noun
from transformer.data.pronouns.reading import nouns_of
from transformer.lab import AttentionKind, Inspection
from transformer.text.pairs import Pair, words

TEXTS = Texts("home.said")


def pronoun(inspection: Inspection, gold: Pair | None) -> str:
    """Says how "it" was translated and, where the output names both nouns, for which one that stands; empty where the
    sentence does not settle what "it" means."""
    step = wording.pronoun_step(inspection)
    if step is None or gold is None or gold.referent is None:
        return ""
    written = wording.bare(inspection.target_tokens[step])
    told = {"written": written, "p": wording.number(float(inspection.probabilities[step]))}
    nouns = _named_nouns(inspection.translation, gold)
    agreeing = [noun.english for noun in nouns if noun.feminine == (written == "elle")]
    if not nouns or len(agreeing) == 2:
        return TEXTS("it.alone", **told)
    if not agreeing:
        return TEXTS("it.neither", **told)
    told["meant"], told["agreeing"] = wording.plain(words(gold.source)[gold.referent[1]]), wording.plain(agreeing[0])
    return TEXTS("it.meant" if told["agreeing"] == told["meant"] else "it.other", **told)


def genders(translation: str, gold: Pair | None) -> str:
    """Says which of the nouns that "it" may stand for is masculine in French and which feminine; empty unless the
    translation names both."""
    nouns = _named_nouns(translation, gold)
    if not nouns:
        return ""
    masculine, feminine = sorted(nouns, key=lambda noun: noun.feminine)
    if masculine.feminine == feminine.feminine:
        one, other = map(_with_english, nouns)
        return TEXTS("genders.both_feminine" if feminine.feminine else "genders.both_masculine", one=one, other=other)
    return TEXTS("genders.differ", masculine=_with_english(masculine), feminine=_with_english(feminine))


def _with_english(noun: Noun) -> str:
    """Returns a French noun, followed by its English if that is another word."""
    return f"*{noun.french}*" if noun.french == noun.english else f"*{noun.french}* ({noun.english})"


def _named_nouns(translation: str, gold: Pair | None) -> tuple[Noun, ...]:
    """Returns the two nouns that "it" may stand for if the translation names both; else none."""
    nouns = nouns_of(gold.source) if gold and gold.referent else ()
    written = set(map(str.lower, words(translation)))
    return nouns if len(nouns) == 2 and all(noun.french in written for noun in nouns) else ()


def reference(translation: str, gold: Pair | None) -> str:
    """Says the reference translation if there is one and the model wrote something else."""
    return "" if gold is None or translation == gold.target else TEXTS("reference", text=wording.plain(gold.target))


def change_of(before: Sequence[str], after: Sequence[str]) -> str:
    """Says how one output differs from another: "*il* became *elle*, *fatigué* became *large*".

    Names the tokens only if a few were replaced by as many others; counts other small changes, and says nothing about
    outputs with little in common.
    """
    edits = [edit for edit in SequenceMatcher(None, before, after, autojunk=False).get_opcodes() if edit[0] != "equal"]
    if not edits:
        return TEXTS("same")
    lost, new = sum(a1 - a0 for _, a0, a1, _, _ in edits), sum(b1 - b0 for _, _, _, b0, b1 in edits)
    if 2 * lost > len(before) or 2 * new > len(after):
        return ""
    if max(lost, new) > wording.MOST_NAMED or any(a1 - a0 != b1 - b0 for _, a0, a1, b0, b1 in edits):
        return wording.counts(lost, new, len(before))
    named = (TEXTS("became", old=_several(before[a0:a1]), new=_several(after[b0:b1])) for _, a0, a1, b0, b1 in edits)
    return f"{', '.join(named)}."


def _several(tokens: Sequence[str]) -> str:
    return " ".join(map(wording.token, tokens))


def most_needed(effect: OutputEffect, n_heads: int, written: str, instead: str | None) -> str:
    """Invites the visitor to switch off the head that the output needs most, with the measured effect."""
    told = {"written": wording.token(written), "moves": wording.moved(effect.before, effect.after)}
    if instead is not None:
        told["instead"] = wording.token(instead)
    switch = effect.switch
    (head,) = switch.heads
    kind = AttentionKind.at(switch.stack, switch.sublayer)
    named = TEXTS(f"head.named.{kind.value}", head=head, layer=switch.layer)
    found = TEXTS("head.stays" if instead is None else "head.turns", **told)
    return TEXTS("head.needed", n_heads=n_heads, head=named, found=found)
