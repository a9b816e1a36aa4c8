"""ONNX' own node tests as files in the user's cache, made once for each release of onnx."""

from __future__ import annotations

import json
import shutil
import tempfile
from importlib import metadata
from pathlib import Path

from platformdirs import user_cache_path

from outvote.core.errors import UsageError
from outvote.core.files import write_atomically
from outvote.dialects.onnx.nouns.requests import BuildExamples
from outvote.dialects.onnx.targets import BUILT_IN
from outvote.run.local import LocalPool
from outvote.run.settle import ask_settled
from outvote.targets.choose import missing_packages

VERSION = 1  # raised when the files change
_BUILDER = "onnx-reference"
_INDEX = "index.json"  # written last: what has it is whole


def example_names() -> dict[str, list[str]]:
    """All node tests, with their operators."""
    found: dict[str, list[str]] = json.loads((_folder() / _INDEX).read_text(encoding="utf-8"))
    return found


def example_file(name: str) -> tuple[Path, Path]:
    return _folder() / f"{name}.onnx", _folder() / f"{name}.npz"


def _folder() -> Path:
    if missing_packages(BUILT_IN[_BUILDER]):
        raise UsageError("ONNX' node tests come with onnx; pip install 'outvote[onnx]'")
    folder = user_cache_path("outvote") / "zoo" / f"{VERSION}-onnx-{metadata.version('onnx')}"
    if not (folder / _INDEX).exists():
        _build(folder)
    return folder


def _build(folder: Path) -> None:
    """All files, beside the folder first: what is not finished leaves nothing behind."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".unfinished-"))
    try:
        with LocalPool([BUILT_IN[_BUILDER]]) as pool:
            run = ask_settled(pool, _BUILDER, BuildExamples())
            if not run.ok:
                raise UsageError(f"ONNX' node tests could not be built: {run.message}")
            for example in run.reply.examples:
                for file in (example.model, example.data):
                    pool.blobs.copy_file(file.digest, unfinished / file.name)
        index = {example.name: list(example.operators) for example in run.reply.examples}
        write_atomically(unfinished / _INDEX, json.dumps(index))
        shutil.rmtree(folder, ignore_errors=True)
        unfinished.replace(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
