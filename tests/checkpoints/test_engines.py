"""Export and import: other libraries give the same scores, what they cannot express is refused by name."""

import json
from dataclasses import replace
from pathlib import Path

import ctranslate2
import pytest
import sentencepiece
import torch
import transformers
from random_models import randomise, reversals
from safetensors.torch import load_file, save_file

from transformer.checkpoints.engines import ctranslate2 as to_ctranslate2
from transformer.checkpoints.engines import marian, marian_import
from transformer.checkpoints.settings import CheckpointError, Settings
from transformer.checkpoints.store import Checkpoint, load_checkpoint, save_checkpoint
from transformer.config import CorpusConfig, ModelConfig, TrainConfig
from transformer.decoding.beam import beam_search
from transformer.decoding.greedy import greedy, teacher_forced_log_probs
from transformer.lab import Lab
from transformer.model.transformer import Transformer
from transformer.text.tokenizer import WordTokenizer
from transformer.training.state import weights_of

WORDS = WordTokenizer(("<pad>", "<s>", "</s>", "<unk>", *"abcdefgh"))
MODEL = ModelConfig(
    vocab_size=12, d_model=16, n_heads=4, d_ff=24, n_encoder_layers=2, n_decoder_layers=2, max_length=32
)


def saved(folder: Path, **changes) -> Checkpoint:
    """A checkpoint with random weights."""
    config = replace(MODEL, **changes)
    torch.manual_seed(1)
    model = Transformer(config)
    randomise(model)
    settings = Settings(name=folder.name, model=config, train=TrainConfig(), corpus=CorpusConfig(name="reverse"))
    save_checkpoint(folder, settings, WORDS, weights_of(model))
    return load_checkpoint(folder)


def sentences(n=6):
    """Sources and targets of several lengths, as ids; targets begin with bos."""
    return [(source[source != 0], target[target != 0]) for source, target in zip(*reversals(n), strict=True)]


@pytest.mark.parametrize(
    "changes",
    [dict(), dict(norm="pre", activation="swish"), dict(positions="learned", activation="gelu"),
     dict(positions="none", tie_embeddings=False, tie_output=False), dict(output_bias=True, norm_epsilon=1e-3)],
    ids=str,
)  # fmt: skip
def test_ctranslate2_gives_the_same_scores_and_writes_the_same(tmp_path, within, changes):
    checkpoint = saved(tmp_path / "model", **changes)
    to_ctranslate2.export(checkpoint, tmp_path / "out")
    translator = ctranslate2.Translator(str(tmp_path / "out"), device="cpu", compute_type="float32", intra_threads=1)
    for source, target in sentences():
        pieces = [WORDS.piece(int(token)) for token in source]
        (scored,) = translator.score_batch([pieces], [[WORDS.piece(int(token)) for token in target[1:-1]]])
        ours = teacher_forced_log_probs(checkpoint.model, source[None], target[None, 1:])[0]
        ours = ours.gather(1, target[1:, None])[:, 0]
        within(torch.tensor(scored.log_probs, dtype=torch.float32), ours, 3e-6)
        options = dict(beam_size=1, max_decoding_length=12, suppress_sequences=[["<pad>"]])
        (written,) = translator.translate_batch([pieces], **options)
        mine = [int(step.tokens[0]) for step in greedy(checkpoint.model, source[None], max_length=12)]
        assert written.hypotheses[0] == [WORDS.piece(token) for token in mine if token != 2]


@torch.no_grad()
@pytest.mark.parametrize("changes", [dict(), dict(output_bias=True, activation="swish")], ids=str)
def test_marian_gives_the_same_logits_and_generates_the_same(tmp_path, within, changes):
    checkpoint = saved(tmp_path / "model", **changes)
    marian.export(checkpoint, tmp_path / "out")
    theirs = transformers.MarianMTModel.from_pretrained(tmp_path / "out").eval()
    for source, target in sentences():
        expected = theirs(
            input_ids=source[None], attention_mask=torch.ones_like(source)[None], decoder_input_ids=target[None]
        ).logits
        within(checkpoint.model(source[None], target[None]), expected, 1e-5)
        generated = theirs.generate(source[None], attention_mask=torch.ones_like(source)[None], max_length=13)
        mine = [int(step.tokens[0]) for step in greedy(checkpoint.model, source[None], max_length=12)]
        assert generated[0, 1:].tolist() == mine


