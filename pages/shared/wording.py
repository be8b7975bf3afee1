"""Sentences and numbers in the pages' words. Plain strings in and out; nothing is drawn here."""

import itertools
import math
import re
from collections.abc import Sequence
from decimal import Decimal
from unicodedata import bidirectional

from pages.shared.texts.catalogue import Texts
from transformer.config import AnyModelConfig, ModelConfig
from transformer.figures.labels import readable
from transformer.interventions import heads_set_to
from transformer.lab import Comparison, Inspection
from transformer.model.kinds import AttentionKind, KindName
from transformer.model.mask_rules import limits_of
from transformer.text.sentence import Sentence
from transformer.text.tokenizer import UNK, Tokenizer

TEXTS = Texts("wording")
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+\-.!|~<>$:])")
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

KL_EXPLAINED = (
    "KL divergence measures how far the model's whole distribution over the next token moved, in nats: 0 if the switch "
    "changes nothing, about 0.7 if something certain becomes an even chance, and large if what was expected has become "
    "very unlikely."
)
MOST_NAMED = 4
"""Changed tokens are named one by one up to this many, and counted beyond."""
_MOST_OF_IT = 0.5
"""The weight from which on a head is said to look at a token."""
NEGLIGIBLE = 1e-6
"""The largest change of a probability that rounding alone can cause."""
_KIND_COLOURS = {
    AttentionKind.ENCODER_SELF: "green",
    AttentionKind.DECODER_SELF: "violet",
    AttentionKind.CROSS: "orange",
}
"""Names that Streamlit has for the theme's colours."""


def kind_label(name: KindName) -> str:
    """Returns the short name of a kind of attention in its colour, as a control shows it."""
    kind = AttentionKind(name)
    return f":{_KIND_COLOURS[kind]}[{kind.short}]"


def plain(text: str) -> str:
    """Returns the text with Markdown escaped and invisible characters made visible.

    Right-to-left text is isolated from the sentence or list around it.
    """
    return isolated(_MARKDOWN.sub(r"\\\1", readable(text.replace("\n", " ")))) if text else ""


