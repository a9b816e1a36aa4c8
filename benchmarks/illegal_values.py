"""Which targets accept, refuse, hang on or die of illegal parameter values (AUDEE, section 2.3).

    python benchmarks/illegal_values.py [--targets tensorflow,jax,torch] [--only Conv2D]

Every kind of layer that can be drawn, every parameter, every illegal value of the API
configurations, on each target. Printed: how many each refused, and a row for every value that is
not refused by all; values that all accept are listed by kind below.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from typing import Any

import numpy as np

from outvote.core.protocol import AttemptLayer, ListKinds
from outvote.core.target import Outcome, Run
from outvote.dialects.keras.mutate.catalogue import Catalogue, Kind
from outvote.dialects.keras.mutate.maker import Maker
from outvote.dialects.keras.mutate.parameters import parameter
from outvote.dialects.keras.targets import BUILT_IN
from outvote.mutate.subject import Spec
from outvote.run.local import LocalPool
from outvote.run.pool import Pool, asker
from outvote.run.process import Limits

PLACES = {1: (12,), 2: (6, 4), 3: (8, 8, 4), 4: (4, 6, 6, 4), 5: (2, 4, 6, 6, 4)}
_TRIES = 20


def legal(kind: Kind, catalogue: Catalogue, maker: Maker) -> tuple[dict[str, Any], list[Spec]]:
    """Parameters and tensors that Keras takes for this kind; empty where none were found."""
    rng = np.random.default_rng(0)
    dtype = "int32" if kind.whole_numbers else "float32"
    for rank in kind.ranks:
        given = [Spec((None, *PLACES[rank]), dtype)] * kind.arity
        for _ in range(_TRIES):
            drawn = kind.draw(PLACES[rank], rng, catalogue.activations, False)
            needed = {name: value for name, value in drawn.items() if name in kind.required}
            if maker.make(kind.name, needed, given, kind.joined) is not None:
                return needed, given
    return {}, []


def attempt(
    pool: Pool, names: list[str], kind: Kind, parameters: dict[str, Any], given: list[Spec]
) -> dict[str, Run]:
    request = AttemptLayer(
        kind=kind.name,
        parameters=parameters,
        given=tuple((spec.shape, spec.dtype) for spec in given),
        joined=kind.joined,
        steps=1,
    )
    return pool.ask_all(names, request)


def word(run: Run) -> str:
    if run.ok:
        return "accepts"
    if run.outcome in (Outcome.ERROR, Outcome.UNSUPPORTED):
        return "refuses"
    return "hangs" if run.outcome is Outcome.HANG else "dies"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--targets", default="tensorflow,jax,torch")
    parser.add_argument("--only", help="one kind of layer")
    options = parser.parse_args()
    names = options.targets.split(",")
    began = time.monotonic()
    counts: dict[str, Counter[str]] = {name: Counter() for name in names}
    rows, everywhere, skipped, tried, kinds = [], [], [], 0, 0
    with LocalPool([BUILT_IN[name] for name in names], limits=Limits(silence_seconds=20.0)) as pool:
        pool.start()
        found = pool.ask(names[-1], ListKinds())
        catalogue = Catalogue.of(found.reply)
        maker = Maker(asker(pool, names[-1]), pool.blobs)
        for kind in catalogue.kinds.values():
            if options.only not in (None, kind.name):
                continue
            base, given = legal(kind, catalogue, maker)
            # A target that refuses the legal case too would refuse everything: that says nothing.
            able = [n for n in names if given and attempt(pool, [n], kind, base, given)[n].ok]
            if len(able) < len(names):
                skipped.append(kind.name)
                continue
            kinds += 1
            for name in kind.parameters:
                row = parameter(kind.name, name)
                for value in row.illegal if row else ():
                    runs = attempt(pool, names, kind, {**base, name: value}, given)
                    tried += 1
                    words = {n: word(run) for n, run in runs.items()}
                    for n, said in words.items():
                        counts[n][said] += 1
                    if set(words.values()) == {"accepts"}:
                        everywhere.append((kind.name, name, value))
                    elif set(words.values()) != {"refuses"}:
                        rows.append((kind.name, name, value, words))
                        print(f"  {kind.name} {name}={value!r}: {words}", flush=True)
    print(f"\n{tried} illegal values of {kinds} kinds", end="")
    print(f" in {time.monotonic() - began:.0f} s; left out: {skipped or 'none'}\n")
    print("| target | refuses | accepts | hangs | dies |\n|---|---|---|---|---|")
    for name in names:
        cells = " | ".join(str(counts[name][w]) for w in ("refuses", "accepts", "hangs", "dies"))
        print(f"| {name} | {cells} |")
    print(f"\n| layer | value | {' | '.join(names)} |\n|---|---|{'---|' * len(names)}")
    for layer, name, value, words in rows:
        print(f"| `{layer}` | `{name}={value!r}` | {' | '.join(words[n] for n in names)} |")
    by_name = Counter(f"{name}={value!r}" for _, name, value in everywhere)
    told = ", ".join(f"{text} ({n} kinds)" for text, n in by_name.most_common())
    print(f"\nAccepted by all, {len(everywhere)} values: {told}")


if __name__ == "__main__":
    main()
