"""Files as people have them, each of its kind: read as meant, or refused with the way out."""

import gzip
import io
import json
import unicodedata
import zipfile
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer.data.columns import UnclearColumns
from transformer.data.languages import language
from transformer.data.pair_files import offered_columns, pairs_of
from transformer.data.unpacking import CorpusError, packed_together
from transformer.text.pairs import Pair

NOUNS = {"cat": "chat", "dog": "chien", "king": "roi", "wolf": "loup", "boy": "garçon", "pilot": "pilote"}
VERBS = {"sees": "voit", "follows": "suit", "hears": "entend", "helps": "aide", "loves": "aime"}
PAIRS = [
    (f"The {a} {verb} the {b}.", f"Le {fr_a} {fr_verb} le {fr_b}.")
    for a, fr_a in NOUNS.items()
    for verb, fr_verb in VERBS.items()
    for b, fr_b in NOUNS.items()
    if a != b
]
EN, FR = zip(*PAIRS, strict=True)
NUMBERED = list(enumerate(PAIRS))


def lines(rows) -> bytes:
    return "".join(f"{row}\n" for row in rows).encode()


def tabs(*rows) -> bytes:
    return lines("\t".join(map(str, row)) for row in rows)


def jsonl(objects) -> bytes:
    return lines(json.dumps(found, ensure_ascii=False) for found in objects)


def zipped(**files: bytes) -> bytes:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "."), content)
    return memory.getvalue()


def tmx(units, encoding="utf-8") -> bytes:
    text = "".join(
        "<tu>" + "".join(f'<tuv xml:lang="{code}"><seg>{text}</seg></tuv>' for code, text in unit.items()) + "</tu>\n"
        for unit in units
    )
    head = f'<?xml version="1.0" encoding="{encoding}"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n'
    return f'{head}<tmx version="1.4"><header/><body>{text}</body></tmx>'.encode(encoding)


IN_TMX = [{"en-US": a, "fr-FR": b.replace("Le", "<it pos='begin'>Le</it>", 1)} for a, b in PAIRS]

