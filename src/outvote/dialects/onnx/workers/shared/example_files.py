"""Writes ONNX' node tests as seeds: a model file and a data file with inputs and answers each."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from outvote.core.arrays import travels
from outvote.core.files import named_inputs, save_npz
from outvote.core.known_answers import KnownAnswers, answers_arrays
from outvote.core.outputs import Outputs
from outvote.dialects.onnx.nouns.requests import BuildExamples, Example, ExamplesBuilt
from outvote.dialects.onnx.workers.shared.examples import NodeTest, node_tests
from outvote.dialects.onnx.workers.shared.read import read
from outvote.worker.main import Context, Refused

# They draw numbers, and the specification names no generator: there is no known answer.
DRAWING = frozenset(
    """
    Bernoulli Dropout Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike
""".split()
)


def build_examples(request: BuildExamples, context: Context) -> ExamplesBuilt:
    """Every node test that has an answer and inputs that can be given."""
    tests = node_tests(request.only)
    context.begin(len(tests))
    built: list[Example] = []
    left_out: dict[str, str] = {}
    with TemporaryDirectory(dir=context.folder) as folder:
        for test in tests:
            why = _hindrance(test, context)
            if why:
                left_out[test.name] = why
            else:
                built.append(_written(test, context, Path(folder)))
            context.step()
    return ExamplesBuilt(examples=tuple(built), left_out=left_out)


def _hindrance(test: NodeTest, context: Context) -> str:
    drawing = DRAWING & test.operators
    if drawing:
        return f"{min(drawing)} draws numbers"
    strange = [tensor.dtype for tensor in test.inputs if not travels(tensor.dtype)]
    if strange:
        return f"its inputs are {strange[0]}, which cannot be given"
    try:
        read(f"{test.name}.onnx", test.proto.SerializeToString(), context.blobs, {}, {})
    except Refused as error:
        return str(error)
    return ""


def _written(test: NodeTest, context: Context, folder: Path) -> Example:
    model, data = folder / f"{test.name}.onnx", folder / f"{test.name}.npz"
    model.write_bytes(test.proto.SerializeToString())
    right = Outputs(
        tuple(tensor.array for tensor in test.outputs),
        tuple(tensor.dtype for tensor in test.outputs),
    )
    answers = KnownAnswers(right, test.relative, test.absolute)
    inputs = named_inputs([tensor.array for tensor in test.inputs])
    save_npz(data, {**inputs, **answers_arrays(answers)})
    operators = tuple(sorted(test.operators))
    return Example(test.name, operators, context.taken(model), context.taken(data))
