"""A target in plain NumPy that can lie, crash, hang and worse on demand. For tests.

What it does wrong stands in the environment: `OUTVOTE_FAKE="lie:LAYER"` and the like (see
MISDEEDS); LAYER is a name or a kind; `start` means at start-up, `open` when a session begins,
`every` everywhere. Without it, it is honest. `OUTVOTE_FAKE_PRECISION` is what it says of the
precision it computes in, as JSON.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from outvote.core import protocol as ask
from outvote.core.arrays import Array
from outvote.core.model import Input, Layer, Model, Ref, Weight
from outvote.core.outputs import Outputs
from outvote.core.states import State
from outvote.core.wire import framed
from outvote.dialects.keras.workers.fake import layers as formulas
from outvote.dialects.keras.workers.fake.layers import ACTIVATIONS, KINDS, PARAMETERS, weights_of
from outvote.worker.lines import LineWatch
from outvote.worker.main import Context, Handlers, Refused
from outvote.worker.session import Session, Sessions


def create(context: Context) -> FakeWorker:
    worker = FakeWorker(context)
    worker.misbehave("start", [])
    return worker


class FakeWorker:
    """Computes a few kinds of layers; honest except for one misdeed at one layer."""

    kind = "the fake target"

    def __init__(self, context: Context) -> None:
        self._context = context
        self._misdeed, _, self._place = os.environ.get("OUTVOTE_FAKE", ":").partition(":")
        self._weights: dict[str, Array] = {}
        self._sessions = Sessions(context, self._begun)
        self._lines: LineWatch | None = None

    @property
    def handlers(self) -> Handlers:
        return {
            ask.Read: self.read,
            ask.Save: self.save,
            ask.RunModel: self.run,
            ask.Forget: lambda request: ask.Done(),
            ask.WatchRanges: self.watch_ranges,
            **self._sessions.handlers,
            ask.ListKinds: self.list_kinds,
            ask.MakeLayer: self.make,
            ask.AttemptLayer: self.attempt,
        }

    def is_gap(self, error: Exception) -> bool:
        return False

    def describe(self) -> ask.Hello:
        return ask.Hello(
            versions={"numpy": np.__version__},
            precision=json.loads(os.environ.get("OUTVOTE_FAKE_PRECISION", "{}")),
            python=sys.version.split()[0],
            platform="fake",
        )

    def read(self, request: ask.Read) -> ask.ModelRead:
        """Read a JSON file with `layers`: name, kind, config, inputs, weights.

        Weights are lists, or a dict where their names matter; `shares` names a layer whose object
        this one is.
        """
        data = json.loads(self._context.blobs.get(request.file.digest).tobytes())
        if data.get("class_name") != "FakeModel":
            raise Refused(f"{request.file.name} is not a model of the fake target")
        if "saved" in data:
            return self._read_again(data)
        layers = tuple(self._layer(item) for item in data["layers"])
        name = data["layers"][-1]["name"]
        shape, dtype = tuple(data["input"]), data.get("dtype", "float32")
        model = Model("fake", (Input("x", shape, dtype),), layers, (Ref(name),), "keras")
        specs = {} if None in shape[1:] else self._specs(model)
        return ask.ModelRead(model=model, output_shapes=[data["output"]], specs=specs)

    def list_kinds(self, request: ask.ListKinds) -> ask.KindsListed:
        parameters = {
            kind: [{"name": name, "required": True, "default": None} for name in names]
            for kind, names in PARAMETERS.items()
        }
        return ask.KindsListed(kinds=parameters, activations=list(ACTIVATIONS))

    def make(self, request: ask.MakeLayer) -> ask.LayerMade:
        """What a layer would give, found by computing it on zeros."""
        kind, parameters = request.kind, request.parameters
        feeds = [np.zeros([2, *map(int, shape[1:])], np.float32) for shape, _ in request.given]  # type: ignore[arg-type]
        weights = weights_of(kind, parameters, feeds[0].shape)
        zeros = [np.zeros(shape, np.float32) for _, shape in weights]
        output = KINDS[kind](feeds, zeros, parameters)
        spec = {"kind": kind, "config": parameters, "module": None, "registered": None}
        return ask.LayerMade(
            spec={**spec, "build": None},
            weights=tuple((name, shape, "float32") for name, shape in weights),
            outputs=(((None, *output.shape[1:]), "float32"),),
        )

    def save(self, request: ask.Save) -> ask.Saved:
        """A file of a form of its own: the model as it is, and its weights."""
        blobs = self._context.blobs
        digests = {weight.digest for layer in request.model.layers for weight in layer.weights}
        weights = {digest: blobs.get(digest).tolist() for digest in sorted(digests)}
        data = {"class_name": "FakeModel", "saved": request.model.to_json(), "weights": weights}
        path = self._context.folder / "model.json"
        path.write_text(json.dumps(data))
        return ask.Saved(file=self._context.taken(path))

    def _read_again(self, data: Any) -> ask.ModelRead:
        """What `save` wrote."""
        for values in data["weights"].values():
            self._context.blobs.put(np.array(values, np.float32))
        model = Model.from_json(data["saved"])
        free = any(None in item.shape[1:] for item in model.inputs)
        specs = {} if free else self._specs(model)
        shapes = [list(specs[ref.producer][0][0]) for ref in model.outputs] if specs else []
        return ask.ModelRead(model=model, output_shapes=shapes, specs=specs)

    def run(self, request: ask.RunModel) -> ask.Ran:
        """Its own library, of which it tells lines, are the formulas in `layers.py`."""
        if not request.lines:
            return self._run(request)
        if self._lines is None:
            self._lines = LineWatch((formulas.__name__,), self._context.blobs.folder.parent)
        self._lines.begin()
        ran = self._run(request)
        return replace(ran, lines=self._lines.reached())

    def _run(self, request: ask.RunModel) -> ask.Ran:
        model, rows = request.model, request.rows
        feeds = [self._context.blobs.get(digest) for digest in request.inputs]
        self._context.begin(len(model.layers))
        states = {i.name: [np.array(f)] for i, f in zip(model.inputs, feeds, strict=True)}
        for position, layer in enumerate(model.layers):
            outputs = self._compute(layer, [states[r.producer][r.index] for r in layer.refs()])
            if request.jitter is not None:
                rng = np.random.default_rng(request.jitter * 1000 + position)
                outputs = [
                    (o * (1 + 2.0**-23 * rng.choice([-1, 1], o.shape))).astype(o.dtype)
                    for o in outputs
                ]
            states[layer.name] = outputs
            self._context.step()
        results = tuple(states[ref.producer][ref.index] for ref in model.outputs)
        seen = {name: (State(states[name][0][:rows]),) for name in request.watch}
        return ask.Ran(outputs=Outputs(results, tuple(r.dtype.name for r in results)), watched=seen)

    def _begun(self, request: ask.OpenSession) -> Session:
        self.misbehave("open", [])

        def compute(layer: Layer, given: Sequence[State]) -> list[State]:
            return [State(a) for a in self._compute(layer, [state.array for state in given])]

        return Session(request.model, request.inputs, compute)

    def attempt(self, request: ask.AttemptLayer) -> ask.LayerAttempted:
        """Refuses what is not a number above zero, unless `accept:KIND` is its misdeed.

        A misdeed at `illegal` happens here and nowhere else.
        """
        self._context.enter(request.kind)
        for name, value in request.parameters.items():
            legal = name != "units" or (isinstance(value, int) and value > 0)
            if not legal and (self._misdeed, self._place) != ("accept", request.kind):
                self.misbehave("illegal", [])
                raise ValueError(f"{name} must be above zero; received {value!r}")
        return ask.LayerAttempted(shapes=[])

    def watch_ranges(self, request: ask.WatchRanges) -> ask.RangesWatched:
        model = request.model
        names = tuple(layer.name for layer in model.layers)
        count = len(self._context.blobs.get(request.inputs[0]))
        ran = self.run(
            ask.RunModel(model=model, inputs=request.inputs, batch=count, watch=names, rows=count)
        )
        seen = {name: states[0].array for name, states in ran.watched.items()}
        told = []
        for layer in model.layers:
            flat = seen[layer.name].reshape(-1)
            finite = flat[np.isfinite(flat)]
            low, high = (float(finite.min()), float(finite.max())) if finite.size else (None, None)
            nans, infinities = int(np.isnan(flat).sum()), int(np.isinf(flat).sum())
            told.append(ask.LayerRange(layer.name, layer.kind, low, high, nans, infinities))
        bad = np.zeros(count, bool)
        for array in seen.values():
            bad |= np.isnan(array.reshape(count, -1)).any(axis=1)
        return ask.RangesWatched(layers=tuple(told), wanted=seen[request.wanted.producer], bad=bad)

    def misbehave(self, place: str, outputs: list[Array], kind: str = "") -> list[Array]:
        if not self._misdeed or self._place not in (place, kind or place, "every"):
            return outputs
        return MISDEEDS[self._misdeed](outputs)

    def _compute(self, layer: Layer, feeds: Sequence[Array]) -> list[Array]:
        self._context.enter(layer.name)
        weights = [self._context.blobs.get(w.digest) for w in layer.weights]
        output = KINDS[layer.kind](feeds, weights, layer.config)
        return self.misbehave(layer.name, [np.asarray(output, np.float32)], layer.kind)

    def _specs(self, model: Model) -> dict[str, tuple[ask.Form, ...]]:
        """The shape of what every layer gives, found by computing it on zeros."""
        states = {i.name: np.zeros([2, *i.shape[1:]], np.float32) for i in model.inputs}  # type: ignore[list-item]
        for layer in model.layers:
            weights = [self._context.blobs.get(w.digest) for w in layer.weights]
            feeds = [states[ref.producer] for ref in layer.refs()]
            states[layer.name] = KINDS[layer.kind](feeds, weights, layer.config)
        return {
            layer.name: (((None, *states[layer.name].shape[1:]), "float32"),)
            for layer in model.layers
        }

    def _layer(self, data: Any) -> Layer:
        given = data.get("weights", [])
        named = given if isinstance(given, dict) else {f"w{i}": v for i, v in enumerate(given)}
        values = {name: np.array(value, np.float32) for name, value in named.items()}
        return Layer(
            data["name"],
            data["kind"],
            data.get("config", {}),
            args=[{"$ref": [name, 0]} for name in data["inputs"]],
            weights=tuple(
                Weight(name, self._context.blobs.put(v), v.shape) for name, v in values.items()
            ),
            shares=data.get("shares"),
        )


def _crash(outputs: list[Array]) -> list[Array]:
    ctypes.string_at(0)
    return outputs


def _hang(outputs: list[Array]) -> list[Array]:
    while True:
        time.sleep(0.01)


def _spin(outputs: list[Array]) -> list[Array]:
    """Hangs as a kernel of a library does: in C, with the interpreter's lock held."""
    ctypes.PyDLL(None).sleep(3600)
    return outputs


