"""What `report.md` of a check says: targets, versions, findings, pairs."""

from __future__ import annotations

from typing import Any

from outvote.report import wording
from outvote.report.pages.check.twins import title, worst_layers
from outvote.report.tables import bold, code, escape, marked, section, table

_TARGETS = ("target", "versions", "outcome", "top-1", "time", "memory")


def sections(result: dict[str, Any]) -> list[str]:
    """Targets, findings, pairs."""
    return [
        targets(result),
        versions(result),
        findings(result),
        known_findings(result),
        twins_section(result),
        training_section(result),
        pairs(result),
    ]


def targets(result: dict[str, Any]) -> str:
    if not result["targets"]:
        return ""
    rows = [target_row(target) for target in result["targets"]]
    return section("Targets", table(_TARGETS, rows))


def target_row(target: dict[str, Any]) -> list[str]:
    versions = ", ".join(f"{name} {v}" for name, v in (target.get("versions") or {}).items())
    outcome = escape(target["outcome"])
    if target["outcome"] != "ok":
        place = marked(" at {}", code(target["layer"])) if target.get("layer") else ""
        message = (target.get("message") or "")[:160]
        outcome = marked("{}{}{}", bold(outcome), place, f": {message}" if message else "")
    return [
        code(target["name"]),
        versions,
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


def training_section(result: dict[str, Any]) -> str:
    """Every stage of training that was compared."""
    training = result.get("training")
    if not training:
        return ""
    rows = [
        (
            row["stage"],
            "agrees" if row["agrees"] else "differs",
            wording.number(row["distance"]),
            str(row["exercises"]),
            str(row["arrays"]),
        )
        for row in training["stages"]
    ]
    headings = ("stage", "verdict", "largest distance", "exercises", "arrays")
    told = f"{training['steps']} steps of {training['optimizer']['class_name']}"
    return section(f"Training: {told}", table(headings, rows))


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


def twins_section(result: dict[str, Any]) -> str:
    """Transformed models: what became of each, and the nodes that lose most."""
    found = result.get("twins") or []
    if not found:
        return ""
    rows = [
        [
            code(twin["target"]),
            title(twin),
            wording.number(twin["distance"]),
            wording.answers(twin["answers"]) or "–",
            code(twin["spoilt"]) if twin["spoilt"] else "–",
        ]
        for twin in found
    ]
    headings = ("transformation", "verdict", "distance", "answers", "first spoilt layer")
    lines = table(headings, rows)
    for twin in found:
        worst = worst_layers(twin)
        if worst:
            lost = [
                [code(la["layer"]), la["kind"], *map(wording.number, (la["alone"], la["carried"]))]
                for la in worst
            ]
            along = (f"{twin['target']} loses most in", "kind", "alone", "carried along")
            lines += table(along, lost)
    return section("Transformed models", lines)


def versions(result: dict[str, Any]) -> str:
    """Where each unique inconsistency came and went."""
    matrix = result.get("version_matrix")
    if not matrix:
        return ""
    head = ["version", *(marked("{} – {}", code(a), code(b)) for a, b in matrix["pairs"])]
    rows = [
        [code(version), *(cell or "–" for cell in cells)]
        for version, cells in zip(matrix["versions"], matrix["cells"], strict=True)
    ]
    return section("Versions", table(head, rows))


def pairs(result: dict[str, Any]) -> str:
    comparisons = result.get("comparisons") or []
    metric = wording.main_metric(comparisons)
    if metric is None:
        return ""
    rows = [pair_row(comparison, metric) for comparison in comparisons]
    return section("Pairs", table(["pair", "verdict", f"largest {metric} distance"], rows))


def pair_row(comparison: dict[str, Any], metric: str) -> list[str]:
    first, second = comparison["targets"]
    label = wording.label(comparison)
    value, known = wording.maximum(comparison, metric)
    return [
        marked("{} – {}", code(first), code(second)),
        bold(label) if label == "inconsistent" else label,
        wording.number(value) if known else "–",
    ]
