"""Builds programs of the zoo in a worker of PyTorch; in the user's cache, where seeds name them."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from platformdirs import user_cache_path

from outvote.core.dialect import dialect
from outvote.core.errors import UsageError
from outvote.core.files import save_npz
from outvote.core.target import Target
from outvote.core.zoo_protocol import Made
from outvote.dialects.torch_export.nouns.requests import BuildProgram
from outvote.dialects.torch_export.targets import BUILT_IN
from outvote.dialects.torch_export.zoo.catalog import PREFIX, VERSION, ZooProgram, find_programs
from outvote.targets.choose import choose

_BUILDER = "torch:eager"
_TRAINED = (
    "models of PyTorch are trained while they are built (torch:digits-trained); "
    "use `outvote zoo build`"
)


def trainer(name: str | None) -> Target:
    if name not in (None, _BUILDER):
        raise UsageError(f"programs are built by {_BUILDER}; leave out --target {name}")
    (found,) = choose([_BUILDER], BUILT_IN)
    return found


def bench(*arguments: Any) -> Any:
    """A started worker, as Keras' zoo has it."""
    return dialect("keras").zoo.workshop().bench(*arguments)


def source_of(*arguments: Any) -> Any:
    raise UsageError(_TRAINED)


def train(*arguments: Any) -> Any:
    raise UsageError(_TRAINED)


def build(bench: Any, entry: ZooProgram, seed: int) -> Made:
    """A program and inputs that fit, the program last: whoever sees it sees its data."""
    plain = entry.name.removeprefix(PREFIX)
    run = bench.ask(f"Building {entry.name}", BuildProgram(name=plain, seed=seed))
    blobs, reply = bench.pool.blobs, run.reply
    arrays = [np.array(blobs.get(digest)) for digest in reply.inputs]
    named = {"x": arrays[0]} if len(arrays) == 1 else {f"x{n}": x for n, x in enumerate(arrays)}
    data = save_npz(bench.out / f"{plain}.npz", named)
    half = bench.unfinished / "model.pt2"
    blobs.copy_file(reply.file.digest, half)
    model = half.replace(bench.out / f"{plain}.pt2")
    return Made(entry.name, model, data, reply.layers, reply.weights, run.seconds)


def seed_file(name: str) -> tuple[Path, Path]:
    """Other versions of PyTorch have folders of their own: they may write other programs."""
    (entry,) = find_programs([name])
    target = trainer(None)
    folder = user_cache_path("outvote") / "zoo" / f"{VERSION}-torch-{metadata.version('torch')}"
    plain = entry.name.removeprefix(PREFIX)
    model, data = (folder / f"{plain}{suffix}" for suffix in (".pt2", ".npz"))
    if not (model.exists() and data.exists()):
        with bench(folder, target) as at_work:
            build(at_work, entry, 0)
    return model, data