@pytest.mark.parametrize(
    ("changes", "phrase"),
    [
        (dict(positions="rotary"), "its positions are rotary"),
        (dict(positions="alibi"), "its positions are ALiBi"),
        (dict(norm="none"), "it has no layer norm"),
        (dict(residual=False), "it has no residual connections"),
        (dict(scale_scores=False), "its attention scores are not scaled"),
        *((dict(score=kind), f"its attention scores are {kind}") for kind in ("additive", "multiplicative")),
        (dict(causal_mask=False), "its decoder has no causal mask"),
        (dict(window=2), "its self-attention is restricted"),
    ],
)
def test_what_ctranslate2_cannot_express_is_refused_by_name(tmp_path, changes, phrase):
    with pytest.raises(CheckpointError, match=f"CTranslate2 cannot express this model: .*{phrase}"):
        to_ctranslate2.export(saved(tmp_path / "model", **changes), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("changes", "phrase"),
    [
        (dict(positions="rotary"), "its positions are rotary, where Marian has sinusoidal ones"),
        (dict(positions="learned"), "its positions are learned"),
        (dict(norm="pre"), "it is pre-norm"),
        (dict(tie_embeddings=False), "its source and target embeddings are two"),
        (dict(tie_output=False), "its output projection is not the target embedding"),
        (dict(norm_epsilon=1e-3), "its layer norms add 0.001"),
    ],
)
def test_what_marian_cannot_express_is_refused_by_name(tmp_path, changes, phrase):
    with pytest.raises(CheckpointError, match=f"Marian cannot express this model: .*{phrase}"):
        marian.export(saved(tmp_path / "model", **changes), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder as transformers writes one: eos 0, pad last and the decoder's start, a bias, swish, two .spm files."""
    root = tmp_path_factory.mktemp("opus")
    texts = {
        "source": ["the animal is tired", "a wide street", "it was not there", "the animal was wide"] * 5,
        "target": ["l'animal est fatigué", "une rue large", "il n'était pas là", "l'animal était large"] * 5,
    }
    pieces: dict[str, None] = {}
    for side, lines in texts.items():
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines), model_prefix=str(root / side), vocab_size=45, model_type="unigram",
            bos_id=-1, minloglevel=2, hard_vocab_limit=False,
        )  # fmt: skip
        (root / f"{side}.model").rename(root / f"{side}.spm")
        processor = sentencepiece.SentencePieceProcessor(model_file=str(root / f"{side}.spm"))
        pieces |= dict.fromkeys(processor.id_to_piece(token) for token in range(processor.vocab_size()))
    others = [piece for piece in pieces if piece not in ("</s>", "<unk>", "<pad>")]
    vocabulary = ["</s>", "<unk>", *others, "<pad>"]
    (root / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(vocabulary)}))
    size = len(vocabulary)
    config = transformers.MarianConfig(
        vocab_size=size, decoder_vocab_size=size, d_model=16, encoder_layers=2, decoder_layers=1,
        encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=24, decoder_ffn_dim=24,
        activation_function="swish", max_position_embeddings=40, scale_embedding=True, eos_token_id=0,
        pad_token_id=size - 1, decoder_start_token_id=size - 1, bos_token_id=0, forced_eos_token_id=0,
    )  # fmt: skip
    torch.manual_seed(2)
    theirs = transformers.MarianMTModel(config).eval()
    randomise(theirs)
    with torch.no_grad():
        theirs.model.shared.weight.normal_(std=0.3)
        theirs.final_logits_bias.normal_()
    theirs.save_pretrained(root)
    return root, theirs, vocabulary


@pytest.fixture(scope="module")
def lab(folder, tmp_path_factory):
    into = tmp_path_factory.mktemp("runs") / "opus"
    marian_import.read(folder[0], "opus", into, "python -m transformer import")
    return Lab(load_checkpoint(into))


def test_an_imported_tokenizer_cuts_each_side_with_its_own_pieces(folder, lab):
    root, _, _ = folder
    for text, side, encode in (
        ("the animal is wide", "source", lab.tokenizer.encode),
        ("l'animal est là", "target", lab.tokenizer.encode_target),
    ):
        processor = sentencepiece.SentencePieceProcessor(model_file=str(root / f"{side}.spm"))
        assert [lab.tokenizer.piece(token) for token in encode(text)] == processor.encode(text, out_type=str)
        assert lab.tokenizer.decode(encode(text)) == text
    assert lab.unknown("the 猫 is wide") == ["猫"] and lab.unknown("") == lab.unknown(" ") == []
    words = lab.tokenizer.sentence("the animal is wide").words[:-1]
    assert [*words] == sorted(words) and set(words) == {0, 1, 2, 3}
    ids = lab.tokenizer.encode_target("l'animal est là")
    assert lab.tokenizer.word_of_output([*ids, 2])[-1] == -1


