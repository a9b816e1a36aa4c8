"""`report.md` of a campaign: the same tables for terminals and merge requests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from outvote.core.files import write_atomically
from outvote.report.check.markdown import known_findings
from outvote.report.compare.markdown import tables
from outvote.report.tables import code, escape, table
from outvote.report.wording import number, share


def write(result: dict[str, Any], folder: Path) -> Path:
    """Write `report.md` into the folder."""
    return write_atomically(folder / "report.md", render(result))


def render(result: dict[str, Any]) -> str:
    """The report as Markdown."""
    seeds = ", ".join(seed["name"] for seed in result["seeds"])
    targets = ", ".join(target["name"] for target in result["targets"])
    lines = [
        f"# {escape(result['summary'])}",
        "",
        escape(f"Strategy {result['strategy']}, seeds {seeds}, targets {targets}."),
        "",
        *[f"Warning: {escape(warning)}.\n" for warning in result["warnings"]],
        *[f"Gate: {escape(note)}.\n" for note in result["gate"]["notes"]],
        f"{result['valid']} of {result['tested']} mutants were valid; {result['rounding']} "
        f"differed by rounding only; {result['flaky']} failures did not repeat.",
        "",
        "## Findings",
        "",
        *table(
            ("finding", "verdict", "kind", "times", "bred by", "what"),
            [
                (
                    code(f["fingerprint"]),
                    f["triage"],
                    f["kind"],
                    f["count"],
                    " → ".join(step["rule"] or step["new"] for step in f["lineage"]),
                    f["title"],
                )
                for f in result["findings"]
                if not f["known"]
            ],
        ),
        known_findings(result),
        "",
        "## Bugs by target and kind",
        "",
        *table(
            ("target", "kind", "first shown by mutants", "by seeds"),
            [(b["target"], b["kind"], b["by_mutants"], b["by_seeds"]) for b in result["bugs"]],
        ),
        "## Amplification",
        "",
        *table(
            ("seed", "pair", "inconsistencies", "mutants only", "mean D_MAD", "amplification"),
            [
                (
                    a["seed"],
                    " / ".join(a["targets"]),
                    a["inconsistencies"],
                    a["mutants_only"],
                    f"{_mean(a['initial_mean'])} → {_mean(a['mutants_mean'])}",
                    share(a["amplification"]),
                )
                for a in result["amplification"]
            ],
        ),
        "## Rules",
        "",
        *table(
            ("rule", "mutants", "valid", "amplified", "findings"),
            [
                (r["rule"], r["tested"], r["valid"], r["amplified"], r["findings"])
                for r in result["rules"]
            ],
        ),
    ]
    if result["comparison"]:
        lines += tables(result["comparison"])
    return "\n".join(lines) + "\n"


def _mean(value: float | None) -> str:
    return "–" if value is None else number(value)
