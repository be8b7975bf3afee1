"""The command line: `python -m transformer train | translate | evaluate | inspect | runs | study | experiment ...`.

Options come from the config dataclasses. A mistake is one sentence on the error stream and exit status 2.
"""

# ruff: noqa: E402

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import takewhile

import tyro

from transformer import check_memory

check_memory()  # before anything below imports PyTorch

from transformer.capsules.contents import CapsuleError
from transformer.cli import (
    capsule_commands,
    engine_commands,
    experiment_commands,
    model_commands,
    run_commands,
    study_commands,
    train_commands,
)
from transformer.config import FAMILIES, PRESETS, CorpusConfig, ModelConfig
from transformer.data.columns import UnclearColumns
from transformer.data.file_recipes import recipe_for
from transformer.data.recipes import family_recipe
from transformer.data.uploads import join_files
from transformer.experiments.study import StudyError

_FAMILY = {"--model.family": "--family"}
"""Options of the model on which its other options depend, by the name they have in `_Choice`."""
_SEVERAL = ("--sentence", "--switch", "--values")
"""Options that take several values."""


@dataclass
class _Choice:
    """The options on which the defaults of `train` depend."""

    corpus: CorpusConfig = field(default_factory=CorpusConfig)
    preset: str | None = None
    family: str = "transformer"


def main(arguments: list[str]) -> int:
    """Runs one command; returns the exit status."""
    try:
        if arguments[:1] in (["train"], ["sweep"]):
            arguments = [arguments[0], *_named_corpus(arguments[1:])]
        arguments = _gathered(arguments)
        _run(_commands(arguments), arguments)
    except UnclearColumns as error:
        option = "--columns" if arguments[:1] == ["evaluate"] else "--corpus.columns"
        print(f"error: {error} with {option} 1,2, the source first", file=sys.stderr)
        return 2
    except (*model_commands.EXPECTED_ERRORS, StudyError, CapsuleError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except (capsule_commands.CapsuleDiffers, model_commands.LinesLost, train_commands.RunsFailed) as error:
        print(f"{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _run(commands: dict[str, Callable[..., None]], arguments: list[str]) -> None:
    prog = "python -m transformer"
    if arguments and arguments[0] in commands:
        tyro.cli(commands[arguments[0]], prog=f"{prog} {arguments[0]}", args=arguments[1:])
    else:  # help, or a word that is no command
        description = "Train a Transformer, translate with it, score it, look inside it."
        tyro.extras.subcommand_cli_from_dict(commands, prog=prog, description=description, args=arguments)


def _commands(arguments: list[str]) -> dict[str, Callable[..., None]]:
    choice = _peek(arguments[1:]) if arguments[:1] in (["train"], ["sweep"]) else _Choice()
    recipe = recipe_for(choice.corpus)
    model, train, why = recipe.model, recipe.train, recipe.why
    if choice.preset is not None:
        model, why = _preset(choice.preset, choice.family), ()
    if choice.family != "transformer":
        model, train = family_recipe(recipe, choice.family)
        why = ()
    return {
        "train": train_commands.train_command(choice.corpus, model, train, why),
        "sweep": train_commands.sweep_command(choice.corpus, model, train),
        "translate": model_commands.translate,
        "evaluate": model_commands.evaluate,
        "inspect": model_commands.inspect,
        "heads": model_commands.heads,
        "capsule": capsule_commands.capsule,
        "runs": run_commands.runs,
        "study": study_commands.study,
        "experiment": experiment_commands.experiment,
        **engine_commands.commands(arguments),
    }


def _preset(name: str, family: str) -> ModelConfig:
    if name not in PRESETS:
        raise ValueError(f"there is no preset {name!r}; choose one of: {', '.join(PRESETS)}")
    if family != "transformer":
        raise ValueError(f"presets are sizes of Transformers: for {family} leave --preset out and give --model.d-model")
    return PRESETS[name]


def _named_corpus(arguments: list[str]) -> list[str]:
    """`train reverse ...` as `train --corpus.name reverse ...`, two parallel files as the .zip of both."""
    named = list(takewhile(lambda argument: not argument.startswith("-"), arguments))
    options = arguments[len(named) :]
    if not named:
        return arguments
    if any(option.partition("=")[0] == "--corpus.name" for option in options):
        raise ValueError(f"{named[0]} and --corpus.name both name a corpus: leave one of them out")
    if len(named) > 2:
        raise ValueError(f"a corpus is one file, or two parallel ones: {', '.join(named)} are {len(named)}")
    return ["--corpus.name", named[0] if len(named) == 1 else str(join_files(named)), *options]


def _gathered(arguments: list[str]) -> list[str]:
    """`--sentence a --sentence b` as `--sentence a b`: of an option given twice the parser keeps the last one alone."""
    kept: list[str] = []
    values: dict[str, list[str]] = {}
    into = kept
    for argument in arguments:
        if argument in _SEVERAL:
            into = values.setdefault(argument, [])
            continue
        if argument.startswith("--"):
            into = kept
        into.append(argument)
    return [*kept, *(text for option, several in values.items() for text in (option, *several))]


def _peek(arguments: list[str]) -> _Choice:
    """The corpus and preset among the options of `train`, before the rest can be read."""
    kept = [argument for argument in arguments if argument not in ("-h", "--help")]
    choice, _ = tyro.cli(_Choice, args=[_FAMILY.get(text, text) for text in kept], return_unknown_args=True)
    if choice.family not in FAMILIES:
        raise ValueError(f"there is no family {choice.family!r} of models; choose one of: {', '.join(FAMILIES)}")
    return choice


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
