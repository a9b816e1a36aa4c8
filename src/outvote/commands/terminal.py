"""What a person sees in the terminal: progress while it runs, then a verdict table."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from outvote.commands.gate import gate_lines, new_ones
from outvote.commands.targets.run import Health
from outvote.core.errors import ReaderGoneError
from outvote.core.text import printable
from outvote.run.pool import Pool
from outvote.targets.environments.store import Entry

_RELEASE_DISTANCES = ("distance", "distance_to_first")
_ALL_PAIRS = 10  # with more pairs than this, those that agree are only counted
_COLOURS = {"consistent": "green", "inconsistent": "red", "interrupted": "yellow"}


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


def results() -> Screen:
    """Standard output: lines are as long as they are."""
    return Screen(soft_wrap=True)


class Terminal:
    """Progress goes to standard error, results to standard output."""

    def __init__(self, quiet: bool = False) -> None:
        self._err = Screen(stderr=True, quiet=quiet)
        self._out = results()

    @contextmanager
    def watch(self, text: str, pool: Pool, names: Sequence[str]) -> Iterator[None]:
        """A line per target, refreshed four times a second, while the block runs."""
        if not self._err.is_terminal:
            self._err.print(f"{escape(text)} …")
            began = time.monotonic()
            yield
            self._err.print(f"{escape(text)} took {time.monotonic() - began:.1f} s")
            return
        began = time.monotonic()
        stop = threading.Event()
        with Live(console=self._err, transient=True, refresh_per_second=4) as live:

            def refresh() -> None:
                while not stop.wait(0.25):
                    live.update(_progress_table(text, pool, names, time.monotonic() - began))

            thread = threading.Thread(target=refresh, daemon=True)
            thread.start()
            try:
                yield
            finally:
                stop.set()
                thread.join()

    @contextmanager
    def announce(self, label: str) -> Iterator[Callable[[str], None]]:
        """While an environment is built: how long it has taken, and pip's last line."""
        text = f"Building {escape(label)}"
        began = time.monotonic()
        if not self._err.is_terminal:
            self._err.print(f"{text} …")
            yield lambda line: None
        else:
            with self._err.status(text) as status:

                def tell(line: str) -> None:
                    seconds = time.monotonic() - began
                    status.update(f"{text}  {seconds:.0f} s  {escape(line[:60])}")

                yield tell
        self._err.print(f"{text} took {time.monotonic() - began:.1f} s")

    def show_targets(self, rows: Sequence[Health]) -> None:
        self._out.print(_health_table(rows))

    def say(self, text: str) -> None:
        self._out.print(escape(text))

    def show_environments(self, rows: Sequence[Entry], folder: Path) -> None:
        """What pip has built, where, and how large it is."""
        table = Table(title=f"Environments in {escape(str(folder))}", title_justify="left")
        for heading in ("key", "holds", "kind", "MB", "built in"):
            table.add_column(heading, overflow="fold")
        for row in rows:
            held = f"{row.label} (yanked: {row.yanked})" if row.yanked else row.label
            cells = [row.key, held, row.kind, f"{row.megabytes:.0f}", f"{row.seconds:.0f} s"]
            table.add_row(*map(escape, cells))
        self._out.print(table)

    def show_bisect(self, result: dict[str, Any], folder: Path) -> None:
        """Every release that was tried, and the one that changed the outcome."""
        self._out.print(_releases_table(result["bisect"]))
        self._out.print(f"[bold]{result['verdict'].upper()}[/]  {escape(result['summary'])}")
        self._out.print(f"report: {escape(str(folder / 'report.html'))}")

    def show_check(self, result: dict[str, Any], folder: Path) -> None:
        """The verdict, the targets, the pairs, the findings, and where the reports are."""
        colour = _COLOURS[result["verdict"]]
        self._out.print(_targets_table(result))
        if result["comparisons"]:
            self._out.print(_pairs_table(result))
        if result["version_matrix"]:
            self._out.print(_versions_table(result["version_matrix"]))
        for warning in result["warnings"]:
            self._out.print(f"[yellow]warning[/] {escape(warning)}")
        for finding in new_ones(result):
            self._out.print(f"[bold]{escape(finding['triage'])}[/] {escape(finding['title'])}")
            self._out.print(f"    {escape(finding['reason'])}")
            if finding["repro"]:
                self._out.print(f"    repro: python {escape(str(folder / finding['repro']))}")
        for line in gate_lines(result):
            self._out.print(line)
        self._out.print(
            f"[bold {colour}]{result['verdict'].upper()}[/]  {escape(result['summary'])}"
        )
        self._out.print(f"report: {escape(str(folder / 'report.html'))}")


