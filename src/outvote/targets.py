"""The built-in targets, and how names on the command line become Targets."""

from __future__ import annotations

import difflib
import importlib.util
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from outvote.core.errors import UsageError
from outvote.core.target import Target

# Keras' NumPy backend calls JAX for these: there it has no vote of its own.
_NUMPY_BORROWS = {"jax": ("Conv", "STFT", "FFT")}


def _keras(name: str, needs: str | None = None, **more: Any) -> Target:
    """Keras 3 on the backend of that name; `needs` is the package it stands on."""
    needs = needs or name
    return Target(
        name,
        worker="keras3",
        library=name,
        backend=name,
        packages=("keras", needs),
        extra=needs,
        **more,
    )


_TENSORFLOW, _JAX, _TORCH, _OPENVINO = map(_keras, ("tensorflow", "jax", "torch", "openvino"))
_NUMPY = _keras("numpy", needs="jax", borrows=_NUMPY_BORROWS)


def _mode(base: Target, mode: str, library: str | None = None) -> Target:
    name = f"{base.name}:{mode}"
    return replace(base, name=name, mode=mode, library=library or base.library)


BUILT_IN: Mapping[str, Target] = {
    target.name: target
    for target in (
        _TENSORFLOW,
        _mode(_TENSORFLOW, "graph"),
        _mode(_TENSORFLOW, "xla", library="jax"),  # both compile through XLA: one vote
        _mode(_TENSORFLOW, "no-onednn"),
        _JAX,
        _mode(_JAX, "jit"),
        _TORCH,
        _mode(_TORCH, "compile"),
        _NUMPY,
        _OPENVINO,
        _mode(_OPENVINO, "dynamic"),
        _mode(_OPENVINO, "fast"),
        Target("fake", worker="fake", library="fake"),
    )
}
DEFAULT = ("tensorflow", "jax", "torch", "openvino")


def known_targets(custom: Mapping[str, Mapping[str, Any]], folder: Path) -> dict[str, Target]:
    """Built-in targets and those of `outvote.toml`, by name."""
    known = dict(BUILT_IN)
    for name in custom:
        known[name] = _from_table(name, custom, folder, known, ())
    return known


def choose(names: Iterable[str] | None, known: Mapping[str, Target]) -> list[Target]:
    """The targets a user asked for; without a wish, the default ones that are installed."""
    if names is None:
        found = [known[name] for name in DEFAULT if not missing_packages(known[name])]
        if len(found) < 2:
            raise UsageError(
                f"a comparison needs two targets, and {len(found)} of the default ones "
                f"({', '.join(DEFAULT)}) are installed; {install_hint('all')}"
            )
        return found
    wanted = list(names)
    twice = sorted({name for name in wanted if wanted.count(name) > 1})
    if twice:
        raise UsageError(f"target {twice[0]!r} is named twice; name each target once")
    chosen = [find_target(name, known) for name in wanted]
    for target in chosen:
        missing = missing_packages(target)
        if missing:
            raise UsageError(
                f"target {target.name!r} needs {' and '.join(missing)}, not installed here; "
                f"{install_hint(target.extra)}"
            )
    return chosen


def install_hint(extra: str) -> str:
    """How to get what a target needs, installed or in a clone."""
    return f"run: pip install 'outvote[{extra}]' (in a clone: pip install -e '.[{extra}]')"


def missing_packages(target: Target) -> list[str]:
    """Packages that this interpreter lacks; a foreign interpreter is asked when it starts."""
    if target.python is not None:
        return []
    return [name for name in target.packages if importlib.util.find_spec(name) is None]


def find_target(name: str, known: Mapping[str, Target]) -> Target:
    """The target of that name, or an error that names the nearest one."""
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else "`outvote targets` lists them"
    raise UsageError(f"there is no target {name!r}; {hint}")


_KEYS = ("extends", "python", "env", "mode", "setup", "library")


def _from_table(
    name: str,
    tables: Mapping[str, Mapping[str, Any]],
    folder: Path,
    known: Mapping[str, Target],
    chain: tuple[str, ...],
) -> Target:
    table = tables[name]
    where = f"[targets.{name}] in outvote.toml"
    if "requirements" in table:
        raise UsageError(
            f"{where}: `requirements` is not supported by this version; "
            "install them into an environment and give its interpreter as `python`"
        )
    unknown = sorted(table.keys() - set(_KEYS))
    if unknown:
        raise UsageError(f"{where} has the unknown key {unknown[0]!r}; keys are {', '.join(_KEYS)}")
    if name in chain:
        raise UsageError(f"{where}: targets extend each other in a circle: {' → '.join(chain)}")
    base_name = table.get("extends")
    if not isinstance(base_name, str):
        raise UsageError(f"{where} needs `extends`, the target it starts from, as a string")
    if base_name in tables and base_name != name:
        base = _from_table(base_name, tables, folder, known, (*chain, name))
    else:
        base = find_target(base_name, BUILT_IN)
    return replace(
        base,
        name=name,
        library=str(table.get("library", base.library)),
        python=_file(table, "python", folder, where) or base.python,
        setup=_file(table, "setup", folder, where) or base.setup,
        mode=_known_mode(str(table.get("mode", base.mode)), base, where),
        env={**base.env, **_texts(table.get("env", {}), where)},
    )


def _file(table: Mapping[str, Any], key: str, folder: Path, where: str) -> Path | None:
    if key not in table:
        return None
    path = folder / Path(str(table[key])).expanduser()
    if not path.is_file():
        raise UsageError(f"{where}: `{key}` names the file {path}, which does not exist")
    return path


def _known_mode(mode: str, base: Target, where: str) -> str:
    modes = sorted({t.mode for t in BUILT_IN.values() if t.backend == base.backend})
    if mode not in modes:
        raise UsageError(f"{where}: mode {mode!r} is unknown; {base.name} has {', '.join(modes)}")
    return mode


def _texts(env: Any, where: str) -> dict[str, str]:
    if not isinstance(env, Mapping):
        raise UsageError(f"{where}: `env` is a table of names and values; received {env!r}")
    return {str(key): str(value) for key, value in env.items()}
