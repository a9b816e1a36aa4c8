"""The list of folders, and one of them: a campaign or another command, live."""

from __future__ import annotations

import shlex
import signal
import time
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from outvote.core.errors import UsageError
from outvote.core.events import CaseRun, FindingMet, StageBegun, StageEnded, TargetDown, TargetUp
from outvote.report import rendered
from outvote.report.page import policy
from outvote.report.pages import page_of
from outvote.serve import lines
from outvote.serve.causes import Filter
from outvote.serve.desk import Desk
from outvote.serve.track import Track
from outvote.store import facts
from outvote.store.folder import last_run
from outvote.store.queries import Queries, asked
from outvote.store.store import Store

_STEPS = ("target up", "target down", "stage begun", "stage ended", "case run", "finding")


def listed(desk: Desk, request: Request) -> Response:
    return desk.page(
        "folders.html",
        tracks=desk.shelf.tracks(),
        roots=desk.shelf.roots,
        counts=desk.shelf.causes.totals(),
    )


def listed_live(desk: Desk, request: Request) -> Response:
    return desk.page(
        "folders_live.html", tracks=desk.shelf.tracks(), counts=desk.shelf.causes.totals()
    )


def shown(desk: Desk, request: Request) -> Response:
    track = desk.track(request)
    return desk.page("folder.html", **_values(desk, track))


def shown_live(desk: Desk, request: Request) -> Response:
    """The part of the page that changes; nothing where nothing has changed."""
    track = desk.track(request)
    version = _version(track)
    if request.query_params.get("v") == version:
        return Response(status_code=204)
    return desk.parts.shown(
        track.place.key, version, lambda: desk.page("folder_live.html", **_values(desk, track))
    )


def _version(track: Track) -> str:
    return f"{track.version}-{track.state}"


def _values(desk: Desk, track: Track) -> dict[str, Any]:
    values: dict[str, Any] = {
        "track": track,
        "state": track.state,
        "at_version": _version(track),
        "newest_findings": desk.shelf.causes.find(Filter(place=track.place.key, sort="newest")),
        "command_line": desk.runs.command_line(track.place.key),
        "said": desk.runs.said(track.place.key) if track.state in ("failed", "gone") else "",
        "live": None,
        "campaign": None,
    }
    if not track.place.has_store or track.trouble:
        return values
    with asked(track.place.path) as store:
        if track.command == "fuzz":
            values["campaign"] = _campaign(desk, track, store)
        else:
            values["live"] = _steps(store)
    return values


def _campaign(desk: Desk, track: Track, store: Queries) -> dict[str, Any]:
    busy, now = store.fact(facts.BUSY), track.latest
    positions, peaks = store.fact(facts.POSITIONS), store.fact(facts.PEAKS)
    restarts = store.fact(facts.RESTARTS)
    key = track.place.key
    found = dict(desk.shelf.causes.counts("rule", key))
    points = [*track.points, *([now] if now and track.points[-1:] != [now] else [])]
    seconds = desk.shelf.causes.seconds(key, track.created)
    end = now.seconds if now else 0.0
    reached = store.lines_over_time()
    charts = [
        lines.chart("Cases a minute", {"cases a minute": lines.rates(points)}),
        lines.chart("Findings", {"findings": lines.steps(seconds, end)}),
        lines.chart("Coverage, in parts of what is reached", lines.coverage(points)),
        lines.chart(
            "Lines of each library", {name: lines.totals(on, end) for name, on in reached.items()}
        ),
    ]
    return {
        "charts": [chart for chart in charts if chart is not None],
        "width": lines.WIDTH,
        "height": lines.HEIGHT,
        "targets": [
            {
                "name": name,
                "rate": 60 * now.tested / busy[name] if now and busy.get(name) else None,
                "busy": busy.get(name),
                "restarts": restarts.get(name, 0),
                "memory": peaks.get(name),
                "position": positions.get(name),
            }
            for name in track.targets
        ],
        "crews": _crews(store.fact(facts.CREWS)),
        "rules": _rules(store.inside(facts.STATE, "tallies"), found),
        "arms": store.inside(facts.STATE, "arms"),
        "by_accused": desk.shelf.causes.counts("accused", key),
        "kinds": now.kinds if now else 0,
        "drawable": len(store.fact(facts.DRAWABLE)),
        "values": now.values if now else 0,
        "lines": _lines(reached, store.fact(facts.LINES)),
        "newest": store.newest(8),
        "resume": shlex.join(["outvote", *_resumption(track, store)]),
    }


def _lines(
    reached: Mapping[str, list[list[float]]], known: Mapping[str, int]
) -> list[dict[str, Any]]:
    """How many lines of its library's own Python each target has been through, of how many."""
    return [
        {"target": name, "reached": int(line[-1][1]), "known": known.get(name, 0)}
        for name, line in reached.items()
    ]


