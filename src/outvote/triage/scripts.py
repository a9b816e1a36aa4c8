"""What proof scripts of every dialect are made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from textwrap import indent

import numpy as np

from outvote.core.arrays import Array
from outvote.core.files import save_npz
from outvote.core.parts import SHORT
from outvote.core.source import filled, one_line
from outvote.core.target import Target
from outvote.findings.answer import first_of, right_answer, told_of
from outvote.findings.finding import Finding, Proof
from outvote.triage.plain import expression

_FILE = "arrays.npz"
_PROOF = Path(__file__).parent / "templates" / "proof.py.txt"
_LINE = 90
_FORM = "right = (y.shape, y.dtype) == (EXPECTED.shape, EXPECTED.dtype)"
_CLOSE = "np.allclose(y, EXPECTED, rtol=0, atol={atol:.2g}, equal_nan=True)"
_END = 'sys.exit(print("ok:" if right else "WRONG:", y.dtype, y.shape, y.ravel()[:6]) or not right)'
# What hangs may eat all memory meanwhile.
_ENDING = (
    "import resource, signal; signal.alarm(60); "
    "resource.setrlimit(resource.RLIMIT_DATA, (8 << 30, 8 << 30))"
)
_MUST_REFUSE = """\
try:
    {compute}
except Exception as error:
    sys.exit(print("ok:", error))
sys.exit(print("WRONG:", y.dtype, y.shape, y.ravel()[:6]) or 1)"""


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
    """The lines, then what the accused and a right target give; None: too much for a glance.

    Where nobody is accused, what one side gives, and what another.
    """
    told = [*lines, f"# {told_of(accused.name, proof)}"]
    if finding.accused:
        expected, source = right_answer(finding, proof)
        told.append(f"# expected, by {one_line(source)}: {first_of(expected)}")
    else:
        others = [name for name in proof.observed.outputs if name != accused.name]
        told += [f"# {told_of(name, proof)}" for name in others[:1]]
    return "\n".join(told) + "\n" if len(told) <= SHORT and not arrays.kept else None


def right_if(expected: Array, tolerance: float) -> list[str]:
    """Lines that set `right`: whether `y` is EXPECTED. Texts and truths have no tolerance."""
    sizes = np.abs(np.asarray(expected, np.float64)) if expected.dtype.kind not in "UO" else 0.0
    largest = float(np.max(sizes, initial=1e-30, where=np.isfinite(sizes)))
    close = _CLOSE.format(atol=max(tolerance, 1e-12) * largest)
    agree = close if expected.dtype.kind in "fiuc" else "np.array_equal(y, EXPECTED)"
    return [_FORM, f"right = right and {agree}"]


def judging(compute: str, expected: Array | None, tolerance: float) -> list[str]:
    """Lines that compute `y`, and end the script with the verdict; None: it must be refused."""
    if expected is None:
        return [_MUST_REFUSE.format(compute=indent(compute, "    ").lstrip())]
    return [compute, *right_if(expected, tolerance), _END]


def ending(finding: Finding) -> list[str]:
    """A line that ends the process in any case, where the finding is one that would not end."""
    return [_ENDING] if finding.kind == "hang" else []


def in_processes(
    title: str, needs: str, mark: str, targets: str, expected: tuple[str, str], body: Sequence[str]
) -> str:
    """A script that runs `body` for every target in a process of its own.

    `mark` is the variable of the environment that tells such a process, `targets` the table of
    environments, `expected` the right answer as source, and who says so.
    """
    text = filled(
        _PROOF,
        {
            "TITLE": one_line(title),
            "NEEDS": needs,
            "MARK": mark,
            "TARGETS": targets,
            "EXPECTED": expected[0],
            "SOURCE": one_line(expected[1]),
            "BODY": "\n".join(body),
        },
    )
    if "SETUP" not in targets:
        text = text.replace("import os, runpy, subprocess", "import os, subprocess")
    kept = [line for line in text.splitlines() if line]  # a part that is not needed
    return "\n".join(kept) + "\n"


def started_by(target: Target) -> dict[str, str]:
    """What the environment of a target's process says of its interpreter and its setup script."""
    files = {"PYTHON": target.python, "SETUP": target.setup}
    told = {name: str(path.absolute()) for name, path in files.items() if path is not None}
    if target.path:
        told["PYTHONPATH"] = ":".join(str(path) for path in target.path)
    return told


def first_in_process(targets: Iterable[Target]) -> list[str]:
    """The line that runs a target's setup script, where one has any."""
    line = 'if "SETUP" in os.environ: runpy.run_path(os.environ["SETUP"], run_name="__main__")'
    return [line] if any(target.setup for target in targets) else []


def table_of(environments: Mapping[str, Mapping[str, str]]) -> str:
    """A dictionary, a target per line where it is long."""
    if len(repr(environments)) < _LINE:
        return repr(environments)
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
