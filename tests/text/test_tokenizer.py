import time
from functools import cache

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from transformer.text.pairs import join_words, words
from transformer.text.tokenizer import (
    BOS,
    EOS,
    PAD,
    SPECIALS,
    UNK,
    UNKNOWN_MARK,
    Tokenizer,
    TokenizerError,
    load_tokenizer,
    train_tokenizer,
)

KINDS = ("words", "bpe", "unigram", "char")
TEXTS = (
    "The animal did not cross the street because it was too tired.",
    "L'animal n'a pas traversé la rue parce qu'il était trop fatigué.",
    "The cat did not open the box because it was too small.",
    "Le chat n'a pas ouvert la boîte parce qu'elle était trop petite.",
)


@cache
def trained(kind) -> Tokenizer:
    return train_tokenizer(kind, TEXTS)


@pytest.mark.parametrize("kind", KINDS)
def test_special_ids_are_pinned(kind):
    tokenizer = trained(kind)
    assert (PAD, BOS, EOS, UNK) == (0, 1, 2, 3)
    assert tuple(tokenizer.vocabulary()[:4]) == SPECIALS == tuple(tokenizer.piece(i) for i in range(4))
    assert len(tokenizer.vocabulary()) == tokenizer.vocab_size


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", TEXTS)
def test_training_text_survives_a_round_trip(kind, text):
    tokenizer = trained(kind)
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert [*tokenizer.sentence(text).tokens[:-1]] == [tokenizer.piece(i) for i in tokenizer.encode(text)]
    assert tokenizer.sentence(text).unseen == ()


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@given(text=st.text(st.characters(exclude_characters="▁", exclude_categories=["Cs"])))
def test_any_text_survives_a_round_trip_through_bytes(kind, text):
    tokenizer = trained(kind)
    assert tokenizer.decode(tokenizer.encode(text)) == text


@given(st.lists(st.sampled_from(sorted({unit for text in TEXTS for unit in text.replace(".", " .").split()}))))
def test_known_words_survive_a_round_trip(known):
    tokenizer = trained("words")
    text = join_words(known)
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert not tokenizer.sentence(text).unseen


@pytest.mark.parametrize("kind", KINDS)
@given(text=st.text() | st.text(alphabet="<s>/unkpad▁ \n\x00"))
def test_no_text_crashes_or_yields_pad_bos_or_eos(kind, text):
    tokenizer = trained(kind)
    ids = tokenizer.encode(text)
    assert not {PAD, BOS, EOS} & set(ids)
    sentence = tokenizer.sentence(text)
    assert len(sentence.tokens) == len(sentence.words) == len(sentence.ids) == len(ids) + 1
    assert [*sentence.ids] == [*ids, EOS]
    assert set(sentence.unseen) <= set(words(text))
    assert isinstance(tokenizer.decode(ids), str)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_any_ids_can_be_decoded_and_grouped(kind, data):
    tokenizer = trained(kind)
    ids = data.draw(st.lists(st.integers(0, tokenizer.vocab_size - 1)))
    assert "<s>" not in tokenizer.decode([i for i in ids if i < 3])
    owners = tokenizer.word_of_output(ids)
    assert len(owners) == len(ids)
    assert all(owner == -1 for token, owner in zip(ids, owners, strict=True) if token in (PAD, BOS, EOS))


def test_lone_surrogates_are_read_as_question_marks():
    assert trained("bpe").decode(trained("bpe").encode("a\ud800b")) == "a?b"


@pytest.mark.parametrize("kind", KINDS)
def test_tokens_know_their_word(kind):
    tokenizer = trained(kind)
    text = "L'animal n'a pas ouvert la boîte."
    owners = tokenizer.sentence(text).words[:-1]
    assert [*owners] == sorted(owners) and set(owners) == set(range(len(words(text))))
    assert tokenizer.word_of_output([BOS, *tokenizer.encode(text), EOS, PAD]) == [-1, *owners, -1, -1]


def test_subwords_of_one_word_share_its_index():
    assert trained("char").sentence("a bc, d").words == (0, 1, 1, 1, 2, 3, 3, -1)
    assert trained("char").sentence(" a ").words == (0, 0, 0, -1)
    assert trained("char").sentence("  ").words == (-1, -1, -1)
    # Unseen characters are one unk in a char tokenizer, and several bytes in the others.
    assert trained("char").sentence("日本 a").words == (0, 1, 1, -1)
    assert trained("bpe").sentence("日 a").words[:4] == (0, 0, 0, 0)


def test_unknown_names_the_words_never_seen():
    text = "The zebra was tired. The zebra 日本!"
    for kind in KINDS:
        assert trained(kind).sentence(text).unseen == ("zebra", "日本", "!")


def test_an_unknown_token_stands_for_its_own_characters_and_not_for_the_whole_word():
    read = {kind: trained(kind).sentence("was日 tired 日本") for kind in ("char", "words")}
    shown = {
        kind: [one.unseen_tokens[i] for i, token in enumerate(one.ids) if token == UNK] for kind, one in read.items()
    }
    assert shown == {"char": ["日", "日本"], "words": ["was日", "日本"]}
    assert read["char"].typed[-1] == ""