@torch.no_grad()
def test_an_imported_model_scores_and_writes_as_marian_does(folder, lab, within):
    _, theirs, vocabulary = folder
    by_piece = {piece: token for token, piece in enumerate(vocabulary)}
    order = [by_piece.get(entry, -1) for entry in lab.tokenizer.vocabulary()]
    order[0], order[2], order[3] = len(vocabulary) - 1, 0, 1
    size = len(vocabulary)
    for text in ("the animal is tired", "a wide street", "it was"):
        source = torch.tensor([[*lab.tokenizer.encode(text), 2]])
        moved = torch.tensor([[order[token] for token in source[0].tolist()]])
        # forced_eos_token_id only acts at max_length, and our search stops before it
        generated = theirs.generate(
            moved, attention_mask=torch.ones_like(moved), max_length=20, do_sample=False, num_beams=1,
            bad_words_ids=[[size - 1]], forced_eos_token_id=None,
        )[0, 1:].tolist()  # fmt: skip
        mine = [int(step.tokens[0]) for step in greedy(lab.model, source, max_length=19)]
        assert [order[token] for token in mine] == generated
        decoder = torch.tensor([[size - 1, *generated[:-1]]])
        logits = theirs(input_ids=moved, attention_mask=torch.ones_like(moved), decoder_input_ids=decoder).logits
        ours = teacher_forced_log_probs(lab.model, source, torch.tensor([mine]))
        wanted = logits.log_softmax(dim=-1)
        kept = [i for i in range(len(order)) if i != 1]
        within(ours[..., kept], wanted[..., [order[i] for i in kept]], 1e-5)
        assert ours[..., 1].max() < -1e8


@torch.no_grad()
def test_an_imported_model_searches_as_marian_does(folder, lab):
    _, theirs, vocabulary = folder
    size = len(vocabulary)
    source = torch.tensor([[*lab.tokenizer.encode("the animal was not there"), 2]])
    by_piece = {piece: token for token, piece in enumerate(vocabulary)}
    moved = torch.tensor([[by_piece[lab.tokenizer.piece(token)] for token in source[0].tolist()]])
    generated = theirs.generate(
        moved, attention_mask=torch.ones_like(moved), max_length=16, num_beams=4, num_return_sequences=1,
        length_penalty=1.0, early_stopping=True, bad_words_ids=[[size - 1]], forced_eos_token_id=None,
    )[0, 1:].tolist()  # fmt: skip
    *_, last = beam_search(lab.model, source, size=4, max_length=15, alpha=1.0, norm="length")
    best = [by_piece.get(lab.tokenizer.piece(token), 0) for token in last.finished[0][0].ids]
    assert best == generated


def test_the_whole_lab_works_on_an_imported_model(lab):
    seen = lab.inspect("the animal is tired")
    assert seen.source_tokens[-1] == "</s>" and seen.decoder_inputs[0] == "<s>"
    assert abs(float(seen.cross.weights.sum(axis=-1).mean()) - 1) < 1e-5
    assert lab.translate(["a wide street"])[0] is not None


def test_an_imported_model_goes_back_to_marian(lab, tmp_path, within):
    marian.export(lab.checkpoint, tmp_path / "again")
    theirs = transformers.MarianMTModel.from_pretrained(tmp_path / "again").eval()
    source = torch.tensor([[*lab.tokenizer.encode("a wide street"), 2]])
    target = torch.tensor([[1, 5, 9, 12]])
    with torch.no_grad():
        expected = theirs(input_ids=source, attention_mask=torch.ones_like(source), decoder_input_ids=target).logits
        kept = [i for i in range(expected.size(-1)) if i != 1]
        within(lab.model(source, target)[..., kept], expected[..., kept], 1e-5)
    assert {"source.spm", "target.spm", "vocab.json"} <= {path.name for path in (tmp_path / "again").iterdir()}


def copied(folder, tmp_path, drop=(), **changes):
    """The Marian folder again, with some files left out and settings changed."""
    root = tmp_path / "copy"
    root.mkdir()
    for path in folder[0].iterdir():
        if path.name not in drop:
            (root / path.name).write_bytes(path.read_bytes())
    config = json.loads((root / "config.json").read_text())
    (root / "config.json").write_text(json.dumps(config | changes))
    return root


