"""Ray, started here or joined: quiet, without a dashboard, and telling nobody of its use."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from outvote.core.errors import UsageError
from outvote.fleet.address import AUTO, Address
from outvote.fleet.needs import Needs
from outvote.run.folder import OwnedFolder

_OBJECTS = 128 << 20  # bytes of Ray's object store here: what travels is small
_PATIENCE = 5.0  # seconds to reach the head of a cluster
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_SETTINGS = bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])  # a frame of that type, and empty
_SILENT: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
# Ray reads these when it is imported, and the processes that it starts inherit them.
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # it would tell its makers
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # what becomes its default; unsaid, it warns
    "RAY_DEDUP_LOGS": "0",
    "RAY_task_events_report_interval_ms": "0",  # for a dashboard: megabytes in the driver
    "RAY_prestart_worker_first_driver": "0",  # a process for each CPU, whether it is used or not
}


@contextmanager
def joined(address: Address, needs: Needs) -> Iterator[Any]:
    """Ray's module, while this process belongs to a cluster."""
    if address.crews is None:
        _require_head(address.head)
    ray = _imported()
    if address.crews is None:
        _join(ray, address)
        try:
            yield ray
        finally:
            ray.shutdown()
        return
    with OwnedFolder() as folder:
        here = {
            "num_cpus": address.crews * needs.cpus,
            "num_gpus": address.crews * needs.gpus,
            "object_store_memory": _OBJECTS,
            "include_dashboard": False,
            "_temp_dir": str(folder),
            **({"_memory": address.crews * needs.memory} if needs.memory else {}),
        }
        try:
            ray.init(**here, **_SILENT)
            yield ray
        finally:
            ray.shutdown()


def _imported() -> Any:
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError as error:
        raise UsageError(
            f"--cluster needs Ray ({error}); install it with: pip install 'outvote[ray]'"
        ) from error
    # It prints logs of nodes that died among what a command prints, and no option stops it.
    ray._private.worker.print_to_stdstream = _unheard
    return ray


def _unheard(*told: Any, **more: Any) -> None:
    """Of deaths the crews know by themselves."""


def _require_head(head: str) -> None:
    """Somebody is there who speaks as the head of a cluster: Ray itself would try for minutes."""
    if head == AUTO:
        return
    try:
        speaks = _speaks(head)
    except OSError as error:
        raise UsageError(
            f"--cluster {head}: nobody answers there ({error.strerror or error}); "
            "`ray status` on a machine of the cluster tells its address"
        ) from error
    if not speaks:
        raise UsageError(f"--cluster {head}: what answers there is no head of a Ray cluster")


def _speaks(head: str) -> bool:
    """Whether what listens there greets by HTTP/2 (RFC 9113, 3.4), as a cluster's head does."""
    host, _, port = head.rpartition(":")
    with socket.create_connection((host.strip("[]"), int(port)), _PATIENCE) as wire:
        wire.sendall(_PREFACE + _SETTINGS)
        try:
            greeting = wire.recv(len(_SETTINGS))
        except OSError:  # it hung up, or says nothing
            return False
    return greeting[3:4] == _SETTINGS[3:4]


def _join(ray: Any, address: Address) -> None:
    try:
        ray.init(address=address.head, **_SILENT)
    except Exception as error:  # whatever Ray raises: of a foreign version, of no cluster at all
        told = " ".join(str(error).split())[:200]
        raise UsageError(
            f"--cluster {address.head}: no cluster could be joined ({told}); start one with "
            "`ray start --head`, and `ray start --address=HOST:PORT` on this machine too"
        ) from error
