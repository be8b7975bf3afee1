"""What heads do and are worth, in words: titles of columns, roles, sentences. Plain strings; nothing is drawn here."""

from collections.abc import Mapping

from pages.heads.choices import Measure
from pages.shared.wording import number
from transformer.analysis.heads.addresses import HeadAt
from transformer.analysis.heads.survey import Pattern, Profile, Survey
from transformer.figures.heads.tables import Sublayer
from transformer.model.kinds import AttentionKind

TITLES: Mapping[str, str] = {
    "previous": "Prev.",
    "next": "Next",
    "diagonal": "Diag.",
    "anti_diagonal": "Anti",
    "same_token": "Same",
    "first": "First",
    "end": "End",
    "punctuation": "Punct.",
    "alignment": "Aligned",
    "referent": "Referent",
    "entropy": "Entropy",
    "largest": "Largest",
    "error_rate": "AER",
    "accuracy": "Accuracy",
    "error_rate_read": "AER, read",
}
EXPLAINED: Mapping[str, str] = {
    "previous": "On the token just before the query.",
    "next": "On the token just after the query, where the query may see it: under a causal mask in the encoder alone.",
    "diagonal": "Self-attention: on the query's own token. Cross-attention: on the source token at the same place in "
    "its sentence as the written token in its own.",
    "anti_diagonal": "On the token at the mirror place: the first from the last, the second from the last but one.",
    "same_token": "Self-attention: on other places with the very same token. Cross-attention: on source tokens that "
    "are the token being written.",
    "first": "On the first token, in the decoder the start mark: where a head may look when it has nothing to do.",
    "end": "On the end mark of the source, the other such place (a sink).",
    "punctuation": "On tokens that are punctuation (Unicode's categories P).",
    "alignment": "On source words that the corpus's gold alignment links to the word being written.",
    "referent": "Where the pronoun stands or is written: on the noun that it refers to, by the corpus's rule.",
    "entropy": "Mean entropy of the rows, in nats: 0 looks at one token alone.",
    "largest": "The largest weight of a row, on average (the confidence of Voita et al., 2019).",
    "error_rate": "Alignment error rate (Och and Ney, 2003): 1 − 2 |found ∩ gold| / (|found| + |gold|) over all pairs, "
    "each word linked to the source word it looks at most while it is written. 0 is perfect.",
    "accuracy": "Share of the aligned words that look most at a source word they are aligned with (argmax accuracy).",
    "error_rate_read": "The same error rate by the rows that read a word, one step after it was written.",
}
_OBJECTS: Mapping[Pattern, str] = {
    "previous": "the previous token",
    "next": "the next token",
    "diagonal": "the same place",
    "anti_diagonal": "the mirror place",
    "same_token": "the same token",
    "first": "the first token",
    "end": "the end mark",
    "punctuation": "punctuation",
    "alignment": "the aligned word",
    "referent": "the pronoun's referent",
}
LONG_TITLES: Mapping[str, str] = {
    "previous": "previous token",
    "next": "next token",
    "diagonal": "diagonal: itself, or the same place",
    "anti_diagonal": "anti-diagonal: the mirror place",
    "same_token": "same token",
    "first": "first token",
    "end": "end mark",
    "punctuation": "punctuation",
    "alignment": "aligned word (gold)",
    "referent": "referent of the pronoun (gold)",
    "entropy": "entropy of the rows, nats",
    "largest": "largest weight of a row",
    "error_rate": "alignment error rate",
    "accuracy": "alignment, argmax accuracy",
    "error_rate_read": "alignment error rate, when read",
}
MEASURES: Mapping[Measure, str] = {"weight": "mean weight", "peak": "share of rows with their largest weight there"}


def sublayer_of(at: HeadAt) -> Sublayer:
    """The row of the map in which a head stands."""
    return Sublayer(at.kind, at.layer)


def head_name(at: HeadAt) -> str:
    """As in "decoder 1 cross · head 2"."""
    return f"{sublayer_of(at).name} · head {at.head}"


def looked_at(pattern: Pattern, kind: AttentionKind) -> str:
    """What a pattern's keys are, as an object of "looks at"."""
    if pattern == "diagonal" and kind != "cross":
        return "itself"
    if pattern == "first" and kind == "decoder_self":
        return "the start mark"
    return _OBJECTS[pattern]


def role_said(found: Survey, profile: Profile) -> str:
    """A head's role in a few words: "the previous token", or "itself (mixed)"."""
    role = found.role(profile)
    named = " and ".join(looked_at(pattern, profile.at.kind) for pattern in role.patterns)
    if not named:
        return "spread"
    return named if role.clear else f"{named} (mixed)"


def profile_said(found: Survey, profile: Profile) -> str:
    """What a head does, in a sentence with its numbers."""
    role, kind = found.role(profile), profile.at.kind
    if not role.patterns:
        return (
            "No place gets noticeably more of its weight than a head would give it that looks at everything alike. "
            f"The entropy of its rows is {number(profile.entropy)} nats on average."
        )
    name = role.patterns[0]
    where = "Where the pronoun stands, it looks" if name == "referent" else "It looks"
    much = "mostly" if role.clear else "at many places, but more than others"
    rows = found.rows[kind][name]
    return (
        f"{where} {much} at **{looked_at(name, kind)}**: {number(profile.weight[name])} of its weight, averaged over "
        f"the {rows:,} rows that have such a place; a head that looks at all alike would give it "
        f"{number(found.even[kind][name])}. Its largest weight lies there in {number(100 * profile.peak[name])} % of "
        f"these rows.{_rarer(found, profile, name)}"
    )


def _rarer(found: Survey, profile: Profile, name: Pattern) -> str:
    """The places with a longer bar than the role's that fewer rows have: why the head is not named after them."""
    kind, weight = profile.at.kind, profile.weight
    rows = found.rows[kind]
    longer: list[Pattern] = [other for other in weight if weight[other] > weight[name] and rows[other] < rows[name]]
    said = (
        f"{number(weight[other])} for {looked_at(other, kind)} ({rows[other]:,} of {found.n_rows[kind]:,} rows)"
        for other in longer
    )
    return f" Higher averages come from fewer rows: {', '.join(said)}." if longer else ""


def alignment_said(profile: Profile) -> str:
    """How a head of cross-attention agrees with the gold alignment, in a sentence; empty where there is none."""
    if profile.written is None or profile.read is None:
        return ""
    return (
        f"As a word aligner: its largest weight finds an aligned source word for {number(profile.written.accuracy)} of "
        f"the words while they are written (alignment error rate {number(profile.written.error_rate)}), and for "
        f"{number(profile.read.accuracy)} when they are read one step later ({number(profile.read.error_rate)})."
    )


def value_of(profile: Profile, column: str, measure: Measure) -> float | None:
    """A head's value in a column of the table; None where it has none."""
    match column:
        case "entropy":
            return profile.entropy
        case "largest":
            return profile.largest
        case "error_rate":
            return profile.written and profile.written.error_rate
        case "accuracy":
            return profile.written and profile.written.accuracy
        case "error_rate_read":
            return profile.read and profile.read.error_rate
    values: Mapping[str, float] = {**(profile.weight if measure == "weight" else profile.peak)}
    return values.get(column)
