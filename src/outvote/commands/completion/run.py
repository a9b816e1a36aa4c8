"""`outvote completion`: the script for a shell. What is no option is completed as a file."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from outvote.commands.completion.job import CommandWords, CompletionJob
from outvote.commands.view import UNSEEN, View

_BASH = """\
_outvote() {
    local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "COMMANDS --help --version" -- "$word"))
        return
    fi
    case "${COMP_WORDS[1]} $before" in
CHOICES
    esac
    [[ "$word" == -* ]] || case "$COMP_CWORD ${COMP_WORDS[1]}" in
NEXT
    esac
    case "${COMP_WORDS[1]}" in
OPTIONS
    esac
    [[ "$word" == -* ]] || COMPREPLY=()
}
complete -o default -F _outvote outvote
"""


def run(job: CompletionJob, view: View = UNSEEN) -> dict[str, Any]:
    """The text of the script."""
    return {"command": "completion", "text": _SHELLS[job.shell](job.commands)}


def _bash(commands: Mapping[str, CommandWords]) -> str:
    def lines(pattern: str, words: str, after: str) -> str:
        return f'        {pattern}) COMPREPLY=($(compgen -W "{words}" -- "$word")){after} ;;'

    choices = [
        lines(f'"{name} {option}"', " ".join(values), "; return")
        for name, told in commands.items()
        for option, values in told.choices.items()
    ]
    words = [
        lines(f'"2 {name}"', " ".join(told.words), "; return")
        for name, told in commands.items()
        if told.words
    ]
    options = [lines(name, " ".join(told.options), "") for name, told in commands.items()]
    return (
        _BASH.replace("COMMANDS", " ".join(commands))
        .replace("CHOICES", "\n".join(choices))
        .replace("NEXT", "\n".join(words))
        .replace("OPTIONS", "\n".join(options))
    )


def _zsh(commands: Mapping[str, CommandWords]) -> str:
    described = "\n".join(f"    '{name}:{_plain(told.text)}'" for name, told in commands.items())
    cases = "\n".join(_zsh_case(name, told) for name, told in commands.items())
    return (
        "#compdef outvote\n_outvote() {\n  local -a commands\n"
        f"  commands=(\n{described}\n  )\n"
        "  if (( CURRENT == 2 )); then\n    _describe command commands\n    return\n  fi\n"
        f'  case "$words[2]" in\n{cases}\n  esac\n}}\n_outvote "$@"\n'
    )


def _zsh_case(name: str, told: CommandWords) -> str:
    def option(word: str, text: str) -> str:
        values = f":value:({' '.join(told.choices[word])})" if word in told.choices else ""
        return f"'*{word}[{_plain(text)}]{values}'"

    options = " ".join(option(word, text) for word, text in told.options.items())
    words = f"'2:word:({' '.join(told.words)})' " if told.words else ""
    return f"    {name}) _arguments {words}{options} '*:file:_files' ;;"


def _fish(commands: Mapping[str, CommandWords]) -> str:
    return "\n".join(_fish_lines(commands)) + "\n"


def _fish_lines(commands: Mapping[str, CommandWords]) -> Iterator[str]:
    for name, told in commands.items():
        text = _plain(told.text)
        yield f"complete -c outvote -f -n __fish_use_subcommand -a {name} -d '{text}'"
        if told.words:
            place = f"__fish_seen_subcommand_from {name}; and test (count (commandline -opc)) -eq 2"
            yield f"complete -c outvote -f -n '{place}' -a '{' '.join(told.words)}'"
        for word, what in told.options.items():
            values = f" -x -a '{' '.join(told.choices[word])}'" if word in told.choices else ""
            yield (
                f"complete -c outvote -n '__fish_seen_subcommand_from {name}' "
                f"-l {word.removeprefix('--')} -d '{_plain(what)}'{values}"
            )


def _plain(text: str) -> str:
    """Text without what shells read as their own."""
    return textwrap.shorten(re.sub(r"[^\w ,.;=+/%-]", "", text), 80, placeholder=" ...")


_SHELLS: Mapping[str, Callable[[Mapping[str, CommandWords]], str]] = {
    "bash": _bash,
    "zsh": _zsh,
    "fish": _fish,
}
