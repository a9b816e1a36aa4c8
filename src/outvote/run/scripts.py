"""A script that the user named, as a worker is told it: its text, and what it imports beside it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from outvote.core.errors import UsageError
from outvote.core.protocol import ScriptText


def script_of(path: Path) -> ScriptText:
    """The script and the modules of its folder that it imports; other files stay behind."""
    text = _text(path)
    return ScriptText(path.name, text, dict(_modules(path.parent, text, {path.name})))


def _modules(folder: Path, text: str, seen: set[str]) -> Iterator[tuple[str, str]]:
    """Modules and packages of the folder that a text imports, and what these import."""
    for name in sorted(_imported(text)):
        package = folder / name
        single = [folder / f"{name}.py"]
        for path in sorted(package.rglob("*.py")) if package.is_dir() else single:
            inner = path.relative_to(folder).as_posix()
            if inner in seen or not path.is_file():
                continue
            seen.add(inner)
            found = _text(path)
            yield inner, found
            yield from _modules(folder, found, seen)


def _imported(text: str) -> set[str]:
    """The first parts of all names that a text imports; a text that is no Python has none."""
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError):  # the worker says so when it runs it
        return set()
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    return {name.partition(".")[0] for name in names if name}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is no Python file: it is not UTF-8 ({error})") from error
