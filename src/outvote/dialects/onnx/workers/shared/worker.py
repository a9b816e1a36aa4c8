"""The worker around a runtime: reads files, runs models and single nodes. It judges nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from outvote.core import protocol as ask
from outvote.core.batch import (
    CutGraphs,
    ExposeGraphs,
    GraphsCut,
    GraphsDrawn,
    GraphsExposed,
    GraphsRan,
    RunGraphs,
)
from outvote.core.model import Layer, Ref
from outvote.core.states import State
from outvote.dialects.onnx.nouns.batch import DrawGraphs
from outvote.dialects.onnx.nouns.node import origin_of, tensors_of
from outvote.dialects.onnx.nouns.operators import ListOperators, OperatorsListed
from outvote.dialects.onnx.nouns.requests import (
    AttemptNode,
    BuildExamples,
    DrawNodes,
    ExamplesBuilt,
    FormsInferred,
    InferForms,
    NodesDrawn,
)
from outvote.dialects.onnx.nouns.types import carrier
from outvote.dialects.onnx.workers.shared.assemble import assemble
from outvote.dialects.onnx.workers.shared.engine import NodeEngine
from outvote.dialects.onnx.workers.shared.runtime import Runtime
from outvote.dialects.onnx.workers.shared.shapes import announce_outputs
from outvote.worker.batch import answered_by, run_graphs
from outvote.worker.engine import run_model
from outvote.worker.hello import hello, installed_version
from outvote.worker.main import Context, Handlers, Refused
from outvote.worker.scripts import run_setup
from outvote.worker.session import Session, Sessions


class OnnxWorker:
    """Holds a runtime, and at most one session in which nodes are computed one at a time."""

    def __init__(self, context: Context, runtime: Runtime) -> None:
        run_setup(context)
        self.kind = f"a worker for ONNX graphs ({runtime.libraries[0]})"
        self._context = context
        self._runtime = runtime
        self._engine = NodeEngine(runtime, context.blobs, context.enter)
        self._sessions = Sessions(context, self._begun)

    @property
    def handlers(self) -> Handlers:
        return {
            ask.ListParts: self.list_parts,
            ask.Read: self.read,
            ask.Save: self.save,
            ask.RunModel: self.run,
            ask.Forget: self.forget,
            **self._sessions.handlers,
            ask.TellDefaults: self.tell_defaults,
            ListOperators: self.list_operators,
            DrawNodes: self.draw_nodes,
            InferForms: self.infer_forms,
            AttemptNode: self.attempt,
            DrawGraphs: self.draw_graphs,
            RunGraphs: self.run_graphs,
            ask.TellRegions: self.tell_regions,
            ExposeGraphs: self.expose_graphs,
            CutGraphs: self.cut_graphs,
            BuildExamples: self.build_examples,
        }

    def is_gap(self, error: Exception) -> bool:
        return self._runtime.is_gap(error)

    def describe(self) -> ask.Hello:
        found = {name: installed_version(name) for name in self._runtime.libraries}
        known = {name: told for name, told in found.items() if told != "unknown"}
        return hello(known, self._runtime.precision())

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
        return run_model(self._context, self._engine, request, _tensors)

    def forget(self, request: ask.Forget) -> ask.Done:
        self._engine.forget()
        return ask.Done()

    def _begun(self, request: ask.OpenSession) -> Session:
        """A session whose tensors are those of one run of the whole graph, all of them outputs.

        A runtime that cannot do that computes them node by node, each from its own.
        """
        model, inputs = request.model, request.inputs
        try:
            known = self._engine.everything(model, inputs)
        except Exception:  # whatever it is shows again in the node that is at fault
            self._engine.forget()
            known = {}
        return Session(model, inputs, self._engine.alone, known)

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
        from outvote.dialects.onnx.workers.shared.batch import run_graph

        run, is_gap = partial(run_graph, self._runtime), self._runtime.is_gap
        answered = partial(answered_by, run, is_gap)
        divides = self._runtime.divides
        return GraphsRan(answers=run_graphs(request, self._context, answered, divides))

    def build_examples(self, request: BuildExamples) -> ExamplesBuilt:
        """ONNX' own node tests as files."""
        from outvote.dialects.onnx.workers.shared.example_files import build_examples

        return build_examples(request, self._context)

    def tell_regions(self, request: ask.TellRegions) -> ask.RegionsTold:
        """Which nodes the runtime makes one of."""
        told = getattr(self._runtime, "regions", None)
        if told is None:
            raise NotImplementedError("this runtime does not tell what it fuses")
        pairs = zip(request.model.inputs, request.shapes, strict=True)
        inputs = tuple(replace(item, shape=shape) for item, shape in pairs)
        model = replace(request.model, inputs=inputs) if self._runtime.fixed else request.model
        return ask.RegionsTold(regions=tuple(told(assemble(model, self._context.blobs))))


def _ones(shape: Sequence[int | None], dtype: str) -> State:
    return State(np.ones([n or 1 for n in shape], carrier(dtype)), None, dtype)


def _tensors(layer: Layer) -> list[Ref]:
    return tensors_of(origin_of(layer), layer.name)
