"""Every tolerance and threshold of comparisons, noise and verdicts, and where each comes from.

A place is a unit in the last place: the distance from 1 to the next number of a type. Distances
are relative unless they say otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from outvote.core.arrays import Array
from outvote.core.model import Layer
from outvote.core.outputs import Outputs

PLACE = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}

# The largest finite number of a type (IEEE 754; bfloat16: 8 bits of mantissa). An exact result
# beyond it does not fit.
LARGEST = {
    "float16": 65504.0,
    "bfloat16": (2 - 2.0**-7) * 2.0**127,
    "float32": (2 - 2.0**-23) * 2.0**127,
    "float64": float(np.finfo(np.float64).max),
}

# Below this nothing is relative: processors flush numbers near 1.2e-38, the smallest of float32,
# to zero, each in its own way. 1e-30 keeps the 24 bits of float32 (1.7e7) above that.
NOTHING = 1e-30


# How far results may be apart without being asked why ------------------------------------------

# What one layer may differ by without a look at its noise. The noise of even the identity is one
# place, and NOISE_FACTOR times that is ten: to measure it would never explain less than this.
LAYER_PLACES = 8.0

# What a whole model may differ by without a look at its noise: 84 places are 1e-5 in float32,
# a screen rather than a verdict, since beyond it the noise is measured. In the narrow types 84
# places are 8 % and 66 %, in which faults would hide: twice a layer's.
MODEL_PLACES = 84.0
NARROW_MODEL_PLACES = 16.0

# A result fits its type with room to spare up to this share of the largest number: nearer to it,
# rounding alone may reach infinity.
FITS = 0.5

# An element that is off by a quarter of itself is another number, however small it is beside the
# largest of its instance; unless that is no more than LAYER_PLACES of the largest, which is all
# that a sum leaves of terms that cancel.
ELEMENT = 0.25

# A hidden layer of a mutant on which targets are farther apart is looked into. It is 1e-5 in
# every type of float: on purpose less than rounding in the narrow ones, because that look is what
# measures it. Of integers, any difference.
SCREEN = 1e-5

# Small cases in bulk are compared once, and no look measures the rounding of each: in a narrow type
# they may be a few units in the last place apart, where SCREEN would be less than one.
BULK_PLACES = 16.0

# What stands for the truth where none is known lies beyond any target's answer, so that D_MAD, a
# ratio of distances to it, makes little of rounding: by a hundredth of a certain answer, or by a
# tenth of how far values are from their mean. Both are far from rounding (1e-5) and small beside
# the answers. Probabilities of all classes add up to one, within what float16 makes of a sum of a
# few.
BEYOND_CERTAIN = 0.01
BEYOND_VALUE = 0.1
SUM_OF_ALL = 1e-3

# CRADLE, section IV: T_C, T_M, k and p.
CLASS_THRESHOLD = 8.0
MAD_THRESHOLD = 0.2
TOP_K = 5
P_PERCENT = 0.0


# Noise -----------------------------------------------------------------------------------------

# Seeds of the probes: twice at random, and once (0) all tensors away from zero, because in a
# chain of single numbers random moves may cancel.
PROBES = (1, 2, 0)

# Nine more where a difference is beyond the noise but within LOST_DIGITS of it: the largest of
# three moves of a single number is by chance less than a tenth of what is usual once in 2,000
# times, the largest of twelve never (0.08 ** 12).
MORE_PROBES = tuple(range(3, 12))

# How many times the noise floor still is rounding. Two honest results differ by two roundings,
# the floor is the largest of three moves. Simulated with normal errors, the difference is more
# than ten times the floor in 0.2 % of cases where a result is one number, and below 0.005 % from
# three numbers on (tests/test_tolerance.py holds that).
NOISE_FACTOR = 10.0

# Bits of a number that one layer may lose and still be called rounding: 13, of the 24 of
# float32. A larger difference is not measured while a case is made small, where a trial costs
# three runs; what is told at the end has been measured.
LOST_BITS = 13

# Outputs that move less than this from input to input carry little evidence. A choice: a fault
# that moves as much as all inputs do is then no more than a hundred times MODEL_PLACES in float32.
HARDLY = 1e-3

# A noise floor behind which any fault could hide: NOISE_FACTOR times it is the output itself.
CHAOTIC = 1 / NOISE_FACTOR


# Verdicts --------------------------------------------------------------------------------------

# The unit roundoff of TF32, the finest arithmetic that hardware puts in the place of float32
# without being asked.
_TF32 = 2.0**-11

# How many times what rounding explains is lost digits still, if float64 has them. On a
# logarithmic scale that is half way from a layer's rounding in float32 (LAYER_PLACES) to
# arithmetic in fewer bits (TF32), which is a fault where nobody declared it: the square root of
# 2**-11 / (8 * 2**-23) = 512, so 22.6. Measured on an H200, products of matrices with 64, 576 and
# 4608 terms in TF32 are off by 125, 97 and 44 times what rounding explains.
LOST_DIGITS = math.sqrt(_TF32 / (LAYER_PLACES * PLACE["float32"]))

# A difference vanishes in float64 if at least one decimal digit of the error does.
DIGIT = 10.0

# Who is no more than so many times as far from the exact result as another is not farther: both
# errors are draws of one distribution. Simulated with normal errors, the larger maximum is more
# than twice the other in 8 % of cases with ten numbers, 1 % with 30, 0.06 % with 100
# (tests/test_tolerance.py holds that).
FARTHER = 2.0

# Moves of the input by one place that look for a discontinuity: an answer that one move in two
# gives is missed once in 4,096 times.
NUDGES = 12

# Steps of central differences in float64, by the size of the number that is moved: powers of two,
# so that x + h is exact for most x, eight times smaller each time, from far above the best of
# central differences (the cube root of a place, 6e-6) past that of one-sided ones (its root,
# 1.5e-8) to what is small beside the borders at which losses clip (1e-7).
SLOPE_STEPS = tuple(2.0**-n for n in range(5, 33, 3))

# What losses keep away from 0 by in a second look, in float64: so little that it is rounding beside
# the 1e-7 that is usual, and far above a place of 1. What targets are apart by because they clip at
# other moments shrinks with it, by half of the steps (on a logarithmic scale) at least.
NEAR_BORDER = 2.0**-44
BORDER_SHRINKS = math.sqrt(NEAR_BORDER / 1e-7)

# Two steps of which one is eight times the other give one slope, if it is no farther apart than
# that; where the smallest change nothing then, on both sides, the function is computed in a type
# that does not hold such steps.
SLOPE_COARSE = 0.01

# Two values of a function are subtracted for a slope, each right to a last place of its terms.
SLOPE_PLACES = 2.0

# A jump between one-sided derivatives shrinks with the step where a function is smooth, eight times
# from step to step; at a kink it stays. Half way on a logarithmic scale.
JUMP_STAYS = 1 / math.sqrt(8.0)

# A slope that grows without end, as a square root's at 0, grows by the root of eight from step to
# step; half way on a logarithmic scale.
SLOPE_GROWS = 8.0**0.25

# A jump shows where it is so many times what noise makes of it: it is a difference of two slopes,
# each of two values, and the largest of a few of those.
JUMP_SHOWS = 8.0

# Central differences tell targets apart if their error is no more than a quarter of the spread: who
# is at one end is then not taken for who is at the other, with as much again for both.
SLOPE_ERROR = 0.25

# A smaller specimen must show this much of the distance. A choice: fewer terms and plainer numbers
# cost a fault a digit or two, and what is left must still be beyond rounding to count at all.
NEAR = 0.01


def base_tolerance(dtype: str, places: float) -> float:
    """A relative distance of so many places; for integers, any at all."""
    if dtype not in PLACE:
        return float(np.finfo(np.float64).tiny)
    return PLACE[dtype] * places


def model_tolerance(dtype: str) -> float:
    """What a whole model may differ by without being asked why: 1e-5 in float32."""
    wide = dtype in ("float32", "float64")
    return base_tolerance(dtype, MODEL_PLACES if wide else NARROW_MODEL_PLACES)


def layer_tolerance(dtype: str, terms: int = 1) -> float:
    """What one layer may differ by without a look at its noise, if it adds so many terms.

    n roundings in a row, each of half a place at most, wander by about the square root of n
    places (Higham and Mary, A New Approach to Probabilistic Rounding Error Analysis, 2019), and
    movements of the layer's input do not show them.
    """
    return base_tolerance(dtype, max(LAYER_PLACES, math.sqrt(terms)))


def screen_tolerance(outputs: Outputs) -> float:
    """The distance of a hidden layer that is worth a closer look."""
    return min((SCREEN if d in PLACE else base_tolerance(d, 1) for d in outputs.dtypes), default=0)


def beyond_noise(dtype: str, layers: int) -> float:
    """A distance that no rounding of one layer explains; infinite where there are several."""
    if layers > 1:
        return math.inf
    return NOISE_FACTOR * base_tolerance(dtype, 2.0**LOST_BITS)


def terms_of(layers: Sequence[Layer], given: Sequence[Array]) -> int:
    """How many numbers one of some layers adds at most, the first of which reads given tensors.

    No more than it reads, and no more than a row of its matrix, or a window of its kernel, holds.
    Layers behind the first are known by their weights alone.
    """
    rows = [
        max((math.prod(w.shape[:-1]) for w in layer.weights if len(w.shape) > 1), default=0)
        for layer in layers
    ]
    reads = max((math.prod(array.shape[1:]) for array in given), default=1)
    first = min(reads, rows[0]) if rows and rows[0] else reads
    return max([1, first, *rows[1:]])
