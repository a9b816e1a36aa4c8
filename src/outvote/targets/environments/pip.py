"""Calls pip, or uv where it can: installs, lists releases, and turns failures into a sentence."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from outvote.core.dialect import dialect
from outvote.core.errors import UsageError
from outvote.core.requirements import is_release, version_of
from outvote.targets.environments.plan import Environment, Stage

Tell = Callable[[str], None]
_YANKED = re.compile(r"is a yanked version|is yanked")
_REASON = re.compile(r"Reason for being yanked: (.*)|is yanked \(reason: \"?(.*?)\"?\)")
_PIP_FILES = ("/etc/pip.conf", "~/.pip/pip.conf", "~/.config/pip/pip.conf")


def fill(environment: Environment, folder: Path, links: Sequence[str], tell: Tell) -> str:
    """Install an environment into a folder; returns why a release was yanked, if one was."""
    python = environment.python
    if python is not None:
        tell("making a virtual environment")
        _run([str(python), "-m", "venv", "--without-pip", str(folder)], environment.label, tell)
    yanked = ""
    for stage in environment.stages:
        output = _run(_command(environment, folder, stage, links), environment.label, tell)
        yanked = yanked or _withdrawn(output)
    if environment.recipe:
        (packages,) = folder.glob("lib/python*/site-packages")
        dialect(environment.dialect).targets.RECIPES[environment.recipe].finish(packages)
    return yanked


def _withdrawn(output: Sequence[str]) -> str:
    """What pip or uv warn of: a release that was taken back, and why."""
    if not any(_YANKED.search(line) for line in output):
        return ""
    found = next(filter(None, map(_REASON.search, output)), None)
    return (found[1] or found[2] if found else "") or "no reason given"


def releases(package: str, links: Sequence[str] = ()) -> list[str]:
    """Final releases on the index that fit this interpreter, oldest first."""
    command = [*_pip(), "index", "versions", *_links(links), package]
    output = _run(command, package, lambda line: None)
    found = next((line for line in output if line.startswith("Available versions:")), "")
    versions = [item.strip() for item in found.partition(":")[2].split(",") if item.strip()]
    return sorted(filter(is_release, versions), key=version_of)


def _command(
    environment: Environment, folder: Path, stage: Stage, links: Sequence[str]
) -> list[str]:
    uv = _uv()
    python = environment.python and folder / "bin" / "python"
    where = ["--python", str(python)] if python else []
    target = [] if python else ["--target", str(folder)]
    if uv is not None:
        return [uv, "pip", "install", *where, *target, *_links(links), *stage]
    quiet = ["--no-input", "--progress-bar", "off", "--no-warn-script-location"]
    quiet += ["--no-compile"]  # Python compiles what is imported, pip would compile everything
    return [*_pip(), *where, "install", *quiet, *target, *_links(links), *stage]


def _pip() -> list[str]:
    return [sys.executable, "-m", "pip", "--disable-pip-version-check"]


def _uv() -> str | None:
    """uv does not read pip's configuration: it is taken only where there is none."""
    configured = any(
        name.startswith("PIP_") and name != "PIP_DISABLE_PIP_VERSION_CHECK" for name in os.environ
    ) or any(Path(name).expanduser().exists() for name in _PIP_FILES)
    return None if configured else shutil.which("uv")


def _links(links: Sequence[str]) -> list[str]:
    return [part for link in links for part in ("--find-links", link)]


def _run(command: Sequence[str], label: str, tell: Tell) -> list[str]:
    """The lines that a command writes, each told as it comes; a failure is a UsageError."""
    lines: list[str] = []
    try:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        )
    except OSError as error:
        raise UsageError(f"{command[0]} could not be started: {error.strerror}") from error
    with process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                lines.append(line.rstrip())
                if line.strip():
                    tell(line.strip())
        except BaseException:
            process.kill()
            raise
    if process.returncode != 0:
        raise UsageError(f"{label} could not be installed: {_reason(lines)}; {_REMEDY}")
    return lines


_REMEDY = (
    "`pip index versions NAME` lists what there is; without a network, name a folder of wheels "
    "with --find-links"
)


def _reason(lines: Sequence[str]) -> str:
    """The line that says most: pip's last error, else the last line."""
    said = [line.strip() for line in lines if line.strip()]
    if any("No module named pip" in line for line in said):
        return f"{sys.executable} has no pip (run: {sys.executable} -m ensurepip)"
    errors = [line for line in said if re.match(r"(ERROR|error|  ×|×)", line)]
    conflict = [line for line in said if "conflict" in line.lower() or "depends on" in line]
    best = next((line for line in errors if "No matching distribution" in line), None)
    because = [place for place, line in enumerate(said) if "Because" in line]  # uv's reasoning
    if because:
        best = " ".join(said[because[0] :]).partition("Because")[2]
        best = f"because{best}"
    text = best or (conflict or errors or said or ["it said nothing"])[-1]
    return re.sub(r"^ERROR:\s*", "", text)[:300]
