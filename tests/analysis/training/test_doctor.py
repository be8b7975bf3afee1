"""The Doctor: each illness in simulated curves, none in the shipped models', heads that are dead by construction."""

import math
import re
from dataclasses import replace

import pytest
import tiny_runs
import torch
from documents.toy_files import TOY_WORDS, toy_file
from random_models import EVERY_BUILD

from transformer.analysis.heads.health import HeadHealth, head_health
from transformer.analysis.proportions import Proportions, proportions
from transformer.analysis.training.doctor import diagnose
from transformer.analysis.training.source_use import source_use
from transformer.checkpoints.settings import SHIPPED_FOLDER, read_settings
from transformer.checkpoints.store import history
from transformer.config import CorpusConfig, ModelConfig, TrainConfig
from transformer.data.corpus_cache import prepared
from transformer.data.file_recipes import recipe_for
from transformer.model.seq2seq import attention_layers
from transformer.model.transformer import Transformer
from transformer.text.tokenizer import train_tokenizer

SHIPPED = ("reverse", "reverse-learned", "reverse-adamw", "pronouns-en-fr", "pronouns-en-fr-learned")
MODEL = ModelConfig(vocab_size=200, d_model=64, n_heads=4, max_length=64)
TRAIN = TrainConfig(max_steps=1_000, warmup_steps=50, learning_rate=2e-3)
N = 1_000


def noise(step: int) -> float:
    """Batches differ by how long their sentences are: half a nat to and fro, the same in every test."""
    return 0.25 * math.sin(12.9898 * step) + 0.25 * math.cos(78.233 * step)


def falling(step: int, *, speed: float = 150, floor: float = 0.8) -> float:
    return floor + (5 - floor) * math.exp(-step / speed)


def rows_of(loss=falling, validation=None, exact=lambda step: 0.4, norm=lambda step: 0.8, n=N, every=50):
    """The rows of a run with these curves, as a metrics.jsonl has them."""
    validation = validation or (lambda step: loss(step) - 0.1)
    rows = []
    for step in range(1, n + 1):
        rate = TRAIN.learning_rate * min(1, step / TRAIN.warmup_steps)
        shared = {"step": step, "elapsed_s": step / 10}
        train = {"loss": loss(step) + noise(step) * min(1, loss(step) / 3), "gradient_norm": norm(step)}
        rows.append({"split": "train", **shared, **train, "learning_rate": rate})
        if step % every == 0:
            scores = {"exact_match": exact(step), "bleu": None, "chrf": None}
            rows.append({"split": "validation", **shared, "loss": validation(step), **scores})
    return rows


def kinds(rows, *, model=MODEL, train=TRAIN, over=True, **more) -> list[str]:
    return [finding.kind for finding in diagnose(rows, model, train, over=over, **more).findings]


@pytest.mark.parametrize("name", SHIPPED)
def test_nothing_is_found_in_the_shipped_models_curves_at_any_moment_of_their_training(name):
    folder = SHIPPED_FOLDER / name
    settings, rows = read_settings(folder), history(folder)
    last = max(row["step"] for row in rows)
    for share in (0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0):
        seen = [row for row in rows if row["step"] <= share * last]
        found = diagnose(seen, settings.model, settings.train, over=share == 1)
        assert found.findings == (), (share, found.findings)
    assert any("over-fitting" in phrase for phrase in found.checked)


def test_a_run_that_falls_and_levels_off_with_its_rate_is_healthy():
    rows = rows_of()
    for row in rows:  # a cosine to zero
        if row["split"] == "train":
            row["learning_rate"] = 1e-3 * (1 + math.cos(math.pi * row["step"] / N))
    assert kinds(rows) == []


def test_too_few_steps_are_no_reason_for_a_finding_and_it_says_so():
    found = diagnose(rows_of(lambda step: 5.0, n=40), MODEL, TRAIN, over=False)
    assert found.findings == ()
    assert any("40 steps: too few" in phrase for phrase in found.unchecked)
    assert diagnose([], MODEL, TRAIN, over=False).findings == ()


