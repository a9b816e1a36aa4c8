"""What proof scripts of every dialect are made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from outvote.core.arrays import Array
from outvote.core.files import save_npz
from outvote.core.parts import SHORT
from outvote.core.source import one_line
from outvote.core.target import Target
from outvote.findings.answer import first_of, right_answer, told_of
from outvote.findings.finding import Finding, Proof
from outvote.triage.plain import expression

_FILE = "arrays.npz"


class ScriptArrays:
    """Arrays as Python; those too long to be written out go into a file beside the script."""

    def __init__(self) -> None:
        self.kept: dict[str, Array] = {}

    def source(self, array: Array) -> str:
        text = expression(array)
        if text is None:
            name = f"array{len(self.kept)}"
            self.kept[name] = array
            return f'np.load(os.path.join(os.path.dirname(__file__), "{_FILE}"))["{name}"]'
        return text

    def save(self, folder: Path) -> None:
        if self.kept:
            save_npz(folder / _FILE, self.kept)


def at_a_glance(
    lines: Sequence[str], arrays: ScriptArrays, finding: Finding, proof: Proof, accused: Target
) -> str | None:
    """The lines, then what the accused and a right target give; None: too much for a glance."""
    expected, source = right_answer(finding, proof)
    told = [
        *lines,
        f"# {told_of(accused.name, proof)}",
        f"# expected, by {one_line(source)}: {first_of(expected)}",
    ]
    return "\n".join(told) + "\n" if len(told) <= SHORT and not arrays.kept else None


def started_by(target: Target) -> dict[str, str]:
    """What the environment of a target's process says of its interpreter and its setup script."""
    files = {"PYTHON": target.python, "SETUP": target.setup}
    return {name: str(path.absolute()) for name, path in files.items() if path is not None}


def table_of(environments: Mapping[str, Mapping[str, str]]) -> str:
    """A dictionary, a target per line."""
    return "\n".join(["{", *(f"    {name!r}: {env!r}," for name, env in environments.items()), "}"])


def runners(templates: Path, kinds: Iterable[str], more: Sequence[str] = ()) -> str:
    """A function for each way to run a model, and the table of them."""
    names = sorted(set(kinds))
    texts = [(templates / f"{name}.py.txt").read_text(encoding="utf-8") for name in names]
    table = ", ".join(f'"{name}": {name}' for name in names)
    return "\n".join([*texts, *more, f"RUNNERS = {{{table}}}"])


def transformations(files: Mapping[str, Path]) -> list[str]:
    """The text of what twins do with a model first, by name: it needs nothing of ours."""
    texts = {name: path.read_text(encoding="utf-8") for name, path in files.items()}
    return [f"TWINS = {texts!r}"] if texts else []
