"""A folder per verb that users type, all with the same rooms.

    options  what can be asked for: `PLACE` in the help, `add(commands)`, `job_of(options)`
    job      what is asked, as frozen data
    run      the work: `run(job, view)` gives the result; `view` follows it
    result   the result as the dict that result.json holds, where the command makes one
    show     what a person sees at the end: `show(result, job, screen)`

A new folder is a new command. What several share stands beside the folders: `blocks` (options, each
defined once), `values` (what they accept), `codes` (how commands end), `terminal`, `view`, `crash`.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType


def names() -> list[str]:
    """The commands, in the order of the help: each says its place itself."""
    return sorted(_folders(), key=lambda name: (room(name, "options").PLACE, name))


def asked_by(given: Sequence[str]) -> list[str]:
    """The command that arguments begin with, which needs none of the others; else all."""
    return [given[0]] if given and given[0] in _folders() else names()


def room(command: str, name: str) -> ModuleType:
    """One of the modules of a command."""
    return import_module(f"{__name__}.{command}.{name}")


def _folders() -> list[str]:
    return [item.name for item in pkgutil.iter_modules(__path__) if item.ispkg]
