"""Tests of allowed imports, read from the source with `ast`: nothing is imported here, so lazy imports count too."""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

FLOORS = (
    ("config", "files", "locks", "setting"),
    ("access",),
    ("text", "model"),
    ("figures",),
    ("data",),
    ("decoding",),
    ("interventions",),
    ("inspection",),
    ("training",),
    ("checkpoints",),
    ("analysis",),
    ("lab",),
    ("runs",),
    ("experiments",),
    ("views",),
    ("capsules", "reports"),
    ("cli",),
    ("__main__",),
)
"""The library's packages from the foundations up: a package imports from itself and from those below it."""
FLOOR = {name: floor for floor, names in enumerate(FLOORS) for name in names}
LOOSE_MODULES = 7
"""Modules beside the packages of `transformer/`, `__init__` and `__main__` among them."""
MOST_MODULES = 20
"""Modules in one folder."""
MAY_READ_MODEL_CONFIG = (
    "config",
    "model",
    "data.recipes",
    "checkpoints",
    "training",
    "runs",
    "experiments",
    "analysis.training",
    "views",
    "__main__",
    "cli",
)
"""The parts of the library that may name ModelConfig: it is read in `model`, elsewhere only passed on or stored."""
MAY_PRINT = ("cli", "__main__")
"""The command line, which alone may print."""
FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
FORBIDDEN_CALLS = {"torch.load", "torch.save", "torch.jit.load", "torch.package"}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


PYTHON_FILES = sorted([*ROOT.glob("*.py"), *ROOT.glob("transformer/**/*.py"), *ROOT.glob("pages/**/*.py")])
NAMES = frozenset(map(module_name, PYTHON_FILES))
LIBRARY = sorted(name for name in NAMES if name.split(".")[0] == "transformer")


@cache
def sources() -> dict[str, str]:
    """Returns the source of each module by its name."""
    return {module_name(path): path.read_text() for path in PYTHON_FILES}


def parsed(source: str) -> list[ast.AST]:
    """Returns all nodes of a source's syntax tree."""
    return list(ast.walk(ast.parse(source)))


@cache
def nodes() -> dict[str, list[ast.AST]]:
    """Returns the nodes of each module; parsed in the one process that runs these tests."""
    return {name: parsed(source) for name, source in sources().items()}


@cache
def all_imports() -> dict[str, list[str]]:
    """Returns all that each module imports."""
    return {name: list(imports(found)) for name, found in nodes().items()}


def imports(nodes: Iterable[ast.AST], known: frozenset[str] = NAMES) -> Iterator[str]:
    """The dotted name of everything that a source imports, wherever it stands; submodules by their own name."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports are not used here"
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in known else str(node.module)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            yield from (str(part.value) for part in ast.walk(node.args[0]) if isinstance(part, ast.Constant))


def within_package(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def room(name: str) -> str:
    """The part of a library module's name that stands in FLOORS."""
    return name.split(".")[1]


def in_part(name: str, parts: tuple[str, ...]) -> bool:
    """Tells whether a module belongs to one of these parts of the library."""
    return any(within_package(name, f"transformer.{part}") for part in parts)


def test_every_part_of_the_library_has_its_floor():
    homeless = {room(name) for name in LIBRARY if name != "transformer"} - set(FLOOR)
    assert not homeless, f"say in FLOORS where these belong: {homeless}"


def test_a_package_imports_only_from_itself_and_from_those_below():
    assert not [
        f"{name} imports {imported}"
        for name in LIBRARY
        if name != "transformer"
        for imported in all_imports()[name]
        if within_package(imported, "transformer") and imported != "transformer"
        if FLOOR[room(imported)] > FLOOR[room(name)]
        or (FLOOR[room(imported)] == FLOOR[room(name)] and room(imported) != room(name) and room(name) not in FLOORS[0])
    ]


def test_no_folder_holds_more_modules_than_a_reader_can_survey():
    folders = Counter(
        path.parent.relative_to(ROOT)
        for path in [*PYTHON_FILES, *ROOT.glob("benchmarks/*.py"), *ROOT.glob("tests/**/*.py")]
    )
    assert folders[Path("transformer")] <= LOOSE_MODULES
    assert not {str(folder): n for folder, n in folders.items() if n > MOST_MODULES}


def test_no_import_goes_in_a_circle():
    """The package's own front door is left out: it loads the lab when asked."""
    graph = {
        name: {other for other in all_imports()[name] if other in NAMES and other not in (name, "transformer")}
        for name in NAMES
        if name != "transformer"
    }
    # A package's __init__ stands for its parts; its parts may import one another.
    graph = {name: {o for o in others if not within_package(name, o)} for name, others in graph.items()}
    try:
        tuple(TopologicalSorter(graph).static_order())
    except CycleError as cycle:
        pytest.fail(" -> ".join(cycle.args[1]))


