"""A target in plain NumPy that can lie, crash, hang and worse on demand. For tests.

What it does wrong stands in the environment: `OUTVOTE_FAKE="lie:LAYER"` and the like (see
MISDEEDS); LAYER is a name or a kind; `start` means at start-up, `every` everywhere. Without it,
it is honest.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import stat
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from outvote.core.arrays import Array
from outvote.core.model import Input, Layer, Model, Ref, Weight
from outvote.dialects.keras.workers.fake.layers import KINDS, PARAMETERS, weights_of
from outvote.worker.main import Context, Refused, Reply


def create(context: Context) -> FakeWorker:
    worker = FakeWorker(context)
    worker.misbehave("start", [])
    return worker


class FakeWorker:
    """Computes a few kinds of layers; honest except for one misdeed at one layer."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._misdeed, _, self._place = os.environ.get("OUTVOTE_FAKE", ":").partition(":")
        self._weights: dict[str, Array] = {}
        self._model: Model | None = None
        self._states: dict[str, list[Array]] = {}
        self.computed = 0

    def describe(self) -> dict[str, Any]:
        return {
            "versions": {"numpy": np.__version__},
            "precision": {},
            "python": sys.version.split()[0],
            "platform": "fake",
        }

    def do_read(self, arrays: list[Array], path: str, weights: str | None) -> Reply:
        """Read a JSON file with `layers` (name, kind, config, inputs, weights as lists)."""
        data = json.loads(Path(path).read_text())
        if data.get("class_name") != "FakeModel":
            raise Refused(f"{path} is not a model of the fake target")
        layers = tuple(self._layer(item) for item in data["layers"])
        name = data["layers"][-1]["name"]
        shape, dtype = tuple(data["input"]), data.get("dtype", "float32")
        model = Model("fake", (Input("x", shape, dtype),), layers, (Ref(name),), "keras")
        specs = {} if None in shape[1:] else self._specs(model)
        return {"model": model.to_json(), "output_shapes": [data["output"]], "specs": specs}, ()

    def do_catalogue(self, arrays: list[Array]) -> Reply:
        parameters = {
            kind: [{"name": name, "required": True, "default": None} for name in names]
            for kind, names in PARAMETERS.items()
        }
        return {"kinds": parameters, "activations": ["linear", "relu"]}, ()

    def do_make(
        self,
        arrays: list[Array],
        kind: str,
        parameters: Any,
        given: list[Any],
        joined: bool,
        tried: bool,
    ) -> Reply:
        """What a layer would give, found by computing it on zeros."""
        feeds = [np.zeros([2, *shape[1:]], np.float32) for shape, _ in given]
        weights = weights_of(kind, parameters, feeds[0].shape)
        zeros = [np.zeros(shape, np.float32) for _, shape in weights]
        output = KINDS[kind](feeds, zeros, parameters)
        spec = {"kind": kind, "config": parameters, "module": None, "registered": None}
        return {
            "spec": {**spec, "build": None},
            "weights": [[name, list(shape), "float32"] for name, shape in weights],
            "outputs": [[[None, *output.shape[1:]], "float32"]],
        }, ()

    def do_save(self, arrays: list[Array], model: Any, path: str) -> Reply:
        Path(path).write_text(json.dumps(model))
        return {}, ()

    def do_run(
        self,
        arrays: list[Array],
        model: Any,
        inputs: list[str],
        batch: int,
        jitter: int | None = None,
        keep: bool = False,
        watch: Sequence[str] = (),
        rows: int = 1,
    ) -> Reply:
        parsed = Model.from_json(model)
        feeds = [self._context.blobs.get(digest) for digest in inputs]
        self._context.begin(len(parsed.layers))
        states = {i.name: [np.array(f)] for i, f in zip(parsed.inputs, feeds, strict=True)}
        for position, layer in enumerate(parsed.layers):
            outputs = self._compute(layer, [states[r.producer][r.index] for r in layer.refs()])
            if jitter is not None:
                rng = np.random.default_rng(jitter * 1000 + position)
                outputs = [
                    (o * (1 + 2.0**-23 * rng.choice([-1, 1], o.shape))).astype(o.dtype)
                    for o in outputs
                ]
            states[layer.name] = outputs
            self._context.step()
        results = [states[ref.producer][ref.index] for ref in parsed.outputs]
        dtypes = [r.dtype.name for r in results]
        seen = [states[name][0][:rows] for name in watch]
        watched = {
            name: {"masked": [False], "dtypes": [array.dtype.name]}
            for name, array in zip(watch, seen, strict=True)
        }
        return {"dtypes": dtypes, "watched": watched}, [*results, *seen]

    def do_open(self, arrays: list[Array], model: Any) -> Reply:
        self._model = Model.from_json(model)
        self._states = {i.name: [a] for i, a in zip(self._model.inputs, arrays, strict=True)}
        return {}, ()

    def do_step(self, arrays: list[Array], layer: str, given: list[bool] | None) -> Reply:
        assert self._model is not None
        found = self._model.layer(layer)
        try:
            own = self._compute(found, [self._states[r.producer][r.index] for r in found.refs()])
            self._states[layer] = own
        except Exception:
            if given is None:
                raise
            own = []
        reply: dict[str, Any] = {"own": [False] * len(own), "dtypes": [o.dtype.name for o in own]}
        if given is None:
            return reply, own
        alone, isolated = self.do_call(arrays, layer, given)
        return {**reply, **alone, "own_dtypes": reply["dtypes"]}, [*own, *isolated]

    def do_call(self, arrays: list[Array], layer: str, given: list[bool]) -> Reply:
        assert self._model is not None
        outputs = self._compute(self._model.layer(layer), arrays)
        dtypes = [o.dtype.name for o in outputs]
        return {"isolated": [False] * len(outputs), "dtypes": dtypes}, outputs

    def do_close(self, arrays: list[Array]) -> Reply:
        self._states = {}
        return {}, ()

    def do_extra(self, arrays: list[Array], module: str, call: str, **arguments: Any) -> Reply:
        """The operations that Keras workers keep in modules of their own."""
        reply: Reply = getattr(self, f"_{call}")(**arguments)
        return reply

    def _attempt(self, kind: str, parameters: Any, given: list[Any], joined: bool) -> Reply:
        """Refuses what is not a number above zero, unless `accept:KIND` is its misdeed.

        A misdeed at `illegal` happens here and nowhere else.
        """
        self._context.enter(kind)
        for name, value in parameters.items():
            legal = name != "units" or (isinstance(value, int) and value > 0)
            if not legal and (self._misdeed, self._place) != ("accept", kind):
                self.misbehave("illegal", [])
                raise ValueError(f"{name} must be above zero; received {value!r}")
        return {"shapes": []}, ()

    def _ranges(self, model: Any, inputs: list[str], wanted: list[Any]) -> Reply:
        parsed = Model.from_json(model)
        watch = [layer.name for layer in parsed.layers]
        feeds = [self._context.blobs.get(digest) for digest in inputs]
        count = len(feeds[0])
        reply, found = self.do_run([], model, inputs, count, watch=watch, rows=count)
        seen = dict(zip(watch, found[len(reply["dtypes"]) :], strict=True))
        told = []
        for layer in parsed.layers:
            flat = seen[layer.name].reshape(-1)
            finite = flat[np.isfinite(flat)]
            ends = [float(finite.min()), float(finite.max())] if finite.size else [None, None]
            counts = [int(np.isnan(flat).sum()), int(np.isinf(flat).sum())]
            told.append([layer.name, layer.kind, *ends, *counts])
        bad = np.zeros(count, np.uint8)
        for array in seen.values():
            bad |= np.isnan(array.reshape(count, -1)).any(axis=1).astype(np.uint8)
        return {"layers": told}, [seen[wanted[0]], bad]

    def misbehave(self, place: str, outputs: list[Array], kind: str = "") -> list[Array]:
        if not self._misdeed or self._place not in (place, kind or place, "every"):
            return outputs
        return MISDEEDS[self._misdeed](outputs)

    def _compute(self, layer: Layer, feeds: Sequence[Array]) -> list[Array]:
        self._context.enter(layer.name)
        weights = [self._context.blobs.get(w.digest) for w in layer.weights]
        output = KINDS[layer.kind](feeds, weights, layer.config)
        self.computed += 1
        return self.misbehave(layer.name, [np.asarray(output, np.float32)], layer.kind)

    def _specs(self, model: Model) -> dict[str, Any]:
        """The shape of what every layer gives, found by computing it on zeros."""
        states = {i.name: np.zeros([2, *i.shape[1:]], np.float32) for i in model.inputs}  # type: ignore[list-item]
        for layer in model.layers:
            weights = [self._context.blobs.get(w.digest) for w in layer.weights]
            feeds = [states[ref.producer] for ref in layer.refs()]
            states[layer.name] = KINDS[layer.kind](feeds, weights, layer.config)
        return {
            layer.name: [[[None, *states[layer.name].shape[1:]], "float32"]]
            for layer in model.layers
        }

    def _layer(self, data: Any) -> Layer:
        values = [np.array(w, np.float32) for w in data.get("weights", [])]
        return Layer(
            data["name"],
            data["kind"],
            data.get("config", {}),
            args=[{"$ref": [name, 0]} for name in data["inputs"]],
            weights=tuple(
                Weight(f"w{i}", self._context.blobs.put(v), v.shape) for i, v in enumerate(values)
            ),
        )


