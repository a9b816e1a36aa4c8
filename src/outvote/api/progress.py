"""Who follows a call: nobody in a script, a line that changes in a notebook."""

from __future__ import annotations

import html
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from outvote.commands.view import UNSEEN, View, repeated

if TYPE_CHECKING:
    from outvote.campaign.progress import Progress
    from outvote.run.pool import Pool

_EVERY = 0.5  # seconds between two pictures


def view_for(progress: bool | None) -> View:
    """As wished; without a wish, notebooks show progress and scripts do not."""
    if progress is False or (progress is None and not in_notebook()):
        return UNSEEN
    if in_notebook():
        return NotebookView()
    from outvote.commands.terminal import Terminal

    return Terminal()


def in_notebook() -> bool:
    """Whether a kernel runs this: one that shows HTML, as those of Jupyter and VS Code do."""
    shell = sys.modules.get("IPython")
    current = shell.get_ipython() if shell is not None else None
    return current is not None and hasattr(current, "kernel")


class NotebookView:
    """A View of one output cell: stages with a bar per target, gone when the work is done."""

    def __init__(self) -> None:
        self._handle: Any = None

    @contextmanager
    def watch(self, text: str, pool: Pool, names: Sequence[str]) -> Iterator[None]:
        began = time.monotonic()

        def draw() -> None:
            self._show(_stage(text, pool, names, time.monotonic() - began))

        draw()
        try:
            with repeated(draw, _EVERY):
                yield
        finally:
            self._show("")

    @contextmanager
    def announce(self, label: str) -> Iterator[Callable[[str], None]]:
        self._show(f"Building {html.escape(label)} …")
        yield lambda line: self._show(f"Building {html.escape(label)}: {html.escape(line[:60])}")
        self._show("")

    @contextmanager
    def progress(self) -> Iterator[Callable[[Progress], None]]:
        self._show("Starting targets and reading seeds …")
        yield lambda progress: self._show(_campaign(progress))
        self._show("")

    def say(self, text: str) -> None:
        self._show(html.escape(text))

    def _show(self, text: str) -> None:
        display = sys.modules["IPython"].display
        page = display.HTML(text)
        if self._handle is None:
            self._handle = display.display(page, display_id=True)
        else:
            self._handle.update(page)


def _stage(text: str, pool: Pool, names: Sequence[str], seconds: float) -> str:
    rows = "".join(_row(name, pool) for name in names)
    return f"{html.escape(text)}, {seconds:.0f} s<table>{rows}</table>"


def _row(name: str, pool: Pool) -> str:
    position = pool.position(name)
    done, total = (position.done, position.total) if position else (0, 0)
    layer = (position.layer or "") if position else ""
    bar = f'<progress value="{done}" max="{total}"></progress>' if total else "…"
    return f"<tr><td>{html.escape(name)}</td><td>{bar}</td><td>{html.escape(layer[:40])}</td></tr>"


def _campaign(progress: Progress) -> str:
    bar = f'<progress value="{progress.share:.3f}" max="1"></progress>'
    told = f"{progress.tested} mutants, {progress.findings} findings in {progress.seconds:.0f} s"
    return f"{bar} {told} {html.escape(progress.last)}"
