"""Turns what `bisect` knows into the dict that result.json holds (docs/result-json.md)."""

from __future__ import annotations

from typing import Any

from outvote.commands.bisect.bisected import Bisected, Probe
from outvote.core.result import head, moment, number, target_head


def bisect_result(found: Bisected) -> dict[str, Any]:
    """The whole result."""
    job = found.job
    before, after = _ends(found)
    return {
        **head(
            "bisect",
            _targets(found),
            {"source": found.source, "instances": found.instances},
            created=moment(found.created),
            seconds=found.seconds,
            verdict=_verdict(found),
            summary=summary(found),
            interrupted=found.interrupted,
        ),
        "bisect": {
            "package": job.package,
            "target": job.target.name,
            "reference": found.reference,
            "case": str(job.model),
            "from": found.releases[0],
            "to": found.releases[-1],
            "change": _change(found),
            "before": before,
            "after": after,
            "tolerance": found.tolerance,
            "releases": [_row(found, version) for version in _shown(found)],
            "untried": _untried(found),
        },
    }


def _targets(found: Bisected) -> list[dict[str, Any]]:
    """The references, then every release that was started, oldest first."""
    releases = [found.on_release[v] for v in found.releases if v in found.on_release]
    return [target_head(it.target, it.hello) for it in (*found.references, *releases)]


def summary(found: Bisected) -> str:
    """The verdict as one sentence."""
    job = found.job
    before, after = _ends(found)
    where = f"{job.package} on {job.target.plain or job.target.name}"
    if before is None:
        if found.interrupted:
            return f"Stopped early: {len(found.probes)} releases of {where} were tried."
        ends = f"{found.releases[0]} and {found.releases[-1]}"
        return f"{where}: nothing changed between {ends} ({_state(found)})."
    told = {"fixed": "first fixed in", "broken": "first bad in", "changed": "first changed in"}
    names = {"fixed": "last bad", "broken": "last good", "changed": "last as before"}
    kind = _change(found) or "changed"
    gap = _untried(found)
    doubt = f"; {', '.join(gap)} between them could not be tried" if gap else ""
    early = " so far (stopped early)" if found.interrupted else ""
    return f"{where}: {told[kind]} {after}, {names[kind]} {before}{early}{doubt}."


def _verdict(found: Bisected) -> str:
    if found.interrupted:
        return "interrupted"
    return "changed" if found.changed else "unchanged"


def _change(found: Bisected) -> str | None:
    """fixed, broken or changed, by what the two ends say."""
    if not found.changed:
        return None
    first, last = (found.probes[v] for v in (found.releases[0], found.releases[-1]))
    if first.consistent == last.consistent or first.consistent is None:
        return "changed"
    return "broken" if first.consistent else "fixed"


def _ends(found: Bisected) -> tuple[str | None, str | None]:
    if found.interval is None:
        return None, None
    return found.releases[found.interval.before], found.releases[found.interval.after]


def _untried(found: Bisected) -> list[str]:
    """Releases inside the last interval: any of them may be the one."""
    if found.interval is None:
        return []
    inside = found.releases[found.interval.before + 1 : found.interval.after]
    return [version for version in inside if version in found.skipped]


def _shown(found: Bisected) -> list[str]:
    return [v for v in found.releases if v in found.probes or v in found.skipped]


def _row(found: Bisected, version: str) -> dict[str, Any]:
    probe = found.probes.get(version)
    started = found.on_release.get(version)
    target = started.target.name if started is not None else None
    if probe is None:
        return {
            "version": version,
            "target": target,
            "state": "skipped",
            "message": found.skipped[version],
            "distance": None,
            "distance_to_first": None,
        }
    return {
        "version": version,
        "target": target,
        "state": probe.state,
        "message": probe.message,
        "distance": number(probe.to_reference),
        "distance_to_first": number(probe.to_first),
    }


def _state(found: Bisected) -> str:
    probe: Probe = found.probes[found.releases[0]]
    return probe.state if probe.run.ok else f"{probe.state}: {probe.run.message[:160]}"
