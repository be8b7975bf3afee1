import contextlib
import gzip
import io
import json
import unicodedata
import zipfile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from transformer.config import CorpusConfig
from transformer.data import unpacking
from transformer.data.cleaning import MAX_CHARACTERS, Malformed, clean_pairs
from transformer.data.corpora import (
    CORPORA,
    Corpus,
    CorpusError,
    corpus_tokenizer,
    file_corpus,
    load_corpus,
    tokenizer_texts,
)
from transformer.data.pair_files import pairs_of, read_pairs
from transformer.text.pairs import Pair, join_words, split_of, words

GENERATED = [name for name in CORPORA if not name.startswith("emoji")]
ROWS = [(f"sentence number {i}", f"phrase numéro {i}") for i in range(300)]


def tsv(rows):
    return "".join("\t".join(row) + "\n" for row in rows).encode()


def zipped(files, compression=zipfile.ZIP_DEFLATED):
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", compression) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return memory.getvalue()


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return write


@pytest.mark.parametrize("name", CORPORA)
def test_every_corpus_loads_by_its_name_with_all_it_promises(name):
    corpus = load_corpus(name)
    assert isinstance(corpus, Corpus) and corpus.name == name and corpus.description == CORPORA[name]
    assert corpus.examples and corpus.validation and corpus.held_out["random"]
    assert corpus.task == (name in GENERATED)


@pytest.mark.parametrize("name", GENERATED)
def test_a_generated_corpus_does_not_run_out(name):
    corpus = load_corpus(name)
    assert len(corpus.train) >= 200_000 and len(corpus.validation) >= 1_000 and len(corpus.held_out["random"]) >= 1_000
    assert corpus.primary_metric == "exact_match"
    assert all(isinstance(pair, Pair) for pair in [corpus.train[0], corpus.train[-1], *corpus.validation[:3]])


