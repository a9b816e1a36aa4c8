"""What JAX compiles when our worker runs layers: their own operations, and nothing of ours."""

from __future__ import annotations

import subprocess
import sys
from itertools import count

import pytest

from outvote.dialects.keras.workers.keras3.backends.jax import SharedContexts

_WEIGHTS = """
import os
os.environ["KERAS_BACKEND"] = "jax"
import jax, keras, numpy as np
from outvote.dialects.keras.workers.keras3.backends import taken_over, to_tensor, typed
from outvote.dialects.keras.workers.keras3.backends.jax import after_import
from outvote.dialects.keras.workers.keras3.graph import zeros_for_weights
after_import("eager")
heard = []
jax.monitoring.register_event_duration_secs_listener(lambda name, *more, **even: heard.append(name))
for place, dtype in enumerate(["float32", "float16", "bfloat16"]):
    layer = keras.layers.Layer(dtype=dtype)
    with zeros_for_weights():
        variable = layer.add_weight(shape=(3, 5 + place))
    value = np.arange(15 + 3 * place, dtype="float32").reshape(3, 5 + place)
    variable.assign(taken_over(value.astype("float32" if place == 2 else dtype), dtype))
    assert np.array_equal(np.asarray(variable.value, "float32"), value), dtype
    fed = to_tensor(typed(value, dtype) if place == 2 else value.astype(dtype))
    assert str(fed.dtype) == dtype
own = len([name for name in heard if name.endswith("backend_compile_duration")])
contexts = jax._src.interpreters.mlir.make_ir_context
jax.numpy.sin(fed)
print(own, contexts() is contexts())
"""


def test_a_context_is_shared_for_some_time_and_then_let_go() -> None:
    made = count()
    contexts = SharedContexts(lambda: next(made))
    given = [contexts() for _ in range(500)]
    assert given == sorted(given)
    assert given.count(0) == given.count(1) == 200


@pytest.mark.frameworks
def test_weights_and_inputs_are_taken_over_without_compiling() -> None:
    run = subprocess.run([sys.executable, "-c", _WEIGHTS], capture_output=True, text=True)
    assert run.stdout.split() == ["0", "True"], run.stderr[-2000:]
