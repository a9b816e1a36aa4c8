"""The grammar of target names: `torch`, `keras==3.9.0/torch`, and grids with braces.

jax:jit                                  a known target
keras==3.9.0/torch                       the same with another version
keras==3.14.1,jax==0.6.2/jax             with several
keras=={3.8.0,3.9.0}/{tensorflow,torch}  every combination
onnxruntime:all==1.20.1                  a target that is a library of that name: another release
"""

from __future__ import annotations

import re
from itertools import product

from outvote.core.errors import UsageError
from outvote.core.requirements import checked

_BOUND = re.compile(r"[=<>~!]=|[<>]")
_BRACES = re.compile(r"\{([^{}]*)\}")


def split_names(text: str) -> list[str]:
    """Target names separated by commas; those inside braces and between requirements stay."""
    parts = [part.strip() for part in _at_commas(text)]
    if not all(parts):
        raise UsageError(f"expected target names separated by commas, received {text!r}")
    names: list[str] = []
    begun: list[str] = []  # requirements whose target comes later: keras==3.14.1,jax==0.6.2/jax
    for part in parts:
        bound = _BOUND.search(part)
        if bound and "/" in part:
            names.append(",".join([*begun, part]))
            begun = []
        elif bound and ":" not in part:
            begun.append(part)
        else:
            names += [*begun, part]
            begun = []
    return [*names, *begun]


def expanded(name: str) -> list[str]:
    """Every name that the braces stand for, the last brace changing fastest."""
    pieces = _BRACES.split(name)
    if any("{" in piece or "}" in piece for piece in pieces):
        raise UsageError(f"the braces in {name!r} do not match; write them like {{3.8.0,3.9.0}}")
    choices = [
        [choice.strip() for choice in piece.split(",")] if place % 2 else [piece]
        for place, piece in enumerate(pieces)
    ]
    if not all(choice for place in choices[1::2] for choice in place):
        raise UsageError(f"the braces in {name!r} hold an empty choice")
    return ["".join(combination) for combination in product(*choices)]


def versions_in(name: str) -> tuple[tuple[str, ...], str] | None:
    """The requirements and the target of a name with versions; None for a plain name."""
    asked, slash, base = name.rpartition("/")
    if not slash or not _BOUND.search(asked):
        return None
    where = f"the target {name!r}"
    requirements = tuple(checked(item, where) for item in asked.split(","))
    if not all(_BOUND.search(item) for item in requirements) or not base:
        raise UsageError(f"{where} is not understood; write it like keras==3.9.0/torch")
    return requirements, base


def release_in(name: str) -> tuple[str, str] | None:
    """The target and the bound of a name like `onnxruntime:all==1.20.1`; None for others."""
    found = _BOUND.search(name)
    if found is None or "/" in name or not found.start():
        return None
    return name[: found.start()].strip(), name[found.start() :]


def plain_name(name: str) -> str:
    """The name of a target without versions."""
    versions, release = versions_in(name), release_in(name)
    return versions[1] if versions else release[0] if release else name


def _at_commas(text: str) -> list[str]:
    """The text cut at every comma that stands outside braces."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts
