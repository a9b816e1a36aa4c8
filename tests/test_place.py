"""One level below the layer: which function of the backend is to blame, on the real libraries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from outvote.bench.bench import Bench
from outvote.core.model import REF, Input, Layer, Model, Ref
from outvote.core.specimen import Specimen
from outvote.dialects.keras.targets import BUILT_IN
from outvote.findings.place import GuiltyPlace, place_of
from outvote.judge.compare import Settings
from outvote.run.pool import Pool

pytestmark = pytest.mark.frameworks
NAMES = ("torch", "numpy", "tensorflow")


def blamed(pool: Pool, kind: str, config: dict[str, Any], x: Any, wrong: str) -> GuiltyPlace | None:
    layer = Layer("one", kind, {"name": "one", **config}, args=[{REF: ["x", 0]}],
                  origin={"module": "keras.layers"})  # fmt: skip
    inputs = (Input("x", (None, *x.shape[1:]), x.dtype.name),)
    specimen = Specimen(Model("m", inputs, (layer,), (Ref("one"),), "keras"), (x,))
    targets = {name: BUILT_IN[name] for name in NAMES}
    seen = Bench(pool, targets, Settings()).observe(specimen, list(NAMES))
    assert seen.odd == (wrong,) or wrong in seen.odd
    return place_of(pool, targets, specimen, seen, [wrong]).place


@pytest.mark.parametrize("axes", [1, 2])
def test_wrong_values_are_blamed_on_the_function_whatever_the_layer(
    real_pool: Pool, axes: int
) -> None:
    config = {"pool_size": [3] * axes, "strides": [2] * axes, "padding": "same"}
    x = np.arange(1, 1 + 6**axes, dtype="float32").reshape(1, *[6] * axes, 1)
    found = blamed(real_pool, f"AveragePooling{axes}D", config, x, "torch")
    assert found is not None
    assert (found.function, found.file) == ("nn.average_pool", "keras/src/backend/torch/nn.py")
    assert found.line > 1
    assert found.arguments.startswith(f"float32{[1, *[6] * axes, 1]}, ")


def test_an_error_is_blamed_on_the_innermost_place_in_keras(real_pool: Pool) -> None:
    config = {"axis": [1], "epsilon": 0.001}
    x = np.ones((1, 1, 2), "float32")
    found = blamed(real_pool, "LayerNormalization", config, x, "torch")
    assert found is not None
    assert found.function == "_layer_normalization"
    assert found.file.startswith("keras/src/")