def test_a_loss_that_is_not_a_number_is_told_with_what_was_seen_before():
    error = "the loss is no longer a finite number at step 301: lower the learning rate"
    found = diagnose(rows_of(n=300, norm=lambda step: 143.0), MODEL, TRAIN, over=True, error=error).findings[0]
    assert (found.kind, found.severity) == ("not_a_number", "serious")
    assert found.sentence.startswith("The loss is no longer a finite number at step 301. At step 300, just before")
    assert "gradient norm 143" in found.sentence and "learning rate 0.002" in found.sentence
    assert "0.002 to 0.000667" in found.advice and "warm up for 200 steps instead of 50" in found.advice
    broken = rows_of(lambda step: math.nan if step == 200 else falling(step))
    assert kinds(broken)[0] == "not_a_number"


def test_other_failures_are_not_the_doctor_s():
    assert kinds(rows_of(), error="no space is left on the disk") in ([], ["plateau"])


def test_divergence_names_the_lowest_loss_and_where_it_was():
    found = diagnose(
        rows_of(lambda step: falling(step) if step < 500 else 4.2, norm=lambda step: 9.0), MODEL, TRAIN, over=False
    ).findings
    assert [finding.kind for finding in found][:1] == ["divergence"]
    assert "4." in found[0].sentence and "step 5" in found[0].sentence
    assert "Lower the learning rate" in found[0].advice


def test_a_run_that_diverged_and_came_back_with_nothing_learned_is_told_to_be_calmer():
    folder = SHIPPED_FOLDER / "reverse-diverged"
    settings, rows = read_settings(folder), history(folder)
    for share in (0.25, 0.5, 1.0):
        seen = [row for row in rows if row["step"] <= share * settings.train.max_steps]
        found = {
            finding.kind: finding for finding in diagnose(seen, settings.model, settings.train, over=True).findings
        }
        assert "unfinished" not in found and "Lower the learning rate" in found["divergence"].advice
    assert re.search(r"rose from 3\.\d+ nats at step \d+ to [4-9]\d(\.\d)? at step", found["divergence"].sentence)


def test_a_leap_from_which_the_loss_recovers_is_no_divergence():
    assert "divergence" not in kinds(rows_of(lambda step: 20.0 if 100 < step < 250 else falling(step)))


def test_a_run_without_norm_is_told_to_take_it_back():
    rows = rows_of(lambda step: falling(step) if step < 500 else 4.2)
    (found,) = [
        f for f in diagnose(rows, replace(MODEL, norm="none"), TRAIN, over=True).findings if f.kind == "divergence"
    ]
    assert found.advice.startswith("Give it back what it lacks (layer norm)")


@pytest.mark.parametrize(("rate", "said"), [(1e-6, "Raise the learning rate"), (1.0, "Lower the learning rate")])
def test_no_learning_says_whether_the_rate_is_low_or_high(rate, said):
    rows = rows_of(lambda step: 5.0)
    for row in rows:
        if row["split"] == "train":
            row["learning_rate"] = rate
    found = diagnose(rows, MODEL, replace(TRAIN, learning_rate=rate), over=True).findings
    assert [finding.kind for finding in found][:1] == ["no_learning"]
    assert said in found[0].advice


def test_a_loss_that_rises_and_falls_again_and_again_is_unsteady():
    def waves(step: int) -> float:
        return falling(step) + (1.5 if step % 300 > 230 and step > 200 else 0.0)

    assert "unsteady" in kinds(rows_of(waves))