READ = {
    "an index without a name": ("a.csv", lines([",en,fr", *(f"{i},{a},{b}" for i, (a, b) in NUMBERED)])),
    "the names of the rows by R": ("a.csv", lines(['"en","fr"', *(f'"{i}","{a}","{b}"' for i, (a, b) in NUMBERED)])),
    "columns of languages beside": (
        "a.csv",
        lines(["id,source_lang,target_lang,source,target", *(f"{i},en,fr,{a},{b}" for i, (a, b) in NUMBERED)]),
    ),
    "target before source": ("a.csv", lines(["target,source", *(f"{b},{a}" for a, b in PAIRS)])),
    "target before source, tabs": ("a.tsv", tabs(("Target", "Source"), *((b, a) for a, b in PAIRS))),
    "src and tgt": ("a.tsv", tabs(("tgt", "score", "src"), *((b, 0.5, a) for a, b in PAIRS))),
    "sentences named by language": ("a.tsv", tabs(("sentence_en", "sentence_fr"), *PAIRS)),
    "languages as words": ("a.tsv", tabs(("English sentence", "French translation"), *PAIRS)),
    "a header of other words": ("a.tsv", tabs(("Satz", "Übersetzung"), *PAIRS)),
    "a translation and one other text": ("a.tsv", tabs(("n", "phrase", "translation"), *((7, a, b) for a, b in PAIRS))),
    "a score first": ("a.tsv", tabs(*((f"1.{1000 + i}", a, b) for i, (a, b) in NUMBERED))),
    "Tatoeba's ids": ("a.tsv", b"\xef\xbb\xbf" + tabs(*((i, a, 10 * i, b) for i, (a, b) in NUMBERED))),
    "labels and addresses": (
        "a.tsv",
        tabs(*((a, ("news", "web")[i % 2], f"https://x.org/{i}", b) for i, (a, b) in NUMBERED)),
    ),
    "attributions": (
        "fra.txt",
        tabs(*((a, b, f"CC-BY 2.0 (France) Attribution: tatoeba.org #{i} ({a[4:7]})") for i, (a, b) in NUMBERED)),
    ),
    "one unused cell here and there": (
        "a.tsv",
        tabs(*((a, b, "checked")[: 2 + (i % 9 == 0)] for i, (a, b) in NUMBERED)),
    ),
    "semicolons, a comma in each": ("a.csv", lines(f"Yes, {a};Oui, {b}" for a, b in PAIRS)),
    "sep=": ("a.csv", lines(["sep=;", "source;target", *(f"{a};{b}" for a, b in PAIRS)])),
    "bars": ("a.csv", lines(f"{a}|{b}" for a, b in PAIRS)),
    "three bars": ("a.txt", lines(f"{a} ||| {b}" for a, b in PAIRS)),
    "a code of its language beside each text": (
        "a.tsv",
        tabs(*((i, "eng", a, "fra", b) for i, (a, b) in NUMBERED)),
    ),
    "tabs, all in quotation marks": ("a.tsv", lines(f'"{a}"\t"{b}"' for a, b in PAIRS)),
    "tabs, all in single quotation marks": ("a.tsv", lines(f"'{a}'\t'{b}'" for a, b in PAIRS)),
    "sides beside languages": (
        "a.csv",
        lines(["ID,Target (FR),Source (EN)", *(f"{i},{b},{a}" for i, (a, b) in NUMBERED)]),
    ),
    "an identifier of each source": (
        "a.tsv",
        tabs(("source_id", "en_target", "source"), *((f"s{i}", b, a) for i, (a, b) in NUMBERED)),
    ),
    "commas in a .txt": ("a.txt", lines(f"{a},{b}" for a, b in PAIRS)),
    "a .tsv with semicolons": ("a.tsv", lines(["en;fr", *(f'"{a}";"{b}"' for a, b in PAIRS)])),
    "JSON in a .txt": ("a.txt", jsonl({"en": a, "fr": b} for a, b in PAIRS)),
    "rows that end early": (
        "a.csv",
        lines(["en,fr,note", *(f"{a},{b}{',ok' * (i % 4 > 0)}" for i, (a, b) in NUMBERED)]),
    ),
    "all in quotation marks": ("a.csv", lines(f'"{a}","{b}"' for a, b in PAIRS)),
    "all in single quotation marks": ("a.csv", lines(f"'{a}','{b}'" for a, b in PAIRS)),
    "single quotation marks around texts, a header": (
        "a.csv",
        lines(["id;'en';'fr'", *(f"{i};'{a}';'{b}'" for i, (a, b) in NUMBERED)]),
    ),
    "a line break in quotation marks": (
        "a.csv",
        lines('"{}","{}"'.format(a.replace(" ", "\n", 1), b) for a, b in PAIRS),
    ),
    "nested translations": (
        "a.jsonl",
        jsonl({"id": str(i), "translation": {"en": a, "fr": b}} for i, (a, b) in NUMBERED),
    ),
    "keys of languages": ("a.jsonl", jsonl({"en": a, "fr": b} for a, b in PAIRS)),
    "two spellings of the keys": (
        "a.jsonl",
        jsonl({"src": a, "tgt": b} if i % 2 else {"source": a, "target": b} for i, (a, b) in NUMBERED),
    ),
    "a source that is a label": ("a.jsonl", jsonl({"source": "web", "input": a, "output": b} for a, b in PAIRS)),
    "lists": ("a.jsonl.gz", gzip.compress(jsonl(PAIRS))),
    "OPUS": (
        "en-fr.txt.zip",
        zipped(Corpus__en_fr__en=lines(EN), Corpus__en_fr__fr=lines(FR), README=b"x", LICENSE__txt=b"x\ty\n"),
    ),
    "a .zip of two texts": ("two.zip", zipped(en__txt=lines(EN), fr__txt=lines(FR))),
    "two files": packed_together([("train.en", lines(EN)), ("train.fr.gz", gzip.compress(lines(FR)))], 10**6),
    "TMX": ("mem.tmx", tmx(IN_TMX)),
    "TMX in UTF-16": ("mem.tmx", tmx(IN_TMX, "utf-16")),
    "a mark at the start of a line": ("a.tsv", tabs(*PAIRS[:70]) + b"\xef\xbb\xbf" + tabs(*PAIRS[70:])),
    "decomposed, no-break spaces": (
        "a.tsv",
        unicodedata.normalize("NFD", tabs(*PAIRS).decode().replace(" ", "\u00a0")).encode(),
    ),
    "line separators within": ("a.tsv", tabs(*((a.replace(" ", "\u2028", 1), b) for a, b in PAIRS))),
}


