"""The commands that README, BENCHMARKS and CHANGELOG name, and those that `make` would run."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[3]
DOCUMENTS = {name: (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "BENCHMARKS.md", "CHANGELOG.md")}
PAIRS = "".join(f"the word{number} is here\tle mot{number} est ici\n" for number in range(400))
"""The text of a file of pairs, for the commands that take one."""
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
_PROGRAM = re.compile(r"(python3?|make|torchrun|attention-lab|\.venv/bin/\S+)\s")


def named_commands() -> tuple[str, ...]:
    """Returns each command that the documents name, in a block or a span of code, once and in their order.

    Of "show | verify | save" at its end each is a command; a comment behind a command is left out.
    """
    found: dict[str, None] = {}
    for text in DOCUMENTS.values():
        lines = [line for language, block in _BLOCK.findall(text) if not language for line in block.splitlines()]
        spans = [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", _BLOCK.sub("", text))]
        for code in filter(_PROGRAM.match, (*lines, *spans)):
            found |= dict.fromkeys(_alternatives(re.split(r"\s+#", code)[0].strip()))
    return tuple(found)


def _alternatives(command: str) -> list[str]:
    first, *others = command.split(" | ")
    return [first, *(f"{first.rpartition(' ')[0]} {other}" for other in others)]


def made_commands(target: str) -> list[str]:
    """Returns the lines that `make` would run for a target; fails where it has no such target."""
    done = subprocess.run(["make", "--dry-run", *target.split()], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