def test_over_fitting_says_when_validation_was_best_and_what_training_did_meanwhile():
    rows = rows_of(
        lambda step: falling(step, floor=0.1),
        validation=lambda step: 2 + abs(step - 300) / 400,
        exact=lambda step: 0.3 - step / 10_000,
    )
    (found,) = [f for f in diagnose(rows, MODEL, TRAIN, over=False).findings if f.kind == "over_fitting"]
    assert found.severity == "warning"
    assert "lowest at step 300 (2 nats)" in found.sentence and "3.62 at step 1,000" in found.sentence
    assert "Exact match was 27 % then and is 20 % now" in found.sentence
    better = rows_of(
        lambda step: falling(step, floor=0.1),
        validation=lambda step: 2 + abs(step - 300) / 400,
        exact=lambda step: step / 2_000,
    )
    (milder,) = [f for f in diagnose(better, MODEL, TRAIN, over=False).findings if f.kind == "over_fitting"]
    assert milder.severity == "note" and "still got better (exact match 15 %, now 50 %)" in milder.sentence


def test_a_plateau_at_a_high_rate_is_told_and_one_at_a_spent_rate_is_not():
    rows = rows_of(lambda step: falling(step, speed=60, floor=2.0))
    assert kinds(rows) == ["plateau"]
    for row in rows:
        if row["split"] == "train" and row["step"] > 500:
            row["learning_rate"] = 1e-5
    assert kinds(rows) == []
    assert kinds(rows_of(lambda step: falling(step, speed=60, floor=2.0), exact=lambda step: 0.99)) == []


def test_a_run_that_ended_while_its_loss_fell_is_unfinished_and_one_that_goes_on_is_not():
    rows = rows_of(lambda step: falling(step, speed=900))
    assert kinds(rows) == ["unfinished"]
    assert kinds(rows, over=False) == []
    low = diagnose(rows, MODEL, replace(TRAIN, learning_rate=1e-4), over=True).findings[0]
    assert "0.0001 is low for d_model 64" in low.advice


def test_a_model_that_reads_the_answer_is_found_by_its_loss_and_its_output():
    rows = rows_of(lambda step: falling(step, floor=0.0), validation=lambda step: 0.004, exact=lambda step: 0.0)
    found = diagnose(rows, replace(MODEL, causal_mask=False), TRAIN, over=False).findings
    assert [finding.kind for finding in found] == ["answer_seen"]
    assert "0.004 nats" in found[0].sentence and "0 % of what it writes" in found[0].sentence
    assert "without a causal mask" in found[0].sentence


@pytest.mark.parametrize(("loss", "n"), [(0.106, N), (1.4, N), (0.106, 100)])
def test_a_run_without_its_causal_mask_that_writes_badly_is_told_why_whatever_its_loss(loss, n):
    """Label smoothing alone keeps the loss of an answer that is read off above 0.1; a short run has few evaluations."""
    rows = rows_of(lambda step: falling(step, floor=0.8), validation=lambda step: loss, exact=lambda step: 0.005, n=n)
    found = diagnose(rows, replace(MODEL, causal_mask=False), TRAIN, over=True).findings[0]
    assert (found.kind, found.severity) == ("answer_seen", "serious")
    assert "0.5 % of what it writes" in found.sentence
    assert "without a causal mask, on teacher-forced tokens that it could see ahead" in found.sentence
    assert "causal mask on" in found.advice


def test_a_run_without_its_causal_mask_that_writes_well_is_left_alone():
    assert kinds(rows_of(exact=lambda step: 0.9), model=replace(MODEL, causal_mask=False)) in ([], ["plateau"])


def test_a_run_that_ended_without_one_right_output_is_not_called_healthy():
    rows = rows_of(exact=lambda step: 0.0, n=200)
    (found,) = [f for f in diagnose(rows, MODEL, TRAIN, over=True).findings if f.kind == "all_wrong"]
    assert found.severity == "warning" and "exact match 0 %" in found.sentence and "step 200" in found.sentence
    without = diagnose(rows, MODEL, replace(TRAIN, warmup_steps=0), over=True).findings
    assert "try a warm-up" in without[0].advice and "warm-up" not in found.advice
    assert "all_wrong" not in kinds(rows, over=False)
    assert "all_wrong" not in kinds(rows_of(exact=lambda step: 0.005, n=200))
    for row in rows:  # translations that overlap with the references, of a corpus where few are the same
        if row["split"] == "validation":
            row |= {"bleu": 12.0, "chrf": 30.0}
    assert "all_wrong" not in kinds(rows)


