import json
from dataclasses import asdict
from itertools import islice, takewhile

import pytest
import torch

from transformer.data import batches
from transformer.data.batches import (
    BatchStream,
    Position,
    encode_sources,
    fits,
    make_batch,
    pair_batches,
)
from transformer.data.tasks import TASKS, GeneratedPairs
from transformer.text.pairs import Pair
from transformer.text.token_ids import check_ids
from transformer.text.tokenizer import BOS, EOS, PAD, train_tokenizer

TOKENIZER = train_tokenizer("words", TASKS["copy"].vocabulary)
CHARACTERS = train_tokenizer("char", ["abc "])


def generated(size=500):
    return GeneratedPairs(TASKS["reverse"], 0, "train", size)


def stream(pairs=None, **changes):
    settings = {"batch_tokens": 120, "seed": 3, "max_length": 16} | changes
    return BatchStream(generated() if pairs is None else pairs, TOKENIZER, **settings)


@pytest.fixture
def small_pools(monkeypatch):
    monkeypatch.setattr(batches, "POOL_SIZE", 100)


def equal(first, second):
    names = ("source", "target_in", "target_out", "source_mask", "target_mask")
    same = all(torch.equal(getattr(first, name), getattr(second, name)) for name in names)
    return same and first.n_tokens == second.n_tokens


def sentences(batch):
    return [TOKENIZER.decode(row.tolist()) for row in batch.source]


def test_the_target_is_shifted_by_one_and_masks_mark_real_tokens():
    batch = make_batch([([7, 8, 9], [5]), ([4], [6, 5])])
    assert batch.source.tolist() == [[7, 8, 9, EOS], [4, EOS, PAD, PAD]]
    assert batch.target_in.tolist() == [[BOS, 5, PAD], [BOS, 6, 5]]
    assert batch.target_out.tolist() == [[5, EOS, PAD], [6, 5, EOS]]
    assert batch.source_mask.tolist() == [[True] * 4, [True, True, False, False]]
    assert batch.target_mask.tolist() == [[True, True, False], [True, True, True]]
    assert batch.n_tokens == 5 == int(batch.target_mask.sum())
    assert batch.source.dtype == torch.int64 and batch.source_mask.dtype == torch.bool


def test_a_batch_moves_to_a_device_whole():
    batch = make_batch([([7], [5])]).to("meta", non_blocking=True)
    assert {t.device.type for t in (batch.source, batch.target_in, batch.target_out, batch.source_mask)} == {"meta"}
    assert batch.target_mask.device.type == "meta" and batch.n_tokens == 2


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_batch_moves_to_a_gpu_without_changing():
    batch = make_batch([([7, 8], [5]), ([4], [6, 5])])
    assert equal(batch.to("cuda", non_blocking=True).to("cpu"), batch)


def test_a_pair_is_cut_once_for_all_epochs(small_pools, monkeypatch):
    cut, encode = [], batches._encode
    monkeypatch.setattr(batches, "_encode", lambda pair, tokenizer: cut.append(pair) or encode(pair, tokenizer))
    through = list(takewhile(lambda found: found[1].epoch < 3, stream()))
    assert sorted(pair.source for pair in cut) == sorted(pair.source for pair in generated())
    anew = takewhile(lambda found: found[1].epoch < 3, stream(position=Position(epoch=2)))
    third = [batch for batch, at in through if at.epoch == 2][1:]  # the position stands behind the batch
    assert third and all(equal(*both) for both in zip(third, (batch for batch, _ in anew), strict=True))


def test_an_epoch_holds_every_pair_once(small_pools):
    batches = [batch for batch, at in islice(stream(), 400) if at.epoch == 0]
    found = [text for batch in batches for text in sentences(batch)]
    expected = [pair.source for pair in generated()]
    last = next(batch for batch, at in stream() if at.epoch == 1)
    assert sorted(found + sentences(last)) == sorted(expected)


def test_batches_stay_within_the_token_budget_and_waste_little(small_pools):
    batches = [batch for batch, _ in islice(stream(), 100)]
    assert all(max(b.source.numel(), b.target_in.numel()) <= 120 for b in batches)
    padding = sum(int((~b.source_mask).sum()) for b in batches) / sum(b.source.numel() for b in batches)
    assert padding < 0.1


def test_a_pair_longer_than_the_budget_is_a_batch_of_its_own():
    pairs = [Pair("a b c d e f", "a"), Pair("b", "b")]
    shapes = {tuple(batch.source.shape) for batch, _ in islice(stream(pairs, batch_tokens=4), 8)}
    assert shapes == {(1, 7), (1, 2)}


@pytest.mark.parametrize("stop", [1, 7, 30, 61, 62, 63, 64, 65, 150])
def test_a_resumed_stream_gives_bit_identical_batches(small_pools, stop):
    whole = list(islice(stream(), stop + 10))
    saved = json.loads(json.dumps(asdict(whole[stop - 1][1])))
    resumed = list(islice(stream(position=Position(**saved)), 10))
    for (batch, at), (again, at_again) in zip(whole[stop:], resumed, strict=True):
        assert equal(batch, again) and at == at_again


def test_the_order_depends_on_seed_and_epoch(small_pools):
    def epoch(number, seed):
        start = Position(epoch=number)
        return [sentences(batch) for batch, _ in islice(stream(seed=seed, position=start), 20)]

    assert epoch(0, 1) == epoch(0, 1)
    assert epoch(0, 1) != epoch(0, 2) != epoch(1, 1) != epoch(0, 1)


def test_the_order_leaves_global_generators_alone():
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    next(iter(stream()))
    assert torch.equal(torch.rand(1), expected)


