"""Which ONNX seeds there are, by name."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from outvote.core.dialect import dialect
from outvote.core.errors import UsageError

if TYPE_CHECKING:
    from outvote.core.parts import Zoo

PREFIX = "onnx:"
NODES = "nodes"  # all node tests
_TEST = "test_"


def kerases() -> Zoo:
    """The zoo whose models are exported."""
    return dialect("keras").zoo


def plain(name: str) -> str:
    return name.removeprefix(PREFIX)


def is_exported(name: str) -> bool:
    return kerases().has(plain(name))


def find_members(name: str) -> tuple[str, ...]:
    """The models or node tests behind a name."""
    if is_exported(name):
        return tuple(f"{PREFIX}{member}" for member in kerases().members_of(plain(name)))
    from outvote.dialects.onnx.zoo.node_tests import example_names

    known = example_names()
    wanted = plain(name)
    found = [test for test, kinds in known.items() if wanted in (NODES, test, *kinds)]
    if not found:
        operators = {kind for kinds in known.values() for kind in kinds}
        near = difflib.get_close_matches(wanted, [NODES, *operators, *known], n=1)
        hint = f"did you mean '{PREFIX}{near[0]}'?" if near else f"'{PREFIX}{NODES}' are all"
        raise UsageError(f"there is no ONNX seed {name!r}; {hint}")
    return tuple(f"{PREFIX}{test}" for test in found)


def exported_entries(names: Sequence[str] | None) -> list[Any]:
    """Entries of Keras' zoo under our names; their figures are those of the layers."""
    strange = [name for name in names or () if not (name.startswith(PREFIX) and is_exported(name))]
    if strange:
        raise UsageError(
            f"{strange[0]!r} is no exported model; `outvote zoo list` lists them, and node tests "
            "are seeds of `outvote fuzz` alone"
        )
    found = kerases().entries(None if names is None else [plain(name) for name in names])
    return [replace(entry, name=f"{PREFIX}{entry.name}") for entry in found]