CORPUS = Proportions(
    n_pairs=10_000, vocab_size=200, max_length=64, tokens_a_pair=20, longest=30, too_long=0.0, suited=1_000
)


@pytest.mark.parametrize(
    ("changes", "kind", "said"),
    [
        (dict(n_pairs=300, vocab_size=4_000), "vocabulary", "4,000 entries for 300 pairs: each occurs 1.5 times"),
        (dict(too_long=0.12, longest=90), "length", "12 % of the training pairs are longer than max_length (64"),
    ],
)
def test_a_vocabulary_or_a_length_out_of_proportion_is_told_with_its_numbers(changes, kind, said):
    found = diagnose([], MODEL, TRAIN, over=False, corpus=replace(CORPUS, **changes)).findings
    assert [finding.kind for finding in found] == [kind]
    assert said in found[0].sentence
    assert diagnose([], MODEL, TRAIN, over=False, corpus=CORPUS).findings == ()


def test_the_vocabulary_that_the_app_proposes_is_not_called_too_large():
    proposed = replace(CORPUS, n_pairs=277, vocab_size=446, tokens_a_pair=12)
    assert proposed.tokens_an_entry < 10
    assert diagnose([], MODEL, TRAIN, over=False, corpus=proposed).findings == ()


def test_a_run_that_succeeds_has_no_vocabulary_to_mend():
    large = replace(CORPUS, n_pairs=300, vocab_size=4_000)
    assert "vocabulary" in kinds(rows_of(exact=lambda step: 0.9), corpus=large)
    assert kinds(rows_of(exact=lambda step: 1.0), corpus=large) == []


@pytest.mark.parametrize("language", TOY_WORDS)
def test_a_small_file_with_all_settings_proposed_draws_no_finding_about_its_corpus(language, tmp_path):
    path = tmp_path / "mine.tsv"
    path.write_text(toy_file(language, 60))
    config = CorpusConfig(name=str(path))
    corpus, tokenizer = prepared(config)
    found = proportions(corpus.train, tokenizer, recipe_for(config).model.max_length)
    assert found is not None and found.vocab_size <= found.suited
    assert diagnose([], MODEL, TRAIN, over=False, corpus=found).findings == ()


def test_rows_of_a_learned_table_that_no_pair_reaches_are_told():
    learned = replace(MODEL, positions="learned", max_length=256)
    found = diagnose([], learned, TRAIN, over=False, corpus=replace(CORPUS, max_length=256)).findings
    assert [finding.kind for finding in found] == ["length"] and "256 rows" in found[0].sentence


def test_proportions_are_what_counting_every_token_gives():
    pairs = tiny_runs.corpus().train[:100]
    tokenizer = tiny_runs.tokenizer()
    found = proportions(pairs, tokenizer, 8)
    lengths = [(len(pair.source.split()), len(pair.target.split())) for pair in pairs]
    assert found is not None
    assert found.tokens_a_pair == sum(map(sum, lengths)) / 100
    assert found.longest == 1 + max(map(max, lengths))
    assert found.too_long == sum(max(pair) + 1 > 8 for pair in lengths) / 100
    assert found.tokens_an_entry == pytest.approx(sum(map(sum, lengths)) / tokenizer.vocab_size)
    assert proportions([], tokenizer, 8) is None


HEALTHY = HeadHealth("decoder", 0, "cross", 0, evenness=0.6, one_hot=0.2, strength=0.4, variation=0.9, rows=50)


