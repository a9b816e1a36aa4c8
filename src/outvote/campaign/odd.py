"""What an odd case looks like at a glance: who leaves whom, how, where, and by which words.

It takes what is known without running anything more, so that a campaign can go on searching, and
choose what is worth a look.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from outvote.campaign.oracle import Judged
from outvote.core.dialect import dialect
from outvote.core.frames import innermost_frame
from outvote.core.model import Layer, Model
from outvote.core.sifted import CauseKey
from outvote.core.target import Run
from outvote.judge.compare import Comparison
from outvote.judge.partings import wording


def key_of(model: Model, judged: Judged) -> CauseKey:
    """Of failures where there are some: what comes behind them was not computed."""
    return _of_failures(model, judged) if judged.failed else _of_results(model, judged)


def key_beside(model: Model, judged: Judged) -> CauseKey | None:
    """Of who did not fail, where some did: what these part in may be known by nothing else."""
    if not judged.failed or not (judged.odd or judged.apart):
        return None
    key = _of_results(model, judged)
    # What shows where some fail need not be what shows where nobody does.
    return CauseKey(key.family, f"beside a failure: {key.detail}")


def _of_results(model: Model, judged: Judged) -> CauseKey:
    for layer in model.layers:
        if layer.name in judged.odd:
            return CauseKey(f"{layer.kind} | {judged.odd[layer.name]}", _words(model, layer))
    who = ", ".join(_apart_from_most(judged.apart))
    kinds = " ".join(sorted({i.kind for i in model.layers}))
    return CauseKey(f"the outputs | {who}: inconsistency", kinds)


def _apart_from_most(pairs: Sequence[Comparison]) -> list[str]:
    """Who parts from as many as anybody does."""
    times = Counter(name for pair in pairs for name in pair.targets)
    most = max(times.values(), default=0)
    return sorted(name for name, count in times.items() if count == most)


def _of_failures(model: Model, judged: Judged) -> CauseKey:
    """One place in the package is of one family; the door of another library only with its layer.

    Each kind of layer is looked at once: that one of them fails there says nothing of the others.
    """
    kinds = {layer.name: layer.kind for layer in model.layers}
    package = dialect(model.dialect).targets.PACKAGE
    alone = model.layers[0].kind if len(model.layers) == 1 else "a model"
    who, words = [], []
    for name, run in sorted(judged.failed.items()):
        kind = kinds.get(run.layer or "", alone)
        who.append(f"{name}: {run.outcome.value} in {_place(run, package) or kind}")
        words.append(f"{kind}: {wording(run.message)}")
    return CauseKey("; ".join(who), " | ".join(words))


def _place(run: Run, package: str) -> str:
    """In the package that the dialect is about."""
    frame = innermost_frame(run.detail, package)
    return str(frame) if frame and (not package or frame.file.startswith(f"{package}/")) else ""


def _words(model: Model, layer: Layer) -> str:
    """The words and switches among a layer's parameters, and its type: no sizes."""
    known = dialect(model.dialect).layers
    parameters = sorted(known.parameters(layer).items())
    told = [f"{key}={value}" for key, value in parameters if isinstance(value, str | bool)]
    return ", ".join([*told, known.dtype(layer) or ""])
