"""The table of causes, and one of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response

from outvote.core.case import load_data
from outvote.core.errors import UsageError
from outvote.core.result import picture
from outvote.core.text import printable
from outvote.findings.answers import load_answers
from outvote.findings.known import entry_of
from outvote.report.page import embedded
from outvote.report.pages.check.view import map_data
from outvote.serve.causes import PAGE, SORTS, Filter
from outvote.serve.desk import Desk
from outvote.serve.given import json_of
from outvote.serve.numbers import side_by_side
from outvote.serve.places import Place
from outvote.serve.track import result_in
from outvote.store.queries import asked

_TEXTS = ("report.md", "repro.py")
_FILES = (*_TEXTS, "inputs.npz", "outputs.npz", "model.keras", "model.onnx", "model.pt2")
_LONGEST = 1 << 20  # bytes of a text that is shown
_PICTURES = 8
_SHORT = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def listed(desk: Desk, request: Request) -> Response:
    return desk.page("findings.html", **_table(desk, request), choices=desk.shelf.causes.choices(),
                     places=desk.shelf.tracks(), sorts=list(SORTS))  # fmt: skip


def rows(desk: Desk, request: Request) -> Response:
    """The table alone, for who types."""
    return desk.page("findings_rows.html", **_table(desk, request))


def _table(desk: Desk, request: Request) -> dict[str, Any]:
    wanted = Filter.of(request.query_params)
    found = desk.shelf.causes.find(wanted)
    first = wanted.page * PAGE
    return {
        "asked": wanted,
        "found": found,
        "first": first,
        "last": min(first + PAGE, found.total),
        "noted": desk.own.noted(),
    }


def shown(desk: Desk, request: Request) -> Response:
    fingerprint, place, places = _place(desk, request)
    finding = _finding(place, fingerprint)
    folder = place.path / "findings" / fingerprint
    texts = {name: _text(folder / name) for name in _TEXTS}
    found = _SHORT.search(texts["report.md"])
    short = found[1] if found and found[1].strip() != texts["repro.py"].strip() else ""
    trouble = []
    values: dict[str, Any] = {"outputs": [], "pictures": [], "silent": []}
    try:
        answers = load_answers(folder)
        if answers is not None:
            values["outputs"] = side_by_side(answers, finding["accused"])
            values["silent"] = [n for n in finding["targets"] if n not in answers.outputs]
        values["pictures"] = _pictures(folder / "inputs.npz")
    except UsageError as error:
        trouble.append(str(error))
    try:
        values["known"] = desk.own.known().get(fingerprint)
    except UsageError as error:
        values["known"] = None
        trouble.append(str(error))
    return desk.page(
        "finding.html",
        finding=finding,
        place=place,
        places=places,
        folder=folder,
        script=texts["repro.py"],
        issue=texts["report.md"],
        short=short,
        files=[name for name in _FILES if (folder / name).is_file()],
        maps=[finding] if finding.get("localization") else [],
        data=embedded(map_data([finding])) if finding.get("localization") else "",
        note=desk.own.note(fingerprint),
        trouble=trouble,
        **values,
    )


def _place(desk: Desk, request: Request) -> tuple[str, Place, list[Place]]:
    fingerprint = str(request.path_params["fingerprint"])
    places = desk.shelf.holding(fingerprint)
    wanted = request.query_params.get("at")
    chosen = next((place for place in places if place.key == wanted), None)
    if not places:
        raise HTTPException(404, f"No folder here holds a finding {fingerprint}.")
    return fingerprint, chosen or places[0], places


def _finding(place: Place, fingerprint: str) -> dict[str, Any]:
    """All of it, from a campaign's table or from the result of another command."""
    if place.has_store:
        with asked(place.path) as store:
            found = store.finding(fingerprint)
            result = None if found else store.result()
    else:
        found, result = None, result_in(place)
    if found is None and result is not None:
        found = next((f for f in result["findings"] if f["fingerprint"] == fingerprint), None)
    if found is None:
        raise HTTPException(404, f"{place.name} holds no finding {fingerprint} any more.")
    return found


def _text(path: Path) -> str:
    if not path.is_file() or path.is_symlink():
        return ""
    with path.open("rb") as file:
        return file.read(_LONGEST).decode("utf-8", "replace")


def _pictures(path: Path) -> list[str]:
    """The inputs that look like pictures."""
    if not path.is_file():
        return []
    arrays = [array for name, array in load_data(path).items() if name.startswith("x")]
    found = [picture(one) for array in arrays if array.ndim > 2 for one in array[:_PICTURES]]
    return [one for one in found if one is not None][:_PICTURES]


def file(desk: Desk, request: Request) -> Response:
    """A file of a finding, to keep: browsers are told to show none."""
    fingerprint, place, _ = _place(desk, request)
    name = str(request.path_params["name"])
    path = place.path / "findings" / fingerprint / name
    inside = path.resolve().is_relative_to(place.path.resolve())
    if name not in _FILES or not path.is_file() or not inside:
        raise HTTPException(404, f"This finding has no file {name}.")
    return FileResponse(path, media_type="application/octet-stream", filename=name)


async def noted(desk: Desk, request: Request) -> Response:
    given = await json_of(request)
    desk.own.write_note(str(request.path_params["fingerprint"]), str(given.get("text", "")))
    return JSONResponse({})


async def known(desk: Desk, request: Request) -> Response:
    """Write an entry of known.toml, or take it out."""
    given = await json_of(request)
    fingerprint = str(request.path_params["fingerprint"])
    if given.get("forget"):
        desk.own.forget(fingerprint)
    else:
        fields = {key: printable(str(given.get(key) or "").strip()) for key in ("reason", "link")}
        table = {"fingerprint": fingerprint, "reason": fields["reason"]}
        table |= {"link": fields["link"]} if fields["link"] else {}
        if not fields["reason"]:
            raise UsageError("say why it may pass: the reason is empty")
        desk.own.know(entry_of(desk.own.known_file, table))
    desk.shelf.refresh()
    return JSONResponse({})
