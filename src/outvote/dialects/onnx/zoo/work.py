"""Builds and trains models of Keras' zoo in its own workshop, and exports them to ONNX."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from outvote.core.errors import UsageError
from outvote.core.protocol import File
from outvote.core.target import Target
from outvote.core.zoo_protocol import ExportModel
from outvote.dialects.onnx.zoo.catalog import kerases, plain

EXPORTER = "torch"


def trainer(name: str | None) -> Target:
    if name not in (None, EXPORTER):
        raise UsageError(f"models are exported to ONNX by {EXPORTER}; leave out --target {name}")
    target: Target = kerases().workshop().trainer(EXPORTER)
    return target


def bench(*arguments: Any) -> Any:
    return kerases().workshop().bench(*arguments)


def source_of(*arguments: Any) -> Any:
    return kerases().workshop().source_of(*arguments)


def build(bench: Any, entry: Any, seed: int) -> Any:
    made = kerases().workshop().build(bench, _of_keras(entry), seed)
    return _exported(bench, made)


def train(bench: Any, entry: Any, *arguments: Any) -> Any:
    done = kerases().workshop().train(bench, _of_keras(entry), *arguments)
    return replace(done, made=_exported(bench, done.made))


def _of_keras(entry: Any) -> Any:
    return replace(entry, name=plain(entry.name))


def _exported(bench: Any, made: Any) -> Any:
    """The model as a graph, in the place of the file of Keras."""
    blobs = bench.pool.blobs
    file = File(made.model.name, blobs.put_file(made.model))
    run = bench.ask(f"Exporting {made.name}", ExportModel(file=file))
    half = bench.unfinished / "model.onnx"
    blobs.copy_file(run.reply.file.digest, half)
    graph = half.replace(made.model.with_suffix(".onnx"))
    made.model.unlink()
    return replace(made, model=graph)
