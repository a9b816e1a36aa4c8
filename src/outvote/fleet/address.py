"""What `--cluster` names: so many crews on this machine, or a cluster that runs."""

from __future__ import annotations

import re
from dataclasses import dataclass

from outvote.core.errors import UsageError

_MOST_HERE = 1024  # crews on one machine
AUTO = "auto"


@dataclass(frozen=True)
class Address:
    """Where crews work."""

    crews: int | None = None  # on this machine; None: as many as a running cluster has room for
    head: str = ""  # of that cluster, as host:port, or `auto`


def address_of(text: str) -> Address:
    """`local:N`, `auto` or `HOST:PORT`."""
    here = re.fullmatch(r"local:(\d+)", text)
    if here and 0 < int(here[1]) <= _MOST_HERE:
        return Address(crews=int(here[1]))
    if text == AUTO:
        return Address(head=AUTO)
    there = re.fullmatch(r"([^\s:/]+|\[[0-9a-fA-F:]+\]):(\d{1,5})", text)
    if there and there[1] != "local" and 0 < int(there[2]) < 1 << 16:
        return Address(head=text)
    raise UsageError(
        f"--cluster is local:N with 1 to {_MOST_HERE} crews, auto, or HOST:PORT of a cluster's "
        f"head; received {text!r}"
    )
