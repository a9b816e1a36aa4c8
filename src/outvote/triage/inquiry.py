"""What is known of one specimen on which targets differ; each instrument is asked when needed.

Three instruments: an independent reference, the same computation in float64, the noise floor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from outvote.bench.bench import Bench
from outvote.bench.exact import plain_sums, reference_of
from outvote.bench.noise import moves_only, nudged
from outvote.core.arrays import Array
from outvote.core.dialect import Dialect, dialect
from outvote.core.outputs import Outputs
from outvote.core.specimen import Specimen
from outvote.judge.compare import distance, only_width_differs
from outvote.judge.observation import Observation
from outvote.judge.precision import Coarser, coarser, has_no_64_bits
from outvote.judge.rounding import Gap, Rounding
from outvote.judge.tolerance import (
    DIGIT,
    ELEMENT,
    FARTHER,
    FITS,
    LARGEST,
    LAYER_PLACES,
    LOST_DIGITS,
    NUDGES,
    PLACE,
    base_tolerance,
    layer_tolerance,
)
from outvote.triage.differences import Difference, listed

_REFERENCE = "an independent NumPy computation in float64"


@dataclass(frozen=True)
class Exact:
    """What the exact computation gives, and where it comes from."""

    outputs: Outputs
    source: str


@dataclass
class Inquiry:
    """The questions that the rows of the verdict ask about one specimen."""

    bench: Bench
    specimen: Specimen
    seen: Observation

    # What is known without running anything.

    @property
    def dialect(self) -> Dialect:
        return dialect(self.specimen.model.dialect)

    @property
    def kind(self) -> str | None:
        return self.seen.kind

    @property
    def failed(self) -> bool:
        return self.kind in ("crash", "hang")

    @cached_property
    def refusal(self) -> str | None:
        """What the specification's own checker has against the specimen."""
        written, able = self.dialect.specification, list(self.seen.outputs)
        if written is None or not able:
            return None
        return written.refusal(self.bench.pool, able[0], self.specimen)

    @cached_property
    def meant(self) -> Difference | None:
        return listed(self)

    @cached_property
    def shapes(self) -> dict[str, list[tuple[int, ...]]]:
        return {n: [a.shape for a in o.arrays] for n, o in self.seen.outputs.items()}

    @property
    def told_type(self) -> str | None:
        """The float that the last layer is told to compute in, where it says one."""
        told = (self.dialect.layers.dtype(self.specimen.last) or "").removeprefix("mixed_")
        return told if told in PLACE else None

    @property
    def mistyped(self) -> tuple[str, ...]:
        """Who gives another float than the layer is told; nobody where more than floats differ."""
        types = {dtype for found in self.seen.outputs.values() for dtype in found.dtypes}
        one, *others = self.shapes.values()
        if self.told_type is None or not types <= PLACE.keys() or any(o != one for o in others):
            return ()
        found = self.seen.outputs.items()
        return tuple(name for name, given in found if {*given.dtypes} != {self.told_type})

    @cached_property
    def only_width(self) -> bool:
        """Whether all give the same integers, in more or fewer bits."""
        first, *others = self.seen.outputs.values()
        return all(only_width_differs(first, other) for other in others)

    def precision(self, name: str) -> Mapping[str, Any]:
        """What a target said, when it started, of the precision it computes in."""
        return self.bench.pool.start([name])[name].reply.precision

    @cached_property
    def without_64_bits(self) -> tuple[str, ...]:
        """Those that pass on narrower integers, and said that they have no wide ones."""
        wide = [n for n, o in self.seen.outputs.items() if any("64" in d for d in o.dtypes)]
        narrow = [n for n in self.seen.outputs if n not in wide]
        told = [n for n in narrow if has_no_64_bits(self.precision(n))]
        return tuple(told) if wide and len(told) == len(narrow) else ()

    # The exact result, and who is far from it.

    @cached_property
    def reference(self) -> Exact | None:
        found = reference_of(self.specimen, self.bench.pool.blobs)
        return None if found is None else Exact(found, _REFERENCE)

    @cached_property
    def reals(self) -> Outputs | None:
        """What our own reference gives where whole numbers neither overflow nor are rounded to."""
        return reference_of(self.specimen, self.bench.pool.blobs, real=True)

    @cached_property
    def exact(self) -> Exact | None:
        """Our own reference; without one, what independent targets agree on in float64.

        Where at least three each give something else, what the layer's own library means by it.
        """
        if self.reference is not None:
            return self.reference
        kind = self.specimen.last.kind
        implementation = {n: self.bench.targets[n].implementation_of(kind) for n in self.able}
        floats = any(array.dtype.kind == "f" for array in self.specimen.inputs)
        if not floats or (len(set(implementation.values())) < 2 and not self.is_torn):
            return None
        wide = self.in_float64(self.able)
        if not wide:
            return None
        # Who cannot be asked votes with what it gave: what is not about digits stays undecided.
        some = next(iter(wide.values()))
        narrow = {n: _typed(found, some) for n, found in self.seen.outputs.items()}
        voted = self.bench.judged({**narrow, **wide}, {}, self.at_least_float32, self.specimen).vote
        agreed = voted.majority or (voted.groups[0] if len(voted.groups) == 1 else ())
        agree = [n for n in agreed if n in wide]
        if len({implementation[n] for n in agree}) > 1:
            return Exact(wide[agree[0]], f"{' and '.join(agree)} in float64")
        return self._by_definition(wide) if self.is_torn and not voted.decided else None

    @property
    def is_torn(self) -> bool:
        """Whether three at least each give something else."""
        return len(self.seen.vote.groups) > 2 and not self.seen.vote.decided

    def _by_definition(self, wide: Mapping[str, Outputs]) -> Exact | None:
        """What the library that says what the layer means gives in float64, if not there alone.

        Of three answers two are wrong at least; that this library's is not the right one would
        take a fault of its own, and one more.
        """
        for name in (n for n in wide if self.bench.targets[n].defines):
            own = self.seen.outputs[name]
            if (
                _forms(own) == _forms(wide[name])
                and self.seen.rounding.gap(own, _typed(wide[name], own)).explained
            ):
                return Exact(wide[name], f"{name} in float64, whose library defines this layer")
        return None

    @cached_property
    def standard(self) -> Outputs | None:
        """What results are held against: the exact one, or else the majority's.

        What all targets give alike is not what they differ in, whatever is exact there.
        """
        if self.exact is not None:
            return _beside(self.exact.outputs, list(self.seen.outputs.values()))
        return next((self.seen.outputs[n] for n in self._right_by_vote), None)

    @property
    def _right_by_vote(self) -> list[str]:
        return [n for n in self.seen.vote.majority if n in self.seen.outputs]

    @cached_property
    def errors(self) -> dict[str, float]:
        """The relative distance of each target from the exact result."""
        if self.exact is None:
            return {}
        exact = self.exact.outputs
        return {n: distance(found, _typed(exact, found)) for n, found in self.seen.outputs.items()}

    @cached_property
    def gaps(self) -> dict[str, Gap]:
        """How far each target is from the standard, by what rounding explains."""
        return self._gaps(lambda found, standard: _nowhere(standard))

    @cached_property
    def wrong(self) -> tuple[str, ...]:
        """Who is farther from the exact result than rounding explains; if none, the outvoted."""
        if self.exact is None:
            return tuple(n for n in self.seen.vote.outvoted if n in self.seen.outputs)
        return tuple(n for n, gap in self.gaps.items() if not gap.explained)

    @property
    def right(self) -> list[str]:
        return [n for n in self.seen.outputs if n not in self.wrong]

    @property
    def all_wrong(self) -> bool:
        return len(self.wrong) == len(self.seen.outputs)

    # Overflow on the way to a result that fits.

    @cached_property
    def overflown(self) -> tuple[str, ...]:
        """Who gives NaN or infinity where the exact result is a number that its type holds."""
        if self.exact is None or self.standard is None:
            return ()
        exact = self.standard
        return tuple(
            name
            for name, found in self.seen.outputs.items()
            if _forms(found) == _forms(exact)
            and any(map(_misses_a_number, found.arrays, found.dtypes, exact.arrays))
        )

    @property
    def all_overflow(self) -> bool:
        """Whether nobody who computes in the type that he gives comes to the number."""
        wider = [n for n in self.seen.outputs if self.bench.targets[n].is_wider]
        return set(self.seen.outputs) <= {*self.overflown, *wider}

    @cached_property
    def narrow_inside(self) -> bool:
        """Whether all who are wrong give float64, and are right to the digits of float32."""
        limit = layer_tolerance("float32")
        return bool(self.wrong) and all(
            set(self.seen.outputs[n].dtypes) == {"float64"} and self.errors.get(n, np.inf) <= limit
            for n in self.wrong
        )

    # Excuses. Each excuses elements: the others must be within what rounding explains.

    @cached_property
    def fits_nowhere_else(self) -> bool:
        """Whether only elements are far whose exact result is beyond the type's range."""

        def excused(found: Outputs, exact: Outputs) -> list[Array]:
            masks = []
            for dtype, array in zip(found.dtypes, exact.arrays, strict=True):
                with np.errstate(invalid="ignore"):
                    size = np.abs(array.astype(np.float64))
                    masks.append(np.isfinite(size) & (size > LARGEST.get(dtype, np.inf)))
            return masks

        return self.exact is not None and self._explained(self._gaps(excused))

    @cached_property
    def is_undefined(self) -> bool:
        """Whether only elements are far whose exact result is no number, though no input is NaN."""
        if self.exact is None or any(map(_has_nan, self.read)):
            return False
        return self._explained(self._gaps(lambda found, exact: [np.isnan(a) for a in exact.arrays]))

    @cached_property
    def means_nan(self) -> bool:
        """Whether who is outvoted says what the layer means, and gives NaN in float64 too.

        Then no rounding and no narrow type makes the NaN: it is the result of a corner, which
        others need not have.
        """
        voted = self.seen.vote.outvoted
        names = [n for n in voted if n in self.able and self.bench.targets[n].defines]
        wide = self.in_float64(names) if self.kind == "nan" else {}
        return bool(wide) and all(
            np.array_equal(np.isnan(a), np.isnan(b))
            for name, found in wide.items()
            for a, b in zip(found.arrays, self.seen.outputs[name].arrays, strict=True)
            if a.dtype.kind == b.dtype.kind == "f"
        )

    @cached_property
    def last_places(self) -> tuple[str, ...]:
        """Who is off by no more than a few last places of the largest number that it reads.

        The small difference of two numbers, as in exp(x) - 1, is rounded like these numbers are:
        like 1, if they are smaller. Who reads numbers far larger than what it gives, as a norm
        does, has no such excuse for a result that is another number altogether.
        """

        def excused(found: Outputs, standard: Outputs) -> list[Array]:
            masks = []
            for x, y, dtype in zip(found.arrays, standard.arrays, found.dtypes, strict=True):
                step = base_tolerance(dtype, LAYER_PLACES)
                most = np.maximum(ELEMENT * _largest([y], y), step)
                with np.errstate(invalid="ignore"):
                    far = np.abs(x.astype(np.float64) - y)
                    near = far <= np.minimum(step * self._reads(x), most)
                masks.append((x == y) | near)
            return masks

        return tuple(n for n, gap in self._gaps(excused).items() if gap.explained)

    @cached_property
    def added_in_turn(self) -> float:
        """How far the layer's sums, added term by term in its type, are from the exact result."""
        if self.exact is None:
            return 0.0
        found = plain_sums(self.specimen, self.bench.pool.blobs)
        return max((distance(sums, self.exact.outputs) for sums in found), default=0.0)

    @property
    def as_in_turn(self) -> tuple[str, ...]:
        """Who is not much farther from the exact result than the plainest way to add."""
        most = FARTHER * self.added_in_turn
        return tuple(n for n in self.wrong if most and self.errors[n] <= most)

    def _reads(self, output: Array) -> Array:
        """The largest number that is read for each row of an output, 1 at least."""
        return np.maximum(_largest(self.specimen.inputs, output), 1.0)

    @property
    def read(self) -> list[Array]:
        """Inputs and weights."""
        blobs = self.bench.pool.blobs
        weights = [w.digest for layer in self.specimen.model.layers for w in layer.weights]
        return [*self.specimen.inputs, *(np.asarray(blobs.get(digest)) for digest in weights)]

    def again(self, change: Callable[[Array], Array]) -> Observation:
        """The same experiment, with inputs and weights changed."""
        specimen, blobs = self.specimen, self.bench.pool.blobs
        layers = tuple(
            replace(layer, weights=tuple(
                replace(w, digest=blobs.put(change(np.asarray(blobs.get(w.digest)))))
                for w in layer.weights
            ))
            for layer in specimen.model.layers
        )  # fmt: skip
        model = replace(specimen.model, layers=layers)
        changed = Specimen(model, tuple(map(change, specimen.inputs)))
        runs = self.bench.run(changed, list(self.seen.outputs))
        outputs = {n: run.reply.outputs for n, run in runs.items() if run.ok}
        return self.bench.judged(outputs, {}, self.seen.rounding, changed)

    @cached_property
    def declared(self) -> dict[str, Coarser]:
        """Who is wrong by no more than the coarser arithmetic that it declares."""
        if any("float32" not in self.seen.outputs[n].dtypes for n in self.wrong):
            return {}
        told = {n: coarser(self.precision(n)) for n in self.wrong}
        return {
            n: setting
            for n, setting in told.items()
            if setting and setting.explains(self.gaps[n].times, self.specimen.last)
        }

    @cached_property
    def is_on_an_edge(self) -> bool:
        """Whether the least movement of the input takes a right target to the wrong ones' answer.

        Element by element. Where a layer only compares and moves numbers, a tie is not rounding.
        """
        model, covered = self.specimen.model, self.reference is not None
        if moves_only(model.dialect, model.layers, covered) or not self.right:
            return False
        name = self.right[0]
        low = high = [np.asarray(a, np.float64) for a in self.seen.outputs[name].arrays]
        for seed in range(NUDGES):
            moved = [nudged(array, seed + 1) for array in self.specimen.inputs]
            run = self.bench.run(self.specimen.with_inputs(moved), [name])[name]
            if not run.ok:
                return False
            values = run.reply.outputs.arrays
            low = [np.minimum(a, b) for a, b in zip(low, values, strict=True)]
            high = [np.maximum(a, b) for a, b in zip(high, values, strict=True)]
        slack = self.seen.tolerance
        with np.errstate(invalid="ignore"):  # infinities have no slack
            return all(
                bool(((x >= lo - slack * np.abs(lo)) & (x <= hi + slack * np.abs(hi))).all())
                for wrong in self.wrong
                for x, lo, hi in zip(self.seen.outputs[wrong].arrays, low, high, strict=True)
            )

    @property
    def is_no_farther(self) -> bool:
        """Whether those who are wrong are not much farther from the exact result than others."""
        return self._no_farther(self.wrong, self.right)

    @property
    def is_equally_far(self) -> bool:
        """Whether all are about as far from the exact result."""
        found = list(self.errors.values())
        near = bool(np.isfinite(found).all()) and max(found) <= ELEMENT
        return near and max(found) <= FARTHER * min(found)

    @property
    def far(self) -> tuple[str, ...]:
        """Who is much farther from the exact result than the nearest: NaN is infinitely far."""
        return self._farther(FARTHER)

    @property
    def digits_farther(self) -> tuple[str, ...]:
        """Who has lost a whole digit that the nearest has."""
        return self._farther(DIGIT)

    def _farther(self, times: float) -> tuple[str, ...]:
        errors = {n: np.inf if np.isnan(error) else error for n, error in self.errors.items()}
        nearest = min(errors.values(), default=np.inf)
        return tuple(n for n, error in errors.items() if error > times * nearest)

    def _no_farther(self, some: Sequence[str], others: Sequence[str]) -> bool:
        theirs = [self.errors[n] for n in others if n in self.errors]
        most = FARTHER * max(theirs, default=-np.inf)
        return all(self.errors[n] <= most for n in some if n in self.errors)

    # The same in float64.

    @cached_property
    def able(self) -> list[str]:
        if self.dialect.widening is None:
            return []
        return [n for n in self.seen.outputs if self.bench.targets[n].can("float64")]

    @property
    def at_least_float32(self) -> Rounding:
        """What explains differences in float64: Keras may compute in float32 inside."""
        lowest = layer_tolerance("float32")
        base = tuple((max(relative, lowest), look) for relative, look in self.seen.rounding.base)
        return replace(self.seen.rounding, base=base)

    def in_float64(self, names: Sequence[str]) -> dict[str, Outputs]:
        widening = self.dialect.widening
        if widening is None or not names:
            return {}
        wide = widening.float64_of(self.specimen, self.bench.pool.blobs)
        runs = self.bench.run(wide, names, exact=True)
        return {name: run.reply.outputs for name, run in runs.items() if run.ok}

    @cached_property
    def errors_in_float64(self) -> dict[str, float]:
        """Of those who are wrong and did compute in float64: how far they are from exact there.

        A layer may compute in float32 inside, whatever type it is asked for: a result that is not
        right, and that float32 holds, was not computed in float64.
        """
        if self.exact is None:
            return {}
        exact = self.exact.outputs
        found = self.in_float64([n for n in self.wrong if n in self.able])
        errors = {n: distance(o, _typed(exact, o)) for n, o in found.items()}
        return {
            n: error
            for n, error in errors.items()
            if self._vanishes(n, error) or not _is_narrow(found[n])
        }

    def _vanishes(self, name: str, error: float) -> bool:
        """Whether float64 has at least one digit more, and is right with it."""
        return error <= self.errors[name] / DIGIT and error < self.gaps[name].limit

    @cached_property
    def right_in_float64(self) -> tuple[str, ...]:
        """Who is wrong, not by far, and right when all is computed in float64."""
        found = self.errors_in_float64
        near = [n for n, error in found.items() if self._vanishes(n, error) and self._is_near(n)]
        return tuple(near)

    def _is_near(self, name: str) -> bool:
        if name in self.last_places:
            return True
        if not self.errors[name] <= ELEMENT:  # another number, as overflow on the way makes it
            return False
        if self.all_wrong:  # how far they all are says little then
            voted = self.seen.vote
            return voted.decided and self._no_farther(voted.outvoted, voted.majority)
        return self.gaps[name].times < LOST_DIGITS

    @cached_property
    def not_in_float64(self) -> tuple[str, ...]:
        """Who is wrong, and could not be asked, or gave what float32 holds."""
        return tuple(n for n in self.wrong if n not in self.errors_in_float64)

    # Gaps to the standard, with some elements left out on both sides.

    def _gaps(self, excused: Callable[[Outputs, Outputs], Sequence[Array]]) -> dict[str, Gap]:
        return {n: self._gap(found, excused) for n, found in self.seen.outputs.items()}

    def _gap(self, found: Outputs, excused: Callable[[Outputs, Outputs], Sequence[Array]]) -> Gap:
        if self.standard is None:
            return Gap(0.0, 1.0)
        if _forms(found) != _forms(self.standard):
            return Gap(np.inf, 0.0)
        masks = excused(found, self.standard)
        sides = [_without(side, masks) for side in (found, self.standard)]
        return self.seen.rounding.gap(sides[0], _typed(sides[1], found))

    def _explained(self, gaps: Mapping[str, Gap]) -> bool:
        return all(gap.explained for gap in gaps.values())


