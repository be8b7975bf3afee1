"""The corpus of a plan: bringing one, and its content: size, splits, lengths, samples, dropped rows."""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial

import streamlit as st

from pages.shared import wording
from pages.shared.context import say, sentence
from pages.shared.exhibit import exhibit, get_data
from pages.shared.guard import guard
from pages.train.form import field
from pages.train.previews import config_of, stats_of, text_of
from pages.training.bring import PLACE, bring_corpus
from pages.training.columns import choose_columns, offered_of
from pages.training.plans import Plan
from pages.training.train_state import CHOSEN, change, key_of, take_corpus
from transformer.data.cleaning import MAX_CHARACTERS, CleaningReport, Reason
from transformer.data.columns import UnclearColumns
from transformer.data.corpora import Corpus, CorpusError
from transformer.data.statistics import CorpusStats
from transformer.text.pairs import Pair
from transformer.text.tokenizer import Tokenizer, TokenizerError
from transformer.views.subjects import Text
from transformer.views.training.plan import LengthsData, SentenceLengths

N_ODD = 4
REASONS: dict[Reason, str] = {
    "malformed": "without two sides",
    "empty": "a side without a word",
    "too_long": f"a side over {MAX_CHARACTERS} characters",
    "duplicate": "repeated, kept once",
}


def choose_corpus() -> None:
    """Renders the box of corpora, and beside it the field for a file of one's own."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        with st.container():
            field("corpus")
        bring_corpus(key_of("upload"), _take_upload, CHOSEN.tell)
    say(*CHOSEN.said(PLACE))


@guard("The corpus")
def corpus_panel(plan: Plan) -> None:
    """Renders the facts about the corpus before a model learns it."""
    try:
        text, stats = text_of(plan), stats_of(plan)
    except UnclearColumns:
        st.markdown("## Which columns hold the sentences and their translations?")
        _choose_columns(plan)
        return
    except (CorpusError, TokenizerError, ValueError):
        _choose_columns(plan)
        st.markdown("The corpus is described here once it can be read: see the message beside the fields.")
        return
    corpus = text.corpus
    if stats.report is not None:
        _render_reading(plan, corpus, stats)
    limit = int(plan.max_length) if plan.max_length and plan.max_length >= 1 else None
    subject, view = Text(config_of(plan)), SentenceLengths(limit=limit)
    _render_sizes(corpus, get_data(subject, view), text.tokenizer)
    st.markdown("## Sentence lengths")
    lengths = exhibit(subject, view)
    if lengths is not None:
        _render_lengths(lengths)
    if stats.report is None:
        st.markdown("## Samples")
        _render_pairs(corpus, stats.samples)
    elif stats.report.dropped:
        _render_dropped(stats.report)
    _render_repeated(stats)
    _render_odd(corpus, stats)


def _render_reading(plan: Plan, corpus: Corpus, stats: CorpusStats) -> None:
    """Renders how a file was read: its columns, what was dropped, and pairs as the model will see them."""
    st.markdown(f"## {wording.plain(corpus.source_name)} → {wording.plain(corpus.target_name)}")
    st.caption(wording.plain(sentence(str(stats.report))))
    _choose_columns(plan)
    _render_pairs(corpus, stats.samples)


def _choose_columns(plan: Plan) -> None:
    """Renders a choice of the columns of source and target; nothing where the file cannot be read, or no file is
    chosen."""
    with suppress(CorpusError, ValueError):
        offered = offered_of(config_of(plan))
        if offered is not None:
            choose_columns(offered, partial(change, "columns"), key=key_of("columns"))


def _render_sizes(corpus: Corpus, found: LengthsData, tokenizer: Tokenizer) -> None:
    names = {"train": "pairs to train on", "validation": "for validation"}
    splits = zip(found.splits, found.sizes.tolist(), strict=True)
    counts = [f"**{count:,}** {names.get(split, f'held out ({wording.plain(split)})')}" for split, count in splits]
    st.markdown(" · ".join(counts))
    kind = {"words": "whole words", "char": "characters"}.get(tokenizer.kind, f"{tokenizer.kind} pieces")
    text = (
        f"No source sentence is in two splits. {tokenizer.vocab_size:,} tokens: {kind}, one vocabulary for both sides."
    )
    st.caption(wording.plain(text))
    if corpus.credit:
        st.caption(wording.plain(corpus.credit))


def _render_lengths(found: LengthsData) -> None:
    """Renders the figure in a sentence."""
    sides = zip(found.sides, found.means, found.longest, strict=True)
    said = "; ".join(f"{name}: {mean:.1f} tokens on average, {most:,} at most" for name, mean, most in sides)
    sizes = dict(zip(found.splits, found.sizes.tolist(), strict=True))
    counted = "" if found.counted == sizes["train"] else f" Counted on {found.counted:,} training pairs."
    st.caption(wording.plain(f"{said}.{counted}"))


def _render_repeated(stats: CorpusStats) -> None:
    """Renders sources with several translations, which stay: they are no duplicates."""
    found = stats.repeats
    if found.most:
        st.markdown("## Sources that occur more than once")
        most, count = found.most[0]
        st.caption(
            wording.plain(
                f"{found.pairs:,} pairs have {found.sources:,} different sources; “{most[:60]}” occurs {count:,} "
                "times. All are kept, on the same side of the split."
            )
        )


def _render_odd(corpus: Corpus, stats: CorpusStats) -> None:
    if not stats.n_outliers:
        return
    st.markdown("## Pairs that may not be translations")
    st.caption(
        f"{stats.n_outliers:,} of {stats.counted:,} differ in length far more than is usual here. They are kept; "
        "remove them from the file if they are wrong."
    )
    _render_pairs(corpus, [found.pair for found in stats.outliers[:N_ODD]])


def _render_dropped(report: CleaningReport) -> None:
    st.markdown("## What was dropped")
    rows = []
    for reason, count in report.dropped.items():
        shown = report.examples.get(reason, ())
        rows.append({"rows": f"{count:,}", "why": REASONS[reason], "the first of them": shown[0] if shown else ""})
    _render_table(rows)


def _render_pairs(corpus: Corpus, pairs: Sequence[Pair]) -> None:
    _render_table([{corpus.source_name: pair.source, corpus.target_name: pair.target} for pair in pairs])


def _render_table(rows: list[dict[str, str]]) -> None:
    """Renders a small table of plain text."""
    st.markdown(wording.table([wording.plain(title) for title in rows[0]], [list(row.values()) for row in rows]))


def _take_upload(corpus: str) -> None:
    """Chooses a file that was brought, and shows what is in it; for callbacks."""
    take_corpus(corpus)
    CHOSEN.change(look="corpus")