def table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a small table of plain text in Markdown; the titles are Markdown already."""
    lines = [titles, ["---" for _ in titles], *([plain(entry) for entry in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def listed(names: Sequence[str]) -> str:
    """Returns names as a sentence has them: "a", "a and b", "a, b and c"."""
    if len(names) < 2:
        return "".join(names)
    return TEXTS("listed", first=TEXTS("between").join(names[:-1]), last=names[-1])


def isolated(text: str) -> str:
    """Puts text with right-to-left letters between Unicode isolates, so that it does not reorder its neighbours."""
    right_to_left = any(bidirectional(character) in ("R", "AL", "AN") for character in text)
    return f"\u2068{text}\u2069" if right_to_left else text


def token(piece: str) -> str:
    """Returns a token for use in a sentence: in italics, without its word-start mark."""
    return f"*{plain(piece.strip('▁') or piece)}*"


def number(value: float, *, signed: bool = False, digits: int = 3) -> str:
    """Formats a number with three significant digits: 0.998, −0.0141, 3.2 × 10⁻⁷, 0; or NaN."""
    if value == 0:
        return "0"
    if value != value:
        return "NaN"
    sign = "−" if value < 0 else ("+" if signed else "")
    size = abs(value)
    if size >= 1e-3:
        return f"{sign}{size:#.{digits}g}".rstrip(".")
    mantissa, exponent = f"{size:.{digits - 1}e}".split("e")
    return f"{sign}{float(mantissa):.{digits}g} × 10{str(int(exponent)).translate(_SUPERSCRIPT)}"


def size(n_bytes: int) -> str:
    """Returns an amount of data, as in "27 kB", "2.4 MB", "310 MB" or "12 GB"."""
    if n_bytes < 1e5:
        return f"{math.ceil(n_bytes / 1e3)} kB"
    if n_bytes < 1e10:
        return f"{n_bytes / 1e6:.1f} MB" if n_bytes < 1e8 else f"{n_bytes / 1e6:,.0f} MB"
    return f"{n_bytes / 1e9:,.0f} GB"


def moved(before: float, after: float) -> str:
    """Returns, say, "from 0.998 to 0.0141", with as many digits as it takes to tell the two apart."""
    for digits in range(3, 10):
        p, q = number(before, digits=digits), number(after, digits=digits)
        if p != q:
            return TEXTS("moved", before=p, after=q)
    return TEXTS("stayed" if before == after else "hardly_moved", before=number(before))


def change(before: float, after: float) -> tuple[str, str]:
    """Returns, say, "from 0.998 to 0.0141" and "−0.984", so that the numbers shown subtract to the exact difference.

    Shows three digits of each if that suffices; otherwise more of the two numbers, then fewer of the difference.
    """
    for kept, most in ((3, 7), (2, 9), (1, 10)):
        for digits in range(3, most):
            p, q, apart = _rounded(before, digits), _rounded(after, digits), _rounded(after - before, kept)
            place = Decimal(1).scaleb(int(apart.as_tuple().exponent))
            if p != q and 2 * abs(q - p - apart) <= place:
                move = TEXTS("moved", before=number(before, digits=digits), after=number(after, digits=digits))
                return move, number(after - before, signed=True, digits=kept)
    return moved(before, after), number(after - before, signed=True)


def _rounded(value: float, digits: int) -> Decimal:
    return Decimal(f"{value:.{digits - 1}e}")


def smoothed(label_smoothing: float) -> str:
    """Returns what training aimed at for the right token if that is not 1; else an empty string."""
    if label_smoothing == 0:
        return ""
    return TEXTS("smoothed", smoothing=label_smoothing, aim=1 - label_smoothing)


def built_without(config: AnyModelConfig) -> str:
    """Names the parts of the paper that this model was trained without, and the limits that it was trained with; of
    another family of models, says what it is."""
    if not isinstance(config, ModelConfig):
        return f"This is not a Transformer but a {config.portrait}"
    consequences = {
        "no causal mask: decoder positions see later ones too, so each step computes all again": not config.causal_mask,
        "no scaling of scores by 1/√d_k": not config.scale_scores,
        "no residual connections: what a sublayer does not pass on is lost": not config.residual,
        "no layer norm": config.norm == "none",
    }
    missing = [said for said, holds in consequences.items() if holds]
    said = [f"This model was trained with parts missing: {'; '.join(missing)}."] if missing else []
    return " ".join((*said, *limits_of(config)))


def unseen(tokenizer: Tokenizer, sentence: Sentence, *, markdown: bool = True) -> str:
    """Says which words of a sentence the model does not know, and what it reads instead; empty if there are none."""
    words = sentence.unseen
    if not words:
        return ""
    if tokenizer.kind == "char":  # each character is a token: those of the word that are known need no naming
        words = tuple(dict.fromkeys(one for one in "".join(words) if UNK in tokenizer.encode(one))) or words
    listed = ", ".join(f"*{plain(word[:30])}*" if markdown else f"“{isolated(word[:30])}”" for word in words[:8])
    listed += " …" if len(words) > 8 else ""
    unknown = plain("<unk>") if markdown else "<unk>"
    kind = tokenizer.kind if tokenizer.kind in ("words", "char") else "pieces"
    # A tokenizer with byte pieces spells what it has no piece for, and needs no <unk>.
    by_bytes = tokenizer.kind != "words" and UNK not in sentence.ids
    read = TEXTS("unseen.bytes") if by_bytes else TEXTS("unseen.unknown", unknown=unknown)
    return TEXTS("unseen.instead", lack=TEXTS(f"unseen.lack.{kind}", n=len(words), words=listed), read=read)


def effect(comparison: Comparison) -> tuple[str, str]:
    """Says what the switches did to the output, in a plain sentence or two; then how that was measured."""
    after = comparison.after
    said = f"**The output {'changed' if comparison.output_changed else 'did not change'}.**"
    if comparison.output_changed:
        said = f"{said} {_lost_and_new(comparison)}"
    if comparison.output_changed and not after.ended:
        said += f" It wrote no end mark and was cut off after {len(after.target_tokens)} tokens."
    step, shift = comparison.largest_shift
    kl = comparison.kl_divergence
    where = "Measured on the original output, with the same words before each step (teacher-forced):"
    if shift == 0 and kl.max() == 0:
        return f"{said} No probability changed at all: the largest change is exactly 0.", f"{where} exactly 0."
    if abs(shift) < NEGLIGIBLE:
        return f"{said} No probability changed beyond rounding: by at most {number(abs(shift))}.", (
            f"{where} KL divergence at most {number(float(kl.max()))} nats."
        )
    move, difference = change(float(comparison.forced_before[step]), float(comparison.forced_after[step]))
    verb = "falls" if shift < 0 else "rises"
    still = "" if comparison.output_changed else ", and it is still the most probable token"
    said += f" The probability of {token(comparison.before.target_tokens[step])} {verb} the most: {move}{still}."
    return said, (
        f"{where} {difference} at step {step}. KL divergence {number(float(kl.max()))} nats at step "
        f"{int(kl.argmax())}, {number(float(kl.mean()))} on average."
    )


def _lost_and_new(comparison: Comparison) -> str:
    """Says which tokens of the output changed into which where these are few, and how many did otherwise."""
    before, after = comparison.before.target_tokens, comparison.after.target_tokens
    (lost, new), total = map(sum, comparison.marks), len(before)
    if max(lost, new) <= MOST_NAMED:
        edits = []
        for same, run in itertools.groupby(comparison.alignment, lambda pair: _is_kept(comparison, pair)):
            if not same:
                old, fresh = zip(*run, strict=True)
                edits.append(([before[i] for i in old if i is not None], [after[j] for j in fresh if j is not None]))
        if all(old and fresh for old, fresh in edits):
            named = ", ".join(f"{' '.join(map(token, old))} → {' '.join(map(token, fresh))}" for old, fresh in edits)
            return f"{lost} of {total} tokens changed: {named}."
    return counts(lost, new, total)


def _is_kept(comparison: Comparison, pair: tuple[int | None, int | None]) -> bool:
    """Tells whether a pair of the alignment is one token that both outputs have."""
    i, j = pair
    return i is not None and j is not None and comparison.before.target_ids[i] == comparison.after.target_ids[j]


def counts(lost: int, new: int, total: int) -> str:
    """Says how many of an output's tokens were lost, and how many are new."""
    if not lost:
        return TEXTS("tokens.added", n=new, total=total)
    if not new:
        return TEXTS("tokens.lost", n=lost, total=total)
    return TEXTS("tokens.replaced", n=new, lost=lost, total=total)