@pytest.mark.parametrize("kind", READ)
def test_files_are_read_as_they_were_meant(kind):
    file = pairs_of(*READ[kind])
    pairs, report = file.clean()
    wanted = (
        [Pair(f"Yes, {a}", f"Oui, {b}") for a, b in PAIRS]
        if kind.startswith("semicolons")
        else [Pair(*p) for p in PAIRS]
    )
    assert pairs == wanted and not report.dropped, f"{report}"


@pytest.mark.parametrize(
    ("kind", "layout", "sides"),
    [
        ("an index without a name", "columns 2 (en) and 3 (fr) of 3, header line read", ("English", "French")),
        ("target before source", "columns 2 (source) and 1 (target) of 2, header line read", ("source", "target")),
        ("a score first", "columns 2 and 3 of 3", ("source", "target")),
        (
            "a header of other words",
            "columns 1 (Satz) and 2 (Übersetzung) of 2, header line read",
            ("Satz", "Übersetzung"),
        ),
        ("nested translations", "keys en and fr of 3", ("English", "French")),
        (
            "sides beside languages",
            "columns 3 (Source (EN)) and 2 (Target (FR)) of 3, header line read",
            ("English", "French"),
        ),
        ("OPUS", "files en and fr", ("English", "French")),
        ("two files", "files en and fr", ("English", "French")),
        ("TMX", "languages en-US and fr-FR", ("English", "French")),
    ],
)
def test_one_line_says_what_was_taken(kind, layout, sides):
    file = pairs_of(*READ[kind])
    assert file.layout == layout and (file.source_name, file.target_name) == sides
    assert str(file.clean()[1]) == f"{layout}; 150 of 150 pairs kept"


def test_one_line_says_what_was_dropped_and_where():
    mixed = []
    for i, (a, b) in NUMBERED:
        mixed += [(a, b), *[(a, "")] * (i % 5 == 0), *[(a, b)] * (i % 7 == 0), *[(a,)] * (i % 11 == 0)]
    report = pairs_of("dirty.tsv", tabs(("English", "French"), *mixed)).clean()[1]
    assert str(report) == (
        "columns 1 (English) and 2 (French) of 2, header line read; 150 of 216 pairs kept: dropped 14 malformed, "
        "30 with an empty side, 22 repeated; first malformed on line 5"
    )


def test_a_quotation_mark_that_closes_nothing_swallows_no_row():
    rows = [f"{a},{b}" for a, b in PAIRS]
    rows[100], rows[130] = f'"{rows[100]}', f'"{rows[130]}'
    file = pairs_of("a.csv", lines(rows))
    pairs, report = file.clean()
    assert report.read == report.kept == 150 and pairs[100].source == f'"{EN[100]}'
    assert "a quotation mark that closes nothing on 2 lines, the first 101, read as it stands" in str(report)


def test_lines_before_the_header_are_malformed_and_the_header_is_read():
    report = pairs_of("a.csv", lines(["# made by hand", "fr,en", *(f"{b},{a}" for a, b in PAIRS)])).clean()[1]
    assert report.layout == "columns 1 (fr) and 2 (en) of 2, header line read"
    assert (report.kept, report.dropped, report.lines["malformed"]) == (150, {"malformed": 1}, (1,))


def test_doubled_quotation_marks_between_tabs_are_those_of_the_text():
    rows = [(f'{a} "So"', b) for a, b in PAIRS]
    file = pairs_of("a.tsv", lines(["src\ttgt", *(f'"{a} ""So"""\t{b}' for a, b in PAIRS)]))
    assert file.rows == rows
    assert pairs_of("a.tsv", tabs(*rows)).rows == rows


