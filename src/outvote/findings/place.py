"""The place in a library's own code that is to blame: one level below the layer.

Of an error it is the innermost place in the library; where several fail, the innermost that all of
them were in. Of wrong results it is found by replay: the functions of the backend that the layer
calls on the accused target, each with its tensors, are called on another one; the first that gives
something else is it. Where nobody is right, or all give the same, they get wider tensors:
the first whose answer is another number there has lost it on the way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from outvote.core.dialect import dialect
from outvote.core.frames import Frame, frames_of
from outvote.core.outputs import Outputs
from outvote.core.specimen import Specimen
from outvote.core.states import State
from outvote.core.target import Run, Target
from outvote.core.trace_protocol import TENSOR, ReplayCalls, Replayed, TraceCalls, TracedCall
from outvote.judge.compare import distance
from outvote.judge.observation import Observation, kind_of
from outvote.judge.tolerance import ELEMENT, PLACE, layer_tolerance, screen_tolerance
from outvote.run.pool import Pool

_MOST_LETTERS = 200  # of the arguments


@dataclass(frozen=True)
class GuiltyPlace:
    """A function of a library, where it stands, and what it was given."""

    function: str
    file: str
    line: int
    arguments: str = ""


@dataclass(frozen=True)
class Whereabouts:
    """The place that explains what is seen, or why none is known."""

    place: GuiltyPlace | None = None
    unknown: str = ""


def place_of(
    pool: Pool,
    targets: Mapping[str, Target],
    specimen: Specimen,
    seen: Observation,
    wrong: Sequence[str],
) -> Whereabouts:
    """Where in the library what is seen comes from."""
    failed = [seen.failures[name] for name in wrong or seen.failures if name in seen.failures]
    if failed:
        return Whereabouts(_of_errors(failed, specimen))
    accused = _accused(targets, seen, wrong)
    if accused is None:
        return Whereabouts(unknown=_shows_no_calls(targets, seen, wrong))
    digests = tuple(pool.blobs.put(array) for array in specimen.inputs)
    traced = pool.ask(accused, TraceCalls(model=specimen.model, inputs=digests))
    calls = traced.reply.calls if traced.ok else ()
    other = _other(targets, seen, wrong, accused)
    guilty = _first_apart(pool, other, calls, types=seen.kind == "shape")
    guilty = guilty or _first_narrow(pool, accused, calls)
    guilty = guilty or _first_apart(pool, other, calls, types=True)  # whose type spoils the rest
    if guilty is None and len(calls) == 1 and wrong:
        (guilty,) = calls
    if guilty is None:
        return Whereabouts(unknown=_ALIKE if calls and other else "")
    return Whereabouts(GuiltyPlace(guilty.function, guilty.file, guilty.line, _told(guilty)))


_ALIKE = (
    "Every function of the backend that the layer calls gives the same elsewhere: what the layer "
    "makes of them is to blame."
)


def _of_errors(runs: Sequence[Run], specimen: Specimen) -> GuiltyPlace | None:
    """In the package that the dialect is about; another library's door says nothing."""
    package = dialect(specimen.model.dialect).targets.PACKAGE
    if not package:
        return None
    first, *others = [_within(package, run) for run in runs]
    shared = [frame for frame in first if all(_holds(frames, frame) for frames in others)]
    for frame in reversed(shared or first):
        return GuiltyPlace(frame.function, frame.file, frame.line)
    return None


def _within(package: str, run: Run) -> list[Frame]:
    return [frame for frame in frames_of(run.detail) if frame.file.startswith(f"{package}/")]


def _holds(frames: Sequence[Frame], wanted: Frame) -> bool:
    return any((f.file, f.function) == (wanted.file, wanted.function) for f in frames)


def _accused(targets: Mapping[str, Target], seen: Observation, wrong: Sequence[str]) -> str | None:
    """One that is wrong and shows its calls; where nobody is, one of those that stand apart."""
    groups = seen.vote.groups
    names = wrong or (groups[-1] if groups else ())
    return next((n for n in seen.outputs if n in names and targets[n].can("trace")), None)


def _other(
    targets: Mapping[str, Target], seen: Observation, wrong: Sequence[str], accused: str
) -> str | None:
    """Who is right, or at least not with the accused, and can be given its tensors."""
    own = next((set(group) for group in seen.vote.groups if accused in group), set())
    others = [n for n in seen.outputs if targets[n].can("trace") and n not in (wrong or own)]
    return others[0] if others else None


