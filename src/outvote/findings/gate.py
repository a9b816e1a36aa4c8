"""Decides what fails a run. A stage on the dict that result.json holds: a result in, one out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from outvote.core.requirements import version_of
from outvote.findings.baseline import NO_BASELINE, Baseline
from outvote.findings.known import NOTHING_KNOWN, Known, KnownFile, Until, known_of

Data = dict[str, Any]

FAIL_ON = ("bug", "difference", "any", "new", "never")
_COUNTED = {"bug": ("bug",), "difference": ("bug", "difference"), "never": ()}
_HARMLESS = ("precision", "unsupported")  # explained: not even `any` counts them


def counts(triage: str, fail_on: str) -> bool:
    """Whether a finding of this triage fails the run, if it is not known."""
    return triage in _COUNTED[fail_on] if fail_on in _COUNTED else triage not in _HARMLESS


@dataclass(frozen=True)
class Gate:
    """What a run is held against: the known findings, and what a new one must be to count."""

    known: KnownFile = NOTHING_KNOWN
    fail_on: str = "any"
    baseline: Baseline = NO_BASELINE

    def judged(self, result: Data) -> Data:
        """The result with every known finding marked, and what fails the run."""
        entries = {entry.fingerprint: entry for entry in self.known.entries}
        met = [
            (f, entries[f["fingerprint"]])
            for f in result["findings"]
            if f["fingerprint"] in entries
        ]
        over = {e.fingerprint: e for f, e in met if reached(e.until, f, result["targets"])}
        silencing = {e.fingerprint: e for _, e in met if e.fingerprint not in over}
        findings = [
            {**f, "known": _mark(silencing.get(f["fingerprint"]))} for f in result["findings"]
        ]
        unknown = [finding for finding in findings if finding["known"] is None]
        new = [f for f in unknown if f["fingerprint"] not in self.baseline.fingerprints]
        failing = [f["fingerprint"] for f in new if counts(f["triage"], self.fail_on)]
        spared = sum(counts(f["triage"], "any") for f in new) - len(failing)
        stale = [] if result.get("interrupted") else self._stale(findings)
        return {
            **result,
            "warnings": [*result["warnings"], *self._endless(silencing.values(), result)],
            "findings": findings,
            "gate": {
                "fail_on": self.fail_on,
                "known_file": str(self.known.path) if self.known.path else None,
                "baseline": str(self.baseline.path) if self.baseline.path else None,
                "failing": failing,
                "stale": [_told(entry) for entry in stale],
                "expired": [_told(entry) for entry in over.values()],
                "notes": [
                    *_counted(len(findings) - len(unknown), f"known ({self.known.path})"),
                    *_counted(len(unknown) - len(new), f"in the baseline ({self.baseline.path})"),
                    *(f"{_named(e)} counts again: {e.until} is reached" for e in over.values()),
                    *(f"{_named(e)} did not appear: the entry is stale" for e in stale),
                    *_counted(spared, f"not counted by --fail-on {self.fail_on}"),
                ],
            },
        }

    def stored(self) -> Data:
        """The gate as plain data, entries and all: its file may change or go away."""
        return {
            "fail_on": self.fail_on,
            "known_file": str(self.known.path) if self.known.path else None,
            "known": [_told(entry) for entry in self.known.entries],
            "baseline": str(self.baseline.path) if self.baseline.path else None,
            "old": sorted(self.baseline.fingerprints),
        }

    @staticmethod
    def restored(data: Mapping[str, Any]) -> Gate:
        """The gate that `stored` made it of."""
        path = data["known_file"]
        entries = [known_of(entry) for entry in data["known"]]
        known = KnownFile(Path(path) if path else None, tuple(entries))
        folder = data.get("baseline")
        old = Baseline(Path(folder) if folder else None, frozenset(data.get("old", ())))
        return Gate(known, data["fail_on"], old)

    def _stale(self, findings: Sequence[Data]) -> list[Known]:
        """Entries that nothing needed. Not asked after a stop: what did not show may be there."""
        present = {finding["fingerprint"] for finding in findings}
        return [entry for entry in self.known.entries if entry.fingerprint not in present]

    def _endless(self, entries: Iterable[Known], result: Data) -> list[str]:
        """Entries that can never run out, because nobody tells that package's version."""
        return [
            f"{self.known.path} silences {entry.fingerprint} until {entry.until}, "
            f"but no target says which {entry.until.package} it has"
            for entry in entries
            if entry.until and not _versions(entry.until.package, result["targets"])
        ]


STRICT = Gate()  # nothing is known, and everything but rounding counts


def reached(until: Until | None, finding: Data, targets: Sequence[Data]) -> bool:
    """Whether the release has come in a target that shows the finding.

    Where none of these has the package, all targets are asked.
    """
    if until is None:
        return False
    showing = [target for target in targets if target["name"] in finding["targets"]]
    versions = _versions(until.package, showing) or _versions(until.package, targets)
    return any(version_of(version) >= version_of(until.version) for version in versions)


def _versions(package: str, targets: Sequence[Data]) -> list[str]:
    held = [(target.get("versions") or {}).items() for target in targets]
    wanted = canonicalize_name(package)
    return [
        str(version)
        for items in held
        for name, version in items
        if canonicalize_name(name) == wanted
    ]


def _mark(entry: Known | None) -> Data | None:
    return None if entry is None else {"reason": entry.reason, "link": entry.link}


def _told(entry: Known) -> Data:
    return {
        "fingerprint": entry.fingerprint,
        "reason": entry.reason,
        "link": entry.link,
        "until": str(entry.until) if entry.until else None,
    }


def _named(entry: Known) -> str:
    return f"{entry.fingerprint} ({entry.reason})"


def _counted(count: int, what: str) -> list[str]:
    if not count:
        return []
    told = ("1 finding is", "does") if count == 1 else (f"{count} findings are", "do")
    return [f"{told[0]} {what} and {told[1]} not fail the run"]
