"""Turns what `check` knows into the dict that result.json holds (docs/result-json.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from outvote.commands.check.checked import Checked
from outvote.commands.check.matrix import plain_of, version_matrix
from outvote.commands.check.training_result import training_result
from outvote.commands.check.twins import twins_result
from outvote.core.arrays import Array
from outvote.core.case import Case
from outvote.core.instances import by_instance
from outvote.core.result import head, moment, number, picture, target_head
from outvote.core.target import Run
from outvote.core.truth import Truth
from outvote.findings.finding import Finding
from outvote.findings.result import finding_result
from outvote.judge.compare import Comparison, top_k_accuracies

_EXAMPLES = 5
_TOP = 5


def check_result(checked: Checked) -> dict[str, Any]:
    """The whole result."""
    case, settings = checked.case, checked.job.settings
    model, data = case.model, case.data
    comparisons = [_comparison(pair, case, checked) for pair in checked.comparisons]
    unique = _unique(checked)
    return {
        **head(
            "check",
            [_target(name, case, checked) for name in checked.hellos],
            {"source": data.source, "instances": data.count, "truth": case.truth.kind},
            created=moment(checked.created),
            seconds=checked.seconds,
            verdict=checked.verdict,
            summary=summary(checked),
            interrupted=checked.interrupted,
            warnings=checked.warnings,
            findings=[finding_result(f, model, checked.repros) for f in checked.findings],
        ),
        "model": {
            "name": model.name,
            "path": str(checked.job.model),
            "layers": len(model.layers),
            "weights": model.weight_count,
            "inputs": [
                {"name": i.name, "shape": list(i.shape), "dtype": i.dtype} for i in model.inputs
            ],
            "outputs": _outputs(case, checked),
        },
        "settings": {
            "metrics": list(settings.metrics),
            "k": settings.k,
            "class_threshold": settings.class_threshold,
            "mad_threshold": settings.mad_threshold,
            "p": settings.p,
            "tolerance": settings.tolerance,
            "noise_factor": settings.noise_factor,
            "batch_size": checked.job.batch_size,
            "seed": checked.job.seed,
        },
        "comparisons": comparisons,
        "unique_inconsistencies": unique,
        "clusters": _clusters(unique, checked.findings),
        "version_matrix": version_matrix(checked.job.targets, checked.runs, comparisons, unique),
        "twins": twins_result(checked),
        "training": training_result(checked.trained),
        "relations": [
            {"relation": name, "asked": count} for name, count in sorted(checked.relations.items())
        ],
        "examples": _examples(case, checked),
    }


def summary(checked: Checked) -> str:
    """The verdict as one sentence."""
    finished = [name for name, run in checked.runs.items() if run.ok]
    count = checked.case.data.count
    if checked.interrupted and not checked.findings:
        return f"Stopped early: {', '.join(finished) or 'no target'} had finished."
    real = [finding for finding in checked.findings if finding.triage != "precision"]
    if real:
        more = f" ({len(real)} findings in all)" if len(real) > 1 else ""
        return f"{real[0].title}{more}."
    told = f"{len(finished)} targets agree on {count} input{'s' * (count != 1)}"
    if checked.relations:
        kept = f"{len(checked.relations)} relations hold, asked {checked.relations.total()} times"
        told = f"{told}; {kept}" if len(finished) > 1 else f"On {finished[0]} {kept}"
    if checked.explained or checked.findings:
        return f"{told}, up to rounding."
    gaps = [name for name, run in checked.runs.items() if not run.ok]
    return f"{told}; {', '.join(gaps)} cannot run this model." if gaps else f"{told}."


def _outputs(case: Case, checked: Checked) -> list[dict[str, Any]]:
    some = next(iter(checked.outputs.values()), None)
    return [
        {
            "name": ref.producer,
            "shape": list(shape),
            "dtype": some.dtypes[i] if some and i < len(some.dtypes) else None,
        }
        for i, (ref, shape) in enumerate(zip(case.model.outputs, case.output_shapes, strict=True))
    ]


def _target(name: str, case: Case, checked: Checked) -> dict[str, Any]:
    target = next(t for t in checked.job.targets if t.name == name)
    hello = checked.hellos[name]
    run = checked.runs.get(name, Run(name, hello.outcome, message="not finished"))
    outputs = checked.outputs.get(name)
    accuracy = top_k_accuracies(case.truth, outputs.rows[0]) if outputs else None
    return {
        **target_head(target, hello),
        "outcome": run.outcome.value,
        "message": run.message,
        "layer": run.layer,
        "seconds": round(run.seconds, 3),
        "peak_memory": checked.peaks.get(name, 0),
        "accuracy": accuracy,
    }


def _comparison(pair: Comparison, case: Case, checked: Checked) -> dict[str, Any]:
    explained = _explained(pair, checked)
    return {
        "targets": list(pair.targets),
        "inconsistent": pair.inconsistent and not explained,
        "explained": explained,
        "mismatch": pair.mismatch,
        "noise": checked.noise.largest() if checked.noise and pair.inconsistent else None,
        "worst_input": pair.worst_input,
        "accuracy_difference": _accuracy_difference(pair, case, checked),
        "metrics": [
            {
                "name": m.name,
                "output": m.output,
                "threshold": m.threshold,
                "maximum": number(m.maximum),
                "mean": number(float(m.distances.mean())) if m.distances.size else None,
                "triggering": len(m.triggering),
                "inconsistent": m.inconsistent,
                "pattern": {"bins": list(m.pattern.bins), "counts": list(m.pattern.counts)},
            }
            for m in pair.measured
        ],
    }


def _explained(pair: Comparison, checked: Checked) -> str | None:
    """Why a pair that differs is not inconsistent: rounding, or one's own, coarser precision."""
    if not pair.inconsistent:
        return None
    if pair.targets in checked.explained:
        return "rounding"
    about = [
        f.triage
        for f in checked.findings
        if set(pair.targets) & ({f.accused} if f.accused else set(f.targets))
    ]
    return "precision" if about and set(about) == {"precision"} else None


