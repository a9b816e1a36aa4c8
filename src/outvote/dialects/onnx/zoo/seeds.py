"""ONNX seeds by name, built once and kept in the user's cache."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

from platformdirs import user_cache_path

from outvote.dialects.onnx.zoo.catalog import is_exported, kerases, plain
from outvote.dialects.onnx.zoo.node_tests import example_file
from outvote.dialects.onnx.zoo.work import bench, build, trainer

VERSION = 1  # raised when what is exported changes
_SEED = 0


def seed_file(name: str) -> tuple[Path, Path]:
    """The model and the data file of that name, built if they are not there yet."""
    return _exported(name) if is_exported(name) else example_file(plain(name))


def _exported(name: str) -> tuple[Path, Path]:
    """Other versions of the libraries have folders of their own: they may export other graphs."""
    target = trainer(None)
    versions = "-".join(f"{package}-{metadata.version(package)}" for package in ("keras", "torch"))
    folder = user_cache_path("outvote") / "zoo" / f"{VERSION}-onnx-{versions}"
    model, data = (folder / f"{plain(name)}{suffix}" for suffix in (".onnx", ".npz"))
    if not (model.exists() and data.exists()):
        (entry,) = kerases().entries([plain(name)])
        with bench(folder, target) as at_work:
            build(at_work, entry, _SEED)
    return model, data
