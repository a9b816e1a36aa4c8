"""What every page of the workbench has at hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from jinja2 import UndefinedError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from outvote.config import Config
from outvote.core.errors import UsageError
from outvote.core.version import VERSION
from outvote.report.page import environment
from outvote.serve.own_folder import OwnFolder
from outvote.serve.parts import Parts
from outvote.serve.runs import Runs
from outvote.serve.shelf import Shelf
from outvote.serve.track import Track

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Desk:
    """The folders that are shown, the one that is written, the runs, and the token."""

    shelf: Shelf
    own: OwnFolder
    runs: Runs
    token: str
    config: Config | None = None  # of targets, for runs that are started from a page
    parts: Parts = field(default_factory=Parts)

    def page(self, name: str, status: int = 200, **values: Any) -> Response:
        """A page, or a part of one, made of its template."""
        shared = {"base": f"/{self.token}", "version": VERSION, "own": self.own}
        try:
            made = _templates().get_template(name).render(**shared, **values)
        except (UndefinedError, TypeError, KeyError, AttributeError, ValueError) as error:
            raise UsageError(
                f"outvote did not write what is there, or not so: {error!r}"
            ) from error
        return HTMLResponse(made, status)

    def warm(self) -> None:
        """Compile the templates, so that the first page does not wait for it."""
        found = _templates()
        for name in found.list_templates():
            found.get_template(name)

    def track(self, request: Request) -> Track:
        """The folder that an address names."""
        found = self.shelf.track(str(request.path_params["key"]))
        if found is None:
            raise HTTPException(404, "There is no such folder here any more.")
        return found


def known_reasons(own: OwnFolder) -> dict[str, str]:
    """Why findings are known; a file that cannot be read says so on the page of a finding."""
    try:
        return {fingerprint: entry.reason for fingerprint, entry in own.known().items()}
    except UsageError:
        return {}


def _templates() -> Any:
    found = environment(HERE / "templates")
    found.filters.setdefault("moment", moment)
    return found


def moment(seconds: float) -> str:
    """A point in time on this machine's clock."""
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M:%S") if seconds else "–"
