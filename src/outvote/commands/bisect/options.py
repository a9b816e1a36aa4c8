"""`outvote bisect`: which release changed the outcome of a case?"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from outvote.commands.options import (
    CONSISTENT,
    FINDINGS,
    INTERRUPTED,
    RAW,
    above_zero,
    add_find_links,
    target_names,
)
from outvote.core.errors import UsageError

_EXAMPLES = """\
examples:
  outvote bisect outvote-out/findings/8f216f87d085 --package keras --from 3.6.0 --to 3.15.1
      a finding of `outvote check`: its layer, its input, the accused target
  outvote bisect model.keras --data val.npz --target torch --from 3.6.0 --to 3.15.1
      a whole model on PyTorch; it is held against the other installed targets
  outvote bisect model.keras --target theano --against tensorflow --from 2.1.2 --to 2.1.6
      a classic target
  outvote bisect model.keras --target jax --package jax --from 0.6.0 --to 0.7.2
      releases of JAX itself; each probe is a whole environment

exit codes: 0 nothing changed, 1 a release changed it, 2 usage or set-up error
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    bisect = commands.add_parser(
        "bisect",
        help="search the release of a package that changed the outcome of a case",
        description="Binary search over the releases of a package for the first one on which a "
        "target behaves otherwise.",
        epilog=_EXAMPLES,
        formatter_class=RAW,
    )
    bisect.add_argument("case", type=Path, help="a folder findings/<fingerprint>, or a model file")
    bisect.add_argument("--from", dest="first", required=True, metavar="V", help="the older end")
    bisect.add_argument("--to", dest="last", required=True, metavar="V", help="the newer end")
    bisect.add_argument("--package", metavar="NAME", help="default: keras, for models of Keras")
    bisect.add_argument("--target", metavar="T", help="default: the accused target of the finding")
    bisect.add_argument(
        "--against",
        type=target_names,
        metavar="A,B,...",
        help="what to compare with; default: the other targets of the finding, or of this machine",
    )
    bisect.add_argument("--data", type=Path, metavar="FILE", help="inputs of a model, as in check")
    bisect.add_argument(
        "--out", type=Path, default=Path("outvote-out"), metavar="DIR", help="default: %(default)s"
    )
    bisect.add_argument("--config", type=Path, metavar="FILE", help="default: ./outvote.toml")
    add_find_links(bisect)
    bisect.add_argument("--seed", type=int, default=0, help="for random inputs")
    bisect.add_argument(
        "--timeout", type=above_zero, default=300.0, metavar="S", help="without progress"
    )
    bisect.add_argument("--quiet", action="store_true", help="no progress")
    bisect.set_defaults(action=_bisect)


def _bisect(options: argparse.Namespace) -> int:
    from outvote.commands.bisect.result import bisect_result
    from outvote.commands.bisect.run import BisectJob, run_bisect
    from outvote.commands.terminal import Terminal
    from outvote.config import load_config
    from outvote.core.dialect import dialect_of
    from outvote.core.requirements import checked
    from outvote.report import write_all
    from outvote.report.folder import prepare_folder
    from outvote.run.process import Limits
    from outvote.targets.choose import choose, known_targets, missing_packages

    case = _case(options)
    wing = dialect_of(case["model"])
    package = options.package or wing.targets.PACKAGE
    checked(f"{package}==1", "--package")
    config = load_config(options.config)
    known = known_targets(config.targets, config.folder, wing)
    (target,) = choose([case["target"]], known)
    installed = [n for n in wing.targets.DEFAULT if not missing_packages(known[n])]
    names = case["others"] or installed
    against = choose(_against(options, names, target.plain or target.name), known)
    prepare_folder(options.out)
    job = BisectJob(
        model=case["model"],
        target=target,
        against=tuple(against),
        package=package,
        first=options.first,
        last=options.last,
        data=case["data"],
        limits=Limits(silence_seconds=options.timeout),
        links=tuple(options.find_links),
        seed=options.seed,
    )
    terminal = Terminal(options.quiet)
    result = bisect_result(run_bisect(job, terminal.watch, terminal.announce))
    write_all(result, options.out)
    _note_in_report(options.case, result)
    terminal.show_bisect(result, options.out)
    codes = {"interrupted": INTERRUPTED, "changed": FINDINGS, "unchanged": CONSISTENT}
    return codes[result["verdict"]]


def _case(options: argparse.Namespace) -> dict[str, Any]:
    """The model, its inputs and the target: from a finding's folder, or as named."""
    path: Path = options.case
    if not path.is_dir():
        if options.target is None:
            raise UsageError(
                "a model says not which target is in question; name it with --target, "
                "or give a folder findings/<fingerprint>"
            )
        return {"model": path, "data": options.data, "target": options.target, "others": None}
    from outvote.core.dialect import case_in

    model, inputs = case_in(path)
    finding, names = _finding(path)
    target = options.target or _without_versions(finding.get("accused"))
    if target is None:
        raise UsageError(
            f"the finding {path.name} accuses no target; name the one in question with --target"
        )
    return {"model": model, "data": options.data or inputs, "target": target, "others": names}


def _note_in_report(case: Path, result: dict[str, Any]) -> None:
    """The text for an upstream issue, in a finding's folder, says since when."""
    from outvote.core.files import write_atomically
    from outvote.findings.issue_text import with_releases

    path = case / "report.md"
    if result["verdict"] == "changed" and path.is_file():
        text = path.read_text(encoding="utf-8")
        releases = result["bisect"]["releases"]
        write_atomically(path, with_releases(text, result["summary"], releases))


def _finding(folder: Path) -> tuple[dict[str, Any], list[str]]:
    """The entry of a finding in the result.json it belongs to, and that check's targets."""
    path = folder.absolute().parent.parent / "result.json"
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
        found = [f for f in result["findings"] if f["fingerprint"] == folder.absolute().name]
        names = [target["name"] for target in result["targets"]]
    except (OSError, ValueError, KeyError, TypeError):
        return {}, []
    return (found[0] if found else {}), names


def _without_versions(name: str | None) -> str | None:
    return name.rpartition("/")[2] if name and "==" in name else name


def _against(options: argparse.Namespace, names: list[str], target: str) -> list[str]:
    """Names of the targets to compare with: all but the one in question, in any version."""
    if options.against is not None:
        return list(options.against)
    backend = target.partition(":")[0]
    plain = [(name, (_without_versions(name) or "").partition(":")[0]) for name in names]
    return [name for name, base in plain if base != backend]
