"""Reads model files in workers, and says who may."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from outvote.core.dialect import dialect
from outvote.core.errors import UsageError
from outvote.core.model import Model
from outvote.core.protocol import File, Hello, ModelRead, Read
from outvote.core.target import Outcome, Run, Target
from outvote.run.pool import Pool
from outvote.run.settle import ask_settled


def read_model(
    pool: Pool, path: Path, weights: Path | None, targets: Iterable[Target] | None = None
) -> tuple[Model, list[list[int | None]]]:
    """Read the file in the first worker that can; released libraries before patched ones."""
    order = sorted(targets or pool.targets.values(), key=_order)
    failures = []
    for target in order:
        run = read_file(pool, target.name, path, weights)
        if run.ok:
            return run.reply.model, run.reply.output_shapes
        failures.append(run)
        if run.refused:
            break
    first = failures[-1] if failures[-1].refused else failures[0]
    if first.outcome is Outcome.ERROR:
        raise UsageError(first.message)
    raise UsageError(f"reading {path} failed in {first.target}: {first.message}")


def read_file(pool: Pool, name: str, path: Path, weights: Path | None = None) -> Run[ModelRead]:
    """What one worker reads in a file: it is sent the bytes, and never sees the folder."""

    def sent(file: Path) -> File:
        return File(file.name, pool.blobs.put_file(file))

    return ask_settled(
        pool, name, Read(file=sent(path), weights=sent(weights) if weights else None)
    )


def require_started(hellos: Mapping[str, Run[Hello]]) -> None:
    for name, run in hellos.items():
        if not run.ok:
            log = run.detail.strip().splitlines() if run.outcome.is_death else []
            last = f" (last line of its log: {log[-1][:200]})" if log else ""
            raise UsageError(
                f"target {name!r} could not be started: {run.message}{last}; "
                "leave it out with --targets, or see `outvote targets`"
            )


def choose_reference(candidates: Sequence[str], targets: Mapping[str, Target]) -> str:
    """The candidate to compare with: released and eager if there is one."""
    return min(
        candidates, key=lambda name: (targets[name].setup is not None, not targets[name].is_eager)
    )


def helpers(targets: Sequence[Target]) -> list[Target]:
    """Targets besides the chosen ones that read and write model files for them."""
    return [
        helper
        for name in dict.fromkeys(target.dialect for target in targets)
        for helper in dialect(name).targets.helpers([t for t in targets if t.dialect == name])
    ]


def reader(targets: Sequence[Target]) -> Target:
    """Who reads models and says what new layers would be."""
    return min([*targets, *helpers(targets)], key=_order)


def _order(target: Target) -> tuple[object, ...]:
    return dialect(target.dialect).targets.reading_order(target)
