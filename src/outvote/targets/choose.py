"""How names on the command line become Targets."""

from __future__ import annotations

import difflib
import importlib.util
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from outvote.config import FILE_NAME, Config
from outvote.core.dialect import Dialect, dialect, dialects
from outvote.core.errors import UsageError
from outvote.core.requirements import checked, name_of
from outvote.core.target import Target
from outvote.targets.names import expanded, plain_name, release_in, versions_in

NO_CONFIG = Config()


def known_targets(config: Config = NO_CONFIG, wing: Dialect | None = None) -> dict[str, Target]:
    """Built-in targets and those of `outvote.toml`, by name; with a wing those that speak it."""
    known = _built_in()
    for name in config.targets:
        if name in known or plain_name(name) != name:
            raise UsageError(
                f"[targets.{name}] in {config.path or FILE_NAME} would change what {name!r} means, "
                "which is built in; give the target another name"
            )
    known |= {name: _Tables(config).target(name, ()) for name in config.targets}
    return known if wing is None else {n: t for n, t in known.items() if t.dialect == wing.name}


def _built_in() -> dict[str, Target]:
    return {name: target for wing in dialects() for name, target in wing.targets.BUILT_IN.items()}


def choose(
    names: Iterable[str] | None,
    known: Mapping[str, Target],
    default: Sequence[str] = (),
    fewest: int = 2,
) -> list[Target]:
    """The targets a user asked for; without a wish, the default ones that are installed."""
    if names is None:
        found = [known[name] for name in default if not missing_packages(known[name])]
        if len(found) < fewest:
            raise UsageError(
                f"a comparison needs two targets, and {len(found)} of the default ones "
                f"({', '.join(default)}) are installed; {_two_at_least(found, known, default)}"
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


def _two_at_least(
    found: Sequence[Target], known: Mapping[str, Target], default: Sequence[str]
) -> str:
    """How to get as many as a comparison needs; the first of the default ones is the largest."""
    missing = [known[name] for name in (*default[1:], *default[:1]) if known[name] not in found]
    extras = dict.fromkeys(target.extra for target in missing[: 2 - len(found)])
    return f"{install_hint(','.join(extras))}; with a third one, one can be outvoted"


def choose_for(
    wing: Dialect, names: Iterable[str] | None, config: Config = NO_CONFIG, fewest: int = 2
) -> list[Target]:
    """The targets for models of that dialect."""
    return choose(names, known_targets(config, wing), wing.targets.DEFAULT, fewest)


def with_twins(
    targets: Sequence[Target], names: Sequence[str], known: Mapping[str, Target]
) -> list[Target]:
    """The targets, transformations of models by name, and who runs the originals."""
    twins = {target.twin: target for target in known.values() if target.twin and not target.config}
    if names and not twins:
        spoken = " or ".join(sorted({target.dialect for target in known.values()}))
        raise UsageError(f"--twins: there are no transformations of models of {spoken}")
    for name in names:
        if name not in twins:
            raise UsageError(f"--twins {name!r} is unknown; choose from {', '.join(twins)}")
    wanted = [twins[name] for name in names]
    there = {target.name for target in targets}
    added = dict.fromkeys(n for twin in wanted for n in (twin.original, twin.name))
    return [*targets, *choose([name for name in added if name not in there], known)]


def require_trusted(targets: Iterable[Target], config: Config, named_by: str) -> None:
    """Refuse targets that a file and not the user names, if a file that was only found has them.

    Results, campaigns and findings may come from elsewhere, and so may the `outvote.toml` beside
    them, with the scripts that its targets run: the user has to type the target's name, or that of
    the file.
    """
    if config.named:
        return
    for target in targets:
        if target.config is not None:
            raise UsageError(
                f"{named_by} names the target {target.name!r}, and {target.config}, which lies "
                "here, defines it; as you named neither, it is not started. If both are yours, "
                f"add: --config {shlex.quote(str(target.config))}"
            )


def install_hint(extra: str) -> str:
    """How to get what a target needs, installed or in a clone."""
    return f"run: pip install 'outvote[{extra}]' (in a clone: pip install -e '.[{extra}]')"


def missing_packages(target: Target) -> list[str]:
    """Packages that this interpreter lacks; a foreign interpreter is asked when it starts.

    What pip will bring, an overlay or a whole environment, is not missing.
    """
    brought = [name_of(item) for item in target.requirements]
    overlaid = dialect(target.dialect).targets.OVERLAID
    if target.python is not None or any(name not in overlaid for name in brought):
        return []
    needed = [name for name in target.packages if name not in brought]
    return [name for name in needed if importlib.util.find_spec(name) is None]


def find_target(name: str, known: Mapping[str, Target]) -> Target:
    """The target of that name, or an error that names the nearest one."""
    if name in known:
        return known[name]
    versions = versions_in(name)
    if versions is not None:
        requirements, base = versions
        found = find_target(base, known)
        return dialect(found.dialect).targets.with_versions(found, requirements, name)
    release = release_in(name)
    if release is not None:
        return _released(name, *release, known)
    elsewhere = _built_in().get(name)
    if elsewhere is not None:
        spoken = " or ".join(sorted({target.dialect for target in known.values()}))
        raise UsageError(
            f"target {name!r} runs models of {elsewhere.dialect}, not of {spoken}; "
            "`outvote targets` lists them"
        )
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else "`outvote targets` lists them"
    raise UsageError(f"there is no target {name!r}; {hint}")


def _released(name: str, base: str, bound: str, known: Mapping[str, Target]) -> Target:
    """Another release of a target that is itself a library."""
    found = known.get(base)
    if found is None or not found.package:
        raise UsageError(f"{name!r} names a version but no target; write it like {name}/torch")
    asked = checked(f"{found.package}{bound}", f"the target {name!r}")
    return dialect(found.dialect).targets.with_versions(found, (asked,), name)


_KEYS = ("extends", "python", "requirements", "env", "mode", "setup", "library")


class _Tables:
    """The tables of one file, as targets."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._path = config.path or config.folder / FILE_NAME

    def target(self, name: str, chain: tuple[str, ...]) -> Target:
        """One of them; `chain` holds those that extend it."""
        table, where = self._config.targets[name], f"[targets.{name}] in {self._path}"
        unknown = sorted(table.keys() - set(_KEYS))
        if unknown:
            raise UsageError(
                f"{where} has the unknown key {unknown[0]!r}; keys are {', '.join(_KEYS)}"
            )
        if name in chain:
            circle = " → ".join((*chain, name))
            raise UsageError(f"{where}: targets extend each other in a circle: {circle}")
        base_name = table.get("extends")
        if not isinstance(base_name, str):
            raise UsageError(f"{where} needs `extends`, the target it starts from, as a string")
        if base_name in self._config.targets:
            base = self.target(base_name, (*chain, name))
        else:
            base = find_target(base_name, _built_in())
        if "requirements" in table:
            asked = _requirements(table["requirements"], where)
            base = dialect(base.dialect).targets.with_versions(base, asked, name)
        if "mode" in table:
            base = _in_mode(base, str(table["mode"]), where)
        return replace(
            base,
            name=name,
            library=str(table.get("library", base.library)),
            python=self._file(table, "python", where) or base.python,
            setup=self._file(table, "setup", where) or base.setup,
            env={**base.env, **_texts(table.get("env", {}), where)},
            config=self._path,
        )

    def _file(self, table: Mapping[str, Any], key: str, where: str) -> Path | None:
        if key not in table:
            return None
        path = self._config.folder / Path(str(table[key])).expanduser()
        if not path.is_file():
            raise UsageError(f"{where}: `{key}` names the file {path}, which does not exist")
        return path


def _in_mode(base: Target, mode: str, where: str) -> Target:
    """The target in another of its modes, at what that costs."""
    every = (*_built_in().values(), base)
    same = [t for t in every if (t.backend, t.worker) == (base.backend, base.worker)]
    modes = {target.mode: target for target in same}
    if mode not in modes:
        known = ", ".join(sorted(modes))
        raise UsageError(f"{where}: mode {mode!r} is unknown; {base.name} has {known}")
    return replace(base, mode=mode, costs=modes[mode].costs)


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
