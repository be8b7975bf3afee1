"""The command line that all benchmarks share."""

import argparse
from collections.abc import Sequence


def read_options(
    parser: argparse.ArgumentParser, arguments: Sequence[str] | None = None, *, smoke: dict[str, object]
) -> argparse.Namespace:
    """Returns the options of a command line (of this process, unless given). Under --smoke, `smoke` holds the defaults.

    A smoke run does the least that prints a figure: it shows that the benchmark works, and measures nothing.
    """
    parser.formatter_class = argparse.RawDescriptionHelpFormatter  # the description is a docstring
    parser.add_argument("--smoke", action="store_true", help="do the least that prints a figure, to see that it works")
    options = parser.parse_intermixed_args(arguments)
    if options.smoke:
        for name, least in smoke.items():
            if getattr(options, name) == parser.get_default(name):
                setattr(options, name, least)
    return options
