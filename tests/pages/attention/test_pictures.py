"""Matrices of attention: values against the recorded pass, hidden shares against a loop, words about a rollout."""

from copy import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from random_models import randomise

from pages.attention import picture_texts
from pages.attention.pictures import picture_of
from pages.shared.context import Decoded
from pages.shared.url.view_state import View
from transformer.analysis.attention.rollout import cross_rollout, rollout
from transformer.analysis.attention.vectors import record_vectors
from transformer.checkpoints.settings import Settings
from transformer.checkpoints.store import save_checkpoint
from transformer.config import CorpusConfig, ModelConfig, TrainConfig
from transformer.interventions import parse_intervention
from transformer.lab import AttentionKind, Lab, load
from transformer.model.transformer import Transformer
from transformer.text.tokenizer import train_tokenizer
from transformer.training.state import weights_of
from transformer.views.attention.heads import Bertviz
from transformer.views.attention.matrices import hidden_share
from transformer.views.attention.matrix_data import sides

TEXT = "unbelievable animals crossed"
KINDS = ("encoder_self", "decoder_self", "cross")


@pytest.fixture(scope="module")
def lab(tmp_path_factory) -> Lab:
    """A random model of two layers and four heads whose words are cut into pieces."""
    folder = tmp_path_factory.mktemp("runs") / "pieces"
    tokenizer = train_tokenizer("bpe", ["a cat crossed the street", "animals are unable to believe cats"], 310)
    config = ModelConfig(
        vocab_size=tokenizer.vocab_size,
        d_model=16,
        n_heads=4,
        d_ff=16,
        n_encoder_layers=2,
        n_decoder_layers=2,
        max_length=24,
    )
    torch.manual_seed(0)
    model = Transformer(config)
    randomise(model)
    settings = Settings(name="pieces", model=config, train=TrainConfig(), corpus=CorpusConfig(name="pronouns-en-fr"))
    save_checkpoint(folder, settings, tokenizer, weights_of(model))
    return load(str(folder))


class Chosen:
    """A visitor's choice, decoded: the picture's view and the page's context."""

    def __init__(self, lab: Lab, view: View, switch: str | list[str] = "") -> None:
        specs = [parse_intervention(text) for text in ([switch] if isinstance(switch, str) else switch) if text]
        self.lab, self.specs = lab, specs
        self.inspection = lab.inspect(TEXT, specs)
        self.context = Decoded(view, lab, self.inspection.sentence, self.inspection)

    def changed(self, **changes) -> "Chosen":
        """The same decoding, looked at otherwise."""
        other = copy(self)
        other.context = replace(self.context, view=replace(self.context.view, **changes))
        return other

    def with_inspection(self, seen) -> "Chosen":
        """The same view of another decoding."""
        other = copy(self)
        other.inspection, other.context = seen, replace(self.context, inspection=seen)
        return other

    @property
    def attention(self):
        return self.inspection.attention(self.context.view.kind)


class Drawing:
    """The data of a picture, and what is said of it."""

    def __init__(self, given: Chosen) -> None:
        self.picture = picture_of(given.context)
        self.data = self.picture.data(given.lab, given.inspection)
        self.what = picture_texts.title(self.picture, given.context)
        self.said = tuple(picture_texts.matrix_text(self.picture, self.data, given.context))

    def __getattr__(self, name: str):
        return getattr(self.data, name)


def source(lab: Lab, kind: str = "cross", *, switch: str | list[str] = "", head=1, layer=1, **view) -> Chosen:
    return Chosen(lab, View(kind=AttentionKind(kind), layer=layer, head=head, **view), switch)  # type: ignore[arg-type]


def drawing(given: Chosen) -> Drawing:
    return Drawing(given)


@pytest.mark.parametrize("kind", KINDS)
def test_one_head_alone_is_the_recorded_array(lab, kind):
    given = source(lab, kind)
    made = drawing(given)
    np.testing.assert_array_equal(made.values, given.attention.weights[1, 1])
    assert made.rows.labels == given.attention.queries and made.columns.labels == given.attention.keys
    assert made.said == () and made.picture.top(made.data) == 1
    assert made.entries[2, 1].tolist() == [1, 1, 2, 1]
    assert "layer 1 · head 1" in made.what


