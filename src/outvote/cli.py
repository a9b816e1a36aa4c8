"""The command line. Parses, calls, and turns every foreseeable error into one sentence."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from outvote.commands.bisect import options as bisect
from outvote.commands.check import options as check
from outvote.commands.coverage import options as coverage
from outvote.commands.explore import options as explore
from outvote.commands.fuzz import options as fuzz
from outvote.commands.localize import options as localize
from outvote.commands.nan import options as nan
from outvote.commands.options import INTERNAL, INTERRUPTED, RAW, USAGE
from outvote.commands.pollution import options as pollution
from outvote.commands.report import options as report
from outvote.commands.show import options as show
from outvote.commands.targets import options as targets
from outvote.commands.zoo import options as zoo
from outvote.core.errors import ReaderGoneError, UsageError, remedy_for
from outvote.core.text import printable
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

exit codes: 0 consistent, 1 findings, 2 usage or set-up error, 3 an error inside outvote,
130 stopped with Ctrl-C
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of the `outvote` command."""
    given = list(sys.argv[1:] if argv is None else argv)
    options = argparse.Namespace()
    try:
        _parser().parse_args(given, options)
        code: int = options.action(options)
    except UsageError as error:
        return _fail(str(error), USAGE)
    except KeyboardInterrupt:
        return _fail("stopped before anything was found", INTERRUPTED)
    except ReaderGoneError:
        return _reader_gone()
    except Exception as error:
        return _failed(error, given, options)
    return code


def _failed(error: Exception, argv: Sequence[str], options: argparse.Namespace) -> int:
    """What the user can mend is an error of use, all else is ours; neither is ever a finding."""
    from outvote.commands.crash import crash_sentence

    if isinstance(error, OSError) and (remedy := remedy_for(error)):
        where = f" ({error.filename})" if error.filename else ""
        return _fail(f"the system refused: {error.strerror}{where}; {remedy}", USAGE)
    return _fail(crash_sentence(error, argv, getattr(options, "out", None)), INTERNAL)


def _reader_gone() -> int:
    """As with `| head`. Python would complain once more when it flushes at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return INTERRUPTED


def _fail(text: str, code: int) -> int:
    sys.stderr.write(f"outvote: {printable(text)}\n")
    return code


class _Parser(argparse.ArgumentParser):
    """Argparse with our exit code and one-sentence errors."""

    def error(self, message: str) -> None:  # type: ignore[override]
        self.exit(USAGE, f"outvote: {printable(message)}; see `{self.prog} --help`\n")


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