def _nowhere(outputs: Outputs) -> list[Array]:
    return [np.zeros(array.shape, bool) for array in outputs.arrays]


def _without(outputs: Outputs, masks: Sequence[Array]) -> Outputs:
    pairs = zip(outputs.arrays, masks, strict=True)
    arrays = tuple(np.where(mask, np.zeros((), a.dtype), a) for a, mask in pairs)
    return replace(outputs, arrays=arrays)


def _beside(exact: Outputs, found: Sequence[Outputs]) -> Outputs:
    """The exact result, but for elements on which all give the same: there it is that."""
    if any(_forms(some) != _forms(exact) for some in found) or len(found) < 2:
        return exact
    arrays = []
    for place, array in enumerate(exact.arrays):
        first, *others = [some.arrays[place] for some in found]
        alike = np.all([(first == o) | ((first != first) & (o != o)) for o in others], axis=0)
        arrays.append(np.where(alike, first, array))
    return replace(exact, arrays=tuple(arrays))


def _typed(exact: Outputs, found: Outputs) -> Outputs:
    """The exact result as if it had a target's types: of these it is not judged."""
    return replace(exact, dtypes=found.dtypes)


def _forms(outputs: Outputs) -> list[tuple[int, ...]]:
    return [array.shape for array in outputs.arrays]


