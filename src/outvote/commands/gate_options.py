"""The options of the gate, and the exit code it leads to."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from outvote.commands.options import CONSISTENT, FINDINGS, INTERRUPTED
from outvote.findings.gate import FAIL_ON


def add_known(command: argparse.ArgumentParser) -> None:
    """The option for findings that shall not fail the run."""
    command.add_argument(
        "--known",
        type=Path,
        metavar="FILE",
        help="findings that do not fail the run; default: known.toml beside outvote.toml",
    )


def add_fail_on(command: argparse.ArgumentParser, default: str | None = "any") -> None:
    """The option for how severe a finding must be to fail the run."""
    command.add_argument(
        "--fail-on",
        choices=FAIL_ON,
        default=default,
        help="what exits 1: bug; difference, or bug; any but rounding; never; default: %(default)s",
    )


def gate_of(options: argparse.Namespace, folder: Path) -> Any:
    """The gate that the options describe; `folder` is that of outvote.toml."""
    from outvote.findings.gate import Gate
    from outvote.findings.known import load_known

    return Gate(load_known(options.known, folder), getattr(options, "fail_on", None) or "any")


def exit_code(result: dict[str, Any]) -> int:
    """1 if something fails the run; a run that was stopped has passed no gate."""
    if result["gate"]["failing"]:
        return FINDINGS
    return INTERRUPTED if result["interrupted"] else CONSISTENT
