"""Does causal localisation name the right parameters? (AUDEE, section 2.5)

    python benchmarks/parameter_localization.py [--targets torch,jax] [--only NAME]

Plants faults that depend on one or two parameters (benchmarks/planted_parameters.py), one at a
time, in the first target, and localises them against the second. Printed: what was named, whether
all the right parameters are among it, and how many (layer, parameter) pairs were listed, beside
the layers of CRADLE's third-quartile list.
"""

from __future__ import annotations

import argparse
import runpy
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from outvote.core.model import Input, Layer, Model, Ref
from outvote.dialects.keras.mutate.maker import Maker
from outvote.dialects.keras.targets import BUILT_IN
from outvote.localize.parameters import Localizer
from outvote.mutate.subject import Spec
from outvote.run.local import LocalPool

SCRIPT = Path(__file__).with_name("planted_parameters.py")


def case(maker: Maker, kind: str, parameters: dict[str, Any], shape: tuple[int, ...]) -> Model:
    """Two harmless layers, the layer in question, and two behind it."""
    rng = np.random.default_rng(0)
    layers: list[Layer] = []
    refs, specs = [Ref("x")], [Spec((None, *shape), "float32")]
    around: list[tuple[str, dict[str, Any]]] = [
        ("Rescaling", {"scale": 1.5}),
        ("Activation", {"activation": "tanh"}),
    ]
    for name, wanted in [*around, (kind, parameters), ("Flatten", {}), *around[1:]]:
        two = name == "MultiHeadAttention"
        made = maker.make(name, wanted, specs * (2 if two else 1))
        assert made is not None, f"{name} {wanted} cannot be made on {specs}"
        layer = maker.layer(made, f"{name.lower()}_{len(layers)}", refs * (1 + two), rng)
        layers.append(layer)
        refs, specs = [Ref(layer.name)], list(made.outputs)
    return Model(
        "case", (Input("x", (None, *shape), "float32"),), tuple(layers), (refs[0],), "keras"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--targets", default="torch,jax", help="the faulty one, the reference")
    parser.add_argument("--only", help="one fault, by its name")
    options = parser.parse_args()
    faults = runpy.run_path(str(SCRIPT))["FAULTS"]
    faulty, reference = options.targets.split(",")
    rng = np.random.default_rng(1)
    right, pairs, red, seconds = [], [], [], []
    with tempfile.TemporaryDirectory() as folder:
        active = Path(folder) / "active"
        active.write_text("")
        planted = replace(
            BUILT_IN[faulty],
            name="planted",
            setup=SCRIPT,
            env={"OUTVOTE_ACTIVE_FAULT": str(active)},
        )
        with LocalPool([planted, BUILT_IN[reference]]) as pool:
            for name, run in pool.start().items():
                assert run.ok, f"{name}: {run.message}"
            maker = Maker(lambda request: pool.ask(reference, request), pool.blobs)
            localizer = Localizer(pool, reference)
            for name, (kind, _, expected, parameters, shape) in faults.items():
                if options.only not in (None, name):
                    continue
                active.write_text("")
                model = case(maker, kind, parameters, shape)
                x = rng.normal(size=(1, *shape)).astype("float32")
                quiet = localizer.locate(model, [x], reference, "planted")
                active.write_text(name)
                began = time.monotonic()
                found = localizer.locate(model, [x], reference, "planted")
                seconds.append(time.monotonic() - began)
                before = {suspect.layer.name for suspect in quiet.suspects}
                suspects = [s for s in found.suspects if s.layer.name not in before]
                named = {c.parameter for s in suspects if s.layer.kind == kind for c in s.causes}
                right.append(expected <= named)
                pairs.append(sum(max(1, len(s.causes)) for s in suspects))
                red.append(len(found.cradle.red))
                told = ", ".join(
                    f"{s.layer.kind}: {c.parameter}={c.value!r} ({len(c.cured_by)}/{c.tried})"
                    for s in suspects
                    for c in s.causes
                )
                mark = "right" if right[-1] else f"WRONG, expected {', '.join(sorted(expected))}"
                noise = f"; without the fault already {sorted(before)}" if before else ""
                print(f"{name} ({kind}): {told or 'none'}: {mark}{noise}", flush=True)
    share = mean(right)
    print(f"\n{sum(right)} of {len(right)} faults with all the right parameters ({share:.0%})")
    print(f"(layer, parameter) pairs listed: {mean(pairs):.2f} on average")
    print(
        f"CRADLE's third quartile: {mean(red):.2f} layers of 5 on average, one of which is faulty"
    )
    print(f"seconds per case: {mean(seconds):.1f}")


if __name__ == "__main__":
    main()
