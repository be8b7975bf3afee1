"""The command line: each command on a model that was trained by it a moment ago."""

import io
import json
import subprocess
import sys
from functools import partial

import pytest
from page_models import save_model
from random_models import random_model

from transformer.__main__ import main
from transformer.analysis.heads.published import SURVEY_FILE
from transformer.cli import train_commands
from transformer.config import DecodeConfig
from transformer.lab import load
from transformer.runs.status import RunError, Status, write_status
from transformer.text.pairs import Pair, split_of
from transformer.training.metrics import chrf

TINY = ["--model.d-model", "32", "--model.d-ff", "64", "--model.n-encoder-layers", "1", "--model.n-decoder-layers", "1"]
BRIEF = [
    "--train.max-steps",
    "6",
    "--train.evaluate-every",
    "3",
    "--train.evaluate-pairs",
    "5",
    "--train.test-pairs",
    "5",
]
SAFE = ["--train.precision", "float32", "--train.threads", "1"]


@pytest.fixture(scope="module")
def runs_folder(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("runs")
        patch.setenv("ATTENTION_LAB_RUNS", str(folder))
        assert main(["train", "reverse", "--name", "mine", *TINY, *BRIEF, *SAFE]) == 0
        yield folder


def test_train_leaves_a_finished_run_with_its_command_in_the_card(runs_folder):
    assert json.loads((runs_folder / "mine" / "status.json").read_text())["state"] == "finished"
    card = (runs_folder / "mine" / "CARD.md").read_text()
    assert "transformer" in card and "in float32, 1 thread, on corpus" in card


def test_a_file_gets_the_recipe_that_suits_it_and_the_reasons_are_printed(runs_folder, tmp_path, capsys):
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"the word{i} is here\tle mot{i} est ici\n" for i in range(400)))
    assert main(["train", str(path), "--name", "of-a-file", *TINY, *BRIEF, *SAFE]) == 0
    said = capsys.readouterr().err
    assert "pairs: d_model 64, 2 + 2 layers" in said and "Dropout 0.3" in said
    settings = json.loads((runs_folder / "of-a-file" / "config.json").read_text())
    assert (settings["model"]["dropout"], settings["train"]["optimizer"]) == (0.3, "muon")


@pytest.mark.parametrize("options", [["--sentence", "a b", "c d"], ["--sentence", "a b", "--sentence", "c d"]])
def test_sentences_may_follow_one_option_or_have_one_each(runs_folder, options):
    assert main(["train", "copy", *options, *TINY, *BRIEF, *SAFE, "--name", f"said-{len(options)}"]) == 0
    settings = json.loads((runs_folder / f"said-{len(options)}" / "config.json").read_text())
    assert settings["pinned"] == ["a b", "c d"]