def _crash(outputs: list[Array]) -> list[Array]:
    ctypes.string_at(0)
    return outputs


def _hang(outputs: list[Array]) -> list[Array]:
    while True:
        time.sleep(0.01)


def _slow(outputs: list[Array]) -> list[Array]:
    time.sleep(1)
    return outputs


def _signal(number: signal.Signals) -> Callable[[list[Array]], list[Array]]:
    def misdeed(outputs: list[Array]) -> list[Array]:
        os.kill(os.getpid(), number)
        time.sleep(60)
        return outputs

    return misdeed


def _exit(outputs: list[Array]) -> list[Array]:
    os._exit(3)


def _flood(outputs: list[Array]) -> list[Array]:
    for _ in range(2000):
        os.write(1, b"flood " * 10_000)
    return outputs


def _garbage(outputs: list[Array]) -> list[Array]:
    for fd in range(3, 64):
        try:
            if stat.S_ISSOCK(os.fstat(fd).st_mode):
                os.write(fd, b"\x00garbage on the wire" * 100)
        except OSError:  # a number that is no open file
            continue
    return _hang(outputs)  # as long as it went on, the position would move on too


def _memory(outputs: list[Array]) -> list[Array]:
    kept = []
    for _ in range(10_000):
        kept.append(np.ones(4 << 20, np.uint8))
        time.sleep(0.002)
    return outputs


