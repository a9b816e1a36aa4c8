"""Requirements as pip writes them (`keras==3.9.0`), and versions that can be ordered."""

from __future__ import annotations

from collections.abc import Iterable

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from outvote.core.errors import UsageError


def checked(requirement: str, where: str) -> str:
    """The requirement without blanks; refused if it is an option, an address or a riddle."""
    text = "".join(requirement.split())
    try:
        found = Requirement(text)
    except InvalidRequirement:
        found = None
    if found is None or found.url or found.marker:
        raise UsageError(
            f"{where}: {requirement!r} is not a requirement; write it like keras==3.9.0"
        )
    return text


def name_of(requirement: str) -> str:
    """The package, in the one spelling that pip compares by."""
    return str(canonicalize_name(Requirement(requirement).name))


def pinned(requirement: str) -> str | None:
    """The version of `name==version`; None for any other kind of requirement."""
    bounds = list(Requirement(requirement).specifier)
    exact = len(bounds) == 1 and bounds[0].operator in ("==", "===")
    return bounds[0].version if exact and "*" not in bounds[0].version else None


def merged(old: Iterable[str], new: Iterable[str]) -> tuple[str, ...]:
    """The old requirements, with those replaced that the new ones name too."""
    given = {name_of(item): item for item in old}
    given.update({name_of(item): item for item in new})
    return tuple(given.values())


def version_of(text: str) -> Version:
    """Versions in their order: candidates before the release; what cannot be read is oldest.

    How a package was built does not count: 2.9.0+cpu is 2.9.0.
    """
    try:
        return Version(Version(text).public)
    except InvalidVersion:
        return Version("0.dev0")


def is_release(text: str) -> bool:
    """Whether a version is final: not alpha, beta, candidate or development."""
    try:
        return not Version(text).is_prerelease
    except InvalidVersion:
        return False