def test_translate_prints_one_line_for_each_text(runs_folder, capsys):
    assert main(["translate", "--model", "mine", "a b c", "d"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_translate_takes_every_method_of_decoding(runs_folder, capsys):
    def lines(*options):
        assert main(["translate", "--model", "mine", "a b c", *options]) == 0
        return capsys.readouterr().out.splitlines()

    greedy, beam = lines(), lines("--method", "beam", "--beam", "3", "--n-best", "3", "--max-length", "9")
    assert lines("--method", "beam", "--beam", "1") == greedy
    scores = [float(line.split("\t")[0]) for line in beam]
    assert len(scores) == 3 and scores == sorted(scores, reverse=True)
    drawn = ["--method", "sample", "--n-best", "4", "--temperature", "1.5", "--top-k", "6"]
    assert lines(*drawn, "--seed", "3") == lines(*drawn, "--seed", "3") != lines(*drawn, "--seed", "4")
    assert lines("--method", "sample", "--top-k", "1") == greedy


def test_heads_are_measured_into_a_file_beside_the_weights(runs_folder, capsys):
    assert main(["heads", "--model", "mine"]) == 0
    path = runs_folder / "mine" / SURVEY_FILE
    assert capsys.readouterr().out == f"1,000 pairs: {path}\n" and path.is_file()
    assert main(["heads", "--model", "everyday-en-fr"]) == 2
    assert "comes without the sentences that it learned from" in capsys.readouterr().err


def test_translate_names_what_the_model_never_saw(runs_folder, capsys):
    assert main(["translate", "--model", "mine", "a zebra"]) == 0
    assert "note: mine never saw zebra" in capsys.readouterr().err


def translated(monkeypatch, capsys, content: bytes, *options: str) -> tuple[int, list[str], str]:
    """The exit status, the lines of the output and the error stream of `translate` on this input."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    capsys.readouterr()
    status = main(["translate", "--model", "mine", *options])
    out, err = capsys.readouterr()
    return status, out.split("\n")[:-1], err


def test_translate_answers_every_line_in_its_place(runs_folder, monkeypatch, capsys):
    status, (first, _), _ = translated(monkeypatch, capsys, b"a b\nc d")
    assert status == 0
    content = b"a b\n\n" + b"a " * 200 + b"\n\xe9t\xe9\n  \t\r\n\xef\xbb\xbfa \xc2\xa0 b\r\n"
    status, lines, said = translated(monkeypatch, capsys, content)
    assert status == 1 and lines == [first, "", "", "", "", first]
    assert "line 3: the sentence has 201 tokens" in said
    assert "line 4: it is not UTF-8 text (byte 0): save the file as UTF-8" in said
    assert "2 of 6 lines could not be translated" in said
    status, lines, _ = translated(
        monkeypatch, capsys, b"a b\n\nc d\n", "--method", "beam", "--beam", "3", "--n-best", "2"
    )
    assert status == 0 and len(lines) == 6 and lines[2:4] == ["", ""] and all("\t" in line for line in lines[:2])


def test_a_file_is_read_as_meant_and_one_line_says_how(runs_folder, tmp_path, capsys):
    path = tmp_path / "named.csv"
    rows = [(" ".join(f"x{i:03}"), " ".join(f"{i:03}")) for i in range(400)]
    path.write_text("\n".join(["id,target,source", *(f"{i},{a},{b}" for i, (a, b) in enumerate(rows)), "cut"]))
    line = (
        "columns 3 (source) and 2 (target) of 3, header line read; 400 of 401 pairs kept: dropped 1 malformed; "
        "first malformed on line 402"
    )
    assert main(["train", str(path), "--name", "named", *TINY, *BRIEF, *SAFE]) == 0
    assert f"named.csv: {line}" in capsys.readouterr().err
    folder = runs_folder / "named"
    assert f"Read from the file: {line}." in (folder / "CARD.md").read_text()
    assert json.loads((folder / "corpus" / "source.json").read_text())["read"] == line
    assert main(["train", str(path), "--corpus.columns", "2,3", "--name", "other", *TINY, *BRIEF, *SAFE]) == 0
    assert "columns 2 (target) and 3 (source) of 3" in capsys.readouterr().err
    assert main(["evaluate", "--model", "named", "--pairs", str(path), "--columns", "source,target"]) == 1
    found = capsys.readouterr()
    assert json.loads(found.out)["count"] == 400 and f"named.csv: {line}" in found.err
    assert "line 402: malformed, left out" in found.err and found.err.endswith("1 line could not be scored\n")


def test_pairs_that_are_too_long_are_told_before_the_training_and_in_the_card(runs_folder, tmp_path, capsys):
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{i} {'a ' * (i % 10)}b\tb\n" for i in range(300)))
    options = ["--corpus.tokenizer", "words", "--model.max-length", "9", "--sentence", "1 b", *TINY, *BRIEF, *SAFE]
    assert main(["train", str(path), "--name", "long", *options]) == 0
    said = capsys.readouterr().err
    learned = [i for i in range(300) if split_of(f"{i} {'a ' * (i % 10)}b") == "train"]
    lost = sum(i % 10 + 3 > 9 for i in learned)  # with the number, b and the end mark
    line = f"{lost} of {len(learned)} training pairs are longer than 9 tokens on a side and are left out"
    line += "; the longest has 12."
    assert line in said
    assert f"\n{line}\n" in (runs_folder / "long" / "CARD.md").read_text()


def test_a_taken_name_is_told_at_the_start(runs_folder, capsys):
    assert main(["train", "copy", "--name", "mine", *TINY, *BRIEF, *SAFE]) == 0
    assert capsys.readouterr().err.startswith("the name mine is taken: this run is mine-2\n")


def test_a_sweep_goes_on_after_a_run_that_fails(runs_folder, monkeypatch, capsys):
    trained = train_commands._train_here

    def train(run, *rest):
        if run.endswith("0.01"):
            write_status(runs_folder / run, Status(state="failed", error="the loss is no longer a finite number"))
            raise RunError(f"{run} failed at step 3: the loss is no longer a finite number")
        trained(run, *rest)

    monkeypatch.setattr(train_commands, "_train_here", train)
    options = ["--setting", "learning-rate", "--values", "0.01", "0.002", *TINY, *BRIEF, *SAFE]
    assert main(["sweep", "copy", *options]) == 1
    out, err = capsys.readouterr()
    _, failed, done = out.splitlines()[-3:]
    assert failed.split()[:2] == ["0.01", "failed"] and done.split()[0] == "0.002" and done.split()[3] == "6"
    assert "failed at step 3: the loss is no longer" in err and err.endswith("1 of 2 runs failed\n")


def test_two_parallel_files_are_one_corpus(runs_folder, tmp_path, capsys):
    for code, text in (("en", "a b"), ("fr", "b a")):
        (tmp_path / f"mine.{code}").write_text("".join(f"{text} {' '.join(f'{i:03}')}\n" for i in range(300)))
    files = [str(tmp_path / "mine.en"), str(tmp_path / "mine.fr")]
    assert main(["train", *files, "--name", "two", *TINY, *BRIEF, *SAFE]) == 0
    assert "mine.en-fr.zip: files en and fr; 300 of 300 pairs kept" in capsys.readouterr().err
    assert "English to French" in (runs_folder / "two" / "CARD.md").read_text()
    for wrong, said in (
        ([*files, files[0]], "a corpus is one file, or two parallel ones"),
        ([files[0], "--corpus.name", "copy"], "both name a corpus: leave one of them out"),
        ([files[0]], "bring it with the file of the other language"),
        ([files[0], str(tmp_path / "none.fr")], "there is no file"),
    ):
        assert main(["train", *wrong]) == 2
        assert said in capsys.readouterr().err


def test_columns_that_nothing_tells_apart_are_asked_for(runs_folder, tmp_path, capsys):
    path = tmp_path / "three.tsv"
    path.write_text("".join(f"the cat {i}\tle chat {i}\tdie Katze {i}\n" for i in range(300)))
    assert main(["train", str(path)]) == 2
    assert "choose two with --corpus.columns 1,2, the source first" in capsys.readouterr().err
    assert main(["evaluate", "--model", "mine", "--pairs", str(path)]) == 2
    assert "choose two with --columns 1,2, the source first" in capsys.readouterr().err


def test_evaluate_prints_one_json_object_with_signatures(runs_folder, capsys):
    assert main(["evaluate", "--model", "mine", "--limit", "7"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert 0 <= found["exact_match"] <= 1
    assert found["count"] == 7
    assert found["perplexity"] > 1 and "bleu_reason" not in found
    for score in ("bleu", "chrf"):
        assert 0 <= found[score] <= 100
        assert "version:" in found[f"{score}_signature"]


def test_evaluate_scores_what_the_asked_decoding_writes(runs_folder, tmp_path, capsys):
    pairs = [Pair(text, "p p p p") for text in ("a b c d e", "c d", "e a b")]  # which the model below writes in part
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{pair.source}\t{pair.target}\n" for pair in pairs), encoding="utf-8")
    settings = DecodeConfig(method="beam", beam=3, alpha=1.0, n_best=2)
    save_model(runs_folder / "drawn", partial(random_model, norm="pre"))  # whose beam differs from its greedy output
    lab = load("drawn")
    written = [best.text for best, _ in lab.translations([pair.source for pair in pairs], settings)]
    assert written != lab.translate([pair.source for pair in pairs])
    asked = ["--method", "beam", "--beam", "3", "--alpha", "1.0", "--n-best", "2"]
    assert main(["evaluate", "--model", "drawn", "--pairs", str(path), *asked]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["chrf"] == pytest.approx(chrf(written, [pair.target for pair in pairs]).value)
    in_force = {"method": "beam", "beam": 3, "alpha": 1.0, "length_norm": "paper", "early_stopping": False, "n_best": 2}
    assert found["decoding"] == in_force
    assert main(["evaluate", "--model", "drawn", "--pairs", str(path), "--max-length", "2"]) == 0
    short = json.loads(capsys.readouterr().out)
    assert short["decoding"] == {"method": "greedy", "max_length": 2} and short["chrf"] != found["chrf"]


def test_evaluate_scores_a_file_of_pairs(runs_folder, tmp_path, capsys):
    path = tmp_path / "pairs.tsv"
    path.write_text("a b\tb a\nc\tc\n", encoding="utf-8")
    assert main(["evaluate", "--model", "mine", "--pairs", str(path)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["count"] == 2 and found["bleu"] is None and "no reference has four" in found["bleu_reason"]
    assert 0 <= found["chrf"] <= 100


def test_evaluate_names_the_lines_that_it_cannot_score_and_scores_the_others(runs_folder, tmp_path, capsys):
    path = tmp_path / "pairs.tsv"
    path.write_text(f"a b\tb a\n\nc\tc\nbad\na b\tb a\n{'a ' * 90}\tb\nd\t{'b ' * 300}\n", encoding="utf-8")
    assert main(["evaluate", "--model", "mine", "--pairs", str(path)]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["count"] == 2
    assert [line for line in err.splitlines() if line.startswith("line ")] == [
        "line 4: malformed, left out",
        "line 6: longer than the 64 tokens that mine takes, left out",
        "line 7: too long, left out",
    ]
    assert err.endswith("3 lines could not be scored\n")


def test_evaluate_scores_two_parallel_files(runs_folder, tmp_path, capsys):
    files = [tmp_path / "held.en", tmp_path / "held.fr"]
    for file, text in zip(files, ("a b c d\ne\n", "d c b a\ne\n"), strict=True):
        file.write_text(text)
    assert main(["evaluate", "--model", "mine", "--pairs", *map(str, files)]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["count"] == 2 and "held.en-fr.zip: files en and fr; 2 of 2 pairs kept" in err


def test_inspect_prints_every_attention_with_its_axes(runs_folder, capsys):
    assert main(["inspect", "--model", "mine", "a b", "--switch", "off:decoder.0.cross:1"]) == 0
    found = json.loads(capsys.readouterr().out)
    cross = found["attention"]["cross"]
    assert len(cross["weights"][0][0]) == len(cross["queries"]) == len(found["target_tokens"])
    assert cross["keys"] == ["a", "b", "</s>"]
    assert found["switches"] == ["off:decoder.0.cross:1"]


def test_inspect_says_which_of_two_switches_for_one_head_counts_and_which_is_idle(runs_folder, capsys):
    switches = ["off:decoder.0.cross:1,2", "scale:decoder.0.cross:1:0.5", "scale:decoder.0.cross:0:1"]
    assert main(["inspect", "--model", "mine", "a b", "--switch", *switches]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["switches"] == ["off:decoder.0.cross:2", "scale:decoder.0.cross:1:0.5", "scale:decoder.0.cross:0:1"]
    assert found["notes"] == [
        "“cross-attention · layer 0 · head 1 off” gives way to “cross-attention · layer 0 · head 1 times 0.5”: "
        "of two for one thing the last counts.",
        "cross-attention · layer 0 · head 0 times 1: a factor of 1 changes nothing.",
    ]


def test_runs_lists_shows_and_deletes(runs_folder, capsys):
    assert main(["train", "copy", "--name", "short-lived", *TINY, *BRIEF, *SAFE]) == 0
    assert main(["runs"]) == 0
    listed = capsys.readouterr().out
    assert "mine: finished at step 6" in listed
    assert "short-lived: finished" in listed
    assert main(["runs", "delete", "short-lived"]) == 0
    assert not (runs_folder / "short-lived").exists()


def test_a_run_is_noted_renamed_exported_and_imported(runs_folder, tmp_path, capsys):
    archive = str(tmp_path / "kept.zip")
    assert main(["train", "copy", "--name", "first", *TINY, *BRIEF, *SAFE]) == 0
    assert main(["runs", "note", "first", "four heads are enough"]) == 0
    assert main(["runs", "rename", "first", "second"]) == 0
    assert main(["runs", "export", "second", archive]) == 0
    capsys.readouterr()
    assert main(["runs", "import", archive]) == 0
    assert capsys.readouterr().out.startswith("second-2: finished at step 6")
    assert main(["runs"]) == 0
    assert "(loaded from an archive): four heads are enough" in capsys.readouterr().out
    assert main(["translate", "--model", "second-2", "a b"]) == 0
    for run in ("second", "second-2"):
        assert main(["runs", "delete", run]) == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["runs", "rename", "mine"], "something is missing; say: runs rename RUN NAME"),
        (["runs", "rename", "mine", "a b"], "cannot be a run's name"),
        (["runs", "note", "mine", "x" * 2_001], "the note has 2001 characters"),
        (["runs", "pause", "mine", "please"], "one word too many; say: runs pause RUN"),
        (["runs", "import"], "which archive? say: runs import FILE.zip"),
        (["runs", "import", "/no/such.zip"], "No such file"),
        (["runs", "import", __file__], "the archive was not loaded: it is not a zip archive"),
        (["runs", "export", "gone", "x.zip"], "there is no model 'gone'"),
        (["sweep", "reverse", "--setting", "nope", "--values", "1", "2"], "there is no setting 'nope'"),
        (["translate", "--model", "nope", "a"], "there is no model 'nope'"),
        (["translate", "--model", "mine", ""], "sentence"),
        (["translate", "--model", "mine", "a " * 5_000], "5001 tokens"),
        (["translate", "--model", "mine", "a", "--max-length", "999"], "max_length (999) must lie between 1 and"),
        (
            ["translate", "--model", "mine", "a", "--method", "beam", "--beam", "10000"],
            "beam (10000) must be at most 256",
        ),
        (["translate", "--model", "mine", "a", "--method", "sample", "--temperature", "0"], "temperature (0.0) must"),
        (["translate", "--model", "mine", "a", "--beam", "2"], "beam (2) is for the method beam"),
        (["inspect", "--model", "mine", "a", "--switch", "off:decoder.0.cross:9"], "heads 0 to 3"),
        (["inspect", "--model", "mine", "a", "--switch", "rubbish"], "is not a switch"),
        (["evaluate", "--model", "mine", "--split", "nope"], "no split 'nope'"),
        (["runs", "pause", "mine"], "mine"),
        (["runs", "stop"], "which run?"),
        (["train", "no-such-corpus"], "there is no corpus 'no-such-corpus'"),
        (["train", "reverse", "--preset", "huge"], "there is no preset 'huge'"),
        (["train", "reverse", "--model.vocab-size", "500"], "ask for --corpus.vocab-size 500"),
        (["train", "reverse", "--model.pad-id", "2", "--model.eos-id", "0"], "must be (0 1 2)"),
        (["train", "reverse", "--model.bos-id", "7"], "must be (0 1 2)"),
    ],
)
def test_a_mistake_is_one_sentence_and_status_2(runs_folder, capsys, arguments, sentence):
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert len(error.splitlines()) == 1
    assert sentence in error.replace(",", "")


def test_contradicting_options_are_refused_with_both_numbers(runs_folder, capsys):
    with pytest.raises(SystemExit) as exit_:
        main(["train", "reverse", "--model.n-heads", "7"])
    assert exit_.value.code == 2
    error = capsys.readouterr().err
    assert "d_model (64) must be divisible" in error.replace("\n", " ")
    assert "tyro" not in error


def test_the_module_runs_as_a_program():
    done = subprocess.run(
        [sys.executable, "-m", "transformer", "runs", "--help"], capture_output=True, text=True, check=True
    )
    assert "pause" in done.stdout


@pytest.mark.parametrize("program", ["import transformer.__main__", "import serve"])
def test_too_small_a_memory_limit_is_one_sentence(program):
    limited = "import resource; resource.setrlimit(resource.RLIMIT_AS, (500_000_000, resource.RLIM_INFINITY))"
    done = subprocess.run([sys.executable, "-c", f"{limited}; {program}"], capture_output=True, text=True)
    (sentence,) = done.stderr.splitlines()
    assert done.returncode == 1
    assert sentence.startswith(
        "error: this process may use at most 500 MB of memory, and PyTorch needs at least 700 MB"
    )