def _largest(arrays: Sequence[Array], output: Array) -> Array:
    """The largest finite number of some arrays for each row of an output, 0 if there is none."""
    rows = output.shape[:1]
    largest = np.zeros(rows)
    for array in arrays:
        if array.dtype.kind == "U":
            continue
        sizes = np.abs(array.astype(np.float64))
        finite = np.where(np.isfinite(sizes), sizes, 0.0)
        own = array.shape[:1] == rows
        inner = tuple(range(1 if own else 0, array.ndim))
        largest = np.maximum(largest, finite.max(axis=inner, initial=0.0))
    return largest.reshape(*rows, *[1] * (output.ndim - 1)) if output.ndim else largest


def _misses_a_number(found: Array, dtype: str, exact: Array) -> bool:
    if found.dtype.kind != "f" or dtype not in LARGEST:
        return False
    with np.errstate(invalid="ignore"):
        fits = np.abs(exact.astype(np.float64)) <= FITS * LARGEST[dtype]
    return bool((~np.isfinite(found) & fits).any())


def _has_nan(array: Array) -> bool:
    return array.dtype.kind == "f" and bool(np.isnan(array).any())


def _is_narrow(outputs: Outputs) -> bool:
    """Whether float64 holds nothing that float32 would not."""
    with np.errstate(over="ignore"):
        return all(np.array_equal(a, a.astype(np.float32), equal_nan=True) for a in outputs.arrays)
