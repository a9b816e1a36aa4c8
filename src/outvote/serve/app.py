"""The addresses of the workbench, and what is said where something is wrong."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from outvote.core.errors import UsageError, remedy_for
from outvote.report.page import LIBRARIES, SCRIPTS, asset, library
from outvote.serve.desk import HERE, Desk
from outvote.serve.guard import Guard
from outvote.serve.views import compare, findings, folders, models

_TYPES = {".js": "text/javascript", ".css": "text/css"}


def create_app(desk: Desk) -> Guard:
    """The pages, behind the guard."""

    def get(path: str, view: Callable[..., Any]) -> Route:
        return Route(path, partial(view, desk), methods=["GET"])

    def post(path: str, view: Callable[..., Any]) -> Route:
        return Route(path, partial(view, desk), methods=["POST"])

    routes = [
        get("/", folders.listed),
        get("/live", folders.listed_live),
        get("/at/{key}", folders.shown),
        get("/at/{key}/live", folders.shown_live),
        get("/at/{key}/report", folders.report),
        post("/at/{key}/pause", folders.paused),
        post("/at/{key}/stop", folders.stopped),
        post("/at/{key}/continue", folders.continued),
        get("/findings", findings.listed),
        get("/findings/rows", findings.rows),
        get("/finding/{fingerprint}", findings.shown),
        get("/finding/{fingerprint}/file/{name}", findings.file),
        post("/finding/{fingerprint}/note", findings.noted),
        post("/finding/{fingerprint}/known", findings.known),
        get("/models", models.shown),
        post("/models/file", models.uploaded),
        post("/models/check", models.checked),
        get("/compare", compare.shown),
        get("/assets/{name}", _asset),
    ]
    wrong: dict[Any, Any] = {
        UsageError: partial(_refused, desk),
        HTTPException: partial(_missing, desk),
        OSError: partial(_unwritable, desk),
    }
    return Guard(Starlette(routes=routes, exception_handlers=wrong), desk.token)


def _refused(desk: Desk, request: Request, error: Exception) -> Response:
    """Something that the reader can mend, in a sentence."""
    if request.method == "POST":
        return JSONResponse({"error": str(error)}, 400)
    return desk.page("error.html", 400, text=str(error))


def _unwritable(desk: Desk, request: Request, error: Exception) -> Response:
    """The system's refusal: a full disk, or a folder that cannot be written."""
    assert isinstance(error, OSError)
    remedy = remedy_for(error) or "try again"
    return _refused(desk, request, UsageError(f"the system refused: {error.strerror}; {remedy}"))


def _missing(desk: Desk, request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if request.method == "POST":
        return JSONResponse({"error": error.detail}, error.status_code)
    return desk.page("error.html", error.status_code, text=error.detail)


def _asset(desk: Desk, request: Request) -> Response:
    name = str(request.path_params["name"])
    text = _assets().get(name)
    if text is None:
        raise HTTPException(404, f"There is no {name} here.")
    kind = _TYPES[name[name.rindex(".") :]]
    return Response(text, media_type=kind, headers={"cache-control": "private, max-age=3600"})


@cache
def _assets() -> dict[str, str]:
    """Every script and style by its name: ours, and those of the reports."""
    own = {path.name: path.read_text("utf-8") for path in (HERE / "assets").iterdir()}
    shared = {name: asset(name) for name in (*SCRIPTS, "report.css")}
    return {**own, **shared, **{f"{name}.js": library(name) for name in LIBRARIES}}
