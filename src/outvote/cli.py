"""The command line. Parses, calls, and turns every foreseeable error into one sentence."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from outvote import commands
from outvote.commands.codes import CONSISTENT, INTERNAL, INTERRUPTED, USAGE, exit_code, exit_codes
from outvote.core.errors import ReaderGoneError, UsageError, remedy_for
from outvote.core.text import printable
from outvote.core.version import VERSION

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
  outvote serve outvote-fuzz
  outvote targets
  outvote doctor
  outvote zoo build lenet5
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of the `outvote` command."""
    given = list(sys.argv[1:] if argv is None else argv)
    options = argparse.Namespace()
    try:
        _parser(given).parse_args(given, options)
        return perform(options)
    except UsageError as error:
        return _fail(str(error), USAGE)
    except KeyboardInterrupt:
        return _fail("stopped before anything was found", INTERRUPTED)
    except ReaderGoneError:
        return _reader_gone()
    except Exception as error:
        return _failed(error, given, options)


def perform(options: argparse.Namespace) -> int:
    """The way of every command: options → job → result → what is shown, and the exit code."""
    from outvote.commands.terminal import Terminal

    job = commands.room(options.command, "options").job_of(options)
    terminal = Terminal(getattr(options, "quiet", False))
    result = commands.room(options.command, "run").run(job, terminal)
    commands.room(options.command, "show").show(result, job, terminal.out)
    terminal.out.configs(result)
    return exit_code(result) if getattr(job, "judges", True) else CONSISTENT


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


def _parser(given: Sequence[str] = ()) -> argparse.ArgumentParser:
    """Of the command that these arguments name, or of all."""
    parser = _Parser(
        prog="outvote",
        description="Finds where deep-learning implementations disagree, says which one is "
        "wrong and in which layer.",
        epilog=_EXAMPLES + exit_codes("consistent", "findings"),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"outvote {VERSION}")
    subparsers = parser.add_subparsers(
        title="commands", metavar="COMMAND", dest="command", required=True
    )
    for name in commands.asked_by(given):
        commands.room(name, "options").add(subparsers)
    return parser


if __name__ == "__main__":
    sys.exit(main())
