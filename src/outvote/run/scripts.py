"""A script that the user named, as a worker is told it: by content, with what lies beside it."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from outvote.core.blobs import BlobStore
from outvote.core.errors import UsageError
from outvote.core.protocol import ScriptText

# A folder made for a script is far below these; the folder of a project, with its models, is not.
_MOST_FILES = 1000
_LIBRARIES = (".so", ".dylib", ".dll")  # of compiled code, which goes as it is
_MOST_BYTES = 64 << 20


def script_of(path: Path, blobs: BlobStore) -> ScriptText:
    """The script and the modules of its folder that it imports.

    Where one of them says `__file__`, it looks for files around it: all of its folder come too.
    """
    if path.suffix in _LIBRARIES:
        return ScriptText(path.name, "", {}, {path.name: _stored(path, blobs)})
    text = _text(path)
    modules = dict(_modules(path.parent, text, {path.name}))
    looks = any(map(_says_file, (text, *modules.values())))
    beside = set(_files(path)) - {path.name, *modules} if looks else set()
    files = {inner: _stored(path.parent / inner, blobs) for inner in sorted(beside)}
    return ScriptText(path.name, text, modules, files)


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


def _files(script: Path) -> Iterator[str]:
    """Paths of all files in the folder of a script and below, but what is hidden or compiled."""
    found = size = 0
    for folder, inner, names in os.walk(script.parent):
        inner[:] = [name for name in inner if name[0] != "." and name != "__pycache__"]
        for path in (Path(folder, name) for name in names if name[0] != "."):
            if not path.is_file():
                continue
            found, size = found + 1, size + path.stat().st_size
            if found > _MOST_FILES or size > _MOST_BYTES:
                raise UsageError(
                    f"{script} says __file__, so the files of its folder go with it to the worker, "
                    f"and there are more than {_MOST_FILES} of them, or more than "
                    f"{_MOST_BYTES >> 20} MiB; keep the script and what it reads in a folder of "
                    "their own, or do without __file__"
                )
            yield path.relative_to(script.parent).as_posix()


def _stored(path: Path, blobs: BlobStore) -> str:
    """The bytes of a file as a blob for as long as workers may start. Others may write to it."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}, beside a script, could not be read: {error.strerror}") from error
    return blobs.pin(blobs.put(np.frombuffer(data, np.uint8)))


def _says_file(text: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == "__file__" for node in _nodes(text))


def _nodes(text: str) -> list[ast.AST]:
    """All of the syntax tree; a text that is no Python has none."""
    try:
        return list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError):  # the worker says so when it runs it
        return []


def _imported(text: str) -> set[str]:
    """The first parts of all names that a text imports."""
    nodes = _nodes(text)
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    return {name.partition(".")[0] for name in names if name}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is no Python file: it is not UTF-8 ({error})") from error
