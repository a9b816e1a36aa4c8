"""repro.py for a toy: the operators of its library, and what they should give."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from outvote.core.model import Ref
from outvote.core.target import Target

_LIBRARY = Path(__file__).parent / "workers" / "operators.py"


def script(finding: Any, targets: Mapping[str, Target], pool: Any, folder: Path) -> str | None:
    proof = finding.proof
    if proof is None or proof.expected is None:
        return None
    model = proof.specimen.model
    lines = [
        "import os, runpy, sys",
        "import numpy as np",
        "array = nan = inf = None",
        "from numpy import array, float32, float64, inf, nan",
        f"for name, fault in {[(n, t.env.get('TOY_FAULT', '')) for n, t in targets.items()]!r}:",
        "    os.environ['TOY_FAULT'] = fault",
        f"    compute = runpy.run_path({str(_LIBRARY)!r})['compute']",
        "    t = {}",
    ]
    for item, array in zip(model.inputs, proof.specimen.inputs, strict=True):
        lines.append(f"    t[{item.name!r}] = np.asarray({array!r}, {array.dtype.name!r})")
    for node in model.layers:
        given = [f"t[{ref.producer!r}]" for ref in node.refs()]
        weights = [repr(pool.blobs.get(w.digest).tolist()) for w in node.weights]
        reads = ", ".join([*given, *(f"np.float32({w})" for w in weights)])
        lines.append(f"    t[{node.name!r}] = compute({node.kind!r}, {node.config!r}, [{reads}])")
    last: Ref = model.outputs[0]
    lines += [
        f"    expected = np.asarray({proof.expected.arrays[0].tolist()!r})",
        f"    if not np.allclose(t[{last.producer!r}], expected, rtol=1e-4, atol=1e-5):",
        "        sys.exit(f'{name} gives something else')",
    ]
    return "\n".join(lines) + "\n"


def short(finding: Any, targets: Mapping[str, Target], pool: Any) -> str | None:
    return None  # the whole is short


def script_of_file(fault: Any, targets: Mapping[str, Target], folder: Path) -> str:
    return "raise SystemExit('a toy is proved by its smallest case')\n"