def _crowd(outputs: list[Array]) -> list[Array]:
    if len(outputs[0]) > 1:
        raise ValueError("the fake target fails on several instances at once")
    return outputs


def _loop(outputs: list[Array]) -> list[Array]:
    while True:
        pass


def _toil(outputs: list[Array]) -> list[Array]:
    """Less than half a second of a processor, however long it takes to get that."""
    until = time.process_time() + 0.4
    while time.process_time() < until:
        pass
    return outputs


def _slow(outputs: list[Array]) -> list[Array]:
    time.sleep(0.6)
    return outputs


def _signal(number: signal.Signals) -> Callable[[list[Array]], list[Array]]:
    def misdeed(outputs: list[Array]) -> list[Array]:
        os.kill(os.getpid(), number)
        time.sleep(60)
        return outputs

    return misdeed


def _exit(outputs: list[Array]) -> list[Array]:
    os._exit(3)


def _wait(outputs: list[Array]) -> list[Array]:
    """As long as a small model takes a real target, without a processor."""
    time.sleep(0.05)
    return outputs


def _flood(outputs: list[Array]) -> list[Array]:
    for _ in range(2000):
        os.write(1, b"flood " * 10_000)
    return outputs


def _to_driver(data: bytes) -> None:
    """Bytes on the wire, past the channel."""
    for fd in range(3, 64):
        try:
            if stat.S_ISSOCK(os.fstat(fd).st_mode):
                os.write(fd, data)
        except OSError:  # a number that is no open file
            continue


