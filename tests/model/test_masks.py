import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer.analysis.attention.mask_reference import may_see
from transformer.config import ModelConfig, RecurrentConfig
from transformer.model.kinds import AttentionKind
from transformer.model.mask_rules import MASK_RULES
from transformer.model.masks import AttentionMask, combine, has_key, key_mask, open_to, padding_mask

sizes = st.integers(1, 12)


def causal_mask(n_query, n_key):
    return open_to(ModelConfig(), AttentionKind.DECODER_SELF, n_query, n_key)


def test_only_the_decoder_s_self_attention_of_the_paper_s_model_has_a_rule():
    assert open_to(ModelConfig(), AttentionKind.ENCODER_SELF, 3, 3) is None
    assert open_to(ModelConfig(), AttentionKind.CROSS, 3, 3) is None
    assert open_to(ModelConfig(causal_mask=False), AttentionKind.DECODER_SELF, 3, 3) is None
    assert open_to(RecurrentConfig(attention="dot"), AttentionKind.CROSS, 3, 3) is None
    assert open_to(ModelConfig(), AttentionKind.DECODER_SELF, 3, 3, but={rule.name for rule in MASK_RULES}) is None


@st.composite
def equal_masks(draw, count=3):
    """Several boolean masks of one shape [batch query key]."""
    shape = draw(st.tuples(sizes, sizes, sizes))
    seed = draw(st.integers(0, 2**16))
    generator = torch.Generator().manual_seed(seed)
    share = draw(st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]))
    return [torch.rand(shape, generator=generator) < share for _ in range(count)]


@given(st.integers(0, 12), sizes)
def test_a_query_sees_its_own_position_and_all_before_it(earlier, n_query):
    mask = causal_mask(n_query, earlier + n_query)
    for query in range(n_query):
        assert mask[query].tolist() == [key <= earlier + query for key in range(earlier + n_query)]


@given(sizes)
def test_a_single_query_after_a_cache_sees_every_key(n_key):
    assert causal_mask(1, n_key).all()


@given(sizes, sizes)
def test_rows_of_a_longer_causal_mask_are_those_of_the_shorter_one(n, more):
    assert torch.equal(causal_mask(n + more, n + more)[:n, :n], causal_mask(n, n))
    assert torch.equal(causal_mask(n + more, n + more)[n:], causal_mask(more, n + more))


@given(equal_masks())
def test_combined_masks_allow_what_all_allow_in_any_order(masks):
    a, b, c = masks
    combined = combine(a, b, c)
    assert combined.tolist() == combine(c, a, b).tolist() == combine(combine(a, b), c).tolist()
    # By De Morgan: what is blocked is what any of them blocks.
    assert torch.equal(~combined, ~a | ~b | ~c)
    assert torch.equal(combine(a), a) and torch.equal(combine(a, a), a)


@given(equal_masks(count=1))
def test_a_row_without_a_key_is_told_from_the_others(masks):
    (mask,) = masks
    seen = has_key(mask)
    assert seen.shape == (*mask.shape[:2], 1)
    assert seen[..., 0].tolist() == [[any(row) for row in rows] for rows in mask.tolist()]


@given(st.lists(st.lists(st.integers(0, 3), min_size=5, max_size=5), min_size=1, max_size=4), st.integers(0, 3))
def test_padding_is_exactly_the_pad_id(ids, pad_id):
    real = padding_mask(torch.tensor(ids), pad_id)
    assert real.tolist() == [[token != pad_id for token in row] for row in ids]


def test_every_query_sees_the_same_real_keys():
    real = torch.tensor([[True, True, False], [True, False, False]])
    mask = key_mask(real)
    assert mask.shape == (2, 1, 1, 3)
    full = combine(mask, causal_mask(3, 3))
    assert full.shape == (2, 1, 3, 3)
    assert full[0, 0].int().tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 0]]
    assert full[1, 0].int().tolist() == [[1, 0, 0], [1, 0, 0], [1, 0, 0]]


def test_the_fused_path_is_given_no_more_than_the_mask_asks_for():
    allowed = torch.ones(2, 1, 1, 3, dtype=torch.bool)
    assert AttentionMask.of(allowed, torch.float32).fused is None
    allowed[1, 0, 0, 2] = False
    mask = AttentionMask.of(allowed, torch.float64)
    assert mask.blank is None and mask.fused.dtype == torch.float64
    assert mask.fused.flatten().tolist() == [0, 0, 0, 0, 0, -torch.inf]
    allowed[0] = False
    mask = AttentionMask.of(allowed, torch.float32)
    assert mask.blank.flatten().tolist() == [True, False]
    assert mask.fused.flatten().tolist() == [0, 0, 0, 0, 0, -torch.inf]


@pytest.mark.parametrize("kind", [AttentionKind.ENCODER_SELF, AttentionKind.DECODER_SELF])
@pytest.mark.parametrize(("window", "causal"), [(1, True), (2, True), (2, False), (9, False)])
def test_a_window_opens_what_is_near_of_what_the_causal_mask_leaves(kind, window, causal):
    config = ModelConfig(window=window, causal_mask=causal)
    for earlier in (0, 3):
        found = open_to(config, kind, 4, 4 + earlier)
        for query in range(4):
            at = query + earlier
            after = causal and kind is AttentionKind.DECODER_SELF
            wanted = [at - window <= key <= (at if after else at + window) for key in range(4 + earlier)]
            assert found[query].tolist() == wanted


@pytest.mark.parametrize("window", [0, 2])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("kind", AttentionKind)
def test_the_pass_and_the_reference_hide_the_same(kind, window, causal):
    config = ModelConfig(window=window, causal_mask=causal)
    for lifted in ((), ("causal",), ("window",), ("causal", "window")):
        found = open_to(config, kind, 6, 6, but=lifted)
        wanted = [[may_see(config, kind, query, key, lifted=lifted) for key in range(6)] for query in range(6)]
        assert (torch.ones(6, 6, dtype=torch.bool) if found is None else found).tolist() == wanted