@pytest.mark.parametrize("mark", ['"', "'"])
@pytest.mark.parametrize("escape", ["doubled", "backslash"])
def test_marks_within_marks_are_doubled_or_have_a_backslash(mark, escape):
    """So pandas and so MySQL write them; separators in cells stay text, and a backslash elsewhere is a backslash."""
    wanted = [
        Pair(a.replace("The", f"{mark}The{mark}, so", 1), f"{b} C:\\new, {mark}" if i % 3 else f"{b}, {mark}oui{mark}")
        for i, (a, b) in NUMBERED
    ]
    inner = f"\\{mark}" if escape == "backslash" else 2 * mark

    def cell(text):
        text = text.replace("\\", "\\\\") if escape == "backslash" else text
        return f"{mark}{text.replace(mark, inner)}{mark}"

    file = pairs_of("a.csv", lines(f"{cell(pair.source)},{cell(pair.target)}" for pair in wanted))
    pairs, report = file.clean()
    assert pairs == wanted and str(report) == "columns 1 and 2 of 2; 150 of 150 pairs kept"


@pytest.mark.timeout(60)
@pytest.mark.parametrize("text", [",'a" * 200_000, "\t" * 400_000 + "'", ", " * 200_000, "' " * 400_000])
def test_marks_that_open_and_never_close_are_read_to_the_end(text):
    """Each may be followed by a million characters, which cannot be looked through for each."""
    with suppress(CorpusError):
        assert pairs_of("a.csv", lines([text, "a,b"])).clean()[0] in ([], [Pair("a", "b")])


def test_an_apostrophe_at_the_start_of_a_sentence_is_its_own():
    rows = [(f"'{a}' they say" if i % 2 else a, f"'{b}' dit-on" if i % 2 else b) for i, (a, b) in NUMBERED]
    assert pairs_of("a.csv", lines(f"{a},{b}" for a, b in rows)).rows == rows
    assert pairs_of("a.tsv", tabs(*rows)).rows == rows


def test_sentences_of_one_side_are_no_pairs_whatever_their_commas():
    text = lines(f"{a[:-1]}, {b}" if i % 5 else a for i, (a, b) in NUMBERED)
    assert pairs_of("a.txt", text).clean()[0] == []


def test_rows_whose_commas_are_not_quoted_are_malformed_and_named():
    report = pairs_of("a.csv", lines(f"Yes, {a},{b}" if i % 3 == 2 else f"{a},{b}" for i, (a, b) in NUMBERED)).clean()[
        1
    ]
    assert (report.kept, report.dropped, report.lines["malformed"][0]) == (100, {"malformed": 50}, 3)
    with pytest.raises(CorpusError, match=r"different numbers of cells.*quotation marks.*save it as TSV"):
        pairs_of("a.csv", lines(f"{a}{', so' * (i % 3)},{b}{', oui' * (i % 2)}" for i, (a, b) in NUMBERED))


THREE = [(a, b, f"Der {a[4:]}") for a, b in PAIRS]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tsv", tabs(*THREE)),
        ("a.tsv", tabs(("en", "fr", "de"), *THREE)),
        ("a.jsonl", jsonl(dict(zip(("en", "fr", "de"), row, strict=True)) for row in THREE)),
        ("a.tmx", tmx(dict(zip(("en", "fr", "de"), row, strict=True)) for row in THREE)),
        ("a.zip", zipped(x__en=lines(EN), x__fr=lines(FR), x__de=lines(row[2] for row in THREE))),
    ],
)
def test_three_languages_are_not_guessed_at_but_chosen(tmp_path, name, content):
    with pytest.raises(UnclearColumns, match=r"has 3 \w+s, and nothing says which two to learn from .*: choose two"):
        pairs_of(name, content)
    file = pairs_of(name, content, "3,1")
    assert file.clean()[0][0] == Pair(THREE[0][2], EN[0])
    path = tmp_path / name
    path.write_bytes(content)
    offered = offered_columns(path)
    assert offered.chosen is None and offered.examples == THREE[0]
    assert offered_columns(path, "3,1").chosen == (2, 0)


