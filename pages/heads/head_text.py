"""Sentences about what heads attend to. Plain strings; nothing is drawn here."""

from collections.abc import Mapping

from pages.shared.wording import number
from transformer.analysis.heads.survey import Pattern, Profile, Survey
from transformer.figures.heads.labels import looked_at

EXPLAINED: Mapping[str, str] = {
    "previous": "On the token just before the query.",
    "next": "On the token just after the query, where the query may see it: with a causal mask, only in the encoder.",
    "diagonal": "Self-attention: on the query's own token. Cross-attention: on the source token at the same position "
    "in its sentence as the written token in its own.",
    "anti_diagonal": "On the mirrored token: the last for the first, the second to last for the second.",
    "same_token": "Self-attention: on other places with the very same token. Cross-attention: on source tokens that "
    "are the token being written.",
    "first": "On the first token, in the decoder the start mark: where a head may look when it has nothing to do.",
    "end": "On the end mark of the source, another place where a head may look when it has nothing to do (a sink).",
    "punctuation": "On tokens that are punctuation (Unicode categories P).",
    "alignment": "On source words that the corpus's gold alignment links to the word being written.",
    "referent": "Where the pronoun stands or is written: on the noun that it refers to, by the corpus's rule.",
    "entropy": "Mean entropy of the rows, in nats: 0 means that it looks at one token only.",
    "largest": "The largest weight of a row, on average (the confidence of Voita et al., 2019).",
    "error_rate": "Alignment error rate (Och and Ney, 2003): 1 − 2 |found ∩ gold| / (|found| + |gold|) over all pairs, "
    "each word linked to the source word it looks at most while it is written. 0 is perfect.",
    "accuracy": "Share of the aligned words that look most at a source word they are aligned with (argmax accuracy).",
    "error_rate_read": "The same error rate, from the rows that read a word, one step after it was written.",
}


def profile_text(found: Survey, profile: Profile) -> str:
    """Says what a head does, in a sentence with its numbers."""
    main, kind = found.main_patterns(profile), profile.at.kind
    if not main.patterns:
        return (
            "No position gets noticeably more of its weight than a uniform head would give it. The entropy of its "
            f"rows is {number(profile.entropy)} nats on average."
        )
    name = main.patterns[0]
    where = "Where the pronoun stands, it looks" if name == "referent" else "It looks"
    much = "mostly" if main.clear else "at many places, but more than others"
    rows = found.rows[kind][name]
    return (
        f"{where} {much} at **{looked_at(name, kind)}**: {number(profile.weight[name])} of its weight, averaged over "
        f"the {rows:,} rows that have such a place; a uniform head would give it {number(found.even[kind][name])}. "
        f"Its largest weight lies there in {number(100 * profile.peak[name])} % of these "
        f"rows.{_rarer(found, profile, name)}"
    )


def _rarer(found: Survey, profile: Profile, name: Pattern) -> str:
    """Names the places with a longer bar that fewer rows have: why the head is not named after them."""
    kind, weight = profile.at.kind, profile.weight
    rows = found.rows[kind]
    longer: list[Pattern] = [other for other in weight if weight[other] > weight[name] and rows[other] < rows[name]]
    said = (
        f"{number(weight[other])} for {looked_at(other, kind)} ({rows[other]:,} of {found.n_rows[kind]:,} rows)"
        for other in longer
    )
    return f" Higher averages come from fewer rows: {', '.join(said)}." if longer else ""


def alignment_text(profile: Profile) -> str:
    """Says how a head of cross-attention agrees with the gold alignment; empty where there is none."""
    if profile.written is None or profile.read is None:
        return ""
    return (
        f"As a word aligner: its largest weight finds an aligned source word for {number(profile.written.accuracy)} of "
        f"the words while they are written (alignment error rate {number(profile.written.error_rate)}), and for "
        f"{number(profile.read.accuracy)} when they are read one step later ({number(profile.read.error_rate)})."
    )
