"""What calls return: the data of result.json, as an object that prints and shows itself."""

from __future__ import annotations

import html
import io
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, overload

from outvote import commands
from outvote.commands.codes import CONSISTENT, exit_code
from outvote.commands.targets.run import Health
from outvote.core.arrays import Array
from outvote.core.result import plain

_WIDTH = 120  # of what print shows: rich would ask the terminal, and a notebook has none
_FRAME = (
    '<iframe srcdoc="{page}" sandbox="allow-scripts" title="{title}" '
    'style="width:100%;height:600px;border:1px solid #ccc"></iframe>'
)


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a command found. `data` is what `result.json` holds (docs/result-json.md)."""

    data: dict[str, Any] = field(repr=False)
    folder: Path | None = None  # that the reports were written into
    job: Any = field(default=None, repr=False, compare=False)

    @property
    def command(self) -> str:
        return str(self.data["command"])

    @property
    def verdict(self) -> str | None:
        """`consistent`, `inconsistent`, ...; None where the command judges nothing."""
        verdict: str | None = self.data["verdict"]
        return verdict

    @property
    def summary(self) -> str:
        """The verdict in one sentence."""
        return str(self.data["summary"])

    @property
    def consistent(self) -> bool:
        return self.verdict == "consistent"

    @property
    def passed(self) -> bool:
        """Whether the command would exit 0: nothing was found that `fail_on` counts."""
        return exit_code(self.data) == CONSISTENT

    @property
    def findings(self) -> list[dict[str, Any]]:
        """Every finding, as `result.json` has it."""
        return list(self.data["findings"])

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as `json.dumps` takes it."""
        copy: dict[str, Any] = plain(self.data)
        return copy

    def save(self, folder: str | Path) -> Path:
        """Write every report into a folder, with the evidence if there is some; returns it."""
        from outvote.report.folder import prepare_folder, write_into

        out = Path(folder)
        prepare_folder(out)
        evidence = None if self.folder is None else self.folder / "findings"
        if evidence is not None and evidence.is_dir() and not (out / "findings").exists():
            shutil.copytree(evidence, out / "findings")
        write_into(out, self.data)
        return out

    def __str__(self) -> str:
        """What the command prints in a terminal."""
        from outvote.commands.terminal import Screen

        text = io.StringIO()
        screen = Screen(file=text, width=_WIDTH, soft_wrap=True, force_jupyter=False)
        commands.room(self.command, "show").show(self.data, self.job, screen)
        return text.getvalue().rstrip("\n")

    def __repr__(self) -> str:
        return f"<{self.command}: {self.verdict or 'done'}. {self.summary}>"

    def _repr_html_(self) -> str:
        """The report, for notebooks: map and tables, in a frame that can reach nothing."""
        from outvote.report import rendered

        page = rendered("html", self.data, self.folder or Path())
        return _FRAME.format(page=html.escape(page), title=html.escape(repr(self)))


@dataclass(frozen=True, kw_only=True, repr=False)
class Exploration(Result):
    """What `explore` found; rows of `inputs`, `seed` and `label` belong together."""

    inputs: list[Array]  # generated, one array per input of the models
    seed: Array  # the row of x that each was made of
    label: Array  # what the majority of the models says; -1 without a majority


@dataclass(frozen=True)
class TargetTable(Sequence[Health]):
    """The targets, each with its state, and what to do where it does not work."""

    rows: tuple[Health, ...]

    @property
    def working(self) -> list[str]:
        """The names of those that answered rightly."""
        return [row.name for row in self.rows if row.state == "ok"]

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Every row by the name of its target."""
        return {row.name: asdict(row) for row in self.rows}

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> Health: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Health]: ...
    def __getitem__(self, index: int | slice) -> Health | Sequence[Health]:
        return self.rows[index]

    def __iter__(self) -> Iterator[Health]:
        return iter(self.rows)

    def __str__(self) -> str:
        return "\n".join(f"{r.name}: {r.state} {r.remedy or r.versions}".rstrip() for r in self)

    def _repr_html_(self) -> str:
        headings = ("target", "health", "versions", "precision", "what to do")
        head = "".join(f"<th>{name}</th>" for name in headings)
        cells = [(r.name, r.state, r.versions, r.precision, r.remedy) for r in self]
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
            for row in cells
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
