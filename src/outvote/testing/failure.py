"""What a failed assertion says: verdict, accused, layer, and the values side by side."""

from __future__ import annotations

from typing import Any

from outvote.api.result import Result

_MOST = 3  # findings that are told


def failure_text(result: Result) -> str:
    """A few lines, the most important first."""
    gate = result.data["gate"]
    failing = [f for f in result.findings if f["fingerprint"] in gate["failing"]]
    lines = [result.summary]
    for finding in failing[:_MOST]:
        lines += ["", *_finding(finding)]
    if len(failing) > _MOST:
        lines += ["", f"and {len(failing) - _MOST} more findings"]
    return "\n".join([*lines, *_values(result.data)])


def _finding(finding: dict[str, Any]) -> list[str]:
    where = (
        f"{finding['layer_kind']} {finding['layer']!r}" if finding["layer"] else "the whole model"
    )
    accused = finding["accused"] or f"undecided between {', '.join(finding['targets'])}"
    return [
        f"{finding['triage']}: {finding['title']}",
        f"  accused: {accused}",
        f"  layer:   {where} {_config(finding)}".rstrip(),
        f"  why:     {' '.join(finding['reason'].split())}",
        f'  known.toml: fingerprint = "{finding["fingerprint"]}"',
    ]


def _config(finding: dict[str, Any]) -> str:
    told = {k: v for k, v in (finding["config"] or {}).items() if v is not None and k != "name"}
    text = ", ".join(f"{key}={value!r}" for key, value in told.items())
    return f"({text})" if 0 < len(text) < 200 else ""


def _values(data: dict[str, Any]) -> list[str]:
    """What each target answers to the input on which they differ most."""
    if not data["examples"]:
        return []
    example = data["examples"][0]
    width = max((len(answer["target"]) for answer in example["answers"]), default=0)
    rows = [f"  {a['target']:<{width}}  {_answer(a)}" for a in example["answers"]]
    return ["", f"answers to input {example['input']}:", *rows]


def _answer(answer: dict[str, Any]) -> str:
    if "top" in answer:
        return "  ".join(f"[{place}] {_number(value)}" for place, value in answer["top"])
    return "  ".join(_number(value) for value in answer["values"])


def _number(value: float | None) -> str:
    return "NaN or infinite" if value is None else f"{value:.8g}"
