"""Names that people know: the module that a call stands in, and the line that wrote it.

`layer2.0.conv1 (model.py:83)` is the only call of a module of PyTorch's own;
`layer2.0/add (model.py:85)` is one of several calls in a module.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath, PureWindowsPath

from outvote.core.model import Json
from outvote.worker.names import named_once

_FRAME = re.compile(r'File "([^"\n]+)", line (\d+)')
_TORCH = re.compile(r"(^|-packages[/\\])torch[/\\]")
_LONGEST = 120


class Names:
    """The names of the calls of one program, each once."""

    def __init__(self, taken: Iterable[str], nodes: Sequence[Json]) -> None:
        self._taken = set(taken)
        self._calls = Counter(module_of(node) for node in nodes)

    def of(self, node: Json) -> str:
        path, kind = module_of(node)
        operator = str(node["target"]).removeprefix("torch.ops.").split(".")[1]
        alone = path and kind.startswith("torch.nn.") and self._calls[path, kind] == 1
        plain = path if alone else f"{path}/{operator}" if path else operator
        line = line_of(node)
        ending = f" ({line[-_LONGEST:]})" if line else ""
        return named_once(self._taken, plain[-_LONGEST:], ending)


def module_of(node: Json) -> tuple[str, str]:
    """The path and the class of the module that a call stands in: the innermost."""
    last = str(node.get("metadata", {}).get("nn_module_stack", "")).split(";")[-1]
    parts = last.split(",")
    return (parts[1], parts[2]) if len(parts) == 3 and "." in parts[2] else ("", "")


def line_of(node: Json) -> str:
    """The file and line of the innermost code that is not PyTorch's own."""
    frames = _FRAME.findall(str(node.get("metadata", {}).get("stack_trace", "")))
    own = [(file, line) for file, line in frames if not _TORCH.search(file)]
    if not own:
        return ""
    file, line = own[-1]
    name = PureWindowsPath(file).name if "\\" in file else PurePosixPath(file).name
    return f"{name}:{line}"
