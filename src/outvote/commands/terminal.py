"""What a person sees in the terminal: progress while it runs, and the parts that results share."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from outvote.commands.view import repeated
from outvote.core.errors import ReaderGoneError
from outvote.core.text import printable

if TYPE_CHECKING:
    from outvote.campaign.progress import Progress
    from outvote.run.pool import Pool

_COLOURS = {
    "consistent": "green",
    "unchanged": "green",
    "inconsistent": "red",
    "changed": "red",
    "interrupted": "yellow",
}


class Screen(Console):
    """Where results are printed. A reader that has gone is told to the caller, not exited on.

    Whatever is printed, only rich itself commands the terminal: no name of a layer can.
    """

    def __init__(self, **more: Any) -> None:
        super().__init__(highlight=False, **more)

    def render_str(self, text: str, **more: Any) -> Text:
        return super().render_str(printable(text), **more)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for part in super().render(renderable, options):
            yield part if part.control else Segment(printable(part.text), part.style)

    def on_broken_pipe(self) -> None:
        raise ReaderGoneError("the other end of the output was closed")

    def say(self, text: str) -> None:
        """Text as it is, without markup."""
        self.print(Text(printable(text)))

    def warnings(self, result: dict[str, Any]) -> None:
        for warning in result["warnings"]:
            self.print(f"[yellow]warning[/] {escape(warning)}")

    def verdict(self, result: dict[str, Any], folder: Path | None, word: str = "") -> None:
        """The last lines of every result: the verdict in one sentence, and where the report is."""
        verdict = result["verdict"] or ""
        told = word or verdict.upper()
        self.print(f"[bold {_COLOURS.get(verdict, '')}]{told}[/]  {escape(result['summary'])}")
        self.report(folder)

    def configs(self, result: dict[str, Any]) -> None:
        """Which file defines targets that took part: it may have been found, not named."""
        targets = [target for target in result.get("targets", ()) if isinstance(target, dict)]
        for path in sorted({target["config"] for target in targets if target["config"]}):
            names = [target["name"] for target in targets if target["config"] == path]
            self.say(f"defined in {path}: {', '.join(names)}")

    def report(self, folder: Path | None) -> None:
        if folder is not None:
            self.say(f"report: {folder / 'report.html'}")


def coloured(text: str, colour: str) -> Text:
    """A cell of a table in a colour."""
    return Text(printable(text), style=colour)


def table(
    title: str,
    headings: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    right: Sequence[str] = (),
    fold: bool = False,
) -> Table:
    """A table of foreign text; columns named in `right` are numbers."""
    made = Table(title=escape(title), title_justify="left")
    for place, heading in enumerate(headings):
        made.add_column(
            escape(heading),
            justify="right" if heading in right else "left",
            no_wrap=not place and not fold,
            overflow="fold" if fold else "ellipsis",
        )
    for row in rows:
        made.add_row(*(cell if isinstance(cell, Text) else escape(cell) for cell in row))
    return made


def new_ones(result: dict[str, Any]) -> list[dict[str, Any]]:
    """The findings that are not known."""
    return [finding for finding in result["findings"] if not finding["known"]]


def gate_lines(result: dict[str, Any]) -> list[str]:
    """The known findings with their reasons, then what else the gate has to say."""
    lines = []
    for finding in result["findings"]:
        if known := finding["known"]:
            link = f" {known['link']}" if known["link"] else ""
            lines.append(f"[bold]known[/] {escape(finding['title'])} ({finding['fingerprint']})")
            lines.append(f"    {escape(known['reason'] + link)}")
    return lines + [f"[cyan]gate[/] {escape(note)}" for note in result["gate"]["notes"]]


class Terminal:
    """A View: progress goes to standard error, results to standard output."""

    def __init__(self, quiet: bool = False) -> None:
        self.err = Screen(stderr=True, quiet=quiet)
        self.out = Screen(soft_wrap=True)  # lines are as long as they are

    @contextmanager
    def watch(self, text: str, pool: Pool, names: Sequence[str]) -> Iterator[None]:
        """A line per target, refreshed four times a second, while the block runs."""
        if not self.err.is_terminal:
            self.err.print(f"{escape(text)} …")
            began = time.monotonic()
            yield
            self.err.print(f"{escape(text)} took {time.monotonic() - began:.1f} s")
            return
        began = time.monotonic()
        with Live(console=self.err, transient=True, refresh_per_second=4) as live:

            def draw() -> None:
                live.update(_progress_table(text, pool, names, time.monotonic() - began))

            with repeated(draw, 0.25):
                yield

    @contextmanager
    def announce(self, label: str) -> Iterator[Callable[[str], None]]:
        """While an environment is built: how long it has taken, and pip's last line."""
        text = f"Building {escape(label)}"
        began = time.monotonic()
        if not self.err.is_terminal:
            self.err.print(f"{text} …")
            yield lambda line: None
        else:
            with self.err.status(text) as status:

                def tell(line: str) -> None:
                    seconds = time.monotonic() - began
                    status.update(f"{text}  {seconds:.0f} s  {escape(line[:60])}")

                yield tell
        self.err.print(f"{text} took {time.monotonic() - began:.1f} s")

    def progress(self) -> AbstractContextManager[Callable[[Progress], None]]:
        from outvote.commands.fuzz.show import live

        return live(self.err)

    def say(self, text: str) -> None:
        self.out.say(text)


def _progress_table(text: str, pool: Pool, names: Sequence[str], seconds: float) -> Table:
    table = Table(title=f"{escape(text)}  {seconds:.0f} s", title_justify="left", box=None)
    for heading in ("target", "done", "rate", "left", "at"):
        table.add_column(heading)
    for name in names:
        position = pool.position(name)
        done, total = (position.done, position.total) if position else (0, 0)
        rate = done / seconds if seconds else 0.0
        left = f"{(total - done) / rate:.0f} s" if rate and total > done else ""
        layer = (position.layer or "") if position else ""
        table.add_row(
            escape(name),
            f"{done}/{total}" if total else "…",
            f"{rate:.1f}/s" if done else "",
            left,
            escape(layer[:40]),
        )
    return table