_DEEDS = {  # what a crew of a cluster is asked to do, as the driver notes it
    "placing": "waits for room on the cluster",
    "starting": "starts its targets",
    "waiting": "waits",
    "opening": "runs the seeds",
    "make": "makes",
    "attempt": "runs",
    "sift": "runs new cases",
    "look": "looks into",
    "settle": "tidies up after a generation",
}


def _crews(noted: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What each crew of a cluster does now, and since when."""
    return [
        {
            **crew,
            "deed": _DEEDS.get(crew["doing"], crew["doing"]),
            "mutants": _span(crew["numbers"]),
            "seconds": max(0.0, time.time() - crew["since"]),
        }
        for crew in noted
    ]


def _span(numbers: list[int]) -> str:
    """Of mutants that were given out together: 41 to 48, or some between."""
    if not numbers:
        return ""
    first, last = min(numbers), max(numbers)
    return str(first) if first == last else f"{first} to {last}"


def _rules(
    tallies: Mapping[str, tuple[int, int]], found: Mapping[str, int]
) -> list[dict[str, Any]]:
    """The rules that were used, those that found most first."""
    rows = [
        {"rule": rule, "used": used, "amplified": amplified, "findings": found.get(rule, 0)}
        for rule, (used, amplified) in tallies.items()
        if used
    ]
    return sorted(rows, key=lambda row: (-row["findings"], -row["used"], row["rule"]))


def _steps(store: Queries) -> dict[str, Any]:
    """How far a command has come: its stages, its targets, and where each worker is."""
    stages: list[dict[str, Any]] = []
    targets: dict[str, dict[str, Any]] = {}
    findings: list[FindingMet] = []
    for told in store.of_last_run(*_STEPS):
        event = told.event
        if isinstance(event, TargetUp):
            targets.setdefault(event.target, {})["up"] = event.seconds
        elif isinstance(event, TargetDown):
            targets.setdefault(event.target, {})["down"] = event.message
        elif isinstance(event, CaseRun):
            targets.setdefault(event.target, {})["ran"] = event
        elif isinstance(event, StageBegun):
            stages.append({"text": event.stage, "seconds": None, "complete": False})
        elif isinstance(event, StageEnded):
            open_ones = [s for s in stages if s["text"] == event.stage and s["seconds"] is None]
            for stage in open_ones[-1:]:
                stage |= {"seconds": event.seconds, "complete": event.complete}
        elif isinstance(event, FindingMet):
            findings.append(event)
    for name, position in store.fact(facts.POSITIONS).items():
        targets.setdefault(name, {})["position"] = position
    return {"stages": stages, "targets": targets, "findings": findings}


def report(desk: Desk, request: Request) -> Response:
    """The whole report of a folder, made anew: a file that lies there is not trusted."""
    track = desk.track(request)
    if track.command == "fuzz" and track.latest and track.latest.tested > 200_000:
        raise UsageError(
            "the report of so large a campaign takes a while: "
            f"outvote report {shlex.quote(str(track.place.path))}"
        )
    result = last_run(track.place.path).result
    for finding in result["findings"]:
        finding.setdefault("known", None)
    made = rendered("html", result, track.place.path)
    own = policy(list(page_of(result).page(result).scripts))
    return Response(made, media_type="text/html", headers={"content-security-policy": own})


def paused(desk: Desk, request: Request) -> Response:
    """Ask a campaign to wait before its next generation, or to go on."""
    track = desk.track(request)
    if track.command != "fuzz" or track.process is None:
        raise UsageError("only a campaign that runs on this machine can pause")
    with closing(Store(track.place.path, create=False)) as store:
        store.note(facts.PAUSED, not store.fact(facts.PAUSED))
    desk.shelf.refresh()
    return JSONResponse({})


def stopped(desk: Desk, request: Request) -> Response:
    """What Ctrl-C does: the command writes its reports and ends."""
    track = desk.track(request)
    process = track.process
    if process is None:
        raise UsageError("nothing runs there on this machine")
    process.send_signal(signal.SIGINT)
    return JSONResponse({})


def continued(desk: Desk, request: Request) -> Response:
    """More of a campaign that has ended early, by the command that the page shows."""
    track = desk.track(request)
    if track.command != "fuzz" or track.state not in ("stopped", "gone", "failed"):
        raise UsageError(f"only a campaign that was stopped can go on; this one is {track.state}")
    with asked(track.place.path) as store:
        desk.runs.start(_resumption(track, store), track.place.key)
    return JSONResponse({})


def _resumption(track: Track, store: Queries) -> list[str]:
    heads = store.fact(facts.HELLOS).values()
    configs = sorted({str(head["config"]) for head in heads if head.get("config")})
    named = ["--config", configs[0]] if configs else []
    return ["fuzz", "--resume", str(track.place.path), *named]
