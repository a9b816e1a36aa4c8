"""The scripts of docs/findings.md as models, checked once more: does today's outvote say the same?

    python benchmarks/findings_again.py OUT [SCRIPT...]
    python benchmarks/live_findings.py OUT/* CAMPAIGN... --run --write

The layer, input and weights of every script in docs/findings become a model in OUT, and
`outvote check` runs it on five targets. Printed per script: who is accused of what now, and where.
What no model can be made of, such as an optimiser or a layer whose shapes nobody infers, is told.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from outvote.commands.check.job import Job
from outvote.commands.check.result import check_result
from outvote.commands.check.run import check_in
from outvote.core.errors import OutvoteError
from outvote.dialects.keras.targets import BUILT_IN, helpers
from outvote.report import rendered
from outvote.run.local import LocalPool

SCRIPTS = Path(__file__).parents[1] / "docs" / "findings"
TARGETS = tuple(BUILT_IN[name] for name in ("tensorflow", "jax", "torch", "numpy", "openvino"))
# Lines of a script that make its layer; the harness around them is left out.
PARTS = re.compile(r"^ *((?:x\d+|layer|call) = .*|call\(.*|layer\.set_weights\(.*)$", re.MULTILINE)
_BUILD = """
import sys, numpy as np, keras
exec(sys.argv[1])
given = {name: array for name, array in globals().items() if name[0] == "x" and name[1:].isdigit()}
inputs = [keras.Input(x.shape[1:], dtype=x.dtype.name, name=name) for name, x in given.items()]
keras.Model(inputs, call(*inputs)).save(sys.argv[2] + "/model.keras")
np.savez(sys.argv[2] + "/data.npz", **given)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("scripts", nargs="*", type=Path)
    options = parser.parse_args()
    everybody = (*TARGETS, *helpers(TARGETS))
    with LocalPool(everybody) as pool:
        for script in options.scripts or sorted(SCRIPTS.glob("*.py")):
            folder = options.out / script.stem
            folder.mkdir(parents=True, exist_ok=True)
            complaint = build(script, folder)
            if complaint:
                print(f"{script.stem}: no model: {complaint}", flush=True)
                continue
            with np.load(folder / "data.npz") as held:
                data = dict(held)
            job = Job(folder / "model.keras", TARGETS, data=data, allow_nan=True, allow_empty=True,
                      out=folder)  # fmt: skip
            try:
                result = check_result(check_in(pool, job, out=folder))
            except OutvoteError as error:
                print(f"{script.stem}: {error}", flush=True)
                continue
            (folder / "result.json").write_text(rendered("json_file", result), encoding="utf-8")
            told = [f"{one['triage']}: {one['title']}" for one in result["findings"]]
            print(f"{script.stem}: {'; '.join(told) or 'nothing'}", flush=True)


def build(script: Path, folder: Path) -> str:
    """The model of a script, by Keras on whatever backend infers its shapes; else the complaint."""
    parts = "\n".join(PARTS.findall(script.read_text(encoding="utf-8")))
    complaint = ""
    for backend in backends(script):
        env = {**os.environ, "KERAS_BACKEND": backend}
        command = [sys.executable, "-c", _BUILD, parts, str(folder)]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return ""
        complaint = (done.stderr.strip().splitlines() or [""])[-1][:150]
    return complaint


def backends(script: Path) -> Sequence[str]:
    """Those that make a model, who is not accused first."""
    return sorted(("numpy", "torch", "jax", "tensorflow"), key=lambda one: one in script.stem)


if __name__ == "__main__":
    main()
