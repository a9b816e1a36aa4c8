"""What a person sees of the gate: known findings, apart from the new ones, and its notes."""

from __future__ import annotations

from typing import Any

from rich.markup import escape


def new_ones(result: dict[str, Any]) -> list[dict[str, Any]]:
    """The findings that are not known."""
    return [finding for finding in result["findings"] if not finding["known"]]


def gate_lines(result: dict[str, Any]) -> list[str]:
    """The known findings with their reasons, then what else the gate has to say."""
    lines = []
    for finding in result["findings"]:
        if known := finding["known"]:
            link = f" {known['link']}" if known["link"] else ""
            lines.append(f"[bold]known[/] {escape(finding['title'])} ({finding['fingerprint']})")
            lines.append(f"    {escape(known['reason'] + link)}")
    return lines + [f"[cyan]gate[/] {escape(note)}" for note in result["gate"]["notes"]]
