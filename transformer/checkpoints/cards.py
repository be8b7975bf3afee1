"""CARD.md: what a model is, the command that made it, and what it reaches."""

import json
from collections.abc import Sequence
from dataclasses import asdict

from transformer.checkpoints.settings import Settings
from transformer.config import AnyModelConfig, ModelConfig, missing_parts
from transformer.data.corpora import Corpus
from transformer.data.corpus_snapshot import SPLIT_RULE, is_own_copy
from transformer.interventions.names import plural
from transformer.model.mask_rules import limits_of
from transformer.training.metrics import NO_BLEU

_SCORES = {"bleu": "BLEU", "chrf": "chrF"}
"""The columns of metrics that overlap is scored by, and their names."""


def card(settings: Settings, corpus: Corpus, rows: Sequence[dict], n_parameters: int, left_out: str = "") -> str:
    """The text of CARD.md from a run's settings and its rows of metrics; `left_out` is a sentence about the training
    pairs that were too long."""
    m, c, r = settings.model, settings.corpus, settings.resolved
    steps = max((row["step"] for row in rows), default=0)
    seconds = max((row["elapsed_s"] for row in rows), default=0.0)
    where = "" if r is None else f" on {r.device} in {r.precision}, {r.threads} {plural(r.threads, 'thread')}"
    command = f"\n```\n{settings.command}\n```\n" if settings.command else " the Train page, with the settings below.\n"
    return f"""# {settings.name}

{corpus.description}: {corpus.source_name} to {corpus.target_name}.
{_credit(settings, corpus, left_out)}
{_model(m, n_parameters)}{_missing(settings)}

{_beginning(settings)}\
Trained for {steps:,} steps in {seconds:.0f} s{where}, on corpus "{c.name}" with seed {c.seed}. The weights are the \
{settings.train.final_weights} ones.

Made by{command}
## What it reaches

{_table(rows)}
## Settings

```json
{json.dumps({"model": asdict(m), "train": asdict(settings.train), "corpus": asdict(c)}, indent=2)}
```
"""


def _model(m: AnyModelConfig, n_parameters: int) -> str:
    """Returns the sentence that says what kind of model it is, and how large."""
    of = f"of {n_parameters:,} parameters: {m.n_encoder_layers} + {m.n_decoder_layers} layers, d_model {m.d_model}"
    if not isinstance(m, ModelConfig):
        return f"An encoder-decoder of {m.made_of}, {', '.join((of, *m.further))}, {m.vocab_size:,} tokens."
    positions = "no" if m.positions == "none" else m.positions
    norm = "no layer norm" if m.norm == "none" else f"{m.norm}-norm"
    score = "" if m.score == "dot" else f"{m.score} attention, "
    return (
        f"An encoder-decoder Transformer {of}, {m.n_heads} heads, d_ff {m.d_ff}, {positions} positions, {norm}, "
        f"{score}{m.vocab_size:,} tokens.{''.join(f' {limit}' for limit in limits_of(m))}"
    )


def _missing(settings: Settings) -> str:
    """Returns the parts of the paper that were left out; empty if there are none."""
    missing = missing_parts(settings.model, settings.train)
    if not missing:
        return ""
    said = f"\n\nTrained with parts of the paper missing: {', '.join(missing)}."
    if not settings.model.causal_mask:
        said += (
            " Without the causal mask the decoder reads the very token that it is to predict: loss and perplexity say "
            "nothing of what it writes by itself, exact match does."
        )
    return said


def _credit(settings: Settings, corpus: Corpus, left_out: str) -> str:
    """Whom the sentences come from, how a file was read and split, and what was too long; empty for none of these."""
    said = [f"The sentences: {credit}\n" for credit in (corpus.credit, settings.credit) if credit]
    if corpus.report is not None:
        said.append(f"Read from the file: {corpus.report}.\n")
    if left_out:
        said.append(f"{left_out}\n")
    if is_own_copy(settings.corpus):
        said.append(f"Which of them it was trained on is decided by the source sentence: {SPLIT_RULE}.\n")
    return "".join(f"\n{line}" for line in said)


def _beginning(settings: Settings) -> str:
    """Returns a sentence about the initial weights; empty if they were random."""
    if settings.parent is None:
        return ""
    return (
        f'It continues "{settings.parent.run}", whose weights stood at step {settings.parent.step:,}, with a new '
        "optimiser and a schedule of its own.\n\n"
    )


def _table(rows: Sequence[dict]) -> str:
    last = {row["split"]: row for row in rows if row["split"] != "train"}
    if not last:
        return "It was stopped before its first evaluation.\n"
    scores = [name for name in _SCORES if any(row[name] is not None for row in last.values())]
    columns = ["exact match", "perplexity", *(_SCORES[name] for name in scores)]
    lines = [f"| split | pairs | {' | '.join(columns)} |", "|---" * (2 + len(columns)) + "|"]
    for split, row in last.items():
        values = [f"{row['exact_match']:.4f}", f"{row['perplexity']:.3f}"]
        values += ["-" if row[name] is None else f"{row[name]:.1f}" for name in scores]
        lines.append(f"| {split} (step {row['step']:,}) | {row['count']:,} | {' | '.join(values)} |")
    notes = ["Pairs are translated greedily; perplexity is unsmoothed, per token.\n"]
    if "chrf" in scores and any(row["bleu"] is None for row in last.values()):
        notes.append(f"Where there is no BLEU: {NO_BLEU}.\n")
    if len(last) == 1:
        notes.append("It was stopped before it was scored on held-out pairs.\n")
    return "\n".join([*lines, "", *notes])
