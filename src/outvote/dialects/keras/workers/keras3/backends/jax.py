"""Keras on JAX: op by op (`jax`), the whole model through XLA (`jax:jit`), or on a GPU."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from outvote.core.arrays import Array
from outvote.core.model import digest_of
from outvote.dialects.keras.nouns.devices import on_gpu
from outvote.dialects.keras.workers.keras3.backends import (
    Backward,
    Forward,
    Gradient,
    Objective,
    Program,
    Pulled,
    choose_device,
    computed_on,
    eager,
    is_float,
    require_gpu,
    to_arrays,
    to_tensor,
)

libraries = ("jax", "jaxlib")
_USES = 200  # of a context of MLIR


def before_import(mode: str) -> None:
    choose_device("jax", mode)
    os.environ.setdefault(
        "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    )
    _keep_compiled_code()


def _keep_compiled_code() -> None:
    """Let JAX keep what it compiles on disk: it compiles every operation for every shape.

    JAX names entries by program, flags and version; a library that was built anew under the same
    version gets a folder of its own, so that its code is never taken for another's.
    """
    spec = importlib.util.find_spec("jaxlib")
    if spec is None or spec.origin is None:
        return
    built = sorted(
        (path.name, path.stat().st_size, path.stat().st_mtime_ns)
        for path in Path(spec.origin).parent.glob("*.so")
    )
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = root / "outvote" / "jax" / digest_of(built)[:16]
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(folder))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")


def after_import(mode: str) -> None:
    """JAX takes a GPU where it may and there is one."""
    _share_contexts()
    if on_gpu("jax", mode):
        import jax

        require_gpu("jax", mode, jax.default_backend() == "gpu")


def _share_contexts() -> None:
    """Let many pieces of code be lowered in one context of MLIR.

    JAX makes one for each: half of the time of what is on disk already, and a mebibyte that its
    caches keep. What is lowered is the same. A JAX that has its contexts elsewhere keeps its way.
    """
    try:
        from jax._src.interpreters import mlir

        made = mlir.make_ir_context
    except (ImportError, AttributeError):
        return
    mlir.make_ir_context = SharedContexts(made)


class SharedContexts:
    """Gives the same context for some time, then a new one: each holds on to all it has seen."""

    def __init__(self, made: Callable[[], Any]) -> None:
        self._made = made
        self._left = 0
        self._context: Any = None

    def __call__(self) -> Any:
        if not self._left:
            self._context, self._left = self._made(), _USES
        self._left -= 1
        return self._context


def hear_of_compiled(told: Callable[[], None]) -> None:
    """Tell of every piece of code that was traced, compiled or found: op by op, it is progress."""
    import jax

    jax.monitoring.register_event_duration_secs_listener(lambda *event, **more: told())


# What JAX makes of a product of float32 where it is not told, or told so, by platform.
_PRODUCTS = {
    "gpu": {"default": "tf32", "high": "tf32", "tensorfloat32": "tf32", "bfloat16": "bf16"},
    "tpu": {"default": "bf16", "fastest": "bf16", "bfloat16": "bf16"},
}


def precision(mode: str) -> dict[str, Any]:
    import jax

    matmul = str(jax.config.jax_default_matmul_precision or "default")
    return {
        "x64": bool(jax.config.jax_enable_x64),
        "matmul": matmul,
        **computed_on("gpu" if on_gpu("jax", mode) else jax.default_backend(), _PRODUCTS, matmul),
        **({"gpu": jax.devices()[0].device_kind} if jax.default_backend() == "gpu" else {}),
    }


def set_wide(wide: bool) -> None:
    """JAX silently turns float64 into float32 unless x64 is on: on for models that use float64."""
    import jax

    if bool(jax.config.jax_enable_x64) != wide:
        jax.config.update("jax_enable_x64", wide)


def no_gradients() -> AbstractContextManager[Any]:
    return nullcontext()


def jit(forward: Forward, variables: Callable[[], list[Any]]) -> Program:
    """One XLA program; weights are arguments, because constants would be folded for minutes."""
    import jax
    import keras

    def pure(values: Sequence[Any], feeds: Sequence[Any]) -> list[Any]:
        mapping = list(zip(variables(), values, strict=True))
        with keras.StatelessScope(state_mapping=mapping):
            return forward(feeds)

    compiled = jax.jit(pure)

    def program(feeds: Sequence[Array]) -> tuple[list[Array], list[str]]:
        values = [variable.value for variable in variables()]
        return to_arrays(compiled(values, list(feeds)))

    return program


def differentiate(objective: Objective, variables: Callable[[], list[Any]]) -> Gradient:
    import jax
    import keras
    import numpy as np

    def pure(feeds: Sequence[Any], values: Sequence[Any], constants: Sequence[Any]) -> Any:
        mapping = list(zip(variables(), values, strict=True))
        with keras.StatelessScope(state_mapping=mapping):
            return objective(feeds, constants)

    compiled = jax.jit(jax.value_and_grad(pure, has_aux=True))

    def program(
        feeds: Sequence[Array], constants: Sequence[Array]
    ) -> tuple[list[Array | None], list[Array]]:
        values = [variable.value for variable in variables()]
        (_, results), gradients = compiled(list(feeds), values, list(constants))
        return [np.asarray(g) for g in gradients], to_arrays(results)[0]

    return program


def backward(objective: Objective, variables: Callable[[], list[Any]], mode: str) -> Backward:
    import jax
    import keras
    import numpy as np

    def pure(moved: Any, learned: Any, still: Any, fixed: Any, constants: Any) -> Any:
        every = variables()
        feeds = _merged(moved, still)
        mapping = list(zip(every, _merged(learned, fixed), strict=True))
        with keras.StatelessScope(state_mapping=mapping, collect_losses=True) as scope:
            value, results = objective(feeds, constants)
            after = [scope.get_current_value(variable) for variable in every]
        return value, (results, after)

    found = jax.value_and_grad(pure, argnums=(0, 1), has_aux=True)
    run = jax.jit(found) if mode == "jit" else found

    def program(feeds: Sequence[Array], constants: Sequence[Array]) -> Pulled:
        every, given = variables(), [to_tensor(feed) for feed in feeds]
        moves = [is_float(feed) for feed in given]
        learns = [bool(variable.trainable) for variable in every]
        moved, still = _parted(given, moves)
        learned, fixed = _parted([variable.value for variable in every], learns)
        (value, (results, after)), (by_moved, by_learned) = run(
            moved, learned, still, fixed, [to_tensor(constant) for constant in constants]
        )
        return Pulled(
            value,
            results,
            by_moved,
            by_learned,
            [np.array(array) for array in after],
        )

    return program


def _parted(values: Sequence[Any], chosen: Sequence[bool]) -> tuple[list[Any], list[Any]]:
    """Two lists of the same length: each value stands in one of them, None in the other."""
    pairs = list(zip(values, chosen, strict=True))
    return [v if own else None for v, own in pairs], [None if own else v for v, own in pairs]


def _merged(some: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    return [b if a is None else a for a, b in zip(some, others, strict=True)]


def updated(
    update: Callable[[Sequence[Any]], None], variables: Callable[[], list[Any]], mode: str
) -> Callable[[Sequence[Any]], None]:
    """Op by op variables are assigned to; compiled, their values go in and come out."""
    import jax
    import keras

    if mode != "jit":
        return update

    def pure(values: Sequence[Any], given: Sequence[Any]) -> list[Any]:
        every = variables()
        mapping = list(zip(every, values, strict=True))
        with keras.StatelessScope(state_mapping=mapping) as scope:
            update(given)
        return [scope.get_current_value(variable) for variable in every]

    run = jax.jit(pure)

    def program(given: Sequence[Any]) -> None:
        every = variables()
        found = run([variable.value for variable in every], list(given))
        for variable, value in zip(every, found, strict=True):
            variable.assign(value)

    return program


updates_by_values = True
quick = jit
fixed_shapes = True
modes = {"eager": eager, "jit": jit, "cuda": eager, "cuda-highest": eager, "predict": jit}
