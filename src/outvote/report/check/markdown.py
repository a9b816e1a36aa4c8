"""`report.md`: the short form, for terminals and pull requests."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from outvote.core.files import write_atomically
from outvote.report import wording
from outvote.report.json_file import plain

MARKS = {"consistent": "✅", "inconsistent": "❌", "interrupted": "⚠️"}


def write(result: dict[str, Any], folder: Path) -> Path:
    """Write `report.md` into the folder."""
    return write_atomically(folder / "report.md", render(result))


def render(result: dict[str, Any]) -> str:
    """The report as Markdown text: verdict, targets, findings, pairs."""
    result = plain(result)
    parts = [
        verdict(result),
        releases(result),
        targets(result),
        versions(result),
        findings(result),
        known_findings(result),
        pairs(result),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def escape(text: Any) -> str:
    """Names of layers and messages come from outside: none of it may become markup."""
    flat = re.sub(r"\s+", " ", str(text)).strip()
    # An underscore inside a word is only an underscore, and names of layers are full of them.
    return re.sub(r"([\\`*\[\]<>|#&~]|(?<!\w)_|_(?!\w))", r"\\\1", flat)


def code(text: Any) -> str:
    """Text as inline code. A backtick cannot be escaped there, so it becomes a quote."""
    flat = re.sub(r"\s+", " ", str(text)).strip()
    return "`" + flat.replace("`", "'").replace("|", "¦") + "`"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def verdict(result: dict[str, Any]) -> str:
    word = str(result["verdict"])
    name = (result.get("model") or {}).get("name")
    facts = [
        f"model {code(name)}" if name else "",
        f"{result['data']['instances']} inputs" if result.get("data") else "",
        f"outvote {escape(result['outvote'])} {escape(result['command'])}",
        wording.duration(result.get("seconds")),
    ]
    lines = [
        f"# {MARKS.get(word, '')} {escape(word).capitalize()}".replace("#  ", "# "),
        f"**{escape(result['summary'])}**",
        *(f"> Warning: {escape(warning)}." for warning in result["warnings"]),
        *(f"> Gate: {escape(note)}." for note in (result["gate"] or {}).get("notes", [])),
        " · ".join(fact for fact in facts if fact),
    ]
    return "\n\n".join(lines)


def targets(result: dict[str, Any]) -> str:
    if not result["targets"]:
        return ""
    rows = [target_row(target) for target in result["targets"]]
    return "## Targets\n\n" + table(
        ["target", "versions", "outcome", "top-1", "time", "memory"], rows
    )


def target_row(target: dict[str, Any]) -> list[str]:
    versions = ", ".join(f"{name} {v}" for name, v in (target.get("versions") or {}).items())
    outcome = escape(target["outcome"])
    if target["outcome"] != "ok":
        place = f" at {code(target['layer'])}" if target.get("layer") else ""
        message = escape((target.get("message") or "")[:160])
        outcome = f"**{outcome}**{place}" + (f": {message}" if message else "")
    return [
        code(target["name"]),
        escape(versions),
        outcome,
        wording.share((target.get("accuracy") or {}).get("1")),
        wording.duration(target.get("seconds")),
        wording.size(target.get("peak_memory")),
    ]


def findings(result: dict[str, Any]) -> str:
    new = [item for item in result["findings"] if not item.get("known")]
    if not new:
        return ""
    return "## Findings\n\n" + "\n\n".join(finding(item) for item in new)


def known_findings(result: dict[str, Any]) -> str:
    """What is known stands apart, one line each, with why it may pass."""
    known = [item for item in result["findings"] if item.get("known")]
    if not known:
        return ""
    lines = [
        f"- {code(item['fingerprint'])} {escape(item['title'])}: {escape(item['known']['reason'])}"
        + (f" ({escape(item['known']['link'])})" if item["known"]["link"] else "")
        for item in known
    ]
    return "## Known findings\n\n" + "\n".join(lines)


def finding(item: dict[str, Any]) -> str:
    accused = code(item["accused"]) if item.get("accused") else "undecided"
    facts = [f"accused: {accused}"]
    if item.get("layer"):
        kind = f" ({escape(item['layer_kind'])})" if item.get("layer_kind") else ""
        facts.append(f"layer: {code(item['layer'])}{kind}")
    if item.get("metric"):
        facts.append(f"distance: {wording.number(item.get('distance'))} ({escape(item['metric'])})")
    facts += _smallest(item)
    if item.get("inputs"):
        facts.append(f"inputs: {wording.some(item['inputs'])}")
    if item.get("repro"):
        facts.append(f"reproduce: {code('python ' + str(item['repro']))}")
    lines = [
        f"### {escape(item['title'])}",
        f"{escape(item['kind'])} · {escape(item['triage'])} · {code(item['fingerprint'])}",
        escape(item["reason"]),
        "\n".join(f"- {fact}" for fact in facts),
    ]
    return "\n\n".join(line for line in lines if line)


def _smallest(item: dict[str, Any]) -> list[str]:
    """The smallest case that shows a finding, what it needs, and how sure it is."""
    facts = []
    minimal, evidence = item.get("minimal"), item.get("evidence") or {}
    if minimal and item.get("parameters"):
        needed = [f"{key}={value!r}" for key, value in item["parameters"].items()]
        facts.append("it needs: " + ", ".join(map(code, needed)))
    if minimal:
        many = "s" * (minimal["layers"] != 1)
        facts.append(
            f"smallest case: {minimal['layers']} layer{many}, {minimal['numbers']} numbers"
        )
    if evidence.get("fresh_workers"):
        told = f"{evidence['shown_again']} of {evidence['fresh_workers']}"
        facts.append(f"in fresh workers: {told} times")
    return facts


def versions(result: dict[str, Any]) -> str:
    """Where each unique inconsistency came and went."""
    matrix = result.get("version_matrix")
    if not matrix:
        return ""
    head = ["version", *(f"{code(a)} – {code(b)}" for a, b in matrix["pairs"])]
    rows = [
        [code(version), *(escape(cell or "–") for cell in cells)]
        for version, cells in zip(matrix["versions"], matrix["cells"], strict=True)
    ]
    return "## Versions\n\n" + table(head, rows)


def releases(result: dict[str, Any]) -> str:
    """What each probed release did."""
    bisect = result.get("bisect")
    if not bisect:
        return ""
    rows = [
        [
            code(row["version"]),
            escape(row["state"]),
            wording.number(row["distance"]) if row["distance"] is not None else "–",
            escape(row["message"][:200]),
        ]
        for row in bisect["releases"]
    ]
    head = ["release", "outcome", "distance to reference", "message"]
    return f"## Releases of {escape(bisect['package'])}\n\n" + table(head, rows)


def pairs(result: dict[str, Any]) -> str:
    comparisons = result.get("comparisons") or []
    metric = wording.main_metric(comparisons)
    if metric is None:
        return ""
    rows = [pair_row(comparison, metric) for comparison in comparisons]
    return "## Pairs\n\n" + table(["pair", "verdict", f"largest {escape(metric)} distance"], rows)


def pair_row(comparison: dict[str, Any], metric: str) -> list[str]:
    first, second = comparison["targets"]
    label = wording.label(comparison)
    value, known = wording.maximum(comparison, metric)
    return [
        f"{code(first)} – {code(second)}",
        f"**{label}**" if label == "inconsistent" else escape(label),
        wording.number(value) if known else "–",
    ]
