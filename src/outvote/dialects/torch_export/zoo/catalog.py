"""Which programs there are, without building them; `workers/zoo/models.py` has the modules."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from outvote.core.errors import UsageError

PREFIX = "torch:"
VERSION = 1  # raised when a model, its weights or its inputs change: caches are keyed by it
_ALL = f"{PREFIX}all"


@dataclass(frozen=True)
class ZooProgram:
    """One model; `layers` are the calls of its program, `shape` that of its first input."""

    name: str
    shape: tuple[int, ...]
    layers: int
    weights: int
    data: str = "random"  # what its weights were learnt from
    papers: tuple[str, ...] = ()

    def sized(self, size: int | None) -> ZooProgram:
        """Programs have one size."""
        if size is not None:
            raise UsageError(f"{self.name} has one size; leave out --size {size}")
        return self


_TABLE = (
    ZooProgram("torch:resnet", (3, 32, 32), 55, 130_962),
    ZooProgram("torch:mobilenet", (3, 32, 32), 31, 5_466),
    ZooProgram("torch:vit", (3, 32, 32), 45, 8_026),
    ZooProgram("torch:unet", (3, 32, 32), 32, 14_746),
    ZooProgram("torch:lstm", (9,), 8, 6_260),
    ZooProgram("torch:encoder", (12,), 75, 5_248),
    ZooProgram("torch:decoder", (1,), 32, 3_056),
    ZooProgram("torch:digits-trained", (1, 8, 8), 10, 6_234, "digits"),
    ZooProgram("torch:rows-trained", (1, 8, 8), 8, 2_698, "digits"),
)
PROGRAMS = {program.name: program for program in _TABLE}


def find_members(name: str) -> tuple[str, ...]:
    """All models, or the one of that name; an error names the nearest one."""
    if name == _ALL:
        return tuple(PROGRAMS)
    if name not in PROGRAMS:
        near = difflib.get_close_matches(name, [*PROGRAMS, _ALL], n=1)
        hint = f"did you mean {near[0]!r}?" if near else "`outvote zoo list` lists them"
        raise UsageError(f"there is no model {name!r} in the zoo; {hint}")
    return (name,)


def find_programs(names: Sequence[str] | None) -> list[ZooProgram]:
    """Each once, in the order in which they are named."""
    wanted = [member for name in names or (_ALL,) for member in find_members(name)]
    return [PROGRAMS[name] for name in dict.fromkeys(wanted)]
