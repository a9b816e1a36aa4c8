"""A model that is dropped on the page: checked as model files are, then run by `outvote check`."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from outvote.config import Config
from outvote.core.dialect import inspect
from outvote.core.errors import UsageError
from outvote.serve.desk import Desk
from outvote.serve.given import json_of
from outvote.serve.places import key_of
from outvote.serve.uploads import endings, looked_at, plain_name, role_of, targets_for
from outvote.store.store import FILE
from outvote.targets.choose import choose, known_targets

_GIVEN = "given"  # the folder inside a run with what was dropped
_MOST_BYTES = 16 << 30
_PATIENCE = 30.0  # seconds until a command has made its store, or ended


def shown(desk: Desk, request: Request) -> Response:
    return desk.page("models.html", endings=[*endings(), ".npz"])


async def uploaded(desk: Desk, request: Request) -> Response:
    """Keep one file in the folder of a new run, if it is what it should be."""
    name = plain_name(request.query_params.get("name", ""))
    role = role_of(name)
    folder = _run_folder(desk, request.query_params.get("run", ""), name)
    try:
        path = await _received(request, folder / _GIVEN / name)
        told = await run_in_threadpool(looked_at, path, role, desk.config)
    except BaseException:
        (folder / _GIVEN / name).unlink(missing_ok=True)
        if not any((folder / _GIVEN).iterdir()):
            shutil.rmtree(folder)
        raise
    return JSONResponse({"run": folder.name, "name": name, "role": role, **told})


def _run_folder(desk: Desk, given: str, name: str) -> Path:
    """A new one for the first file, and that one for the others."""
    if not given:
        folder = desk.own.new_run(name)
        (folder / _GIVEN).mkdir()
        return folder
    return _existing(desk, given)


def _existing(desk: Desk, given: str) -> Path:
    folder = desk.own.path / "runs" / plain_name(given)
    if folder.name != given or not (folder / _GIVEN).is_dir() or (folder / FILE).exists():
        raise UsageError(f"there is no run {given!r} that waits to be started")
    return folder


async def _received(request: Request, path: Path) -> Path:
    size = 0
    with path.open("wb") as file:
        async for part in request.stream():
            size += len(part)
            if size > _MOST_BYTES:
                raise UsageError(f"{path.name} is larger than {_MOST_BYTES >> 30} GiB")
            file.write(part)
    if not size:
        raise UsageError(f"{path.name} is empty")
    return path


async def checked(desk: Desk, request: Request) -> Response:
    """Start the check, and say where to watch it."""
    given = await json_of(request)
    return await run_in_threadpool(_checked, desk, given)


def _checked(desk: Desk, given: dict[str, Any]) -> Response:
    folder = _existing(desk, str(given.get("run", "")))
    files = sorted((folder / _GIVEN).iterdir())
    by_role = {role_of(path.name): path for path in files}
    model, data, weights = (by_role.get(role) for role in ("model", "data", "weights"))
    if model is None:
        raise UsageError("drop a model first")
    wing = inspect(model, weights)
    names = given.get("targets")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UsageError("choose the targets to compare")
    known = {row["name"] for row in targets_for(wing, desk.config)}
    for name in names:
        if name not in known:
            raise UsageError(f"there is no target {name!r} here; choose from {', '.join(known)}")
    choose(names, known_targets(desk.config or Config(), wing))
    if len(names) < 2:
        raise UsageError("a comparison needs two targets; choose another one, too")
    arguments = ["check", _shown(desk, model), "--targets", ",".join(names)]
    for option, path in {"--data": data, "--weights": weights}.items():
        arguments += [option, _shown(desk, path)] if path is not None else []
    if desk.config is not None and desk.config.path is not None:
        arguments += ["--config", str(desk.config.path.absolute())]
    key = key_of(folder)
    process = desk.runs.start([*arguments, "--out", _shown(desk, folder)], key)
    began = time.monotonic()
    while not (folder / FILE).exists() and time.monotonic() < began + _PATIENCE:
        if process.poll() is not None:
            raise UsageError(desk.runs.said(key))
        time.sleep(0.05)
    desk.shelf.refresh(walk=True)
    return JSONResponse({"at": key})


def _shown(desk: Desk, path: Path) -> str:
    """The path as one types it in the folder that the workbench was given."""
    return os.path.relpath(path, desk.own.root)
