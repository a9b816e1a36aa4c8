"""`outvote completion bash`: a script for the shell, made of the command line itself."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from outvote.commands import blocks
from outvote.commands.codes import exit_codes

if TYPE_CHECKING:
    from outvote.commands.completion.job import CommandWords, CompletionJob

PLACE = 125
SHELLS = ("bash", "zsh", "fish")
_EXAMPLES = """\
examples:
  outvote completion bash > ~/.local/share/bash-completion/completions/outvote
  outvote completion zsh > "${fpath[1]}/_outvote"
  outvote completion fish > ~/.config/fish/completions/outvote.fish
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = blocks.new_parser(
        commands,
        "completion",
        "print a script that completes commands and options in a shell",
        "Print a script that completes commands, options and their values in a shell.",
        _EXAMPLES + exit_codes("printed"),
    )
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))


def job_of(options: argparse.Namespace) -> CompletionJob:
    """What the options ask for."""
    from outvote import commands
    from outvote.commands.completion.job import CompletionJob

    subparsers = argparse.ArgumentParser().add_subparsers()
    for name in commands.names():
        commands.room(name, "options").add(subparsers)
    return CompletionJob(options.shell, {n: _words(p) for n, p in subparsers.choices.items()})


def _words(parser: argparse.ArgumentParser) -> CommandWords:
    from outvote.commands.completion.job import CommandWords

    words = [a for a in parser._actions if a.choices is not None and not a.option_strings]
    inner = [p for a in words if isinstance(a.choices, dict) for p in a.choices.values()]
    named = [(a, p) for p in (parser, *inner) for a in p._actions if a.option_strings]
    return CommandWords(
        text=(parser.description or "").partition(". ")[0],
        words=tuple(str(choice) for a in words for choice in a.choices or ()),
        options={a.option_strings[-1]: _help(a, p) for a, p in named},
        choices={a.option_strings[-1]: tuple(map(str, a.choices)) for a, _ in named if a.choices},
    )


def _help(action: argparse.Action, parser: argparse.ArgumentParser) -> str:
    return " ".join(parser._get_formatter()._expand_help(action).split()) if action.help else ""
