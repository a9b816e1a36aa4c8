"""The test at work, and the workers of this process: one set, started by who asks first."""

from __future__ import annotations

import atexit
from collections.abc import Callable
from typing import TYPE_CHECKING

from outvote.testing.session import CurrentTest, Setting

if TYPE_CHECKING:
    from outvote.testing.outvoted import Outvote


class _State:
    """What hooks of pytest tell, and what was begun."""

    def __init__(self) -> None:
        self.test = CurrentTest()
        self.setting: Callable[[], Setting] = Setting
        self.notes: list[str] = []  # for the end of the session
        self._begun: Outvote | None = None

    def outvote(self) -> Outvote:
        """Who asserts, with its workers; the first call begins it."""
        if self._begun is None:
            from outvote.testing.outvoted import Outvote

            self._begun = Outvote(self.setting())
        return self._begun

    def end(self) -> None:
        """Stop the workers, if there are some."""
        if self._begun is not None:
            self._begun.close()
            self._begun = None


state = _State()
atexit.register(state.end)
