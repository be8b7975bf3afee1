"""Checkpoints: what is saved is what is loaded, and a damaged or foreign folder is refused with a reason."""

import json
import shutil
from dataclasses import replace

import pytest
import torch
from random_models import TINY, random_model
from safetensors.torch import load_file, save_file

from transformer.checkpoints import settings as settings_module
from transformer.checkpoints import store as checkpoint_module
from transformer.checkpoints.settings import Resolved, Settings, is_name, read_settings
from transformer.checkpoints.store import (
    CheckpointError,
    export_checkpoint,
    find_checkpoint,
    history,
    list_checkpoints,
    load_checkpoint,
    save_checkpoint,
)
from transformer.config import FAMILIES, CorpusConfig, ModelConfig, TrainConfig
from transformer.model.families import build_model
from transformer.text.tokenizer import train_tokenizer
from transformer.training.state import weights_of

TOKENIZER = train_tokenizer("words", ["a b c d e f g h i j k l m n o p q r s"])  # with the 4 special ones: 23


def settings_of(model, **changes):
    return Settings(
        name="saved", model=model.config, train=TrainConfig(seed=3), corpus=CorpusConfig(name="copy"), **changes
    )


@pytest.fixture
def model():
    return random_model()


@pytest.fixture
def saved(tmp_path, model):
    folder = tmp_path / "saved"
    save_checkpoint(folder, settings_of(model), TOKENIZER, weights_of(model), step=70, card="# A card\n")
    return folder


@pytest.fixture
def rooms(tmp_path, monkeypatch):
    """Empty folders for shipped checkpoints and for runs."""
    monkeypatch.setattr(settings_module, "SHIPPED_FOLDER", tmp_path / "checkpoints")
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path / "runs"))
    return tmp_path / "checkpoints", tmp_path / "runs"


def edit(folder, change):
    """Edits config.json by hand."""
    path = folder / "config.json"
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


# Saving and loading


@pytest.mark.parametrize(
    "changes",
    [
        dict(),
        dict(tie_embeddings=False),
        dict(tie_output=False),
        dict(tie_embeddings=False, tie_output=False),
        dict(positions="learned", norm="pre"),
        dict(positions="none", activation="gelu"),
    ],
    ids=lambda changes: ",".join(changes) or "tied",
)
def test_a_loaded_model_computes_the_same_bits(tmp_path, changes):
    model = random_model(**changes)
    save_checkpoint(tmp_path / "m", settings_of(model), TOKENIZER, weights_of(model))
    source, target = torch.randint(4, 23, (2, 7)), torch.randint(4, 23, (2, 5))
    loaded = load_checkpoint(tmp_path / "m")
    assert torch.equal(loaded.model(source, target), model(source, target))
    assert not loaded.model.training


def test_everything_that_was_saved_comes_back(saved, model):
    loaded = load_checkpoint(saved)
    assert (loaded.name, loaded.step, loaded.card) == ("saved", 70, "# A card\n")
    assert loaded.model_config == model.config
    assert (loaded.train_config.seed, loaded.corpus_config.name) == (3, "copy")
    assert loaded.tokenizer.encode("a b s") == TOKENIZER.encode("a b s")


def test_settings_survive_the_file_with_all_their_types(tmp_path, model):
    full = settings_of(
        model,
        pinned=("a b", "c"),
        command="make it",
        created="2025-01-01T00:00:00+00:00",
        resolved=Resolved(device="cpu", precision="float32", threads=2),
        versions={"torch": "2"},
    )
    full = replace(full, train=TrainConfig(max_seconds=2.5, patience=None, target_exact_match=0.99))
    save_checkpoint(tmp_path / "m", full, TOKENIZER, weights_of(model))
    assert read_settings(tmp_path / "m") == full


def test_tied_weights_are_stored_once(saved, model):
    stored = load_file(saved / "weights.safetensors")
    assert sum(tensor.numel() for tensor in stored.values()) == model.n_parameters()
    assert "projection.weight" not in stored


def test_history_keeps_the_last_row_of_a_step_and_no_half_written_line(saved):
    rows = ['{"split": "train", "step": 1, "loss": 3}', '{"split": "train", "step": 1, "loss": 2}', '{"split": "tr']
    (saved / "metrics.jsonl").write_text("\n".join(rows))
    assert history(saved) == [{"split": "train", "step": 1, "loss": 2}]


def test_loading_leaves_the_callers_generator_alone(saved):
    torch.manual_seed(5)
    expected = torch.rand(2)
    torch.manual_seed(5)
    load_checkpoint(saved)
    assert torch.equal(torch.rand(2), expected)


def test_an_existing_folder_is_never_overwritten(saved, model):
    with pytest.raises(FileExistsError, match="is already there; choose another name"):
        save_checkpoint(saved, settings_of(model), TOKENIZER, weights_of(model))


def test_a_failed_save_leaves_nothing_behind(tmp_path, model, monkeypatch):
    def full(*_):
        raise OSError("no space")

    monkeypatch.setattr(checkpoint_module, "save_tensors", full)
    with pytest.raises(OSError, match="no space"):
        save_checkpoint(tmp_path / "room" / "m", settings_of(model), TOKENIZER, weights_of(model))
    assert list((tmp_path / "room").iterdir()) == []


def test_exporting_a_run_leaves_out_state_and_snapshots_and_renames_it(saved, tmp_path):
    for name in ("state", "snapshots"):
        (saved / name).mkdir()
    (saved / "status.json").write_text("{}")
    export_checkpoint(saved, tmp_path / "shipped")
    assert {path.name for path in (tmp_path / "shipped").iterdir()} == {
        "config.json",
        "tokenizer.json",
        "weights.safetensors",
        "CARD.md",
    }
    assert read_settings(tmp_path / "shipped").name == "shipped"


# Refusals


def refused(folder, because):
    with pytest.raises(CheckpointError, match=because):
        load_checkpoint(folder)


def test_a_missing_folder_is_refused(tmp_path):
    refused(tmp_path / "nowhere", "there is no folder .*nowhere")


def test_a_folder_without_config_is_refused(tmp_path):
    refused(tmp_path, r"is not a checkpoint: it has no config\.json$")


@pytest.mark.parametrize("name", ["model.pt", "pytorch_model.bin", "last.ckpt"])
def test_pickled_weights_are_refused(tmp_path, saved, name):
    (tmp_path / "foreign").mkdir()
    torch.save({}, tmp_path / "foreign" / name)
    because = f"it holds {name}, and pickled weights are refused because reading them can run any code"
    refused(tmp_path / "foreign", because)
    (saved / "weights.safetensors").unlink()
    torch.save({}, saved / name)
    refused(saved, because)


def test_a_run_without_weights_says_so(saved):
    (saved / "weights.safetensors").unlink()
    refused(saved, r"has no weights\.safetensors yet")


def test_a_missing_tokenizer_is_refused(saved):
    (saved / "tokenizer.json").unlink()
    refused(saved, "holds no tokenizer")


@pytest.mark.parametrize("keep", [0, 5, 100, -1])
def test_cut_off_weights_are_refused(saved, keep):
    path = saved / "weights.safetensors"
    path.write_bytes(path.read_bytes()[:keep])
    refused(saved, r"weights\.safetensors is damaged")


def test_weights_that_are_something_else_are_refused(saved):
    (saved / "weights.safetensors").write_bytes(b"not a tensor" * 100)
    refused(saved, "is damaged or no safetensors file")


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"architectures": ["MarianMTModel"]}'])
def test_a_foreign_config_is_refused(saved, content):
    (saved / "config.json").write_text(content)
    refused(saved, r"cannot be read|was not written by this program")


def test_a_config_that_is_not_text_is_refused(saved):
    (saved / "config.json").write_bytes(b"\xff\xfe\x00")
    refused(saved, r"config\.json cannot be read")


def test_a_later_format_is_refused_with_both_versions(saved):
    edit(saved, lambda content: content.update(format_version=2))
    refused(saved, "has format version 2; this program reads version 1")


@pytest.mark.parametrize(
    ("change", "because"),
    [
        (lambda c: c["model"].update(n_heads=5), r"d_model \(16\) must be divisible by n_heads \(5\)"),
        (lambda c: c["model"].update(d_model="wide"), r"d_model \('wide'\) must be a whole number"),
        (lambda c: c["model"].update(colour="red"), r"model holds 'colour', which this program does not know"),
        (lambda c: c["train"].update(learning_rate=-1), r"learning_rate \(-1\) must be above 0"),
        (lambda c: c.update(model=[]), "model must be an object"),
        (lambda c: c.pop("corpus"), "the corpus settings are missing"),
        (lambda c: c.pop("name"), "name"),
        (lambda c: c.update(pinned=3), "pinned must be a list of texts"),
        (lambda c: c.update(resolved={"device": "cpu"}), "precision"),
    ],
)
def test_a_config_that_contradicts_itself_is_refused(saved, change, because):
    edit(saved, change)
    refused(saved, because)


def test_a_tokenizer_of_another_size_is_refused_with_both_numbers(saved):
    edit(saved, lambda content: content["model"].update(vocab_size=24))
    refused(saved, "the tokenizer has 23 entries and the model 24")


def test_weights_of_another_shape_are_refused_with_both_shapes(saved):
    edit(saved, lambda content: content["model"].update(d_ff=32))
    refused(saved, r"inner\.weight has shape \(24, 16\) in the weights and \(32, 16\) in the model")


@pytest.mark.slow
def test_an_enormous_config_is_refused_before_it_is_built(saved):
    edit(saved, lambda content: content["model"].update(d_model=4096, d_ff=16_384, n_encoder_layers=24))
    refused(saved, r"the weights lack .*|has shape .* in the weights")


