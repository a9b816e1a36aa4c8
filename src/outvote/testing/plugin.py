"""The plug-in of pytest: the fixture `outvote`, the marker of the same name, and the options.

It is loaded into every test run of an environment that has outvote: only pytest is imported here.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from outvote.testing.current import state
from outvote.testing.session import CurrentTest, Setting

if TYPE_CHECKING:
    from outvote.testing.outvoted import Outvote

_MARKER = (
    "outvote(targets=[...], fail_on=..., metric=...): options of `outvote check` for what the test "
    "asserts to be consistent"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("outvote", "implementations held against each other")
    group.addoption("--outvote-targets", metavar="A,B,...", help="default: all installed")
    group.addoption("--outvote-out", metavar="DIR", help="for reports; default: temporary")
    group.addoption(
        "--outvote-fail-on", metavar="WHAT", help="bug, difference, any (default) or never"
    )
    group.addoption("--outvote-known", metavar="FILE", help="default: known.toml in the rootdir")
    group.addoption(
        "--outvote-update-known",
        action="store_true",
        help="list what would fail in that file, and pass",
    )
    group.addoption(
        "--outvote-memory",
        type=float,
        metavar="GIB",
        help="that all workers together may hold; default: no limit",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)
    state.setting = lambda: _setting(config)


@pytest.fixture(scope="session")
def outvote() -> Outvote:
    """Asserts that models, layers and functions are consistent: one set of workers for all."""
    return state.outvote()


def _setting(config: pytest.Config) -> Setting:
    def path(name: str) -> Path | None:
        given = config.getoption(name)
        return Path(given).absolute() if given else None

    from outvote.targets.names import split_names

    named = config.getoption("--outvote-targets")
    return Setting(
        targets=tuple(split_names(named)) if named else None,
        out=path("--outvote-out"),
        fail_on=config.getoption("--outvote-fail-on"),
        known=path("--outvote-known"),
        update_known=config.getoption("--outvote-update-known"),
        memory=config.getoption("--outvote-memory"),
        processes=int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")),
        root=config.rootpath,
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Whoever asks during a test is told which one it is."""
    options: dict[str, Any] = {}
    for marker in reversed(list(item.iter_markers("outvote"))):  # the nearest has the last word
        options |= marker.kwargs
    state.test = CurrentTest(item.nodeid, options)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    call: pytest.CallInfo[None],
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """The evidence of what failed last is written, and where it lies stands below the failure."""
    if call.excinfo is not None:
        write = getattr(call.excinfo.value, "write_evidence", None)
        if write is not None:
            write()
    return (yield)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    for line in state.notes:
        terminalreporter.write_line(f"outvote: {line}")


def pytest_unconfigure() -> None:
    state.end()
