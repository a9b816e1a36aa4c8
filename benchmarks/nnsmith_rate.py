"""Programs a minute that NNSmith tries on PyTorch, in an interpreter of its own.

It has old requirements: an environment with `pip install torch 'nnsmith[torch]'` will do. NNSmith
draws a program with a solver, runs it by PyTorch and by TorchScript, in one process, and compares.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

_COUNTED = re.compile(r"Total (\d+) testcases generated")
_RUN = "from nnsmith.cli.fuzz import main; main()"


def nnsmith_rate(python: Path, seconds: float, operators: int) -> float:
    """Programs a minute; its own clock starts when its imports are done."""
    settings = {
        "fuzz.time": f"{round(seconds)}s",
        "fuzz.root": "found",
        "model.type": "torch",
        "backend.type": "torchjit",
        "mgen.max_nodes": operators,
    }
    command = [str(python), "-c", _RUN, *(f"{name}={value}" for name, value in settings.items())]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    found = _COUNTED.search(done.stdout + done.stderr)
    if found is None:
        raise SystemExit(f"NNSmith did not end as it should:\n{done.stdout}{done.stderr}")
    return 60 * int(found[1]) / round(seconds)