def test_weights_of_another_depth_are_refused_by_name(saved):
    edit(saved, lambda content: content["model"].update(n_encoder_layers=3))
    refused(saved, r"the weights lack encoder\.layers\.2\.add_norm_ffn\.norm\.bias.* and \d+ more")
    edit(saved, lambda content: content["model"].update(n_encoder_layers=1))
    refused(saved, r"the weights hold encoder\.layers\.1\..*, which this model does not have")


def test_weights_with_a_value_that_is_no_number_are_refused(saved):
    stored = load_file(saved / "weights.safetensors")
    stored["decoder.layers.0.feed_forward.inner.bias"][3] = float("nan")
    save_file(stored, saved / "weights.safetensors")
    refused(saved, r"inner\.bias holds values that are not finite")


SMALL = dict(vocab_size=TINY["vocab_size"], d_model=8, n_encoder_layers=1, n_decoder_layers=1, max_length=8)


@pytest.fixture(params=FAMILIES)
def of_any_family(request, tmp_path):
    """A saved model of each family."""
    model = build_model(FAMILIES[request.param](**SMALL))
    save_checkpoint(tmp_path / "any", settings_of(model), TOKENIZER, weights_of(model))
    return tmp_path / "any"


def change_weights(folder, change, *, of_all=False):
    stored = load_file(folder / "weights.safetensors")
    names = list(stored) if of_all else list(stored)[:1]
    save_file(stored | {name: change(stored[name]) for name in names}, folder / "weights.safetensors")


@pytest.mark.parametrize(
    "dtype", [torch.int64, torch.int8, torch.uint8, torch.bool, torch.complex64, torch.float8_e4m3fn], ids=str
)
def test_tensors_of_a_type_that_no_weights_have_are_refused(of_any_family, dtype):
    change_weights(of_any_family, lambda value: value.to(dtype))
    kind = str(dtype).removeprefix("torch.")
    refused(of_any_family, rf"holds values of type {kind}; weights have one of: float16, bfloat16, float32, float64$")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64], ids=str)
def test_weights_of_every_floating_type_are_taken(of_any_family, dtype):
    change_weights(of_any_family, lambda value: value.to(dtype), of_all=True)
    assert {weight.dtype for weight in load_checkpoint(of_any_family).model.parameters()} == {torch.float32}


@pytest.mark.parametrize("size", [3e38, -3e38, 1e30, 2e9])
def test_weights_of_absurd_size_are_refused(of_any_family, size):
    change_weights(of_any_family, lambda value: value.fill_diagonal_(size) if value.dim() > 1 else value * 0 + size)
    refused(of_any_family, r"holds a value of size [123]e\+\d+; weights are at most 1e\+09 large$")


@pytest.mark.parametrize("norm", ["post", "pre", "none"])
def test_weights_whose_products_overflow_are_refused(tmp_path, norm):
    model = build_model(ModelConfig(**SMALL, norm=norm))
    save_checkpoint(tmp_path / "m", settings_of(model), TOKENIZER, weights_of(model))
    change_weights(tmp_path / "m", lambda value: value * 0 + 9e8, of_all=True)
    refused(tmp_path / "m", "a short text already gives outputs that are not finite numbers: the weights are too large")


@pytest.mark.parametrize("note", ["9" * 5_000, "-1", "soon", ""])
def test_a_step_that_no_run_reaches_counts_as_none(saved, note):
    save_file(load_file(saved / "weights.safetensors"), saved / "weights.safetensors", {"step": note})
    assert load_checkpoint(saved).step == 0


# Finding


def test_a_model_is_found_by_shipped_name_by_run_and_by_folder(rooms, saved):
    shipped, runs = rooms
    shutil.copytree(saved, shipped / "reverse")
    shutil.copytree(saved, runs / "reverse-1")
    assert find_checkpoint("reverse") == shipped / "reverse"
    assert find_checkpoint("reverse-1") == runs / "reverse-1"
    assert find_checkpoint(str(saved)) == saved
    assert [(found.name, found.shipped) for found in list_checkpoints()] == [("reverse", True), ("reverse-1", False)]


def test_an_unknown_model_is_refused_with_those_that_exist(rooms, saved):
    shutil.copytree(saved, rooms[0] / "reverse")
    with pytest.raises(CheckpointError, match="there is no model 'revers'; the models here are: reverse"):
        find_checkpoint("revers")


def test_without_any_model_the_way_out_is_named(rooms):
    with pytest.raises(CheckpointError, match="none yet: train one first"):
        find_checkpoint("")


def test_a_name_from_a_url_never_leaves_its_folder(rooms, saved):
    (rooms[1]).mkdir(parents=True)
    for name in (str(saved), "../saved", "..", ".", "a/b", "a\0b"):
        with pytest.raises(CheckpointError, match="there is no model"):
            find_checkpoint(name, folders=False)
        assert not is_name(name)


def test_the_defaults_of_tiny_are_what_the_tokenizer_here_expects():
    assert ModelConfig(**TINY).vocab_size == TOKENIZER.vocab_size
