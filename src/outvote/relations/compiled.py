"""The same library in its compiled mode."""

from __future__ import annotations

from dataclasses import replace

from outvote.bench.relation import Asked, OtherWay
from outvote.core.dialect import dialect
from outvote.core.target import Target

NAME = "compiled"
TITLE = "compiled, the same library must give what it gives layer by layer"


def twin(asked: Asked) -> OtherWay | None:
    """A worker of that mode is started when it is first needed."""
    compiled = sibling(asked.target)
    if compiled is None:
        return None
    if compiled.name not in asked.bench.pool.targets:
        asked.bench.pool.add(compiled)
    return OtherWay(asked.specimen, target=compiled.name)


def sibling(target: Target) -> Target | None:
    """The quickest mode that compiles, by the same code; none of a target that compiles itself."""
    if not target.is_eager:
        return None
    modes = [
        other
        for other in dialect(target.dialect).targets.BUILT_IN.values()
        if (other.worker, other.backend) == (target.worker, target.backend)
        and not other.is_eager
        and not other.compiles_slowly
    ]
    if not target.backend or not modes:
        return None
    mode = modes[0]
    return replace(
        target,
        name=f"{target.name} ({mode.mode})",
        mode=mode.mode,
        costs=mode.costs,
        capabilities=mode.capabilities,
    )