@pytest.mark.parametrize("how", ["mean", "max"])
def test_a_click_on_combined_heads_leads_to_the_strongest_of_them(lab, how):
    given = source(lab, combine=how, over=(0, 2))
    made = drawing(given)
    weights = given.attention.weights[1]
    for row in range(made.values.shape[0]):
        for column in range(made.values.shape[1]):
            layer, head, query, key = made.entries[row, column]
            assert (layer, query, key) == (1, row, column)
            assert weights[head, row, column] == max(weights[0, row, column], weights[2, row, column])
    assert "heads 0, 2" in made.what
    everything = drawing(source(lab, combine=how))
    assert "all heads" in everything.what
    np.testing.assert_array_equal(everything.values, drawing(source(lab, combine=how, over=(0, 1, 2, 3))).values)


@pytest.mark.parametrize("kind", KINDS)
def test_words_have_their_pieces_summed_and_averaged(lab, kind):
    given = source(lab, kind, words=True)
    made, weights = drawing(given), given.attention.weights[1, 1]
    assert max(map(len, made.columns.positions)) > 1
    for row, from_ in enumerate(made.rows.positions):
        for column, to in enumerate(made.columns.positions):
            expected = sum(float(weights[i, j]) for i in from_ for j in to) / len(from_)
            assert made.values[row, column] == pytest.approx(expected, abs=1e-6)
            _, _, query, key = made.entries[row, column]
            assert query in from_ and key in to
            assert weights[query, key] == max(weights[i, j] for i in from_ for j in to)
    assert any("summed over its pieces" in said for said in made.said)
    if kind == "encoder_self":
        assert "unbelievable" in made.rows.labels and made.rows.labels[-1] == "</s>"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ["mean", "max"])
def test_heads_are_combined_word_by_word_so_that_no_weight_exceeds_1(lab, kind, how):
    given = source(lab, kind, words=True, combine=how)
    spread = np.array(given.attention.weights)
    spread[1] = 0
    _, columns = sides(lab, given.inspection, kind, words=True)
    word = next(at for at in columns.positions if len(at) > 1)
    for head, at in enumerate([word[0], word[1], word[0], word[1]]):  # two heads look at one piece, two at another
        spread[1, head, :, at] = 1.0
    attention = replace(given.attention, weights=spread)
    attentions = {**given.inspection.attentions, kind: attention}
    given = given.with_inspection(replace(given.inspection, attentions=attentions))
    made = drawing(given)
    assert made.values.max() == pytest.approx(1, abs=1e-6)
    each = [drawing(given.changed(head=h, combine="one")).values for h in range(4)]
    expected = np.max(each, axis=0) if how == "max" else np.mean(each, axis=0)
    np.testing.assert_allclose(made.values, expected, atol=1e-7)
    np.testing.assert_array_equal(made.entries[..., 1], np.argmax(each, axis=0))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("words", [False, True])
def test_marks_are_left_out_and_what_lay_on_them_is_said(lab, kind, words):
    given, whole = source(lab, kind, specials="hidden", words=words), source(lab, kind, words=words)
    made, full = drawing(given), drawing(whole)
    rows = [i for i, mark in enumerate(full.rows.special) if not mark]
    columns = [j for j, mark in enumerate(full.columns.special) if not mark]
    np.testing.assert_array_equal(made.values, full.values[np.ix_(rows, columns)])
    total = sum(float(full.values[i].sum()) for i in rows)
    share = 1 - sum(float(full.values[i, j]) for i in rows for j in columns) / total
    assert any(f"{share:.1%}" in said and "The rest is not rescaled" in said for said in made.said)
    assert "</s>" not in made.columns.labels and "<s>" not in made.rows.labels
    again = drawing(source(lab, kind, specials="renormalised", words=words))
    np.testing.assert_allclose(again.values.sum(axis=-1), 1, atol=1e-5)
    assert any("scaled to sum to 1" in said for said in again.said)


