"""Who is at work in a folder: the process, told apart from a later one of the same number."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from typing import Any

import psutil


def this_process() -> dict[str, Any]:
    """This process, as the store notes it."""
    own = psutil.Process()
    return {"pid": own.pid, "born": own.create_time(), "host": platform.node()}


def is_elsewhere(owner: Mapping[str, Any]) -> bool:
    """Whether it was noted by another machine, of which nothing can be said here."""
    return bool(owner) and owner["host"] != platform.node()


def process_of(owner: Mapping[str, Any]) -> psutil.Process | None:
    """The process that was noted, if it lives on this machine."""
    if not owner or is_elsewhere(owner):
        return None
    try:
        found = psutil.Process(owner["pid"])
        same = abs(found.create_time() - owner["born"]) < 0.01
        return found if same and found.status() != psutil.STATUS_ZOMBIE else None
    except psutil.Error:
        return None