@pytest.mark.parametrize(
    ("changes", "phrase"),
    [
        (dict(model_type="bart"), "its model_type is 'bart'"),
        (dict(activation_function="tanh"), "its activation is tanh"),
        (dict(scale_embedding=False), "its embeddings are not scaled"),
        (dict(share_encoder_decoder_embeddings=False), "its source and target embeddings are two"),
        (dict(decoder_attention_heads=2), "different numbers of heads"),
        (dict(decoder_ffn_dim=8), "feed-forwards of different widths"),
        (dict(pad_token_id=999), r"pad_token_id \(999\) must lie in 0\.\."),
        (dict(activation_function=["relu"]), r"its activation is \['relu'\]"),
        (dict(max_position_embeddings=10**9), r"max_length \(1000000000\) must be at most 4,096"),
        (dict(d_model=10**9), r"d_model \(1000000000\) must be at most 4,096"),
        (dict(d_model="wide"), r"d_model \('wide'\) must be a whole number"),
        (dict(d_model=32), r"smaller than config\.json says"),
        (dict(encoder_layers=99), r"n_encoder_layers \(99\) must be at most 24"),
        (dict(encoder_layers=3), r"model\.safetensors lacks model\.encoder\.layers\.2\."),
        (dict(encoder_ffn_dim=48, decoder_ffn_dim=48), "has shape .* in the weights"),
        (dict(vocab_size=10**12), "must give each of 1000000000000 ids"),
        (dict(vocab_size=None), "must give each of None ids"),
    ],
)
def test_marian_folders_that_cannot_be_read_are_refused_by_name(folder, tmp_path, changes, phrase):
    with pytest.raises(CheckpointError, match=phrase):
        marian_import.read(copied(folder, tmp_path, **changes), "x", tmp_path / "x", "")
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("change", "phrase"),
    [
        (torch.Tensor.long, "holds values of type int64"),
        (torch.Tensor.bool, "holds values of type bool"),
        (lambda value: value * 0 + 3e38, r"holds a value of size 3e\+38; weights are at most"),
    ],
)
def test_marian_s_tensors_that_are_no_weights_are_refused(folder, tmp_path, change, phrase):
    root = copied(folder, tmp_path)
    stored = load_file(root / "model.safetensors")
    stored["model.encoder.layers.0.fc1.weight"] = change(stored["model.encoder.layers.0.fc1.weight"])
    save_file(stored, root / "model.safetensors")
    with pytest.raises(CheckpointError, match=phrase):
        marian_import.read(root, "x", tmp_path / "x", "")


@pytest.mark.parametrize("content", ["[]", "3", "{", "[" * 100_000])
@pytest.mark.parametrize("file", ["config.json", "generation_config.json", "vocab.json"])
def test_a_file_of_marian_that_is_no_object_is_refused(folder, tmp_path, file, content):
    root = copied(folder, tmp_path)
    config = json.loads((root / "config.json").read_text())
    (root / "config.json").write_text(json.dumps({k: v for k, v in config.items() if k != "decoder_start_token_id"}))
    (root / file).write_text(content)
    with pytest.raises(CheckpointError, match="cannot be read"):
        marian_import.read(root, "x", tmp_path / "x", "")


@pytest.mark.parametrize("missing", ["config.json", "model.safetensors", "vocab.json", "source.spm", "target.spm"])
def test_a_missing_file_is_named(folder, tmp_path, missing):
    root = copied(folder, tmp_path)
    (root / missing).unlink()
    with pytest.raises(CheckpointError, match=missing):
        marian_import.read(root, "x", tmp_path / "x", "")


def test_pickled_weights_are_refused_with_the_command_that_converts_them(folder, tmp_path):
    root = copied(folder, tmp_path, drop=("model.safetensors",))
    torch.save(folder[1].state_dict(), root / "pytorch_model.bin")
    with pytest.raises(CheckpointError) as refusal:
        marian_import.read(root, "x", tmp_path / "x", "")
    assert "pickled weights are refused because reading them can run any code" in str(refusal.value)
    command = str(refusal.value).split('python -c "')[1].rstrip('"')
    exec(command, {})
    marian_import.read(root, "x", tmp_path / "x", "")
    assert load_checkpoint(tmp_path / "x").model.n_parameters() > 0