def _accuracy_difference(pair: Comparison, case: Case, checked: Checked) -> dict[str, float] | None:
    both = [top_k_accuracies(case.truth, checked.outputs[n].rows[0]) for n in pair.targets]
    if both[0] is None or both[1] is None or pair.mismatch is not None:
        return None
    return {k: abs(both[0][k] - both[1][k]) for k in both[0]}


def _unique(checked: Checked) -> list[dict[str, Any]]:
    """Equal patterns of the same metric are one unique inconsistency (CRADLE, III-B).

    Where there are versions, those of one pair of backends, as in the paper.
    """
    plain = {target.name: plain_of(target) for target in checked.job.targets}
    versions = any(target.requirements for target in checked.job.targets)
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for pair in checked.comparisons:
        for m in pair.measured:
            if not m.inconsistent or _explained(pair, checked):
                continue
            sides = sorted(plain[name] for name in pair.targets) if versions else []
            key = (m.name, m.output, m.pattern.counts, *sides)
            entry = found.setdefault(
                key,
                {
                    "id": f"U{len(found) + 1}",
                    "metric": m.name,
                    "pattern": {"bins": list(m.pattern.bins), "counts": list(m.pattern.counts)},
                    "pairs": [],
                },
            )
            entry["pairs"].append(list(pair.targets))
    for entry in found.values():
        entry["findings"] = [
            finding.fingerprint
            for finding in checked.findings
            if any(_explains(finding, pair) for pair in entry["pairs"])
        ]
    return list(found.values())


def _explains(finding: Finding, pair: Sequence[str]) -> bool:
    """Whether a finding makes a pair differ: one of the two is guilty, or it is between them."""
    if finding.accused is not None:
        return bool(set(pair) & {finding.accused, *finding.targets})
    return set(pair) <= set(finding.targets)


def _clusters(
    uniques: Sequence[Mapping[str, Any]], findings: Sequence[Finding]
) -> list[dict[str, Any]]:
    """Unique inconsistencies that share the first localised layer class and target: one bug each.

    CRADLE does so by hand, and leaves the rest as future work.
    """
    by_fingerprint = {finding.fingerprint: finding for finding in findings}
    clusters: dict[tuple[str | None, str | None], dict[str, Any]] = {}
    for unique in uniques:
        if not unique["findings"]:
            continue
        first = by_fingerprint[unique["findings"][0]]
        kind = first.layer.kind if first.layer else None
        cluster = clusters.setdefault(
            (kind, first.accused),
            {"layer_kind": kind, "target": first.accused, "uniques": [], "findings": []},
        )
        cluster["uniques"].append(unique["id"])
        for fingerprint in unique["findings"]:
            if fingerprint not in cluster["findings"]:
                cluster["findings"].append(fingerprint)
    return list(clusters.values())


def _examples(case: Case, checked: Checked) -> list[dict[str, Any]]:
    """The most inconsistent inputs, with each target's answer."""
    indices: dict[int, None] = {}
    for finding in checked.findings:
        indices.update(dict.fromkeys(finding.inputs[:2]))
    for pair in checked.comparisons:
        if pair.inconsistent and not _explained(pair, checked):
            indices.setdefault(pair.worst_input)
    shown = [index for index in indices if index < case.data.count]  # a batch may be empty
    return [_example(index, case, checked) for index in shown[:_EXAMPLES]]


def _example(index: int, case: Case, checked: Checked) -> dict[str, Any]:
    return {
        "input": index,
        "truth": _truth(case.truth, index),
        "picture": _picture(case, index) if case.data.inputs else None,
        "answers": [
            {"target": name, **_answer(outputs.rows[0][index])}
            for name, outputs in checked.outputs.items()
            if outputs.rows and len(outputs.rows[0]) > index
        ],
    }


def _picture(case: Case, index: int) -> str | None:
    (first, *_), axis = case.data.take([index]), case.data.axes[0]
    return picture(by_instance(first, axis)[0])


def _truth(truth: Truth, index: int) -> Any:
    if truth.labels is not None:
        return truth.labels[index].tolist()
    return None if truth.given is None else truth.given[index].reshape(-1)[:_TOP].tolist()


def _answer(output: Array) -> dict[str, Any]:
    if output.ndim == 1 and len(output) > 1:
        best = np.argsort(-np.nan_to_num(output.astype(np.float64), nan=-np.inf))[:_TOP]
        return {"top": [[int(i), number(float(output[i]))] for i in best]}
    return {"values": [number(float(v)) for v in output.reshape(-1)[:_TOP]]}
