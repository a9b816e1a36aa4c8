"""Calls that write over what they read (`relu_`), told as calls that give something new.

Who reads the tensor later reads what the call gives. Where it is one of several views of the same
numbers, and another of them is read later, that is not the same, and the program is refused.
"""

from __future__ import annotations

from collections.abc import Iterable

from outvote.core.model import Json
from outvote.dialects.torch_export.nouns.node import is_operator, ref
from outvote.worker.main import Refused

# Operators whose result may be a view of what they read.
_VIEWS = frozenset(
    """alias as_strided chunk contiguous detach diagonal dropout expand expand_as flatten
    movedim narrow permute real reshape reshape_as select slice split split_with_sizes squeeze
    swapaxes t tensor_split to transpose unbind unflatten unfold unsqueeze view view_as""".split()
)


class Aliases:
    """Which values share their numbers, and which of those are out of date."""

    def __init__(self, values: dict[str, Json]) -> None:
        self._values = values
        self._groups: dict[str, set[str]] = {}
        self._spoiled: dict[str, str] = {}

    def note(self, target: str, node: Json, given: Iterable[str], label: str) -> None:
        """A call has been read: what its results are views of, and what it has written over."""
        if not is_operator(target) or not node["inputs"]:
            return
        operator = target.split(".")[-2]
        read = node["inputs"][0]["arg"].get("as_tensor", {}).get("name")
        if read is None:
            return
        writes = operator.endswith("_") and not operator.endswith("__")
        if writes:
            self._spoil(read, operator)
            self._values[read] = ref(label)
        if writes or operator in _VIEWS:
            group = self._groups.setdefault(read, {read})
            group |= set(given)
            for name in group:
                self._groups[name] = group

    def require_fresh(self, name: str) -> None:
        if name in self._spoiled:
            raise Refused(
                f"the program writes into a view of {name!r} ({self._spoiled[name]}) and reads it "
                "again; save program.run_decompositions({}) instead, which writes nowhere"
            )

    def _spoil(self, read: str, operator: str) -> None:
        others = self._groups.get(read, set()) - {read}
        same = {name for name in others if self._values.get(name) == self._values.get(read)}
        self._spoiled |= dict.fromkeys(others - same, operator)
