"""`outvote bisect`: which release changed the outcome of a case?"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outvote.commands import blocks, values
from outvote.commands.codes import exit_codes
from outvote.core.errors import UsageError

if TYPE_CHECKING:
    from outvote.commands.bisect.job import BisectJob

PLACE = 80
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
  outvote bisect model.onnx --target onnxruntime --from 1.18 --to 1.31
      releases of the runtime, for an ONNX graph
  outvote bisect model.keras --target torch --from 3.6.0 --to 3.15.1 --train --steps 3
      since which release do three steps of Adam give other weights?
  outvote bisect model.keras --target torch --from 3.6.0 --to 3.15.1 --cluster auto
      several releases at once, on the nodes of a Ray cluster (docs/cluster.md)
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = blocks.new_parser(
        commands,
        "bisect",
        "search the release of a package that changed the outcome of a case",
        "Binary search over the releases of a package for the first one on which a target "
        "behaves otherwise.",
        _EXAMPLES + exit_codes("nothing changed", "a release changed it"),
    )
    parser.add_argument("case", type=Path, help="a folder findings/<fingerprint>, or a model file")
    parser.add_argument("--from", dest="first", required=True, metavar="V", help="the older end")
    parser.add_argument("--to", dest="last", required=True, metavar="V", help="the newer end")
    parser.add_argument("--package", metavar="NAME", help="default: keras, or the ONNX runtime")
    blocks.add_target(parser, "default: the accused target of the finding")
    parser.add_argument(
        "--against",
        type=values.target_names,
        metavar="A,B,...",
        help="what to compare with; default: the other targets of the finding, or of this machine",
    )
    blocks.add_data(parser, "inputs of a model, as in check")
    blocks.add_lesson(parser, "compare steps of training, not what the model gives")
    blocks.add_out(parser)
    blocks.add_config(parser)
    blocks.add_find_links(parser)
    blocks.add_cluster(parser, "try releases side by side on a Ray cluster (docs/cluster.md)")
    blocks.add_seed(parser)
    blocks.add_quiet(parser)
    blocks.add_limits(parser)


@dataclass(frozen=True)
class _Case:
    """The model, its inputs and the target: from a finding's folder, or as named."""

    model: Path
    data: Path | None
    target: str
    others: list[str]
    finding: Path | None = None


def job_of(options: argparse.Namespace) -> BisectJob:
    """What the options ask for."""
    from outvote.commands.bisect.job import BisectJob
    from outvote.core.dialect import dialect_of
    from outvote.core.requirements import checked
    from outvote.targets.choose import choose, known_targets, missing_packages, require_trusted

    case = _case(options)
    wing = dialect_of(case.model)
    config = blocks.config_of(options)
    known = known_targets(config, wing)
    (target,) = choose([case.target], known)
    package = options.package or wing.targets.PACKAGE or target.package
    checked(f"{package}==1", "--package")
    installed = [n for n in wing.targets.DEFAULT if not missing_packages(known[n])]
    others = _without(target.plain or target.name, case.others or installed)
    against = choose(options.against or others, known)
    unasked = [*([] if options.target else [target]), *([] if options.against else against)]
    require_trusted(unasked, config, f"the finding in {case.model.parent}")
    return BisectJob(
        model=case.model,
        target=target,
        against=tuple(against),
        package=package,
        first=options.first,
        last=options.last,
        data=case.data,
        limits=blocks.limits_of(options),
        links=tuple(options.find_links),
        seed=options.seed,
        finding=case.finding,
        lesson=blocks.lesson_of(options, wing),
        out=options.out,
        cluster=blocks.cluster_of(options),
    )


def _case(options: argparse.Namespace) -> _Case:
    from outvote.core.dialect import case_in
    from outvote.targets.names import plain_name

    path: Path = options.case
    if not path.is_dir():
        if options.target is None:
            raise UsageError(
                "a model says not which target is in question; name it with --target, "
                "or give a folder findings/<fingerprint>"
            )
        return _Case(path, options.data, options.target, [])
    model, inputs = case_in(path)
    finding, names = _finding(path)
    target = options.target or plain_name(finding.get("accused") or "")
    if not target:
        raise UsageError(
            f"the finding {path.name} accuses no target; name the one in question with --target"
        )
    return _Case(model, options.data or inputs, target, names, path)


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


def _without(target: str, names: list[str]) -> list[str]:
    """All names but those of the target in question, in any version and mode."""
    from outvote.targets.names import plain_name

    backend = target.partition(":")[0]
    return [n for n in names if plain_name(n).partition(":")[0] != backend]
