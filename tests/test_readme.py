"""The README tells the truth: its notebook example runs, its commands exist, its tree names what is there."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_notebook_example_runs_and_says_what_it_says(capsys):
    (example,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(example, "README.md", "exec"), names)
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "c b a"
    assert printed[1] == "(2, 4, 4, 4)"
    assert all(line in README for line in printed[:2])


def test_every_make_target_that_is_named_exists():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    named = set(re.findall(r"\bmake ([a-z-]+)", README))
    assert {"app", "test"} <= named <= targets


def tree() -> str:
    (found,) = re.findall(r"## What is where\n\n```\n(.*?)```", README, flags=re.DOTALL)
    return found


def test_the_tree_names_what_is_there():
    for line in tree().splitlines():
        folder = ROOT / "transformer" if line.startswith(" ") else ROOT
        for name in re.findall(r"(?<![\w/])[a-z]+(?:\.py|/)(?= )", line.split(";")[0]):
            assert (folder / name).exists(), f"{name} is in the README and not in the project"


def test_every_part_of_the_library_stands_in_the_tree():
    parts = [path.name + "/" if path.is_dir() else path.name for path in (ROOT / "transformer").iterdir()]
    assert not [name for name in parts if not name.startswith("__") and f" {name} " not in tree()]
    assert len(tree().splitlines()) <= 25


def test_every_picture_is_there():
    for path in re.findall(r"!\[[^]]*]\(([^)]+)\)", README):
        assert (ROOT / path).is_file(), path