def test_unknown_tokens_read_as_a_mark():
    assert trained("words").decode([UNK]) == UNKNOWN_MARK
    assert trained("char").decode(trained("char").encode("a日b")) == f"a{UNKNOWN_MARK}b"


@pytest.mark.parametrize("kind", KINDS)
def test_ids_outside_the_vocabulary_are_named_with_its_size(kind):
    tokenizer = trained(kind)
    for token in (-1, tokenizer.vocab_size, 10**12):
        with pytest.raises(ValueError, match=rf"token id \({token}\) .* vocabulary of {tokenizer.vocab_size}"):
            tokenizer.decode([token])
        with pytest.raises(ValueError, match="token id"):
            tokenizer.piece(token)


def test_words_are_ranked_by_frequency_then_alphabet():
    tokenizer = train_tokenizer("words", ["c b a", "b c", "d"])
    assert tokenizer.vocabulary() == [*SPECIALS, "b", "c", "a", "d"]
    assert train_tokenizer("words", ["c b a", "b c", "d"], vocab_size=6).vocabulary() == [*SPECIALS, "b", "c"]


@pytest.mark.parametrize("kind", KINDS)
def test_an_oversized_vocabulary_is_an_error_that_names_a_ceiling_that_works(kind):
    with pytest.raises(TokenizerError, match=r"vocab_size \(9000\) is too large") as caught:
        train_tokenizer(kind, TEXTS, vocab_size=9000)
    ceiling = caught.value.ceiling
    assert ceiling is not None and f"at most {ceiling}: take {ceiling} or fewer" in str(caught.value)
    assert train_tokenizer(kind, TEXTS, vocab_size=ceiling).vocab_size == ceiling


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_vocabulary_too_small_for_the_characters_is_an_error_that_says_how_many_it_needs(kind):
    with pytest.raises(
        TokenizerError, match=r"vocab_size \(100\) is too small.*need \d{3}: take \d{3} or more"
    ) as caught:
        train_tokenizer(kind, TEXTS, vocab_size=100)
    assert caught.value.fault is not None and caught.value.fault.values == {"vocab_size": 100}


def test_nothing_can_be_learned_from_no_text():
    for kind in KINDS:
        with pytest.raises(TokenizerError, match="from nothing"):
            train_tokenizer(kind, ["", "  "])


@pytest.mark.parametrize("kind", ["bpe", "unigram", "char"])
def test_training_is_deterministic_and_agrees_with_sentencepiece_itself(kind, tmp_path):
    first, second = train_tokenizer(kind, TEXTS), train_tokenizer(kind, iter(TEXTS))
    assert first.save(tmp_path).read_bytes() == second.model
    independent = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "tokenizer.model"))
    assert [independent.encode(text) for text in TEXTS] == [first.encode(text) for text in TEXTS]


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_tokenizer_is_the_same_after_loading(kind, tmp_path):
    path = trained(kind).save(tmp_path)
    loaded = load_tokenizer(tmp_path)
    assert path.name == ("tokenizer.json" if kind == "words" else "tokenizer.model")
    assert loaded.kind == kind and loaded.vocabulary() == trained(kind).vocabulary()
    assert all(loaded.encode(text) == trained(kind).encode(text) for text in TEXTS)


def test_a_folder_without_a_tokenizer_is_an_error_that_names_it(tmp_path):
    with pytest.raises(TokenizerError, match="holds no tokenizer"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"[" * 100_000,
        b"[]",
        b'{"version": 2, "kind": "words", "entries": []}',
        b'{"version": 1, "kind": "words", "entries": [1]}',
        b'{"version": 1, "kind": "words", "entries": ["a", "b"]}',
        b'{"version": 1, "kind": "words", "entries": ["<pad>", "<s>", "</s>", "<unk>", "a", "a"]}',
    ],
)
def test_a_damaged_words_file_is_a_tokenizer_error(tmp_path, content):
    (tmp_path / "tokenizer.json").write_bytes(content)
    with pytest.raises(TokenizerError, match=r"cannot be (read|used)"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize("damage", [lambda m: b"", lambda m: m[: len(m) // 2], lambda m: b"\x00" * 100])
def test_a_damaged_sentencepiece_file_is_a_tokenizer_error(tmp_path, damage):
    (tmp_path / "tokenizer.model").write_bytes(damage(trained("bpe").model))
    with pytest.raises(TokenizerError, match=r"cannot be (read|used)"):
        load_tokenizer(tmp_path)


def test_a_foreign_sentencepiece_model_with_other_special_ids_is_refused(tmp_path):
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS), model_prefix=str(tmp_path / "tokenizer"), vocab_size=50, minloglevel=2
    )
    with pytest.raises(TokenizerError, match=r"pad, bos, eos and unk have the ids \(-1, 1, 2, 0\)"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize("kind", ["bpe", "unigram", "char"])
def test_unknown_names_words_once_however_long_the_text(kind):
    tokenizer = trained(kind)
    assert tokenizer.sentence("the ☃ the ☃").unseen == ("☃",)
    start = time.process_time()
    assert tokenizer.sentence("☃ the " * 10_000).unseen == ("☃",)
    assert time.process_time() - start < 10.0  # seconds; each word compared with each span took over a minute
