"""How many PyTorch programs a campaign tries in a minute, every target in a process of its own.

    .venv/bin/python benchmarks/torch_throughput.py --seconds 60

Programs are drawn, run and compared as `outvote fuzz --strategy layers` does it; what parts targets
is counted, not looked into. The first pack, for which the samples are loaded, is not timed.
"""

from __future__ import annotations

import argparse

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
    options = parser.parse_args()
    targets = choose(options.targets.split(","), BUILT_IN)
    names = [target.name for target in targets]
    wanted = DrawCases(seed=0, first=0, count=PACK, most=options.operators)
    with LocalPool(targets) as pool, GraphSieve(pool, names, READER, wanted) as sieve:
        measure(sieve, names, options.seconds)


if __name__ == "__main__":
    main()