def test_batches_of_a_pool_come_in_random_order(small_pools):
    widths = [batch.source.size(1) for batch, at in islice(stream(), 40) if at.pool == 0]
    assert widths != sorted(widths) and widths != sorted(widths, reverse=True)


def test_only_the_pools_that_are_reached_are_made():
    class Counting(list):
        asked = 0

        def __getitem__(self, index):
            Counting.asked += 1
            return super().__getitem__(index)

    next(iter(stream(Counting([Pair("a b", "b a")] * 10_000))))
    assert Counting.asked < batches.POOL_SIZE + 10  # the type checker of the tests looks at a few more


def test_overlong_and_empty_pairs_are_skipped_and_counted_once_an_epoch(small_pools):
    pairs = [Pair("a b", "b a")] * 150 + [Pair("a b c d", "a")] * 30 + [Pair("a", "a b c d")] * 20 + [Pair("", "a")] * 5
    positions = [at for _, at in islice(stream(pairs, max_length=4), 40)]
    first_of = {epoch: next(at for at in positions if at.epoch == epoch) for epoch in (1, 2)}
    assert first_of[1].skipped == 55 and first_of[2].skipped == 110
    middle = positions[2]
    resumed = [at for _, at in islice(stream(pairs, max_length=4, position=middle), 10)]
    assert resumed == positions[3:13]


def test_the_longest_pair_that_max_length_allows_is_kept():
    assert fits(Pair("a b c", "a"), TOKENIZER, max_length=4)
    assert not fits(Pair("a b c", "a"), TOKENIZER, max_length=3)
    assert not fits(Pair("", "a"), TOKENIZER, max_length=3)
    batch, at = next(iter(stream([Pair("a b c", "c b a")], max_length=4)))
    assert batch.source.size(1) == batch.target_in.size(1) == 4 and at.skipped == 0


def test_a_corpus_without_a_pair_that_fits_is_refused_with_both_numbers(small_pools):
    with pytest.raises(ValueError, match=r"none of the 250 pairs fits into max_length \(3\)"):
        next(iter(stream([Pair("a b c", "a")] * 250, max_length=3)))


def test_a_position_of_another_corpus_is_refused():
    with pytest.raises(ValueError, match="pool 5 does not exist: 500 pairs make 1 pools"):
        next(iter(stream(position=Position(pool=5))))
    with pytest.raises(ValueError, match="pool 0 does not exist: 0 pairs"):
        next(iter(stream([])))


def test_evaluation_batches_hold_every_pair_once_and_say_which():
    pairs = generated(90)
    seen = []
    for rows, batch in pair_batches(pairs, TOKENIZER, 100, max_length=16):
        assert sentences(batch) == [pairs[row].source for row in rows]
        assert batch.source.numel() <= 100
        seen += rows
    assert sorted(seen) == list(range(90))


def test_evaluation_refuses_overlong_and_empty_pairs_by_number():
    with pytest.raises(ValueError, match=r"the target of pair 2 has 5 tokens.*at most 4"):
        list(pair_batches([Pair("a", "a"), Pair("a", "a b c d")], TOKENIZER, 100, max_length=4))
    with pytest.raises(ValueError, match="the source of pair 1 is empty"):
        list(pair_batches([Pair(" ", "a")], TOKENIZER, 100, max_length=4))


def test_sources_end_with_eos_and_are_padded():
    source, mask = encode_sources(["a b c", "a"], TOKENIZER, max_length=4)
    a, b, c = TOKENIZER.encode("a b c")
    assert source.tolist() == [[a, b, c, EOS], [a, EOS, PAD, PAD]]
    assert mask.tolist() == [[True] * 4, [True, True, False, False]]


def test_bad_sentences_are_refused_before_any_forward_pass():
    with pytest.raises(ValueError, match="there is no sentence"):
        encode_sources([], TOKENIZER, max_length=8)
    for empty in ("", "  \n"):
        with pytest.raises(ValueError, match="the sentence is empty: write at least one word"):
            encode_sources([empty], TOKENIZER, max_length=8)
    with pytest.raises(ValueError, match=r"the sentence has 10,000 tokens.*at most 64"):
        encode_sources(["abc " * 2_500], CHARACTERS, max_length=64)
    with pytest.raises(ValueError, match=r"sentence 2 has 9 tokens.*at most 8"):
        encode_sources(["a", "a b c d e f g h"], TOKENIZER, max_length=8)


def test_white_space_alone_is_empty_to_a_tokenizer_that_keeps_it():
    with pytest.raises(ValueError, match="the sentence is empty"):
        encode_sources(["   "], CHARACTERS, max_length=8)


def test_an_id_outside_the_vocabulary_is_refused_with_both_numbers():
    check_ids([0, 9], 10)
    with pytest.raises(ValueError, match=r"token id \(10\) is outside the model's vocabulary of 10"):
        check_ids([0, 10], 10)
    with pytest.raises(ValueError, match=r"token id \(-1\)"):
        check_ids([-1], 10)
    with pytest.raises(ValueError, match=r"token id \(20\) is outside the model's vocabulary of 20"):
        encode_sources([" ".join("abcdefghijklmnopqrst")], TOKENIZER, max_length=64, vocab_size=20)
    with pytest.raises(ValueError, match="token id"):
        make_batch([([5], [12])], vocab_size=12)
    with pytest.raises(ValueError, match="token id"):
        list(pair_batches([Pair("t", "t")], TOKENIZER, 100, max_length=4, vocab_size=4))


def test_a_batch_of_nothing_is_refused():
    with pytest.raises(ValueError, match="at least one pair"):
        make_batch([])