def test_weak_cells_are_not_drawn_and_their_share_is_said(lab):
    made = drawing(source(lab, threshold=0.1))
    weak, hidden = hidden_share(made.picture, made.data)
    np.testing.assert_array_equal(weak, made.values < 0.1)
    share = float(made.values[made.values < 0.1].sum() / made.values.sum())
    assert any(f"this hides {share:.1%} of what is shown here" in said for said in made.said)
    assert hidden == pytest.approx(share)


@pytest.mark.parametrize("kind", KINDS)
def test_norms_are_shown_up_to_the_largest_and_thresholded_by_it(lab, kind):
    given = source(lab, kind, show="norms", threshold=0.5)
    made = drawing(given)
    vectors = record_vectors(lab.model, given.inspection.source_ids, (), *AttentionKind(kind).where)
    norms = vectors.contributions(given.attention.weights)
    np.testing.assert_array_equal(made.values, norms[1, 1])
    assert made.picture.top(made.data) == made.values.max()
    weak, _ = hidden_share(made.picture, made.data)
    np.testing.assert_array_equal(weak, made.values < 0.5 * made.values.max())


def test_a_head_that_is_off_is_said_to_be_and_adds_nothing(lab):
    given = source(lab, show="norms", switch="off:decoder.1.cross:1")
    assert drawing(given).off and not drawing(given).values.any()
    assert not drawing(given.changed(head=0)).off and drawing(given.changed(head=0)).values.any()


@pytest.mark.parametrize("kind", KINDS)
def test_rollout_says_what_it_is_and_allows_no_click(lab, kind):
    made = drawing(source(lab, kind, show="rollout"))
    assert made.entries is None and made.picture.top(made.data) == pytest.approx(made.values.max())
    assert made.said and "through layer 1" in made.what
    if kind != "cross":
        np.testing.assert_allclose(made.values.sum(axis=-1), 1, atol=1e-5)
    else:
        own = 1 - made.values.sum(axis=-1).mean()
        assert f"{own:.1%} on average" in made.said[0]


