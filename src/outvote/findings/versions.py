"""The proof of a finding between versions: an `outvote.toml` and a script that calls outvote.

Other versions live in environments that only outvote can make again on another machine.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from outvote.core.dialect import dialect
from outvote.core.errors import UsageError
from outvote.core.source import filled
from outvote.core.target import Target
from outvote.targets.choose import find_target, known_targets

_TEMPLATE = Path(__file__).parent / "repro_versions.py.txt"
_TOLD = ("worker", "backend", "mode", "requirements", "setup", "env", "library")


def has_versions(targets: Iterable[Target]) -> bool:
    return any(target.requirements for target in targets)


def script(title: str, targets: Sequence[Target]) -> str:
    """The text of repro.py."""
    names = json.dumps([_name(target) for target in targets], indent=4)
    return filled(_TEMPLATE, {"TITLE": title, "TARGETS": names})


def config(targets: Sequence[Target]) -> str:
    """Tables of outvote.toml for targets whose names do not say all; JSON's strings are TOML's."""
    return "\n".join(_table(target) for target in targets if not _is_told_by_name(target))


def _is_told_by_name(target: Target) -> bool:
    """Whether another machine understands `torch` or `keras==3.9.0/torch` without a file."""
    try:
        found = find_target(target.name, known_targets())
    except UsageError:
        return False
    return all(getattr(found, part) == getattr(target, part) for part in _TOLD)


def _name(target: Target) -> str:
    """As a table may be called: a file cannot change what a built-in target's name means."""
    if _is_told_by_name(target):
        return target.name
    plain = " ".join(re.split(r"[^\w.:-]+", target.name))
    return f"own {plain}" if plain in known_targets() else plain


def _table(target: Target) -> str:
    lines = [f"[targets.{json.dumps(_name(target))}]", f"extends = {json.dumps(_built_in(target))}"]
    if target.requirements:
        lines.append(f"requirements = {json.dumps(list(target.requirements))}")
    elif target.python is not None:
        lines.append(f"python = {json.dumps(str(target.python.absolute()))}")
    if target.setup is not None:
        lines.append(f"setup = {json.dumps(str(target.setup.absolute()))}")
    lines.append(f"library = {json.dumps(target.library)}")
    if target.env:
        pairs = ", ".join(f"{json.dumps(k)} = {json.dumps(v)}" for k, v in target.env.items())
        lines.append(f"env = {{ {pairs} }}")
    return "\n".join(lines) + "\n"


def _built_in(target: Target) -> str:
    """The target that it starts from; classic ones by their backend, which says the rest."""
    known = dialect(target.dialect).targets.BUILT_IN
    alike = (target.worker, target.backend, target.mode)
    found = (name for name, t in known.items() if (t.worker, t.backend, t.mode) == alike)
    return next(found, target.backend)
