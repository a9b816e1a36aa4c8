"""Programs in packs, each drawn by its number."""

from __future__ import annotations

import random

from outvote.core.batch import DrawCases, GraphCase, GraphsDrawn, packed_cases
from outvote.dialects.torch_export.workers.draw.chain import draw_program
from outvote.dialects.torch_export.workers.draw.samples import operators
from outvote.dialects.torch_export.workers.shared.batch import case_of
from outvote.dialects.torch_export.workers.shared.tensors import as_state
from outvote.worker.main import Refused
from outvote.worker.unfit import Unfit

_TRIES = 200  # draws that do not work out, before a number is given up


def draw_cases(request: DrawCases) -> GraphsDrawn:
    """Packed programs of consecutive numbers."""
    strange = [name for name in request.kinds if name not in operators()]
    if strange:
        raise Refused(f"PyTorch has no samples of {strange[0]!r}")
    found: list[GraphCase] = []
    refused = 0
    for number in range(request.first, request.first + request.count):
        chance = random.Random(f"{request.seed} {number}")  # noqa: S311 - no secret
        case, vain = _drawn(chance, request)
        found.append(case)
        refused += vain
    return GraphsDrawn(cases=packed_cases(found), refused=refused)


def _drawn(chance: random.Random, request: DrawCases) -> tuple[GraphCase, int]:
    for vain in range(_TRIES):
        try:
            program = draw_program(chance, request)
        except Unfit:
            continue
        feeds = [as_state(tensor, None).array for tensor in program.feeds]
        return case_of(program.read, feeds), vain
    raise Refused(f"no program was found in {_TRIES} draws of {', '.join(request.kinds) or 'all'}")