def _garbage(outputs: list[Array]) -> list[Array]:
    _to_driver(b"\x00garbage on the wire" * 100)
    return _hang(outputs)  # as long as it went on, the position would move on too


def _half(outputs: list[Array]) -> list[Array]:
    """Half a message, and then nothing."""
    _to_driver(bytes(framed({"type": "result"}, outputs)[0])[:9])
    return _hang(outputs)


def _torn(outputs: list[Array]) -> list[Array]:
    """Half a message, and then the end."""
    _to_driver(bytes(framed({"type": "result"}, outputs)[0])[:9])
    return _exit(outputs)


def _unfit(outputs: list[Array]) -> list[Array]:
    """A message that is no reply to what was asked."""
    _to_driver(b"".join(framed({"type": "result", "seconds": 0.0, "reply": {"lies": True}})))
    return _hang(outputs)


def _brood(outputs: list[Array]) -> list[Array]:
    """Lets a process of its own take the memory."""
    code = "import numpy, time; kept = numpy.ones(1 << 30, 'uint8'); time.sleep(3600)"
    subprocess.Popen([sys.executable, "-c", code])
    return _hang(outputs)


def _memory(outputs: list[Array]) -> list[Array]:
    kept = []
    for _ in range(10_000):
        kept.append(np.ones(4 << 20, np.uint8))
        time.sleep(0.002)
    return outputs


