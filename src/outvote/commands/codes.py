"""The codes that commands end with: programs read them, so each has one meaning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

CONSISTENT, FINDINGS, USAGE, INTERNAL, INTERRUPTED = 0, 1, 2, 3, 130


def exit_codes(consistent: str, findings: str = "") -> str:
    """The codes of one command, for its help: what 0 means there, and 1 if it can come."""
    first = f"0 {consistent}, 1 {findings}" if findings else f"0 {consistent}"
    return (
        f"\nexit codes: {first}, 2 usage or set-up error,\n"
        "3 an error inside outvote, 130 stopped with Ctrl-C\n"
    )


def exit_code(result: Mapping[str, Any]) -> int:
    """1 for what the gate (or, without one, the verdict) counts; then, whether it was stopped.

    A run that was stopped has passed no gate, but what it had found is found.
    """
    gate = result.get("gate")
    found = gate["failing"] if gate else result.get("verdict") in ("inconsistent", "changed")
    if found:
        return FINDINGS
    rival = result.get("comparison") or {}
    return INTERRUPTED if result.get("interrupted") or rival.get("interrupted") else CONSISTENT