@pytest.mark.parametrize(
    ("changes", "kind", "said"),
    [
        (dict(strength=0.001), "dead_heads", "head 1 of decoder layer 0 (cross) adds 0.1 % of its sublayer's output"),
        (dict(variation=0.005), "dead_heads", "adds the same vector to every token (only 0.5 % of it changes)"),
        (dict(evenness=0.997), "dead_heads", "spreads its attention evenly (99.7 % of the largest entropy)"),
        (dict(one_hot=0.98), "saturated_heads", "head 1 of decoder layer 0 (cross) in 98 % of its rows"),
    ],
)
def test_dead_and_saturated_heads_are_named(changes, kind, said):
    heads = [HEALTHY, replace(HEALTHY, head=1, **changes)]
    rows = rows_of(lambda step: falling(step, speed=900))
    (found,) = [f for f in diagnose(rows, MODEL, TRAIN, over=False, heads=heads).findings]
    assert found.kind == kind and found.severity == "note"
    assert said in found.sentence
    assert "1 head of 2" in found.sentence
    assert diagnose(rows, MODEL, TRAIN, over=False, heads=[HEALTHY]).findings == ()


class TestHeadHealth:
    @pytest.fixture
    def model(self) -> Transformer:
        torch.manual_seed(0)
        return Transformer(replace(tiny_runs.MODEL, vocab_size=tiny_runs.tokenizer().vocab_size)).eval()

    def measured(self, model) -> dict[tuple[str, str, int], HeadHealth]:
        found = head_health(model, tiny_runs.corpus().validation, tiny_runs.tokenizer())
        return {(head.stack, head.sublayer, head.head): head for head in found}

    def test_every_head_is_measured(self, model):
        assert len(self.measured(model)) == 3 * model.config.n_heads

    @torch.no_grad()
    def test_heads_that_are_even_silent_constant_or_sharp_by_construction_measure_as_such(self, model):
        size = model.config.d_head
        encoder, cross = model.encoder.layers[0].self_attention, model.decoder.layers[0].cross_attention
        encoder.query.weight[:size] = 0  # head 0: all scores alike
        encoder.query.bias[:size] = 0
        encoder.query.weight[size:] *= 1_000  # head 1: scores far apart
        encoder.key.weight[size:] *= 1_000
        cross.output.weight[:, :size] = 0  # head 0: adds nothing
        cross.value.weight[size:] = 0  # head 1: adds its bias alone
        cross.value.bias[size:] = 1
        found = self.measured(model)
        assert found["encoder", "self", 0].evenness == pytest.approx(1, abs=1e-6)
        assert found["encoder", "self", 0].one_hot == 0
        assert found["encoder", "self", 1].one_hot > 0.95
        assert found["encoder", "self", 1].evenness < 0.05
        assert found["decoder", "cross", 0].strength == 0
        assert found["decoder", "cross", 1].variation == pytest.approx(0, abs=1e-6)
        assert found["decoder", "self", 0].strength > 0.1 and found["decoder", "self", 0].variation > 0.1

    @pytest.mark.parametrize("make", EVERY_BUILD.values(), ids=list(EVERY_BUILD))
    def test_every_head_of_every_family_is_measured(self, make):
        model = make(vocab_size=tiny_runs.tokenizer().vocab_size)
        found = head_health(model, tiny_runs.corpus().validation, tiny_runs.tokenizer())
        assert len(found) == sum(attention_layers(model).values()) * getattr(model.config, "n_heads", 1)
        used = source_use(model, tiny_runs.corpus().validation, tiny_runs.tokenizer())
        assert used is not None
        if not isinstance(model, Transformer):
            assert used.cosine < 0.99, "the vectors are those of the tokens, not the one that the decoder begins with"
            assert all(head.strength == pytest.approx(1, abs=1e-6) for head in found), "the one head adds everything"

    def test_a_model_that_no_pair_fits_is_refused(self, model):
        tokenizer = train_tokenizer("words", tiny_runs.corpus().vocabulary)
        short = Transformer(replace(model.config, max_length=1))
        with pytest.raises(ValueError, match="fits into max_length"):
            head_health(short, tiny_runs.corpus().validation, tokenizer)
