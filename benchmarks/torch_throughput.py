"""How many PyTorch programs a campaign tries in a minute, every target in a process of its own.

    .venv/bin/python benchmarks/torch_throughput.py --seconds 60
    .venv/bin/python benchmarks/torch_throughput.py --nnsmith OTHER/bin/python

Programs are drawn, run and compared as `outvote fuzz --strategy layers` does it; what parts targets
is counted, not looked into. The first pack, for which the samples are loaded, is not timed.
With an interpreter that has NNSmith, that draws programs of as many operators for as long, first.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from nnsmith_rate import nnsmith_rate
from onnx_throughput import measure
from outvote.bench.sieve import PACK, GraphSieve
from outvote.core.batch import DrawCases
from outvote.dialects.torch_export.targets import BUILT_IN
from outvote.run.local import LocalPool
from outvote.targets.choose import choose

READER = "torch:eager"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--targets", default="torch:eager,torch:decomposed", help="by commas")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--operators", type=int, default=3, help="at most, in a program")
    parser.add_argument("--nnsmith", type=Path, metavar="PYTHON", help="that has NNSmith")
    options = parser.parse_args()
    targets = choose(options.targets.split(","), BUILT_IN)
    names = [target.name for target in targets]
    wanted = DrawCases(seed=0, first=0, count=PACK, most=options.operators)
    other = 0.0
    if options.nnsmith:
        other = nnsmith_rate(options.nnsmith, options.seconds, options.operators)
    with LocalPool(targets) as pool, GraphSieve(pool, names, READER, wanted) as sieve:
        _, rate = measure(sieve, names, options.seconds)
    if other:
        print(f"NNSmith tries {other:,.0f} a minute: outvote {rate / other:.1f} times as many")


if __name__ == "__main__":
    main()