def _ever_slower() -> Callable[[list[Array]], list[Array]]:
    """Three percent slower with every call, from 10 ms on, by its clock: nobody has to wait."""
    seconds = 0.01
    lost = 0.0
    real = time.perf_counter

    def misdeed(outputs: list[Array]) -> list[Array]:
        nonlocal seconds, lost
        lost += seconds
        seconds *= 1.03
        time.perf_counter = lambda: real() + lost
        return outputs

    return misdeed


def _leaking() -> Callable[[list[Array]], list[Array]]:
    """Two mebibytes with every call that are never given back."""
    kept: list[Array] = []

    def misdeed(outputs: list[Array]) -> list[Array]:
        kept.append(np.ones(2 << 20, np.uint8))
        return outputs

    return misdeed


def _fainting() -> Callable[[list[Array]], list[Array]]:
    """Lies, and dies when it is asked for the third time."""
    times = 0

    def misdeed(outputs: list[Array]) -> list[Array]:
        nonlocal times
        times += 1
        return [o * np.float32(1.01) for o in outputs] if times < 3 else _exit(outputs)

    return misdeed


def _coarse(outputs: list[Array]) -> list[Array]:
    """Rounds to ten bits of mantissa, as TF32 has them."""
    found = []
    for output in outputs:
        mantissa, exponent = np.frexp(output)
        found.append(np.ldexp(np.round(mantissa * 2.0**11) / 2.0**11, exponent))
    return [array.astype(np.float32) for array in found]


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
    "early": lambda outputs: [o * np.float32(1.01) if len(o) == 1 else o for o in outputs],
    "late": lambda outputs: [np.concatenate([o[:1], o[1:] * np.float32(1.01)]) for o in outputs],
    "loud": lambda outputs: [np.where(abs(o) > 9, o * o.dtype.type(1.01), o) for o in outputs],
    "coarse": _coarse,
    "faint": _fainting(),
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
    "spin": _spin,
    "crowd": _crowd,
    "loop": _loop,
    "toil": _toil,
    "half": _half,
    "torn": _torn,
    "unfit": _unfit,
    "brood": _brood,
    "complex": lambda outputs: [o.astype(np.complex64) for o in outputs],
    "text": lambda outputs: [o.astype(str).astype(object) for o in outputs],
    "wait": _wait,
    "slow": _slow,
    "slower": _ever_slower(),
    "leak": _leaking(),
    "flood": _flood,
    "garbage": _garbage,
    "memory": _memory,
    "error": _error,
    "unsupported": _unsupported,
}
