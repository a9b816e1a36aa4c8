"""Programs of PyTorch's samples for campaigns, and whose values say nothing behind rounding."""

from __future__ import annotations

from collections.abc import Sequence

from outvote.bench.bulk import CampaignSieve
from outvote.bench.sieve import PACK
from outvote.core.batch import DrawCases
from outvote.core.protocol import ModelRead
from outvote.core.sifted import SuspectCase
from outvote.core.target import Target
from outvote.dialects.torch_export.nouns.program import program_in
from outvote.run.pool import Pool

_MOST = 3  # operators in a program
# What jumps where its input moves a little.
_JUMPS = frozenset(
    f"aten.{name}"
    for name in """argmax argmin argsort bucketize ceil div eq equal floor floor_divide fmod frac ge
    gt heaviside histc isclose kthvalue le logical_and logical_not logical_or logical_xor lt
    max_pool1d_with_indices max_pool2d_with_indices median mode msort nanmedian ne nonzero
    reciprocal remainder round searchsorted sgn sign signbit sort to topk trunc unique_dim
    where _to_copy
    """.split()
)


def open_sieve(pool: Pool, targets: Sequence[Target], reader: str, seed: int) -> CampaignSieve:
    """A sieve on these targets."""
    wanted = DrawCases(seed=seed, first=0, count=PACK, most=_MOST)
    return CampaignSieve(pool, targets, reader, wanted, _JUMPS, _read)


def _read(case: SuspectCase) -> ModelRead:
    return program_in(case.content)