def test_off_heads_and_residuals_count_in_a_rollout(lab):
    plain = drawing(source(lab, "encoder_self", show="rollout"))
    off = drawing(source(lab, "encoder_self", show="rollout", switch="off:encoder.0.self:0,1,2,3"))
    alone = drawing(source(lab, "encoder_self", show="rollout", switch="residual:off:encoder.1.self"))
    assert "count as zero" in off.said[0] and "count as zero" not in plain.said[0]
    weights = source(lab, "encoder_self", switch="residual:off:encoder.1.self").attention.weights
    first = (weights[0].mean(axis=0) + np.eye(weights.shape[-1])) / 2
    np.testing.assert_allclose(alone.values, weights[1].mean(axis=0) @ first, atol=1e-5)
    last = source(lab, "encoder_self", switch="off:encoder.0.self:0,1,2,3").attention.weights[1]
    np.testing.assert_allclose(off.values, (last.mean(axis=0) + np.eye(len(last[0]))) / 2, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_scaled_head_counts_times_its_factor_in_a_rollout(lab, kind):
    stack, sublayer = AttentionKind(kind).where
    heads = f"{stack}.0.{sublayer}:1,2"
    plain, off, at_zero, doubled = (
        drawing(source(lab, kind, show="rollout", layer=0, switch=switch))
        for switch in ((), f"off:{heads}", f"scale:{heads}:0", f"scale:{heads}:2")
    )
    np.testing.assert_array_equal(at_zero.values, off.values)
    assert "Scaled heads are multiplied by their factor" in doubled.said[0] and "Scaled" not in plain.said[0]
    above = drawing(source(lab, "encoder_self", show="rollout", layer=0, switch="scale:encoder.1.self:0:2"))
    assert "Scaled" not in above.said[0]
    if kind == "encoder_self":
        weights = source(lab, kind, switch=f"scale:{heads}:2").attention.weights[0].astype(np.float64)
        mean = (weights[0] + 2 * weights[1] + 2 * weights[2] + weights[3]) / 4 + np.eye(weights.shape[-1])
        np.testing.assert_allclose(doubled.values, mean / mean.sum(axis=-1, keepdims=True), atol=1e-6)


def test_a_rollout_masks_what_neither_a_cell_nor_a_residual_lets_through(lab):
    closed = ["residual:off:decoder.0.self", "forbid:decoder.0.self:2,2"]
    plain = drawing(source(lab, "decoder_self", layer=0, show="rollout", switch=closed[1:]))
    made = drawing(source(lab, "decoder_self", layer=0, show="rollout", switch=closed))
    assert plain.mask is not None and made.mask is not None
    assert plain.mask[2, 2] and plain.values[2, 2] > 0
    assert not made.mask[2, 2] and made.values[2, 2] == 0 and made.mask[1, 1]
    assert not made.values[~made.mask].any()


OTHER = "a cat crossed the street"


@pytest.mark.parametrize(
    ("kind", "copied"),
    [
        ("encoder_self", "copy:encoder.0.self.heads.2:0>1,3>4:"),
        ("encoder_self", "copy:encoder.1.self.output:0>1:"),
        ("encoder_self", "copy:encoder.0.self.v.1:0>3:"),
        ("decoder_self", "copy:decoder.0.self.heads:all:"),
        ("decoder_self", "copy:decoder.1.self.v:1>0:"),
        ("cross", "copy:decoder.1.cross.output:0>0:"),
        ("cross", "copy:decoder.0.cross.v.3:2>1:"),
    ],
)
def test_a_rollout_follows_no_look_whose_gain_was_copied_from_elsewhere(lab, kind, copied):
    given = source(lab, kind, show="rollout", switch=copied + OTHER)
    (spec,) = given.inspection.interventions
    weights = given.attention.weights.astype(np.float64)
    heads = range(4) if spec.head is None else [spec.head]
    for head in heads:
        for here in [here for _, here in spec.positions] or range(min(len(spec.rows), weights.shape[2])):
            if spec.site.tensor == "v":
                weights[spec.site.layer, head, :, here] = 0
            else:
                weights[spec.site.layer, head, here] = 0
    if kind == "cross":
        encoder = rollout(given.inspection.encoder_self.weights, [True] * 2)[-1]
        own = given.inspection.decoder_self.weights
        expected = cross_rollout(encoder, own, weights, [True] * 2, [True] * 2).source[-1]
    else:
        expected = rollout(weights, [True] * 2)[-1]
    made = drawing(given)
    np.testing.assert_allclose(made.values, expected, atol=1e-6)
    assert "copied from another sentence count as zero" in made.said[0] and "off" not in made.said[0]


def test_a_rollout_says_which_copies_it_does_not_follow(lab):
    for site in ("encoder.0.ffn.output", "encoder.embedding", "encoder.1.self.residual", "encoder.0.self.normed"):
        said = drawing(source(lab, "encoder_self", show="rollout", switch=f"copy:{site}:0>1:{OTHER}")).said[0]
        assert "copied in other places count as this sentence's own" in said and "zero" not in said
    for site in ("encoder.0.self.q", "decoder.0.ffn.output"):
        said = drawing(source(lab, "encoder_self", show="rollout", switch=f"copy:{site}:0>0:{OTHER}")).said[0]
        assert "copied" not in said
    above = "off:encoder.1.self:0"
    assert "zero" not in drawing(source(lab, "encoder_self", show="rollout", layer=0, switch=above)).said[0]


def test_a_rollout_of_self_attention_says_that_cross_attention_would_stop_it(lab):
    cut = "residual:off:decoder.0.cross"
    assert "which has no residual" in drawing(source(lab, "decoder_self", show="rollout", switch=cut)).said[0]
    assert "below" not in drawing(source(lab, "decoder_self", show="rollout", layer=0, switch=cut)).said[0]


@pytest.mark.parametrize("kind", ["encoder_self", "decoder_self"])
def test_a_rollout_does_not_say_that_empty_rows_sum_to_1(lab, kind):
    stack, sublayer = AttentionKind(kind).where
    nothing = [f"block:{stack}.1.{sublayer}", f"residual:off:{stack}.1.{sublayer}"]
    made = drawing(source(lab, kind, show="rollout", switch=nothing))
    n = len(made.rows.labels)
    assert not made.values.any() and "sum to 1" not in made.said[0]
    assert f"All {n} rows are 0: nothing arrives there." in made.said[0]
    closed = [f"residual:off:{stack}.1.{sublayer}", f"forbid:{stack}.1.{sublayer}:0,0"]
    if kind == "encoder_self":
        closed += [f"forbid:{stack}.1.{sublayer}:0,{key}" for key in range(1, n)]
    made = drawing(source(lab, kind, show="rollout", switch=closed))
    assert [bool(row.any()) for row in made.values] == [False, *[True] * (len(made.values) - 1)]
    n = len(made.values)
    assert f"{n - 1} of {n} rows sum to 1. 1 of {n} rows is 0: nothing arrives there." in made.said[0]
    whole = drawing(source(lab, kind, show="rollout")).said[0]
    assert "Rows sum to 1." in whole and "nothing arrives" not in whole


def test_a_rollout_of_cross_attention_says_which_rows_are_empty(lab):
    nothing = [f"{off}:decoder.1.cross" for off in ("block", "residual:off")]
    said = drawing(source(lab, "cross", show="rollout", switch=nothing)).said[0]
    assert "nothing arrives there" in said and "on average" not in said


def test_no_rollout_is_made_of_rows_from_different_passes(lab):
    with pytest.raises(ValueError, match="different passes"):
        drawing(source(lab, "cross", show="rollout", switch="mask:causal"))
    assert drawing(source(lab, "decoder_self", show="rollout", switch="mask:causal")).values.any()


@pytest.mark.parametrize("unit", ["nats", "bits"])
def test_entropy_shows_every_head_and_leads_to_its_strongest_key(lab, unit):
    given = source(lab, "decoder_self", show="entropy", unit=unit)
    made, weights = drawing(given), given.attention.weights
    log = np.log if unit == "nats" else np.log2
    for row in range(made.values.shape[0]):
        for column, (layer, head) in enumerate((a, b) for a in range(2) for b in range(4)):
            cells = weights[layer, head, row].astype(float)
            expected = -sum(w * log(w) for w in cells if w > 0)
            assert made.values[row, column] == pytest.approx(expected, abs=1e-4)
            assert made.largest[row, column] == pytest.approx(log(row + 1), abs=1e-6)
            assert made.entries[row, column].tolist() == [layer, head, row, cells.argmax()]
    assert unit in made.said[0]
    hidden = drawing(source(lab, "decoder_self", show="entropy", unit=unit, specials="hidden"))
    np.testing.assert_array_equal(hidden.values, made.values[1:])


def test_pictures_of_many_heads_are_cut_as_those_of_one(lab):
    given = source(lab, "cross", words=True, specials="renormalised", threshold=0.05)
    many = Bertviz(kind="cross", words=True, marks="renormalised", threshold=0.05)
    data = many.data(lab, given.inspection)
    for layer in range(2):
        for head in range(4):
            one = drawing(given.changed(layer=layer, head=head))
            weak, _ = hidden_share(one.picture, one.data)
            np.testing.assert_allclose(data.weights[layer, head], np.where(weak, 0, one.values), atol=1e-6)
    assert data.queries == one.rows.labels and data.keys == one.columns.labels
    assert len(picture_texts.bertviz_text(many, data, given.context)) == 3


def test_a_chosen_cell_is_found_where_it_is_shown(lab):
    made = drawing(source(lab, "encoder_self", words=True, specials="hidden"))
    word = next(i for i, at in enumerate(made.rows.positions) if len(at) > 1)
    inside = made.rows.positions[word][-1]
    assert made.data.find(inside, inside) == (word, word)
    end = len(source(lab, "encoder_self").attention.keys) - 1
    assert made.data.find(inside, end) is None


@pytest.mark.parametrize("show", ["weights", "entropy"])
def test_where_nothing_is_left_a_sentence_says_so(lab, show):
    given = source(lab, "cross", specials="hidden", show=show)
    emptied = replace(given.inspection, target_ids=(2,), target_tokens=("</s>",))
    weights, mask = emptied.cross.weights[:, :, :1], emptied.cross.mask[:, :1]
    cross = replace(emptied.cross, weights=weights, mask=mask, queries=("</s>",))
    with pytest.raises(ValueError, match="nothing is left"):
        drawing(given.with_inspection(replace(emptied, attentions={**emptied.attentions, "cross": cross})))
