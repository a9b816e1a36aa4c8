"""The worker around a runtime: reads files, runs models and single nodes. It judges nothing."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from outvote.core import protocol as ask
from outvote.core.model import Model, Ref
from outvote.core.outputs import Outputs
from outvote.core.states import State
from outvote.dialects.onnx.nouns.batch import (
    CutGraphs,
    DrawGraphs,
    ExposeGraphs,
    GraphsCut,
    GraphsDrawn,
    GraphsExposed,
    GraphsRan,
    RunGraphs,
)
from outvote.dialects.onnx.nouns.node import origin_of, tensors_of
from outvote.dialects.onnx.nouns.operators import ListOperators, OperatorsListed
from outvote.dialects.onnx.nouns.requests import (
    AttemptNode,
    DrawNodes,
    FormsInferred,
    InferForms,
    NodesDrawn,
    RegionsTold,
    TellRegions,
)
from outvote.dialects.onnx.nouns.types import carrier
from outvote.dialects.onnx.workers.shared.assemble import assemble
from outvote.dialects.onnx.workers.shared.engine import Engine
from outvote.dialects.onnx.workers.shared.runtime import Runtime
from outvote.dialects.onnx.workers.shared.session import NodeSession
from outvote.dialects.onnx.workers.shared.shapes import announce_outputs
from outvote.worker.main import Context, Handlers, Refused
from outvote.worker.portions import first_rows, joined, portions
from outvote.worker.scripts import run_script, version_of


class OnnxWorker:
    """Holds a runtime and at most one session in which nodes are computed one at a time."""

    def __init__(self, context: Context, runtime: Runtime) -> None:
        setup = context.settings.setup
        if setup is not None:
            run_script(setup, context, "setup script", "__main__")
        self.kind = f"a worker for ONNX graphs ({runtime.libraries[0]})"
        self._context = context
        self._runtime = runtime
        self._engine = Engine(runtime, context.blobs, context.enter)
        self._session: NodeSession | None = None

    @property
    def handlers(self) -> Handlers:
        return {
            ask.ListParts: self.list_parts,
            ask.Read: self.read,
            ask.Save: self.save,
            ask.RunModel: self.run,
            ask.Forget: self.forget,
            ask.OpenSession: self.open_session,
            ask.StepLayer: self.step,
            ask.CallLayer: self.call,
            ask.CloseSession: self.close_session,
            ask.TellDefaults: self.tell_defaults,
            ListOperators: self.list_operators,
            DrawNodes: self.draw_nodes,
            InferForms: self.infer_forms,
            AttemptNode: self.attempt,
            DrawGraphs: self.draw_graphs,
            RunGraphs: self.run_graphs,
            TellRegions: self.tell_regions,
            ExposeGraphs: self.expose_graphs,
            CutGraphs: self.cut_graphs,
        }

    def is_gap(self, error: Exception) -> bool:
        return self._runtime.is_gap(error)

    def describe(self) -> ask.Hello:
        found = {name: version_of(name) for name in self._runtime.libraries}
        return ask.Hello(
            versions={name: told for name, told in found.items() if told != "unknown"},
            precision=dict(self._runtime.precision()),
            python=platform.python_version(),
            platform=f"{platform.system()} {platform.machine()}",
        )

    def list_parts(self, request: ask.ListParts) -> ask.PartsListed:
        """The files in which a model keeps its weights."""
        from outvote.dialects.onnx.workers.shared.parse import external_files, parsed

        proto = parsed(request.file.name, self._context.blobs.get(request.file.digest).tobytes())
        return ask.PartsListed(names=external_files(proto))

    def read(self, request: ask.Read) -> ask.ModelRead:
        """Read a model file and return it as neutral data; its weights go to the blob store."""
        from outvote.dialects.onnx.workers.shared.read import read

        blobs = self._context.blobs
        beside = {name: blobs.get(file.digest) for name, file in request.beside.items()}
        content = blobs.get(request.file.digest).tobytes()
        found = read(request.file.name, content, blobs, request.dims, beside)
        return ask.ModelRead(
            model=found.model, output_shapes=found.output_shapes, specs=found.specs
        )

    def save(self, request: ask.Save) -> ask.Saved:
        """Write a neutral model as an `.onnx` file."""
        graph = assemble(request.model, self._context.blobs)
        if graph.external:
            raise Refused("the model is too large to be written as one file")
        announce_outputs(graph.proto)
        path = self._context.folder / "model.onnx"
        path.write_bytes(graph.proto.SerializeToString())
        return ask.Saved(file=self._context.taken(path))

    def run(self, request: ask.RunModel) -> ask.Ran:
        """Run a model on stored inputs, batch by batch; `jitter` (a seed) moves every tensor."""
        model = request.model
        data = [self._context.blobs.get(digest) for digest in request.inputs]
        shown = [r for name in request.watch for r in _tensors(model, name)]
        parts = portions(model, data, request.batch)
        steps = len(model.layers) if request.jitter is not None else 1
        self._context.begin(len(parts) * steps)
        first, *rest = parts
        found = [self._part(model, first, request.jitter, shown)]
        found += [self._part(model, part, request.jitter, ()) for part in rest]
        outputs = [joined([part[i] for part in found]) for i in range(len(model.outputs))]
        hidden = iter(found[0][len(outputs) :])
        watched = {
            name: tuple(first_rows(next(hidden), request.rows) for _ in _tensors(model, name))
            for name in request.watch
        }
        return ask.Ran(outputs=Outputs.of(outputs), watched=watched)

    def forget(self, request: ask.Forget) -> ask.Done:
        self._engine.forget()
        return ask.Done()

    def open_session(self, request: ask.OpenSession) -> ask.Done:
        """Begin a session in which nodes are computed one at a time."""
        self._context.begin(len(request.model.layers))
        self._session = NodeSession(self._engine, request.model, request.inputs)
        return ask.Done()

    def step(self, request: ask.StepLayer) -> ask.Stepped:
        """A node on this target's own tensors and, if given, on another target's."""
        assert self._session is not None
        own, failed = self._session.own(request.layer, required=request.given is None)
        self._context.step()
        if request.given is None:
            return ask.Stepped(own=own)
        isolated = self._session.alone(request.layer, request.given)
        return ask.Stepped(own=own, isolated=isolated, own_error=failed)

    def call(self, request: ask.CallLayer) -> ask.Called:
        """A node on the given tensors alone."""
        assert self._session is not None
        return ask.Called(outputs=self._session.alone(request.layer, request.given))

    def close_session(self, request: ask.CloseSession) -> ask.Done:
        self._session = None
        return ask.Done()

    def tell_defaults(self, request: ask.TellDefaults) -> ask.DefaultsTold:
        """What attributes are when a node does not have them."""
        from outvote.dialects.onnx.workers.shared.schemas import defaults_of

        return ask.DefaultsTold(
            defaults={layer.name: defaults_of(layer) for layer in request.model.layers}
        )

    def list_operators(self, request: ListOperators) -> OperatorsListed:
        """What ONNX' schemas say of all operators, and of which of them nodes are drawn."""
        from outvote.dialects.onnx.workers.draw.table import told_operators

        return OperatorsListed(operators=told_operators(request.opset))

    def draw_nodes(self, request: DrawNodes) -> NodesDrawn:
        """New nodes behind the given tensors."""
        from outvote.dialects.onnx.workers.draw.fragment import draw_nodes

        return draw_nodes(request, self._context.blobs)

    def infer_forms(self, request: InferForms) -> FormsInferred:
        """What ONNX says of a model without running it."""
        from outvote.dialects.onnx.workers.shared.infer import infer_forms

        return infer_forms(request.model, self._context.blobs)

    def attempt(self, request: AttemptNode) -> ask.LayerAttempted:
        """Load and run a model that should be refused."""
        model = request.model
        feeds = [_ones(item.shape, item.dtype) for item in model.inputs]
        found = self._engine.whole(model, feeds)
        self._engine.forget()
        return ask.LayerAttempted(shapes=[list(state.array.shape) for state in found])

    def draw_graphs(self, request: DrawGraphs) -> GraphsDrawn:
        """New graphs, each by its number."""
        from outvote.dialects.onnx.workers.draw.graph import draw_graphs

        return draw_graphs(request)

    def expose_graphs(self, request: ExposeGraphs) -> GraphsExposed:
        """The graphs with every tensor as an output."""
        from outvote.dialects.onnx.workers.shared.cut import expose_graphs

        return expose_graphs(request)

    def cut_graphs(self, request: CutGraphs) -> GraphsCut:
        """Every node of the graphs as a graph of its own."""
        from outvote.dialects.onnx.workers.shared.cut import cut_graphs

        return cut_graphs(request)

    def run_graphs(self, request: RunGraphs) -> GraphsRan:
        """Many small graphs, each once."""
        from outvote.dialects.onnx.workers.shared.batch import run_graphs

        return GraphsRan(answers=run_graphs(self._runtime, request, self._context))

    def tell_regions(self, request: TellRegions) -> RegionsTold:
        """Which nodes the runtime makes one of."""
        told = getattr(self._runtime, "regions", None)
        if told is None:
            raise NotImplementedError("this runtime does not tell what it fuses")
        pairs = zip(request.model.inputs, request.shapes, strict=True)
        inputs = tuple(replace(item, shape=shape) for item, shape in pairs)
        model = replace(request.model, inputs=inputs) if self._runtime.fixed else request.model
        return RegionsTold(regions=tuple(told(assemble(model, self._context.blobs))))

    def _part(
        self, model: Model, feeds: list[State], jitter: int | None, shown: Sequence[Ref]
    ) -> list[State]:
        if jitter is not None:
            return self._engine.stepped(model, feeds, jitter, self._context.step)
        found = self._engine.whole(model, feeds, shown)
        self._context.step()
        return found


def _ones(shape: Sequence[int | None], dtype: str) -> State:
    return State(np.ones([n or 1 for n in shape], carrier(dtype)), None, dtype)


def _tensors(model: Model, name: str) -> list[Ref]:
    return tensors_of(origin_of(model.layer(name)), name)