def pronoun_effect(comparison: Comparison) -> tuple[str, ...]:
    """Says what the switches did to il or elle, unless `effect` says so already."""
    step = pronoun_step(comparison.before)
    if step is None or step == comparison.largest_shift[0]:
        return ()
    p, q = float(comparison.forced_before[step]), float(comparison.forced_after[step])
    word = token(comparison.before.target_tokens[step])
    return ("The pronoun {} at step {}: {} ({}).".format(word, step, *change(p, q)),)


def heads_left(comparison: Comparison) -> str:
    """Says which other heads look where a head did that was switched off without changing the output: as it wrote the
    pronoun, or else the token whose probability moved most. Empty for other switches."""
    switches = comparison.after.interventions
    off = heads_set_to(switches, ("zero",))
    if comparison.output_changed or len(off) != 1 or len(switches) != 1:
        return ""
    ((stack, layer, sublayer, head),) = off
    kind = AttentionKind.at(stack, sublayer)
    step = pronoun_step(comparison.before)
    step = comparison.largest_shift[0] if step is None else step
    key, others = comparison.others_at(kind, layer, head, step)
    if not others:
        return ""
    looking = [f"layer {i}'s head {j} ({number(weight)})" for weight, i, j in others if weight >= _MOST_OF_IT]
    seen = token(comparison.before.attention(kind).keys[key])
    when = f"as {token(comparison.before.target_tokens[step])} is written"
    if not looking:
        return f"No other {kind.phrase} head looks mainly at {seen}, where this one looked most, {when}."
    who = "Another head looks" if len(looking) == 1 else f"{len(looking)} other heads look"
    return f"{who} at {seen}, where this one looked most, {when}: {listed(looking)}."


def switch_notes(comparison: Comparison) -> tuple[str, ...]:
    """Returns what a reader must know about particular switches to read the result."""
    return tuple(dict.fromkeys(note for spec in comparison.after.interventions for note in spec.notes))


def pronoun_step(inspection: Inspection) -> int | None:
    """Returns the step at which the output's only il or elle was written, if the sentence has an "it"."""
    steps = [step for step, piece in enumerate(inspection.target_tokens) if bare(piece) in ("il", "elle")]
    return steps[0] if len(steps) == 1 and "it" in map(bare, inspection.source_tokens) else None


def bare(piece: str) -> str:
    """Returns a token in small letters, without its word-start mark."""
    return piece.strip("▁").lower()


def duration(seconds: float) -> str:
    """Formats seconds for a sentence: "8 s", "2 min 10 s", "1 h 5 min"."""
    seconds = max(0, round(seconds))
    if seconds < 100:
        return TEXTS("duration.seconds", seconds=seconds)
    minutes, rest = divmod(seconds, 60)
    if minutes < 60:
        exact = rest and minutes < 10
        return TEXTS("duration.exact" if exact else "duration.minutes", minutes=minutes, seconds=rest)
    hours, minutes = divmod(minutes, 60)
    return TEXTS("duration.both" if minutes else "duration.hours", hours=hours, minutes=minutes)