@pytest.mark.parametrize("name", GENERATED)
def test_no_sampled_source_is_in_two_splits(name):
    corpus = load_corpus(name)
    samples = [
        {part[i].source for i in range(0, len(part), max(1, len(part) // 2_000))}
        for part in (corpus.train, corpus.validation, *corpus.held_out.values())
    ]
    assert sum(map(len, samples)) == len(set().union(*samples))


@pytest.mark.parametrize("name", GENERATED)
def test_the_tokenizer_of_a_generated_corpus_knows_all_it_holds_out(name):
    corpus = load_corpus(name)
    tokenizer = corpus_tokenizer(corpus, CorpusConfig(name=name))
    assert tokenizer.kind == corpus.tokenizer
    for part in (corpus.validation, *corpus.held_out.values()):
        for i in range(0, len(part), max(1, len(part) // 500)):
            for text in (part[i].source, part[i].target):
                assert not tokenizer.sentence(text).unseen
                assert tokenizer.decode(tokenizer.encode(text)) == text
    assert not any(tokenizer.sentence(example).unseen for example in corpus.examples)


@pytest.mark.parametrize("name", [name for name in GENERATED if name not in ("addition", "dates")])
def test_words_of_generated_sentences_join_back_to_them(name):
    train = load_corpus(name).train
    for i in range(0, len(train), len(train) // 500):
        assert all(join_words(words(text)) == text for text in (train[i].source, train[i].target))


@pytest.mark.parametrize("name", GENERATED)
def test_gold_links_lie_within_their_sentences(name):
    corpus = load_corpus(name)
    units = words if corpus.alignment_unit == "word" else list
    for i in range(0, len(corpus.train), len(corpus.train) // 300):
        pair = corpus.train[i]
        assert pair.alignment and list(pair.alignment) == sorted(set(pair.alignment))
        n_source, n_target = len(units(pair.source)), len(units(pair.target))
        assert all(0 <= source < n_source and 0 <= target < n_target for source, target in pair.alignment)


def test_the_seed_draws_other_pairs_of_a_task():
    first, second = (load_corpus(CorpusConfig(name="reverse", seed=seed)) for seed in (0, 1))
    assert first.train[:10] != second.train[:10] and first.validation[:10] != second.validation[:10]


def test_an_unknown_name_is_an_error_that_offers_what_there_is():
    with pytest.raises(CorpusError, match=r"no corpus 'revers'.*reverse.*\.tsv"):
        load_corpus("revers")
    with pytest.raises(CorpusError, match="no corpus ''"):
        load_corpus("")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("p.tsv", tsv(ROWS)),
        ("p.txt", tsv([(*row, "CC-BY 2.0 (France)") for row in ROWS])),
        ("p.TSV", tsv(ROWS).replace(b"\n", b"\r\n")),
        ("p.v2.tsv.gz", gzip.compress(tsv(ROWS))),
        ("p.csv", "".join(f'"{source}",{target}\n' for source, target in ROWS).encode()),
        ("p.csv", b"\xef\xbb\xbfSource,Target\r\n" + tsv(ROWS).replace(b"\t", b",")),
        ("p.jsonl", "".join(json.dumps({"source": s, "target": t, "id": 1}) + "\n" for s, t in ROWS).encode()),
        ("p.csv", "".join(f"{source};{target}\n" for source, target in ROWS).encode()),
        ("p.csv", ("\ufeff" + tsv(ROWS).decode()).encode("utf-16-le")),
        ("p.tsv", tsv(ROWS).decode().encode("utf-16")),
        ("p.tsv", tsv(ROWS).replace(b"\n", b"\r")),
        ("fra-eng.zip", zipped({"_about.txt": b"about", "fra.txt": tsv([(*row, "CC-BY 2.0") for row in ROWS])})),
        ("p.jsonl.gz", gzip.compress("".join(json.dumps(row) + "\n\n" for row in ROWS).encode())),
    ],
)
def test_every_format_gives_the_same_pairs(write, name, content):
    assert [(pair.source, pair.target) for pair in read_pairs(write(name, content)).clean()[0]] == ROWS


def test_quotation_marks_in_a_tsv_file_are_characters():
    assert pairs_of("p.tsv", b'"Go\tva"\n').rows == [('"Go', 'va"')]


def test_cleaning_normalises_and_counts_what_it_drops():
    rows = [
        (" Cafe\u0301 \u00a0 noir ", "black\tcoffee"),
        ("Café noir", "black coffee"),
        ("Café noir", "dark coffee"),
        Malformed("no second column"),
        ("", "empty"),
        ("empty", " \n"),
        ("x" * 501, "long"),
    ]
    pairs, report = clean_pairs(rows, lines=range(1, 8))
    assert pairs == [Pair("Café noir", "black coffee"), Pair("Café noir", "dark coffee")]
    assert (report.read, report.kept) == (7, 2)
    assert report.dropped == {"malformed": 1, "empty": 2, "too_long": 1, "duplicate": 1}
    assert report.examples == {
        "malformed": ("no second column",),
        "duplicate": ("Café noir\tblack coffee",),
        "empty": ("\tempty", "empty\t \n"),
        "too_long": (f"{'x' * 120}…\tlong",),
    }
    assert str(report) == (
        "2 of 7 pairs kept: dropped 1 malformed, 2 with an empty side, 1 too long, 1 repeated; "
        "first malformed on line 4"
    )
    assert report.lines == {"malformed": (4,), "empty": (5, 6), "too_long": (7,), "duplicate": (2,)}


def test_a_file_is_split_by_source_so_that_translations_of_one_sentence_stay_together(write):
    corpus = load_corpus(str(write("mine.tsv", tsv([*ROWS, *((s, t + " bis") for s, t in ROWS), ("bad",)]))))
    assert corpus.name == "mine.tsv" and corpus.primary_metric == "bleu" and corpus.tokenizer == "bpe"
    assert corpus.report is not None and corpus.report.dropped["malformed"] == 1 and not corpus.task
    parts = {"train": corpus.train, "validation": corpus.validation, "random": corpus.held_out["random"]}
    assert sum(map(len, parts.values())) == 600
    assert all(split_of(pair.source) == name for name, part in parts.items() for pair in part)
    held_out = {pair.source for name in ("validation", "random") for pair in parts[name]}
    assert 1 <= len(corpus.examples) <= 5 and set(corpus.examples) <= held_out


def test_the_first_held_out_pairs_of_a_file_sorted_by_length_are_as_long_as_all_of_them(write):
    rows = [(f"{'long ' * (i // 100)}{i}", f"court {i}") for i in range(4000)]
    corpus = file_corpus(write("sorted.tsv", tsv(rows)))
    for pairs in (corpus.validation, corpus.held_out["random"]):
        first, whole = (sum(len(pair.source) for pair in some) / len(some) for some in (pairs[:50], pairs))
        assert abs(first / whole - 1) < 0.15
    again = file_corpus(write("unsorted.tsv", tsv(rows[::-1])))
    assert again.validation == corpus.validation and again.held_out == corpus.held_out


def test_a_tokenizer_of_a_file_learns_from_its_training_pairs(write):
    corpus = file_corpus(write("mine.tsv", tsv(ROWS)))
    texts = list(tokenizer_texts(corpus))
    assert len(texts) == 2 * len(corpus.train) and set(texts[::2]) == {pair.source for pair in corpus.train}
    tokenizer = corpus_tokenizer(corpus, CorpusConfig(name="mine.tsv", tokenizer="unigram", vocab_size=290))
    assert tokenizer.kind == "unigram" and tokenizer.vocab_size == 290


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("p.pdf", b"%PDF", "not a kind of file"),
        ("p.gz", gzip.compress(b"a\tb"), "not a kind of file"),
        ("p.tsv", b"", "too few sentences"),
        (
            "p.tsv",
            "".join(f"hello\tbonjour {i}\n" for i in range(400)).encode(),
            r"few different sources \(1 in 400 pairs",
        ),
        ("p.tsv", b"\xff\xfe\x00\x00a\x00\x00\x00", r"not UTF-8 text \(byte 0\)"),
        ("p.tsv", b"\xff\xfea\x00\t", r"not UTF-16, as its first bytes say, text \(byte 4\): save it as UTF-8"),
        ("p.tsv", "a\tb\n".encode("utf-16-le"), "holds NUL characters, it looks like utf-16-le. Save it as UTF-8"),
        ("p.tsv", "a\tb\nc\té\n".encode("latin-1"), r"not UTF-8 text \(byte 6\)"),
        ("p.tsv", b"a\x00b\tc", "holds NUL characters"),
        (
            "p.tsv",
            b"no tab here\n" * 300,
            r"no row with two columns.*0 of 300 pairs kept: dropped 300 malformed.*'no tab",
        ),
        ("p.tsv.gz", b"not gzip", "cannot be read"),
        ("p.tsv.gz", gzip.compress(tsv(ROWS))[:-20], "cannot be read"),
        ("p.tsv.gz", gzip.compress(tsv(ROWS))[:20] + b"\x00" * 50, "cannot be read"),
        ("p.csv", b'"' + b"x" * 200_000, "no row with two columns"),
        ("p.jsonl", b"{]\n" * 300, "300 malformed"),
        ("p.jsonl", b"[" * 100_000, "1 malformed"),
        ("p.jsonl", b'[{"en": "a",\n "fr": "b"}]', "holds one list of JSON: save it as JSONL, an object on each line"),
        ("p.jsonl", b'{"source": "\\ud800", "target": "a"}', "1 malformed"),
        ("p.jsonl", b'{"source": 1, "target": "a"}\n["a"]\nnull\n"ab"', "4 malformed"),
    ],
)
def test_a_file_that_cannot_be_used_is_an_error_that_says_why(write, name, content, complaint):
    with pytest.raises(CorpusError, match=complaint):
        file_corpus(write(name, content))


def test_a_missing_file_and_a_folder_are_errors(tmp_path):
    with pytest.raises(CorpusError, match="there is no file"):
        load_corpus(str(tmp_path / "absent.tsv"))
    (tmp_path / "folder.tsv").mkdir()
    with pytest.raises(CorpusError, match="cannot be read"):
        load_corpus(str(tmp_path / "folder.tsv"))


def test_a_file_too_large_for_memory_is_refused(write, monkeypatch):
    monkeypatch.setattr(unpacking, "MAX_FILE_BYTES", 1_000)
    with pytest.raises(CorpusError, match="larger than 1,000 bytes"):
        file_corpus(write("bomb.tsv.gz", gzip.compress(b"a\tb\n" * 100_000)))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    suffix=st.sampled_from([".tsv", ".csv", ".jsonl", ".tsv.gz"]),
    content=st.binary(max_size=200)
    | st.text(alphabet='ab,\t\n\r"{}[]:\\source', max_size=200).map(str.encode)
    | st.lists(st.tuples(st.text(max_size=5), st.text(max_size=5))).map(tsv),
)
def test_no_file_however_malformed_gives_anything_but_a_corpus_error(write, suffix, content):
    path = write(f"p{suffix}", content)
    try:
        file_corpus(path)
    except CorpusError as error:
        assert path.name in str(error)


@given(st.lists(st.builds(Malformed, st.text()) | st.tuples(st.text(), st.text())))
def test_cleaning_accounts_for_every_row_and_is_idempotent(rows):
    pairs, report = clean_pairs(rows)
    dropped = sum(report.dropped.values())
    assert report.read == len(rows) == report.kept + dropped and report.kept == len(pairs)
    assert clean_pairs([(pair.source, pair.target) for pair in pairs])[0] == pairs
    assert all(words(pair.source) and words(pair.target) for pair in pairs)


@given(st.text())
def test_cleaned_text_is_normalised_and_short(text):
    for pair in clean_pairs([(text, "a")])[0]:
        assert unicodedata.is_normalized("NFC", pair.source) and len(pair.source) <= MAX_CHARACTERS
        assert pair.source == " ".join(pair.source.split())


def test_a_side_that_composes_to_the_longest_length_is_kept():
    pairs, report = clean_pairs([("e\u0301" * MAX_CHARACTERS, "a"), ("e\u0301" * MAX_CHARACTERS + "b", "a")])
    assert [pair.source for pair in pairs] == ["é" * MAX_CHARACTERS] and report.dropped == {"too_long": 1}


def test_a_zip_with_bytes_cut_out_gives_rows_or_a_corpus_error(write):
    whole = zipped({"fra.txt": tsv([(*row, "CC-BY 2.0") for row in ROWS])})
    for start in range(0, len(whole), 5):
        for length in (1, 7, 19):
            with contextlib.suppress(CorpusError):
                read_pairs(write("fra-eng.zip", whole[:start] + whole[start + length :]))
