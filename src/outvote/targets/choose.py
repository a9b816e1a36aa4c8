"""The built-in targets, and how names on the command line become Targets."""

from __future__ import annotations

import difflib
import importlib.util
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from outvote.core.errors import UsageError
from outvote.core.requirements import PURE, checked, keras_of, merged, name_of
from outvote.core.target import Target
from outvote.dialects.keras.classic import CLASSIC, classic_of, is_classic
from outvote.targets.names import expanded, versions_in

# Keras' NumPy backend calls JAX for these: there it has no vote of its own.
_NUMPY_BORROWS = {"jax": ("*Conv*", "*STFT*", "*FFT*", "MaxPooling*", "AveragePooling*")}


def _keras(name: str, needs: str | None = None, **more: Any) -> Target:
    """Keras 3 on the backend of that name; `needs` is the package it stands on."""
    needs = needs or name
    return Target(
        name,
        dialect="keras",
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
        Target("fake", dialect="keras", worker="fake", library="fake"),
    )
}
_READERS = {
    name: replace(BUILT_IN[name], name=f"{name} (reads the model)")
    for name in ("jax", "torch", "tensorflow", "openvino")
}
DEFAULT = ("tensorflow", "jax", "torch", "openvino")


def known_targets(custom: Mapping[str, Mapping[str, Any]], folder: Path) -> dict[str, Target]:
    """Built-in targets and those of `outvote.toml`, by name."""
    known = {**BUILT_IN, **CLASSIC}
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
    wanted = [single for name in names for single in expanded(name)]
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


def readers(targets: Iterable[Target]) -> list[Target]:
    """A helper that reads and writes model files where no target is the installed Keras.

    An older Keras does not read what a newer one wrote, and Keras 2 has another format.
    """
    chosen = list(targets)
    if any(t.worker != "keras2" and keras_of(t.requirements) is None for t in chosen):
        return []
    found = [_READERS[name] for name in _READERS if not missing_packages(BUILT_IN[name])]
    if not found and all(target.worker == "keras2" for target in chosen):
        raise UsageError(
            f"classic targets need an installed Keras 3 that reads the model; {install_hint('jax')}"
        )
    return found[:1]


def install_hint(extra: str) -> str:
    """How to get what a target needs, installed or in a clone."""
    return f"run: pip install 'outvote[{extra}]' (in a clone: pip install -e '.[{extra}]')"


def missing_packages(target: Target) -> list[str]:
    """Packages that this interpreter lacks; a foreign interpreter is asked when it starts.

    What pip will bring, an overlay or a whole environment, is not missing.
    """
    brought = [name_of(item) for item in target.requirements]
    if target.python is not None or any(name not in PURE for name in brought):
        return []
    needed = [name for name in target.packages if name not in brought]
    return [name for name in needed if importlib.util.find_spec(name) is None]


def installed(name: str) -> bool:
    """Whether a built-in target can be started here."""
    return not missing_packages(BUILT_IN[name])


def find_target(name: str, known: Mapping[str, Target]) -> Target:
    """The target of that name, or an error that names the nearest one."""
    if name in known:
        return known[name]
    versions = versions_in(name)
    if versions is not None:
        requirements, base = versions
        return with_versions(find_target(base, known), requirements, name)
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else "`outvote targets` lists them"
    raise UsageError(f"there is no target {name!r}; {hint}")


def with_versions(base: Target, requirements: tuple[str, ...], name: str) -> Target:
    """A target with other versions of its packages, under another name."""
    asked = merged(base.requirements, requirements)
    if base.worker not in ("keras3", "keras2"):
        raise UsageError(f"target {name!r}: {base.name} has no versions to choose from")
    if is_classic(asked) and base.worker != "keras2":
        classic = classic_of(base, asked, name)
        base, asked = classic, merged(classic.requirements, asked)
    elif base.worker == "keras2" and not is_classic(asked):
        raise UsageError(f"target {name!r}: Keras 3 has no backend {base.backend!r}")
    elif base.worker == "keras2":
        base = classic_of(base, asked, name)
    return replace(base, name=name, requirements=asked, plain=base.plain or base.name)


_KEYS = ("extends", "python", "requirements", "env", "mode", "setup", "library")


def _from_table(
    name: str,
    tables: Mapping[str, Mapping[str, Any]],
    folder: Path,
    known: Mapping[str, Target],
    chain: tuple[str, ...],
) -> Target:
    table = tables[name]
    where = f"[targets.{name}] in outvote.toml"
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
        base = find_target(base_name, {**BUILT_IN, **CLASSIC})
    if "requirements" in table:
        base = with_versions(base, _requirements(table["requirements"], where), name)
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
    every = (*BUILT_IN.values(), base)
    modes = sorted({t.mode for t in every if (t.backend, t.worker) == (base.backend, base.worker)})
    if mode not in modes:
        raise UsageError(f"{where}: mode {mode!r} is unknown; {base.name} has {', '.join(modes)}")
    return mode


def _requirements(asked: Any, where: str) -> tuple[str, ...]:
    if not isinstance(asked, list) or not all(isinstance(item, str) for item in asked):
        raise UsageError(
            f'{where}: `requirements` is a list like ["keras==3.9.0"]; received {asked!r}'
        )
    return tuple(checked(item, where) for item in asked)


def _texts(env: Any, where: str) -> dict[str, str]:
    if not isinstance(env, Mapping):
        raise UsageError(f"{where}: `env` is a table of names and values; received {env!r}")
    return {str(key): str(value) for key, value in env.items()}
