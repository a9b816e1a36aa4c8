"""Which lines of a library's own Python a request runs, in workers that are asked to tell.

Python's tracing slows all code down, about twofold on 3.11. So functions get other code, compiled
from their source with a mark wherever statements begin that run together: a byte is set. Modules
stay as they were imported, and so do lines in tracebacks; what runs while a module is imported has
no mark. A line behind one that raises is taken for reached.
"""

from __future__ import annotations

import ast
import gc
import marshal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

import numpy as np

from outvote.core.model import digest_of
from outvote.core.protocol import LinesReached

_NAME = "__outvote_lines__"  # in the modules of the library
_UNMARKED = (ast.Global, ast.Nonlocal)  # have to come before what uses them
_DIVIDES = (ast.If, ast.For, ast.While, ast.Try, ast.With, ast.Match)  # may end before its end
_Functions = dict[tuple[str, int], CodeType]  # by name and first line


@dataclass(frozen=True)
class _File:
    """The marked code of a module; marks have numbers from `first` on."""

    path: str  # inside the library
    first: int
    lines: tuple[tuple[int, ...], ...]  # that each mark stands for
    code: CodeType


class LineWatch:
    """The marks in some packages of this process."""

    def __init__(self, packages: Sequence[str], folder: Path) -> None:
        """Mark what is imported of them. What was compiled is kept in the folder, for others."""
        modules = {
            str(module.__file__): module
            for name, module in list(sys.modules.items())
            if name.startswith(tuple(f"{package}." for package in packages)) or name in packages
            if getattr(module, "__file__", "") and str(module.__file__).endswith(".py")
        }
        self._files = _compiled(modules, folder)
        self._firsts = np.array([file.first for file in self._files])
        marks = bytearray(sum(len(file.lines) for file in self._files))
        self._hits = np.frombuffer(marks, np.uint8)
        self._told = np.zeros(len(marks), bool)
        self._of = len({(f.path, line) for f in self._files for some in f.lines for line in some})
        for module in modules.values():
            setattr(module, _NAME, marks)
        _exchange({file.code.co_filename: _functions(file.code) for file in self._files})

    def begin(self) -> None:
        """What runs from now on counts."""
        self._hits[:] = 0

    def reached(self) -> LinesReached:
        """Lines that ran since it began, and had not been told of before."""
        new = np.flatnonzero(self._hits.astype(bool) & ~self._told)
        self._told[new] = True
        files: dict[str, list[int]] = {}
        for mark, place in zip(new, np.searchsorted(self._firsts, new, "right") - 1, strict=True):
            file = self._files[place]
            files.setdefault(file.path, []).extend(file.lines[mark - file.first])
        return LinesReached({path: tuple(lines) for path, lines in files.items()}, self._of)


def _compiled(modules: dict[str, ModuleType], folder: Path) -> list[_File]:
    """The modules' marked code, from the folder where a worker before this one has left it."""
    stamps = [[path, Path(path).stat().st_mtime_ns] for path in sorted(modules)]
    kept = folder / f"lines-{digest_of(sys.version, stamps)}"
    if kept.exists():
        return [_File(*row) for row in marshal.loads(kept.read_bytes())]  # noqa: S302 - our own
    files: list[_File] = []
    first = 0
    for path in sorted(modules):
        files.append(_marked(path, _inside(modules[path]), first))
        first += len(files[-1].lines)
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as half:
        half.write(marshal.dumps([(f.path, f.first, f.lines, f.code) for f in files]))
    Path(half.name).replace(kept)
    return files


def _inside(module: ModuleType) -> str:
    """The path of a module's file, from the folder of its library on."""
    path = Path(str(module.__file__))
    packages = module.__name__.split(".")
    depth = len(packages) + (path.stem == "__init__")
    return "/".join(path.parts[-depth:])


def _marked(path: str, inside: str, first: int) -> _File:
    tree = ast.parse(Path(path).read_bytes())
    lines: list[list[int]] = []
    for body in _bodies_of_functions(tree):
        _mark(body, first, lines)
    told = tuple(map(tuple, lines))
    return _File(inside, first, told, compile(tree, path, "exec", dont_inherit=True))


def _bodies_of_functions(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """Of the outermost functions, methods among them."""
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
            yield inner.body
        elif isinstance(inner, ast.stmt | ast.excepthandler):
            yield from _bodies_of_functions(inner)


def _mark(body: list[ast.stmt], first: int, lines: list[list[int]]) -> None:
    """Put a mark before all statements that run together, also in the blocks inside."""
    marked: list[ast.stmt] = []
    together: list[int] | None = None
    for place, statement in enumerate(body):
        if not isinstance(statement, _UNMARKED) and not (place == 0 and _is_text(statement)):
            if together is None:
                marked.append(_mark_before(statement, first + len(lines)))
                lines.append(together := [])
            if statement.lineno not in together:
                together.append(statement.lineno)
        marked.append(statement)
        if isinstance(statement, _DIVIDES):
            together = None
        for block in _blocks(statement):
            _mark(block, first, lines)
    body[:] = marked


def _blocks(statement: ast.AST) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(statement, name, None)
        if isinstance(block, list) and block and not isinstance(statement, ast.ClassDef):
            yield block
    for name in ("handlers", "cases"):
        for inner in getattr(statement, name, ()):
            yield inner.body
    if isinstance(statement, ast.ClassDef):
        yield from _bodies_of_functions(statement)


def _is_text(statement: ast.stmt) -> bool:
    """Whether it is a docstring, which has to stay the first."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _mark_before(statement: ast.stmt, number: int) -> ast.stmt:
    byte = ast.Subscript(ast.Name(_NAME, ast.Load()), ast.Constant(number), ast.Store())
    mark = ast.Assign([byte], ast.Constant(1))
    return ast.fix_missing_locations(ast.copy_location(mark, statement))


def _functions(code: CodeType) -> _Functions:
    """The code of all functions inside, at any depth."""
    found: _Functions = {}
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            found[inner.co_name, inner.co_firstlineno] = inner
            found.update(_functions(inner))
    return found


def _exchange(codes: dict[str, _Functions]) -> None:
    """Give all functions that are there the code of the same place, with its marks."""
    gc.unfreeze()  # what a parent process has frozen is not listed
    for function in gc.get_objects():
        if type(function) is not FunctionType:
            continue
        old = function.__code__
        new = codes.get(old.co_filename, {}).get((old.co_name, old.co_firstlineno))
        if new is not None and new.co_freevars == old.co_freevars:
            function.__code__ = new
