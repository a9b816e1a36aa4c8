"""Models of the zoo by name, built once and kept in the user's cache."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

from platformdirs import user_cache_path

from outvote.dialects.keras.targets import BUILT_IN
from outvote.dialects.keras.zoo.catalog import VERSION, find_entry
from outvote.dialects.keras.zoo.work import TRAINERS, bench, build, trainer
from outvote.run.pool import Pool
from outvote.run.watch import Watch, silent

SEED = 0


def default_cache() -> Path:
    """The user's cache folder for the zoo; it may be deleted at any time."""
    return user_cache_path("outvote") / "zoo"


def seed_file(
    name: str, cache_folder: Path | None = None, pool: Pool | None = None, watch: Watch = silent
) -> tuple[Path, Path]:
    """The model and the data file of that name, built if they are not there yet.

    A pool with one of TRAINERS, unpatched, lends its worker; otherwise one is started. Other
    versions of the zoo and of Keras have folders of their own: they may build other models.
    """
    entry = find_entry(name)
    parent = default_cache() if cache_folder is None else cache_folder
    lent = [t for t in TRAINERS if pool and pool.targets.get(t) == BUILT_IN[t]]
    target = trainer(lent[0] if lent else None)
    folder = parent / f"{VERSION}-keras-{metadata.version('keras')}"
    model, data = folder / f"{name}.keras", folder / f"{name}.npz"
    if not (model.exists() and data.exists()):
        with bench(folder, target, watch, pool if lent else None) as at_work:
            build(at_work, entry, SEED)
    return model, data
