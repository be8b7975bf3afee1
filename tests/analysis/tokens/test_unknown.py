"""Characters that were never seen: what each tokenizer reads in their place, and what a part of them reads back as."""

from transformer.analysis.tokens.unknown import cut_short, fates
from transformer.text.tokenizer import train_tokenizer

TEXTS = ["the cat sat", "the cats ate", "a hat"] * 20
ALL = {kind: train_tokenizer(kind, TEXTS) for kind in ("words", "char", "bpe", "unigram")}


def test_an_unknown_character_is_unk_or_its_bytes():
    (fate,) = fates("the ca🦔t 🦔", ALL)
    assert (fate.character, fate.code_point, fate.name) == ("🦔", "U+1F994", "hedgehog")
    spelt = ("<0xF0>", "<0x9F>", "<0xA6>", "<0x94>")
    assert fate.encoded == bytes(int(piece[3:5], 16) for piece in spelt)
    assert fate.read == {"words": ("<unk>",), "char": ("<unk>",), "bpe": spelt, "unigram": spelt}


def test_known_characters_have_no_fate_whatever_word_they_make():
    assert fates("tac eht\tsa", ALL) == () == fates("", ALL)
    assert [fate.character for fate in fates("the dog x", ALL)] == ["d", "o", "g", "x"]


def test_bytes_make_a_character_only_when_all_are_there():
    parts = cut_short(ALL["bpe"], "é")
    assert len(parts) == 2 and parts[0].strip() == "\ufffd" and parts[1].strip() == "é"