def test_what_is_imported_by_name_can_be_read_here():
    calls = re.compile(r"import_module\((?![\"f)])")
    assert [name for name, source in sources().items() if calls.search(source)] == ["serve"]  # which nothing imports


def test_only_the_app_and_its_pages_import_streamlit():
    assert not [
        name
        for name in NAMES
        if name not in ("app", "serve") and not within_package(name, "pages")  # serve.py starts and stops the app
        if any(within_package(imported, "streamlit") for imported in all_imports()[name])
    ]


def test_nothing_imports_a_page():
    assert not [
        f"{name} imports {imported}"
        for name in NAMES
        for imported in all_imports()[name]
        if imported == "app" or (within_package(imported, "pages") and not may_import(name, imported))
    ]


def may_import(name: str, imported: str) -> bool:
    """Tells whether a module may import this part of the pages: its own page, or what pages share."""
    if name in ("app", "serve"):
        return True
    if not within_package(name, "pages") or imported.endswith(".page"):
        return False
    page = name.split(".")[1]
    takes_files = page in ("train", "runs", "playground", "race", "tokenizers", "heads", "training")
    shared = ("shared", "training") if takes_files else ("shared",)
    return imported.split(".")[1] in (page, *shared)


def test_figures_take_arrays_and_strings_only():
    assert not [
        f"{name} imports {imported}"
        for name in LIBRARY
        if within_package(name, "transformer.figures")
        for imported in all_imports()[name]
        if within_package(imported, "torch")
        or within_package(imported, "streamlit")
        or (
            within_package(imported, "transformer")
            and not within_package(imported, "transformer.figures")
            and imported != "transformer.model.kinds"  # names alone
        )
    ]
    assert not [imported for imported in all_imports()["transformer.model.kinds"] if within_package(imported, "torch")]


def test_a_page_holds_no_tensors_and_builds_no_figures():
    assert not [
        f"{name} imports {imported}"
        for name in NAMES
        if name.startswith("pages.") and name.endswith(".page")
        for imported in all_imports()[name]
        if within_package(imported, "torch") or within_package(imported, "plotly")
    ]


def test_no_field_writes_the_url_past_the_states_of_its_page():
    assert not [
        name
        for name in NAMES
        if name.startswith("pages.")
        if any(isinstance(node, ast.keyword) and node.arg == "bind" for node in nodes()[name])
    ]


def test_only_the_model_reads_its_config():
    assert not [
        name
        for name in LIBRARY
        if not in_part(name, MAY_READ_MODEL_CONFIG)
        if "ModelConfig" in {getattr(node, "id", None) for node in nodes()[name]}
    ]


def test_nothing_is_pickled():
    assert not {name: found for name, of_module in nodes().items() if (found := pickling(of_module))}


def pickling(nodes: list[ast.AST]) -> list[str]:
    """Finds what a source reads or writes as pickles."""
    last_parts = {call.rpartition(".")[2] for call in FORBIDDEN_CALLS}  # spares most names being written out
    found = [name for name in imports(nodes) if name.split(".")[0] in FORBIDDEN_MODULES or name in FORBIDDEN_CALLS]
    for node in nodes:
        if isinstance(node, ast.Attribute) and node.attr in last_parts and ast.unparse(node) in FORBIDDEN_CALLS:
            found.append(ast.unparse(node))
        if isinstance(node, ast.ImportFrom):
            found += [c for alias in node.names if (c := f"{node.module}.{alias.name}") in FORBIDDEN_CALLS]
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle" and ast.unparse(node.value) != "False":
            found.append("allow_pickle")
    return found


def test_the_library_does_not_print():
    assert not [name for name in LIBRARY if not in_part(name, MAY_PRINT) and prints(nodes()[name])]


def prints(nodes: list[ast.AST]) -> bool:
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print" for node in nodes
    )


def test_no_hook_is_left_on_a_shared_model():
    """One visitor's reads and changes are arguments of their own pass: see taps.py."""
    assert not [
        f"{name}: {attribute}"
        for name in NAMES
        for attribute in {getattr(node, "attr", "") for node in nodes()[name]}
        if "register_forward" in attribute or "backward_hook" in attribute
    ]


@pytest.mark.parametrize(
    "source",
    ["import pickle", "def f():\n    from torch import load", "torch.load('w.pt')", "np.load(f, allow_pickle=True)"],
)
def test_these_checks_notice_pickles(source):
    assert pickling(parsed(source))


def test_these_checks_read_lazy_and_nested_imports():
    source = (
        "def f():\n    from transformer import lab\n    import torch.nn\n    from transformer.model import Transformer"
    )
    known = frozenset({"transformer.lab", "transformer.model"})
    assert list(imports(parsed(source), known)) == ["transformer.lab", "torch.nn", "transformer.model"]
    assert prints(parsed("print('x')")) and not prints(parsed("pprint('x'); log.print('x')"))
