"""Free graphs for campaigns: which are drawn, and whose values say nothing behind rounding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outvote.bench.bulk import CampaignSieve
from outvote.bench.sieve import PACK
from outvote.core.protocol import File, ModelRead, Read
from outvote.core.sifted import SuspectCase
from outvote.core.target import Target
from outvote.dialects.onnx.files import SUFFIXES
from outvote.dialects.onnx.nouns.batch import DrawGraphs
from outvote.run.pool import Pool
from outvote.run.settle import ask_settled

_OPSETS = (17, 17, 17, 13, 21)  # 17 is read by all; the others mostly

# What jumps where its input moves a little: behind rounding, values of the whole say nothing.
_JUMPS = frozenset(
    "And ArgMax ArgMin Cast CastLike Ceil Div DynamicQuantizeLinear Equal Floor GatherElements "
    "Greater GreaterOrEqual GridSample Hardmax Less LessOrEqual MaxRoiPool Mod NonMaxSuppression "
    "NonZero Not OneHot Or QLinearConv QLinearMatMul QuantizeLinear Reciprocal Resize RoiAlign "
    "Round Shrink Sign ThresholdedRelu TopK Unique Where Xor".split()
)


def open_sieve(pool: Pool, targets: Sequence[Target], reader: str, seed: int) -> CampaignSieve:
    """A sieve on these targets."""

    def read(case: SuspectCase) -> ModelRead | None:
        content = pool.blobs.put(np.frombuffer(case.content, np.uint8))
        run = ask_settled(pool, reader, Read(file=File(f"case{SUFFIXES[0]}", content)))
        return run.reply if run.ok else None

    wanted = DrawGraphs(seed=seed, first=0, count=PACK, opsets=_OPSETS)
    return CampaignSieve(pool, targets, reader, wanted, _JUMPS, read)