def _ever_slower() -> Callable[[list[Array]], list[Array]]:
    """Two percent slower with every call, from 10 ms on, by its clock: nobody has to wait."""
    seconds = 0.01
    lost = 0.0
    real = time.perf_counter

    def misdeed(outputs: list[Array]) -> list[Array]:
        nonlocal seconds, lost
        lost += seconds
        seconds *= 1.02
        time.perf_counter = lambda: real() + lost
        return outputs

    return misdeed


def _leaking() -> Callable[[list[Array]], list[Array]]:
    """Four mebibytes with every call that are never given back."""
    kept: list[Array] = []

    def misdeed(outputs: list[Array]) -> list[Array]:
        kept.append(np.ones(4 << 20, np.uint8))
        return outputs

    return misdeed


def _error(outputs: list[Array]) -> list[Array]:
    raise ValueError("the fake target was told to raise")


def _picky(outputs: list[Array]) -> list[Array]:
    return outputs if len(outputs[0]) else _error(outputs)


def _unsupported(outputs: list[Array]) -> list[Array]:
    raise NotImplementedError("the fake target does not support this")


MISDEEDS: dict[str, Callable[[list[Array]], list[Array]]] = {
    "accept": lambda outputs: outputs,  # illegal values
    "lie": lambda outputs: [o * np.float32(1.01) for o in outputs],
    "murmur": lambda outputs: [o * np.float32(1 + 1e-4) for o in outputs],
    "whisper": lambda outputs: [o * np.float32(1 + 1e-6) for o in outputs],
    "late": lambda outputs: [np.concatenate([o[:1], o[1:] * np.float32(1.01)]) for o in outputs],
    "loud": lambda outputs: [o * np.where(abs(o) > 9, np.float32(1.01), 1) for o in outputs],
    "permute": lambda outputs: [o[..., ::-1].copy() for o in outputs],
    "nan": lambda outputs: [np.where(o == o.max(), np.float32(np.nan), o) for o in outputs],
    "shape": lambda outputs: [o[..., :-1] for o in outputs],
    "dtype": lambda outputs: [o.astype(np.float64) for o in outputs],
    "hollow": lambda outputs: [o[:, :0] for o in outputs],
    "picky": _picky,
    "crash": _crash,
    "abort": _signal(signal.SIGABRT),
    "kill": _signal(signal.SIGKILL),
    "exit": _exit,
    "hang": _hang,
    "slow": _slow,
    "slower": _ever_slower(),
    "leak": _leaking(),
    "flood": _flood,
    "garbage": _garbage,
    "memory": _memory,
    "error": _error,
    "unsupported": _unsupported,
}
