"""Reads model files in workers, and says who may."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import cast

from outvote.core.dialect import dialect, dialect_of
from outvote.core.errors import UsageError
from outvote.core.events import CaseRun, Event, TargetDown, TargetUp
from outvote.core.model import Model
from outvote.core.protocol import File, Hello, ListParts, ModelRead, Read
from outvote.core.target import Outcome, Run, Target
from outvote.core.text import shortened
from outvote.run.pool import Pool
from outvote.run.settle import ask_settled
from outvote.run.watch import Watch


def read_model(
    pool: Pool,
    path: Path,
    weights: Path | None,
    targets: Iterable[Target] | None = None,
    dims: Mapping[str, int] | None = None,
) -> tuple[Model, list[list[int | None]]]:
    """Read the file in the first worker that can; released libraries before patched ones."""
    order = sorted(targets or pool.targets.values(), key=_order)
    failures = []
    for target in order:
        run = read_file(pool, target.name, path, weights, dims)
        if run.ok:
            return run.reply.model, run.reply.output_shapes
        failures.append(run)
        if run.refused:
            break
    first = failures[-1] if failures[-1].refused else failures[0]
    if first.refused:
        raise UsageError(first.message)
    told = shortened(first.message)
    if first.outcome is Outcome.ERROR:
        raise UsageError(f"{path.name} could not be read as a model: {told}")
    raise UsageError(f"reading {path} failed in {first.target}: {told}")


def read_file(
    pool: Pool,
    name: str,
    path: Path,
    weights: Path | None = None,
    dims: Mapping[str, int] | None = None,
) -> Run[ModelRead]:
    """What one worker reads in a file: it is sent the bytes, and never sees the folder."""

    def sent(file: Path) -> File:
        return File(file.name, pool.blobs.put_file(file))

    wing = dialect_of(path)
    if dims and not wing.files.NAMED_DIMS:
        raise UsageError(f"--dim sets dimensions by their names, and {wing.name} models have none")
    file = sent(path)
    beside: dict[str, File] = {}
    if wing.files.IN_PARTS:
        parts = ask_settled(pool, name, ListParts(file=file))
        if not parts.ok:
            return cast(Run[ModelRead], parts)  # a failure holds no reply
        beside = {part: sent(_beside(path, part)) for part in parts.reply.names}
    request = Read(
        file=file, weights=sent(weights) if weights else None, beside=beside, dims=dims or {}
    )
    return ask_settled(pool, name, request)


def _beside(path: Path, name: str) -> Path:
    """A file that a model tells of. The model is not trusted: it must lie in its folder."""
    folder = path.parent.resolve()
    found = (folder / name).resolve()
    if not name or "\0" in name or not found.is_relative_to(folder):
        raise UsageError(f"{path} is refused: its weights lie outside its folder, in {name!r}")
    if not found.is_file():
        raise UsageError(f"{path} keeps weights in {name!r}, which is no file beside it")
    return found


def start_targets(
    pool: Pool,
    names: Sequence[str],
    watch: Watch,
    options: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Run[Hello]]:
    """What each target said when it came up; all have to, or the user is told why one did not.

    `options` are those that chose a target, where it was not --targets.
    """
    with watch("Starting", pool, names):
        hellos = pool.start(names)
    for event in arrivals(hellos):
        watch.tell(event)
    require_started(hellos, options)
    return hellos


def arrivals(hellos: Mapping[str, Run[Hello]]) -> list[Event]:
    """Who came up, and who did not."""
    return [
        TargetUp(name, dict(run.reply.versions), run.seconds)
        if run.ok
        else TargetDown(name, run.message)
        for name, run in hellos.items()
    ]


def case_run(run: Run) -> CaseRun:
    """What one target made of the whole case, as those are told who follow a run."""
    return CaseRun(run.target, run.outcome.value, round(run.seconds, 3), run.message, run.layer)


def require_started(
    hellos: Mapping[str, Run[Hello]], options: Mapping[str, str] = MappingProxyType({})
) -> None:
    for name, run in hellos.items():
        if not run.ok:
            log = run.detail.strip().splitlines() if run.outcome.is_death else []
            last = f" (last line of its log: {log[-1][:200]})" if log else ""
            option = options.get(name)
            remedy = f"choose another with {option}" if option else "leave it out with --targets"
            raise UsageError(
                f"target {name!r} could not be started: {run.message}{last}; "
                f"{remedy}, or see `outvote targets`"
            )


def choose_reference(candidates: Sequence[str], targets: Mapping[str, Target]) -> str:
    """The candidate to compare with: released, eager and true to its types if there is one."""

    def order(name: str) -> tuple[bool, ...]:
        target = targets[name]
        return target.setup is not None, bool(target.feigns), not target.is_eager

    return min(candidates, key=order)


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