def _versions_table(matrix: dict[str, Any]) -> Table:
    table = Table(title="Unique inconsistency of each pair on each version", title_justify="left")
    for heading in ("version", *(" / ".join(pair) for pair in matrix["pairs"])):
        table.add_column(escape(heading))
    colours = {"consistent": "green", "rounding": "yellow"}
    for version, cells in zip(matrix["versions"], matrix["cells"], strict=True):
        shown = [f"[{colours.get(c, 'red')}]{escape(c)}[/]" if c else "" for c in cells]
        table.add_row(escape(version), *shown)
    return table


def _releases_table(bisect: dict[str, Any]) -> Table:
    table = Table(title=f"Releases of {bisect['package']}", title_justify="left")
    for heading in ("release", "outcome", "distance to reference", "to the first"):
        table.add_column(heading)
    for row in bisect["releases"]:
        marks = {bisect["before"]: "  ← last before", bisect["after"]: "  ← first after"}
        told = row["state"] + (f": {row['message'][:100]}" if row["message"] else "")
        shown = ["" if row[k] is None else f"{row[k]:.2g}" for k in _RELEASE_DISTANCES]
        table.add_row(row["version"] + marks.get(row["version"], ""), escape(told), *shown)
    return table


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


def _targets_table(result: dict[str, Any]) -> Table:
    table = Table(title="Targets", title_justify="left")
    for heading in ("target", "versions", "outcome", "seconds", "top-1"):
        table.add_column(heading)
    for target in result["targets"]:
        versions = ", ".join(f"{k} {v}" for k, v in target["versions"].items())
        accuracy = target["accuracy"]
        ok = target["outcome"] == "ok"
        told = target["outcome"] if ok else f"{target['outcome']}: {target['message'][:120]}"
        table.add_row(
            escape(target["name"]),
            escape(versions),
            f"[{'green' if ok else 'red'}]{escape(told)}[/]",
            f"{target['seconds']:.1f}",
            f"{accuracy['1']:.2%}" if accuracy else "",
        )
    return table


def _pairs_table(result: dict[str, Any]) -> Table:
    table = Table(title="Pairs", title_justify="left")
    for heading in ("pair", "verdict", "largest distances"):
        table.add_column(heading)
    shown_pairs = [p for p in result["comparisons"] if p["inconsistent"] or p["explained"]]
    alike = len(result["comparisons"]) - len(shown_pairs)
    if len(result["comparisons"]) <= _ALL_PAIRS:
        shown_pairs, alike = result["comparisons"], 0
    for pair in shown_pairs:
        verdict = "[red]inconsistent[/]" if pair["inconsistent"] else "[green]consistent[/]"
        if pair["explained"]:
            verdict = "[yellow]rounding[/]"
        shown = pair["mismatch"] or ", ".join(
            f"{m['name']} {'NaN' if m['maximum'] is None else format(m['maximum'], '.2g')}"
            for m in pair["metrics"]
        )
        table.add_row(escape(" / ".join(pair["targets"])), verdict, escape(shown))
    if alike:
        table.add_row(f"{alike} other pairs", "[green]consistent[/]", "")
    return table


def _health_table(rows: Sequence[Health]) -> Table:
    table = Table(title="Targets", title_justify="left")
    for heading in ("target", "health", "versions", "precision"):
        table.add_column(heading)
    for row in rows:
        colour = {"ok": "green", "not installed": "yellow", "not built": "yellow"}.get(
            row.state, "red"
        )
        told = f"{row.state}: {row.remedy}" if row.remedy else row.state
        table.add_row(
            escape(row.name), f"[{colour}]{escape(told)}[/]", escape(row.versions), row.precision
        )
    return table