def test_columns_are_asked_for_by_name_or_number_in_either_direction():
    name, content = READ["keys of languages"]
    for asked in ("fr,en", " fr , en", "2,1"):
        file = pairs_of(name, content, asked)
        assert file.clean()[0][0] == Pair(FR[0], EN[0]) and (file.source_name, file.target_name) == (
            "French",
            "English",
        )
    with pytest.raises(CorpusError, match=r"a.jsonl has no key “de”: there are 1 \(en\), 2 \(fr\)"):
        pairs_of(name, content, "en,de")
    with pytest.raises(CorpusError, match=r"no column “3”: there are 1, 2"):
        pairs_of("a.tsv", tabs(*PAIRS), "1,3")


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("a.tsv", tabs(*enumerate(EN)), "one column of text, and one that counts the rows"),
        ("train.en", lines(EN), "holds one side of the pairs: bring it with the file of the other language"),
        ("a.zip", zipped(x__en=lines(EN), x__fr=lines(FR[:-1])), "same number of lines: x.en has 150, x.fr has 149"),
        (
            "a.zip",
            zipped(train__en=b"a\n", train__fr=b"b\n", test__en=b"a\n", test__fr=b"b\n"),
            "holds 4 files of pairs",
        ),
        ("a.tmx", b"<tmx><body><tu>", "is not a well-formed TMX file"),
        ("a.tsv", tabs(*[range(5_000)] * 50), "a.tsv has over 100 columns: save the two that hold the pairs alone"),
        ("a.csv", lines([",".join(map(str, range(5_000)))] * 50), "over 100 columns"),
        ("a.jsonl", jsonl({f"{i}.{j}": "a" for j in range(20)} for i in range(50)), "over 100 keys"),
        ("a.tmx", tmx({f"x{i}": "a"} for i in range(200)), "over 100 languages"),
        ("a.xlsx", b"PK", "save the sheet as CSV"),
        ("a.json", b"[]", "save it as JSONL"),
        ("a.docx", b"PK", "save the pairs as a text file"),
        ("a.tar.bz2", b"BZ", "unpack it"),
        ("a.xliff", b"<xliff>", "export it as TMX"),
    ],
)
def test_other_files_are_refused_with_the_way_out(name, content, complaint):
    with pytest.raises(CorpusError, match=complaint) as caught:
        pairs_of(name, content)
    assert "\n" not in str(caught.value)


def test_a_tmx_reads_nothing_but_itself(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("hidden")
    bomb = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10 if i else "x" * 10}">' for i in range(9))
    for entities in (f'<!ENTITY a8 SYSTEM "file://{secret}">', bomb):
        content = f'<!DOCTYPE tmx [{entities}]><tmx><body><tu><tuv xml:lang="en"><seg>a &a8; b</seg></tuv>'
        content += '<tuv xml:lang="fr"><seg>c</seg></tuv></tu></body></tmx>'
        try:
            rows = pairs_of("a.tmx", content.encode()).rows
        except CorpusError:
            continue
        assert "hidden" not in str(rows) and len(str(rows)) < 1_000


CELL = st.text(st.characters(exclude_characters="\0\t\n\r\ufeff", codec="utf-8"))


@given(st.lists(st.tuples(CELL, CELL)))
def test_any_two_cells_between_tabs_are_a_row(rows):
    file = pairs_of("a.tsv", tabs(*PAIRS, *rows))
    assert file.rows == [*PAIRS, *(row for row in rows if "".join(row).strip())]


@given(st.lists(st.tuples(CELL, CELL)))
def test_any_two_cells_in_quotation_marks_are_a_row(rows):
    quoted = (f'"{a}","{b}"' for a, b in ((a.replace('"', '""'), b.replace('"', '""')) for a, b in rows))
    file = pairs_of("a.csv", lines([*(f"{a},{b}" for a, b in PAIRS), *quoted]))
    assert file.rows == [*PAIRS, *rows]


@pytest.mark.parametrize(
    ("name", "english"),
    [
        *[(name, "French") for name in ("fr", "FR", "fra", "fre", "fr_FR", "fr-CA", "fra_Latn", "French", "français")],
        *[("zh-Hans", "Chinese"), ("pt_BR", "Portuguese"), ("日本語", "Japanese"), ("en_XX", "English")],
        *[(name, "") for name in ("", "id number", "text", "source", "frog", "xx", "e")],
    ],
)
def test_languages_are_known_by_codes_and_names(name, english):
    assert language(name) == english
