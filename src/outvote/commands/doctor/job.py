"""What `doctor` is asked to do."""

from __future__ import annotations

from dataclasses import dataclass

from outvote.core.target import Target


@dataclass(frozen=True)
class DoctorJob:
    """Look at these targets, and at the machine."""

    targets: tuple[Target, ...]
    named: bool = False
