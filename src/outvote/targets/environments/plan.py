"""What a target's requirements ask for: an overlay, a virtual environment, or one on the other."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from outvote.core.dialect import dialect
from outvote.core.model import digest_of
from outvote.core.requirements import merged, name_of
from outvote.core.target import Target

# A package may go by another name where it is installed: `tensorflow` is `tensorflow-cpu` there.
_ALSO = {"tensorflow": ("tensorflow-cpu", "tensorflow-cpu-aws")}


Stage = tuple[str, ...]  # arguments of one `pip install`


@dataclass(frozen=True)
class Environment:
    """A folder to be made: what pip installs into it, stage by stage, and for which interpreter."""

    label: str
    stages: tuple[Stage, ...]
    python: Path | None = None  # None: an overlay, for any interpreter
    recipe: str = ""
    dialect: str = ""  # whose recipe it is

    @property
    def is_overlay(self) -> bool:
        return self.python is None

    @property
    def key(self) -> str:
        """Its name on disk: readable, and different as soon as its content would be."""
        content = digest_of(self.stages, str(self.python or ""), self.recipe)
        readable = re.sub(r"[^A-Za-z0-9.]+", "-", self.label)[:40].strip("-")
        return f"{readable}-{content[:12]}"


def plan(target: Target) -> tuple[Environment | None, Environment | None]:
    """The virtual environment and the overlay that a target needs; None where it needs none."""
    overlaid = dialect(target.dialect).targets.OVERLAID
    pure = tuple(item for item in target.requirements if name_of(item) in overlaid)
    other = tuple(item for item in target.requirements if name_of(item) not in overlaid)
    if target.recipe:
        return _from_recipe(target, other), _overlay(pure)
    if other:
        return _whole(target), None
    return None, _overlay(pure) if pure else None


def _overlay(pure: tuple[str, ...]) -> Environment:
    return Environment(", ".join(sorted(pure)), (("--no-deps", *sorted(pure)),))


def _whole(target: Target) -> Environment:
    """Everything asked for; what the target needs besides stays at the installed version."""
    needed = [_installed(name) for name in target.packages]
    asked = tuple(sorted(merged(needed, target.requirements)))
    label = ", ".join(sorted(target.requirements))
    return Environment(label, (asked,), interpreter(target))


def _from_recipe(target: Target, other: tuple[str, ...]) -> Environment:
    recipe = dialect(target.dialect).targets.RECIPES[target.recipe]
    changed = {name_of(item): item for item in other}
    stages = []
    for stage in recipe.stages:
        known = [_swapped(argument, changed) for argument in stage]
        stages.append(tuple(known))
    if changed:
        stages.append(tuple(changed.values()))
    label = ", ".join([target.recipe, *sorted(other)])
    return Environment(
        label, tuple(stages), recipe.interpreter(target.python), target.recipe, target.dialect
    )


def _swapped(argument: str, changed: dict[str, str]) -> str:
    """A recipe's requirement, or the user's for the same package."""
    return argument if argument.startswith("-") else changed.pop(name_of(argument), argument)


def interpreter(target: Target) -> Path:
    return target.python or Path(sys.executable)


def _installed(package: str) -> str:
    """The package pinned to what is installed here, if it is; a build's suffix (+cpu) left out."""
    for name in (package, *_ALSO.get(package, ())):
        try:
            return f"{name}=={metadata.version(name).partition('+')[0]}"
        except metadata.PackageNotFoundError:
            continue
    return package
