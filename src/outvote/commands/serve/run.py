"""`outvote serve`: binds to this machine alone, prints the address, answers until Ctrl-C."""

from __future__ import annotations

import ctypes
import importlib.util
import secrets
import socket
import webbrowser
from functools import partial
from typing import Any

from outvote.commands.serve.job import ServeJob
from outvote.commands.view import UNSEEN, View, repeated
from outvote.config import load_config
from outvote.core.errors import UsageError
from outvote.targets.choose import install_hint

_HOST, _PORT = "127.0.0.1", 8642
_NEEDED = ("starlette", "uvicorn")
_M_ARENA_MAX = -8  # of <malloc.h>
_EVERY = 1.0  # seconds between two looks at the stores


def run(job: ServeJob, view: View = UNSEEN) -> dict[str, Any]:
    """Serve until the user has seen enough."""
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(f"`outvote serve` needs {' and '.join(missing)}; {install_hint('serve')}")
    import uvicorn

    from outvote.serve.app import create_app
    from outvote.serve.desk import Desk, known_reasons
    from outvote.serve.own_folder import OwnFolder
    from outvote.serve.runs import Runs
    from outvote.serve.shelf import Shelf

    own = OwnFolder(job.folders[0])
    config = load_config(job.config) if job.config is not None else None
    desk = Desk(
        Shelf(job.folders, partial(known_reasons, own)),
        own,
        Runs(own.root, own.logs),
        secrets.token_urlsafe(18),
        config,
    )
    _share_heaps()
    desk.warm()
    desk.shelf.refresh()
    with _bound(job.port) as listener:
        address = f"http://{_HOST}:{listener.getsockname()[1]}/{desk.token}/"
        settings = uvicorn.Config(
            create_app(desk), log_level="warning", access_log=False, lifespan="off"
        )
        server = uvicorn.Server(settings)

        def look() -> None:
            try:
                desk.shelf.refresh()
            except BaseException:
                server.should_exit = True  # better no page than one that stands still
                raise

        try:
            with repeated(look, _EVERY):
                view.say(f"outvote serve: {address}")
                view.say("whoever has this address may read and start runs; Ctrl-C ends it")
                if job.opens:
                    webbrowser.open(address)
                server.run(sockets=[listener])
        except KeyboardInterrupt:
            pass  # that is how it ends
        finally:
            desk.runs.close()
    return {"command": "serve", "address": address}


def _share_heaps() -> None:
    """Two for all threads: each with its own (glibc) would keep what its largest page took."""
    if hasattr(libc := ctypes.CDLL(None), "mallopt"):
        libc.mallopt(_M_ARENA_MAX, 2)


def _bound(port: int | None) -> socket.socket:
    """A socket of this machine alone; without a wish the usual port, or any that is free."""
    for wanted in (port,) if port is not None else (_PORT, 0):
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((_HOST, wanted))
            listener.listen(128)  # before the address is told: who asks at once waits
        except OSError as error:
            listener.close()
            if wanted != port:
                continue
            raise UsageError(
                f"--port {port} cannot be had ({error.strerror}); name another, or none"
            ) from error
        return listener
    raise UsageError(f"no port of {_HOST} can be had; are there too many connections?")
