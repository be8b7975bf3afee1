"""Who may import whom, read from the source with `ast`: nothing is imported here, so lazy imports count as well."""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

ROOMS = [
    """config masks positions taps files locks settings devices
       data loss dropout schedule tokenizer cleaning corpora prepared own_copy uploads corpus_stats tasks metrics pairs
       recipes emoji_names pronouns figures token_ids word_tokenizer sentencepiece_tokenizer two_sided_tokenizer
       edits""",
    "attention",
    "layers",
    "model",
    """position_extension position_history step_decoder decoding beam sampling methods
       interventions inspection checkpoint state""",
    "evaluation team",
    "training_events training_step training analysis engines",
    """continuing run_archive foreign_zip run_labels sweeps run_status claims quota job_queue launch warm_worker
       tending runs position_moments journal card trainee worker rehearsal lab""",
    "study study_plan study_verdict study_pictures study_work publishing",
    "commands run_commands train_commands study_command engine_commands",
    "__main__",
]
"""The library's modules from the foundations up: a module may import from its own room and from those before it."""

FLOOR = {name: floor for floor, names in enumerate(ROOMS) for name in names.split()}
MODEL_BUILDERS = {
    "config",
    "model",
    "settings",
    "recipes",
    "checkpoint",
    "state",
    "training",
    "runs",
    "continuing",
    "engines",
    "study_plan",
    "sweeps",
    "doctor",
    "curve_findings",
    "corpus_findings",
    "head_findings",
    "train_commands",
    "__main__",
}
"""The only library modules that may name ModelConfig: it is read in model.py, elsewhere only passed on or stored."""
SPEAKING = {
    "transformer.__main__",
    "transformer.commands",
    "transformer.run_commands",
    "transformer.train_commands",
    "transformer.study_command",
    "transformer.engine_commands",
}
"""The command line, which alone may print."""
FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
FORBIDDEN_CALLS = {"torch.load", "torch.save", "torch.jit.load", "torch.package"}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


SOURCES = {
    module_name(path): path.read_text()
    for path in sorted([*ROOT.glob("*.py"), *ROOT.glob("transformer/**/*.py"), *ROOT.glob("pages/**/*.py")])
}
LIBRARY = [name for name in SOURCES if name.split(".")[0] == "transformer"]


def imports(source: str, known: frozenset[str] = frozenset(SOURCES)) -> Iterator[str]:
    """The dotted name of everything that a source imports, wherever it stands; submodules by their own name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports are not used here"
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in known else str(node.module)


def within_package(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def room(name: str) -> str:
    """The part of a library module's name that stands in ROOMS."""
    return name.split(".")[1]


@pytest.mark.parametrize("name", LIBRARY)
def test_every_library_module_has_its_room(name):
    assert name == "transformer" or room(name) in FLOOR, f"say in ROOMS where {name} belongs"


@pytest.mark.parametrize("name", [name for name in LIBRARY if name != "transformer"])
def test_a_library_module_imports_only_from_its_room_and_those_below(name):
    for imported in imports(SOURCES[name]):
        if within_package(imported, "transformer") and imported != "transformer":
            assert FLOOR[room(imported)] <= FLOOR[room(name)], f"{name} imports {imported}"


def test_no_import_goes_in_a_circle():
    """The package's own front door is left out: it loads the lab when asked."""
    graph = {
        name: {other for other in imports(SOURCES[name]) if other in SOURCES and other not in (name, "transformer")}
        for name in SOURCES
        if name != "transformer"
    }
    # A package's __init__ stands for its parts; its parts may import one another.
    graph = {name: {o for o in others if not within_package(name, o)} for name, others in graph.items()}
    try:
        tuple(TopologicalSorter(graph).static_order())
    except CycleError as cycle:
        pytest.fail(" -> ".join(cycle.args[1]))


@pytest.mark.parametrize("name", SOURCES)
def test_only_the_app_and_its_pages_import_streamlit(name):
    if name not in ("app", "serve") and not within_package(name, "pages"):  # serve.py starts and stops the app
        assert not any(within_package(imported, "streamlit") for imported in imports(SOURCES[name]))


@pytest.mark.parametrize("name", SOURCES)
def test_nothing_imports_a_page(name):
    for imported in imports(SOURCES[name]):
        assert imported != "app"
        if within_package(imported, "pages"):
            assert name in ("app", "serve") or within_package(name, "pages"), f"{name} imports {imported}"
            assert imported == "pages" or within_package(imported, "pages.common"), f"{name} imports {imported}"


@pytest.mark.parametrize("name", [name for name in LIBRARY if within_package(name, "transformer.figures")])
def test_figures_take_arrays_and_strings_only(name):
    for imported in imports(SOURCES[name]):
        assert not within_package(imported, "torch") and not within_package(imported, "streamlit"), imported
        assert not within_package(imported, "transformer") or within_package(imported, "transformer.figures"), imported


@pytest.mark.parametrize("name", [name for name in SOURCES if name.startswith("pages.") and name.count(".") == 1])
def test_a_page_holds_no_tensors_and_builds_no_figures(name):
    for imported in imports(SOURCES[name]):
        assert not within_package(imported, "torch") and not within_package(imported, "plotly"), imported


@pytest.mark.parametrize(
    "name", [n for n in LIBRARY if n != "transformer" and not MODEL_BUILDERS & {room(n), n.split(".")[-1]}]
)
def test_only_the_model_reads_its_config(name):
    assert "ModelConfig" not in {getattr(node, "id", None) for node in ast.walk(ast.parse(SOURCES[name]))}


@pytest.mark.parametrize("name", SOURCES)
def test_nothing_is_pickled(name):
    assert pickling(SOURCES[name]) == []


def pickling(source: str) -> list[str]:
    """What in a source reads or writes pickles."""
    found = [name for name in imports(source) if name.split(".")[0] in FORBIDDEN_MODULES or name in FORBIDDEN_CALLS]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and ast.unparse(node) in FORBIDDEN_CALLS:
            found.append(ast.unparse(node))
        if isinstance(node, ast.ImportFrom):
            found += [c for alias in node.names if (c := f"{node.module}.{alias.name}") in FORBIDDEN_CALLS]
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle" and ast.unparse(node.value) != "False":
            found.append("allow_pickle")
    return found


@pytest.mark.parametrize("name", [name for name in LIBRARY if name not in SPEAKING])
def test_the_library_does_not_print(name):
    assert not prints(SOURCES[name])


def prints(source: str) -> bool:
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
        for node in ast.walk(ast.parse(source))
    )


@pytest.mark.parametrize("name", SOURCES)
def test_no_hook_is_left_on_a_shared_model(name):
    """What one visitor reads or changes is an argument of their pass: see taps.py."""
    names = {getattr(node, "attr", "") for node in ast.walk(ast.parse(SOURCES[name]))}
    assert not {attribute for attribute in names if "register_forward" in attribute or "backward_hook" in attribute}


@pytest.mark.parametrize(
    "source",
    ["import pickle", "def f():\n    from torch import load", "torch.load('w.pt')", "np.load(f, allow_pickle=True)"],
)
def test_these_checks_notice_pickles(source):
    assert pickling(source)


def test_these_checks_read_lazy_and_nested_imports():
    source = (
        "def f():\n    from transformer import lab\n    import torch.nn\n    from transformer.model import Transformer"
    )
    known = frozenset({"transformer.lab", "transformer.model"})
    assert list(imports(source, known)) == ["transformer.lab", "torch.nn", "transformer.model"]
    assert prints("print('x')") and not prints("pprint('x'); log.print('x')")
