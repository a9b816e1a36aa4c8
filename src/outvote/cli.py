"""The command line. Parses, calls, and turns every foreseeable error into one sentence."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from outvote.commands.bisect import options as bisect
from outvote.commands.check import options as check
from outvote.commands.coverage import options as coverage
from outvote.commands.explore import options as explore
from outvote.commands.fuzz import options as fuzz
from outvote.commands.localize import options as localize
from outvote.commands.nan import options as nan
from outvote.commands.options import CONSISTENT, INTERRUPTED, RAW, USAGE
from outvote.commands.pollution import options as pollution
from outvote.commands.report import options as report
from outvote.commands.show import options as show
from outvote.commands.targets import options as targets
from outvote.commands.zoo import options as zoo
from outvote.core.errors import UsageError
from outvote.core.version import VERSION

_COMMANDS = (
    *(check, fuzz, localize, nan, explore, coverage, pollution, bisect),
    *(report, show, targets, zoo),
)

_EXAMPLES = """\
examples:
  outvote check model.keras --data val.npz
  outvote check model.h5 --targets tensorflow,jax,torch
  outvote check model.keras --targets "keras=={3.8.0,3.15.1}/{tensorflow,torch}"
  outvote bisect model.keras --target torch --from 3.6.0 --to 3.15.1
  outvote fuzz model.keras --data val.npz --budget 20m
  outvote localize outvote-out/findings/8f216f87d085
  outvote nan model.keras --target torch
  outvote explore a.keras b.keras --data seeds.npz
  outvote coverage model.keras --data test.npz
  outvote pollution clean.keras polluted.keras --data train.npz
  outvote targets
  outvote zoo build lenet5

exit codes: 0 consistent, 1 findings, 2 usage or set-up error, 130 stopped with Ctrl-C
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of the `outvote` command."""
    options = _parser().parse_args(argv)
    try:
        code: int = options.action(options)
    except UsageError as error:
        _fail(str(error))
        return USAGE
    except KeyboardInterrupt:
        _fail("stopped before anything was found")
        return INTERRUPTED
    except BrokenPipeError:
        return CONSISTENT
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        _fail(f"the system refused: {error.strerror or error}{where}; free space or check rights")
        return USAGE
    return code


def _fail(text: str) -> None:
    sys.stderr.write(f"outvote: {text}\n")


class _Parser(argparse.ArgumentParser):
    """Argparse with our exit code and one-sentence errors."""

    def error(self, message: str) -> None:  # type: ignore[override]
        self.exit(USAGE, f"outvote: {message}; see `{self.prog} --help`\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="outvote",
        description="Finds where deep-learning implementations disagree, says which one is "
        "wrong and in which layer.",
        epilog=_EXAMPLES,
        formatter_class=RAW,
    )
    parser.add_argument("--version", action="version", version=f"outvote {VERSION}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in _COMMANDS:
        command.add(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
