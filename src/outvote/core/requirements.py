"""Requirements as pip writes them (`keras==3.9.0`), and versions that can be ordered."""

from __future__ import annotations

import re
from collections.abc import Iterable

from outvote.core.errors import UsageError

_REQUIREMENT = re.compile(
    r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(?:\[[A-Za-z0-9,._-]+\])?"
    r"(?P<bounds>(?:\s*(?:===|==|~=|!=|<=|>=|<|>)\s*[A-Za-z0-9.*+!_-]+,?)*)"
)
_NUMBERS = re.compile(r"\d+(?:\.\d+)*")


def checked(requirement: str, where: str) -> str:
    """The requirement without blanks; refused if it is an option, an address or a riddle."""
    text = "".join(requirement.split())
    if not _REQUIREMENT.fullmatch(text):
        raise UsageError(
            f"{where}: {requirement!r} is not a requirement; write it like keras==3.9.0"
        )
    return text


def name_of(requirement: str) -> str:
    """The package, in the one spelling that pip compares by."""
    found = _REQUIREMENT.match(requirement)
    assert found is not None
    return re.sub(r"[-_.]+", "-", found["name"]).lower()


def pinned(requirement: str) -> str | None:
    """The version of `name==version`; None for any other kind of requirement."""
    _, equals, version = requirement.partition("==")
    return version if equals and "," not in version and "*" not in version else None


def merged(old: Iterable[str], new: Iterable[str]) -> tuple[str, ...]:
    """The old requirements, with those replaced that the new ones name too."""
    given = {name_of(item): item for item in old}
    given.update({name_of(item): item for item in new})
    return tuple(given.values())


def version_key(version: str) -> tuple[int, ...]:
    """Releases in their order; zeros at the end do not count (3.9 is 3.9.0)."""
    found = _NUMBERS.match(version)
    numbers = [int(n) for n in found[0].split(".")] if found else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def is_release(version: str) -> bool:
    """Whether a version is final: not alpha, beta, candidate or development."""
    return re.fullmatch(r"v?\d+(\.\d+)*(\.post\d+)?", version) is not None
