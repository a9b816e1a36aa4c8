"""The place in a library's own code that is to blame: one level below the layer.

Of an error it is the innermost place in the library. Of wrong results it is found by replay: the
functions of the backend that the layer calls on the accused target, each with its tensors, are
called on another one; the first that gives something else is it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from outvote.core.dialect import dialect
from outvote.core.frames import innermost_frame
from outvote.core.outputs import Outputs
from outvote.core.specimen import Specimen
from outvote.core.states import State
from outvote.core.target import Run, Target
from outvote.core.trace_protocol import TENSOR, ReplayCalls, Replayed, TraceCalls, TracedCall
from outvote.judge.compare import distance
from outvote.judge.observation import Observation, kind_of
from outvote.judge.tolerance import screen_tolerance
from outvote.run.pool import Pool

_MOST_LETTERS = 200  # of the arguments


@dataclass(frozen=True)
class GuiltyPlace:
    """A function of a library, where it stands, and what it was given."""

    function: str
    file: str
    line: int
    arguments: str = ""


def place_of(
    pool: Pool,
    targets: Mapping[str, Target],
    specimen: Specimen,
    seen: Observation,
    wrong: Sequence[str],
) -> GuiltyPlace | None:
    """The place that explains what is seen; None where none is found."""
    failed = [seen.failures[name] for name in wrong or seen.failures if name in seen.failures]
    if failed:
        return _of_error(failed[0], specimen)
    sides = _sides(targets, seen, wrong)
    if sides is None:
        return None
    accused, other = sides
    digests = tuple(pool.blobs.put(array) for array in specimen.inputs)
    traced = pool.ask(accused, TraceCalls(model=specimen.model, inputs=digests))
    if not traced.ok or not traced.reply.calls:
        return None
    calls = traced.reply.calls
    replayed = pool.ask(other, ReplayCalls(calls=calls))
    if not replayed.ok:
        return None
    for call, again in zip(calls, replayed.reply.calls, strict=True):
        if _parts(call, again):
            return GuiltyPlace(call.function, call.file, call.line, _told(call))
    return None


def _of_error(run: Run, specimen: Specimen) -> GuiltyPlace | None:
    """In the package that the dialect is about; another library's door says nothing."""
    package = dialect(specimen.model.dialect).targets.PACKAGE
    frame = innermost_frame(run.detail, package)
    if frame is None or not package or not frame.file.startswith(f"{package}/"):
        return None
    return GuiltyPlace(frame.function, frame.file, frame.line)


def _sides(
    targets: Mapping[str, Target], seen: Observation, wrong: Sequence[str]
) -> tuple[str, str] | None:
    """One that is wrong and one that is not; where nobody is, of two that part."""
    able = [name for name in seen.outputs if targets[name].can("trace")]
    groups = seen.vote.groups
    accused = [n for n in able if n in (wrong or (groups[-1] if groups else ()))]
    own = next((set(group) for group in groups if accused and accused[0] in group), set())
    others = [n for n in able if n not in (wrong or own)]
    return (accused[0], others[0]) if accused and others else None


def _parts(call: TracedCall, again: Replayed) -> bool:
    """Whether another backend gives something else; one that has no such function says nothing."""
    if again.error:
        return False
    one, other = _outputs(call.results), _outputs(again.results)
    if len(one.arrays) != len(other.arrays):
        return False  # other containers, not other numbers
    if kind_of(one, other) == "shape":
        return True
    return not distance(one, other) < screen_tolerance(one)


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
