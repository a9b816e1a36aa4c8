"""What is known of a stage of training on which targets differ; instruments are asked when needed.

Two instruments: the same exercise in float64 on independent libraries, and for gradients central
differences in float64, which need no library's gradient at all. A vote decides nothing here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from outvote.bench.bench import Bench
from outvote.bench.exercise import Exercised, do_wide
from outvote.bench.reader import choose_reference
from outvote.bench.slopes import Element, slopes_at
from outvote.core.arrays import Array
from outvote.core.dialect import dialect
from outvote.core.exercises import Drill, Pull, Update, leaf_name
from outvote.core.outputs import Outputs
from outvote.core.target import Run
from outvote.judge.observation import Observation
from outvote.judge.rounding import Gap, Rounding
from outvote.judge.slopes import Point, Slope
from outvote.judge.tolerance import (
    BORDER_SHRINKS,
    DIGIT,
    FARTHER,
    LARGEST,
    LOST_DIGITS,
    NEAR_BORDER,
)
from outvote.judge.vote import vote

_LEAVES, _EACH = 3, 4  # elements of so many arrays are held against central differences


@dataclass(frozen=True)
class WholeModel:
    """None of whose stages differs alone. `is_composed`: asks whether each target's gradients are
    what those of its own layers come to, or its first step what they lead to.

    `at_infinity`: NaN or infinity comes to some of its layers, forward or back.
    """

    is_composed: Callable[[], bool] = lambda: False
    at_infinity: bool = False


@dataclass
class StageInquiry:
    """The questions that the rows ask about one part of one exercise."""

    bench: Bench
    done: Exercised
    part: str
    seen: Observation
    kind: str | None = None  # of the layer, whose kernels may be another library's
    whole: WholeModel | None = None

    @property
    def failed(self) -> bool:
        return self.seen.kind in ("crash", "hang")

    @property
    def failures(self) -> tuple[str, ...]:
        return tuple(self.seen.failures)

    @cached_property
    def misshapen(self) -> tuple[str, ...]:
        """Who gives a gradient of another shape or type than what it is a gradient of."""
        exercise = self.done.exercise
        if self.part != "gradient" or not isinstance(exercise, Pull):
            return ()
        return tuple(
            name
            for name, reply in self.done.replies.items()
            if any(
                leaf.array is not None and leaf.array.shape != exercise.shape(leaf)
                for leaf in reply.gradients
            )
        )

    @cached_property
    def mistyped(self) -> tuple[str, ...]:
        """Who gives other types than it was given."""
        exercise = self.done.exercise
        if self.part != "gradient" or not isinstance(exercise, Pull):
            return ()
        return tuple(
            name
            for name, reply in self.done.replies.items()
            if any(
                leaf.array is not None
                and not leaf.layer
                and leaf.dtype != exercise.model.inputs[leaf.place].dtype
                for leaf in reply.gradients
            )
        )

    @property
    def types_alone(self) -> bool:
        """Whether numbers agree, told in another type."""
        outputs = list(self.seen.outputs.values())
        shapes = [[array.shape for array in found.arrays] for found in outputs]
        if self.seen.kind != "shape" or any(found != shapes[0] for found in shapes):
            return False
        alike = {n: replace(o, dtypes=outputs[0].dtypes) for n, o in self.seen.outputs.items()}
        return all(gap.explained for gap in self.seen.rounding.gaps(alike).values())

    # Central differences.

    @cached_property
    def points(self) -> list[Point]:
        """The elements on which targets differ most, where central differences are conclusive."""
        pull = self.done.exercise
        if self.part != "gradient" or not isinstance(pull, Pull) or self.seen.kind == "shape":
            return []
        chosen = self._elements()
        if not chosen:
            return []
        wide = self._wide.exercise
        assert isinstance(wide, Pull)
        elements = [element for element, _ in chosen]
        able = dict.fromkeys((self.instrument, *self._wide.replies))
        slopes = {name: slopes_at(self.bench, wide, elements, name) for name in able}
        found = [
            self._point(element, place, {name: known[n] for name, known in slopes.items()})
            for n, (element, place) in enumerate(chosen)
        ]
        return [point for point in found if point.is_clear]

    @property
    def instrument(self) -> str:
        """Who computes the function beside a point: its gradient is not asked."""
        able = list(self._wide.replies)  # some have no kernel in float64
        return choose_reference(able or list(self.seen.outputs), self.bench.targets)

    def _elements(self) -> list[tuple[Element, int]]:
        leaves = next(iter(self.done.replies.values())).gradients
        far = [(self._apart(place), place) for place in range(len(leaves))]
        worst = sorted(far, key=lambda item: -float(item[0].max(initial=0.0)))[:_LEAVES]
        found = []
        for apart, place in worst:
            for flat in np.argsort(-apart, axis=None, kind="stable")[:_EACH]:
                index = tuple(int(n) for n in np.unravel_index(int(flat), apart.shape))
                if apart[index] > 0:
                    found.append((Element(leaves[place], index), place))
        return found

    def _apart(self, place: int) -> Array:
        """How far targets are apart, element by element, by the size of the array."""
        arrays = np.stack([o.arrays[place].astype(np.float64) for o in self.seen.outputs.values()])
        with np.errstate(invalid="ignore"):
            spread = arrays.max(axis=0) - arrays.min(axis=0)
            odd = ~np.isfinite(arrays).all(axis=0) & ~np.isnan(arrays).all(axis=0)
        apart = np.where(odd, np.inf, np.nan_to_num(spread))
        return apart / (_scale(arrays) or 1.0)

    def _point(self, element: Element, place: int, slopes: Mapping[str, Slope]) -> Point:
        index = element.index
        given = {n: float(o.arrays[place][index]) for n, o in self.seen.outputs.items()}
        point = Point(
            leaf_name(element.leaf),
            place,
            index,
            slopes[self.instrument],
            given,
            self._allowed(place, index),
            slopes,
            self.instrument,
        )
        clear = [name for name, slope in slopes.items() if point.tells(slope)]
        by = next(iter(clear), self.instrument)  # the first is the instrument of choice
        return replace(point, slope=slopes[by], by=by)

    def _allowed(self, place: int, index: tuple[int, ...]) -> dict[str, float]:
        """What rounding explains at an element, in absolute numbers.

        It has the size of what a target computes itself: others may compute another function,
        which is flat there; or what is usual, where it gives less.
        """
        rounding = self.seen.rounding
        rows = {name: found.rows[place] for name, found in self.seen.outputs.items()}
        axis = next(iter(self.seen.outputs.values())).axes[place]
        row = 0 if axis is None else index[axis]
        limit = float(rounding.limits(place, len(next(iter(rows.values()))))[0, row])
        scales = {name: _scale(array[row]) for name, array in rows.items()}
        usual = sorted(scales.values())[(len(rows) - 1) // 2]
        floor = rounding.floors[place] if rounding.floors else 0.0
        return {name: max(limit * max(usual, own), floor) for name, own in scales.items()}

    @cached_property
    def wrong_by_slopes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for point in self.points for name in point.wrong))

    @property
    def has_kinks(self) -> bool:
        return any(point.slope.is_kink for point in self.points)

    @property
    def disputed(self) -> list[Point]:
        """Where targets compute different functions, and each may be right about its own."""
        return [point for point in self.points if point.is_disputed]

    @cached_property
    def without_number(self) -> tuple[str, ...]:
        """Who gives NaN, or an infinity, where the derivative is a number."""
        return tuple(
            dict.fromkeys(
                name
                for point in self.points
                for name in point.wrong
                if not math.isfinite(point.given[name])
            )
        )

    @property
    def overflows(self) -> bool:
        """Whether targets are wrong only where the derivative is beyond the range of the type."""
        odd = [point for point in self.points if point.wrong]
        outputs = next(iter(self.seen.outputs.values()))
        return bool(odd) and all(
            point.slope.is_beyond(LARGEST.get(outputs.dtypes[point.place], math.inf))
            for point in odd
        )

    @property
    def at_infinity(self) -> bool:
        """Whether a derivative of a whole is asked for that has none."""
        if self.whole is None or self.part != "gradient" or self.failed:
            return False
        return self.whole.at_infinity

    @cached_property
    def without_gradient(self) -> tuple[str, ...]:
        """Who gives nothing where the derivative is not zero."""
        told = self.done.told(self.part)
        return tuple(
            dict.fromkeys(
                name
                for point in self.points
                for name in point.wrong
                if point.name in told[name].missing
            )
        )

    # Logits behind an output.

    @cached_property
    def readers(self) -> tuple[str, ...]:
        """Whose loss reads the logits behind the model's output: passed on, targets agree.

        In float64, where rounding near the borders at which others clip hides nothing.
        """
        asked = self.done.exercise
        if not isinstance(asked, Pull | Drill) or asked.loss is None or not asked.model.layers:
            return ()
        passed = dialect(asked.model.dialect).lesson.passed_on(asked.model)
        if passed is None or self.failed:
            return ()
        between = do_wide(self.bench, replace(asked, model=passed), list(self.wide))
        after, rounding = between.outputs(self.part), self.seen.rounding
        told = {n: replace(o, dtypes=self.seen.outputs[n].dtypes) for n, o in after.items()}
        if len(told) < 2 or not all(gap.explained for gap in rounding.gaps(told).values()):
            return ()
        return tuple(
            n for n, o in self.wide.items() if n in told and not rounding.explains(o, told[n])
        )

    # Borders at which losses clip.

    @cached_property
    def clips(self) -> bool:
        """Whether each gives what it gives in float64, and what these are apart by shrinks with
        the number by which losses keep away from 0: they clip at other moments."""
        pull, rounding = self.done.exercise, self.seen.rounding
        if not isinstance(pull, Pull) or pull.loss is None or self.failed or len(self.wide) < 2:
            return False
        if self.points:  # of gradients, what each computes itself tells more
            return False
        apart = [gap for gap in _finer(rounding).gaps(self.wide).values() if not gap.explained]
        own = [rounding.gap(self.wide[n], self.seen.outputs[n]).times for n in self.wide]
        if not apart or max(own) >= LOST_DIGITS:
            return False
        nearer = do_wide(self.bench, replace(pull, border=NEAR_BORDER), list(self.wide))
        found = nearer.outputs(self.part)
        shrunk = _spread(list(found.values())) < BORDER_SHRINKS * _spread(list(self.wide.values()))
        return len(found) == len(self.wide) and shrunk

    # float64.

    @cached_property
    def _wide(self) -> Exercised:
        return do_wide(self.bench, self.done.exercise, list(self.seen.outputs))

    @property
    def lost(self) -> Mapping[str, Run]:
        """Who fails in float64, though it does not in the types that are judged."""
        return self._wide.failures

    @cached_property
    def wide(self) -> dict[str, Outputs]:
        """What targets give in float64, told in the types that are judged."""
        return {
            name: replace(found, dtypes=self.seen.outputs[name].dtypes)
            for name, found in self._wide.outputs(self.part).items()
            if len(found.arrays) == len(self.seen.outputs[name].arrays)
        }

    @cached_property
    def agreed(self) -> tuple[str, ...]:
        """Who gives in float64 what our own formula gives, a digit better than what is judged;
        else independent libraries that agree as well as that."""
        if self.by_formula:
            return self.by_formula
        finer = _finer(self.seen.rounding)
        gaps = finer.gaps(self.wide)
        voters = {name: self.bench.targets[name] for name in self.wide}
        groups = vote(
            voters, [pair for pair, gap in gaps.items() if gap.explained], self.kind
        ).groups
        sizes = {group: len(self._libraries(group)) for group in groups}
        best = max(sizes, key=sizes.__getitem__, default=())
        alone = [group for group in groups if sizes[group] == sizes.get(best)]
        return best if sizes.get(best, 0) > 1 and len(alone) == 1 else ()

    @cached_property
    def by_formula(self) -> tuple[str, ...]:
        """Who gives in float64 what our own formula of an update gives; nobody where these part in
        what an optimiser remembers, which is not told by the formula."""
        update, spoken = self.done.exercise, self.bench.targets[next(iter(self.seen.outputs))]
        if not isinstance(update, Update) or self.seen.kind == "shape":
            return ()
        right = dialect(spoken.dialect).lesson.exact_update(update)
        if right is None:
            return ()
        finer = _finer(self.seen.rounding)
        count = len(right)
        held = tuple(
            name
            for name, found in self.wide.items()
            if finer.explains(
                Outputs(right, found.dtypes[:count]),
                Outputs(found.arrays[:count], found.dtypes[:count]),
            )
        )
        alike = all(finer.explains(self.wide[held[0]], self.wide[name]) for name in held)
        return held if alike else ()

    def _libraries(self, names: Sequence[str]) -> set[str]:
        return {self.bench.targets[name].implementation_of(self.kind) for name in names}

    @cached_property
    def exact(self) -> Outputs | None:
        return self.wide[self.agreed[0]] if self.agreed else None

    @cached_property
    def gaps(self) -> dict[str, Gap]:
        """How far each target is from what float64 gives."""
        if self.exact is None:
            return {}
        rounding = self.seen.rounding
        return {name: rounding.gap(self.exact, found) for name, found in self.seen.outputs.items()}

    @cached_property
    def wrong_by_float64(self) -> tuple[str, ...]:
        return tuple(name for name, gap in self.gaps.items() if not gap.explained)

    @property
    def far(self) -> tuple[str, ...]:
        """Who is farther from the right answer than rounding explains."""
        return self.wrong_by_slopes if self.points else self.wrong_by_float64

    @cached_property
    def excused(self) -> tuple[str, ...]:
        """Who is far by lost digits alone: float64 has them. Who is hardly farther is no worse."""
        if self.points:
            return tuple(n for n in self.far if n in self.right_in_float64 and self._is_near(n))
        times = {name: gap.times for name, gap in self.gaps.items()}
        lost = [n for n in self.far if n in self.agreed and times[n] < LOST_DIGITS]
        most = FARTHER * max((times[name] for name in lost), default=0.0)
        return tuple(name for name in self.far if name in lost or times[name] <= most)

    @cached_property
    def right_in_float64(self) -> tuple[str, ...]:
        """Who gives in float64 what central differences give; without any, what is agreed on."""
        if not self.points:
            return self.agreed
        return tuple(
            name
            for name, found in self.wide.items()
            if all(p.is_right(name, float(found.arrays[p.place][p.index])) for p in self.points)
        )

    def _is_near(self, name: str) -> bool:
        return all(p.is_right(name, p.given[name], LOST_DIGITS) for p in self.points)

    @property
    def expected(self) -> Outputs | None:
        """What would be right, as far as float64 gives it."""
        return self.wide[self.right_in_float64[0]] if self.right_in_float64 else None

    @property
    def adds_up(self) -> bool:
        """Whether rounding of many layers may come to as much."""
        if self.part == "steps":  # which are as small as a rate of learning makes them
            return False
        return self._is_of_numbers and self.seen.gap.times < LOST_DIGITS

    @cached_property
    def passed_on(self) -> bool:
        """Whether rounding of earlier layers, passed on by later ones, is all that is left."""
        if self.whole is None or self.part not in ("gradient", "steps") or not self._is_of_numbers:
            return False
        return self.whole.is_composed()

    @property
    def _is_of_numbers(self) -> bool:
        """Of a whole model, and nobody fails or gives another shape."""
        return self.whole is not None and self.seen.kind == "inconsistency"

    @property
    def all_wrong(self) -> bool:
        return bool(self.wrong) and len(self.wrong) == len(self.seen.outputs)

    @property
    def wrong(self) -> tuple[str, ...]:
        return tuple(name for name in self.far if name not in self.excused)


def _finer(rounding: Rounding) -> Rounding:
    base = tuple((relative / DIGIT, element / DIGIT) for relative, element in rounding.base)
    return replace(rounding, base=base)


def _spread(outputs: Sequence[Outputs]) -> float:
    """The largest distance of any two, in absolute numbers; infinite where there are others."""
    arrays = [np.stack(found) for found in zip(*(o.arrays for o in outputs), strict=True)]
    if not all(np.isfinite(array).all() for array in arrays):
        return math.inf
    return max((float(np.ptp(array, axis=0).max(initial=0.0)) for array in arrays), default=0.0)


def _scale(array: Array) -> float:
    sizes = np.abs(array.astype(np.float64))
    return float(np.where(np.isfinite(sizes), sizes, 0.0).max(initial=0.0))