def _shows_no_calls(targets: Mapping[str, Target], seen: Observation, wrong: Sequence[str]) -> str:
    """Who is compiled as a whole; and whether its functions, called one by one, are right."""
    names = [name for name in wrong if targets[name].can("step") and not targets[name].is_eager]
    if not names:
        return ""
    eager = [
        name
        for name in seen.outputs
        if name not in wrong
        and targets[name].is_eager
        and targets[name].backend == targets[names[0]].backend
    ]
    told = f"{names[0]} runs the layer as one graph, which shows no calls."
    return f"{told} {eager[0]}, which runs it call by call, is right." if eager else told


def _first_apart(
    pool: Pool, other: str | None, calls: Sequence[TracedCall], types: bool
) -> TracedCall | None:
    """The first call whose answer is another one on another target; `types`: its type counts."""
    if other is None or not calls:
        return None
    replayed = pool.ask(other, ReplayCalls(calls=tuple(calls)))
    if not replayed.ok:
        return None
    pairs = zip(calls, replayed.reply.calls, strict=True)
    return next((call for call, again in pairs if _parts(call, again, types)), None)


def _first_narrow(pool: Pool, accused: str, calls: Sequence[TracedCall]) -> TracedCall | None:
    """The first call whose answer is another number with the same tensors in a wider type."""
    if not calls:
        return None
    wide = tuple(replace(call, tensors=tuple(map(_wide, call.tensors))) for call in calls)
    replayed = pool.ask(accused, ReplayCalls(calls=wide))
    if not replayed.ok:
        return None
    pairs = zip(calls, replayed.reply.calls, strict=True)
    return next((call for call, again in pairs if _is_lost(call, again)), None)


def _wide(state: State) -> State:
    if state.dtype not in PLACE:
        return state
    return State(state.array.astype(np.float64), state.mask, "float64", state.batch)


def _is_lost(call: TracedCall, again: Replayed) -> bool:
    """Whether the numbers are others, whatever their type: most of one is lost, or all of it."""
    if again.error:
        return False
    one, other = _outputs(call.results), _outputs(again.results)
    if [a.shape for a in one.arrays] != [a.shape for a in other.arrays]:
        return False
    return not distance(one, replace(other, dtypes=one.dtypes)) < ELEMENT


def _parts(call: TracedCall, again: Replayed, types: bool) -> bool:
    """Whether another backend gives something else; one that has no such function says nothing."""
    if again.error:
        return False
    one, other = _outputs(call.results), _outputs(again.results)
    if len(one.arrays) != len(other.arrays):
        return False  # other containers, not other numbers
    if not types:  # numbers are at stake: those of another type may be the same
        other = replace(other, dtypes=one.dtypes)
    if kind_of(one, other) == "shape":
        return True
    rounding = max((layer_tolerance(d) for d in one.dtypes if d in PLACE), default=0.0)
    return not distance(one, other) < max(screen_tolerance(one), rounding)


def _outputs(states: Sequence[State]) -> Outputs:
    """Each tensor as one instance: what is the batch of a function is not known."""
    arrays = tuple(state.array[None] for state in states)
    return Outputs(arrays, tuple(state.dtype for state in states))


def _told(call: TracedCall) -> str:
    """The arguments, tensors by their type and shape."""

    def text(value: object) -> str:
        if isinstance(value, Mapping):
            if TENSOR in value:
                state = call.tensors[value[TENSOR]]
                return f"{state.dtype}{list(state.array.shape)}"
            if "$tuple" in value:
                return f"({', '.join(map(text, value['$tuple']))})"
            return f"{{{', '.join(f'{k}: {text(v)}' for k, v in value.items())}}}"
        if isinstance(value, list):
            return f"[{', '.join(map(text, value))}]"
        return repr(value)

    inner = call.args.get("$tuple", ()) if isinstance(call.args, Mapping) else call.args
    told = [*map(text, inner), *(f"{k}={text(v)}" for k, v in call.kwargs.items())]
    line = ", ".join(told)
    return line if len(line) <= _MOST_LETTERS else f"{line[: _MOST_LETTERS - 1]}…"
