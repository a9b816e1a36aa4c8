"""What a campaign came to in the papers' own counts, which are coarser than our findings.

LEMON (4.2, 5.1): a bug is an outvoted target and the layer class that was localised; reported are
those that only mutants show, those that only initial models show, and mutants and time per bug.
AUDEE (3.2): one network with the same weights on other inputs is the same inconsistency; with other
weights it is another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from outvote.store.store import Row

Data = Mapping[str, Any]


def lemon_counts(
    findings: Sequence[Data], rows: Mapping[int, Row], tested: int, seconds: float
) -> dict[str, Any]:
    """Bugs as LEMON counts them; `seconds` are those in which mutants were bred."""
    grouped: dict[tuple[str, str | None], list[Data]] = {}
    for finding in findings:
        if finding["triage"] != "precision" and finding["accused"] is not None:
            grouped.setdefault((finding["accused"], finding["layer_kind"]), []).append(finding)
    bugs = [_bug(*key, found, rows) for key, found in grouped.items()]
    return {
        "bugs": bugs,
        "mutants_only": sum(bug["mutants_only"] for bug in bugs),
        "initial_only": sum(bug["initial_only"] for bug in bugs),
        "mutants_per_bug": tested / len(bugs) if bugs else None,
        "seconds_per_bug": seconds / len(bugs) if bugs else None,
    }


def _bug(
    target: str, kind: str | None, findings: Sequence[Data], rows: Mapping[int, Row]
) -> dict[str, Any]:
    def is_initial(number: int) -> bool:
        return rows[number].rule is None

    return {
        "target": target,
        "layer_kind": kind,
        "findings": [finding["fingerprint"] for finding in findings],
        "mutants_only": not any(is_initial(finding["first"]) for finding in findings),
        "initial_only": all(is_initial(finding["last"]) for finding in findings),
        "first": min(finding["first"] for finding in findings),
        "first_at": min(finding["first_at"] for finding in findings),
    }


def audee_counts(rows: Sequence[Row]) -> dict[str, int]:
    """Networks with their weights that were run, and those of them that are inconsistent."""
    networks = {row.network for row in rows if row.network}
    apart = {row.network for row in rows if row.network and row.inconsistent}
    return {"networks": len(networks), "inconsistencies": len(apart)}
