"""What a campaign exercises: kinds of layers, values of parameters, lines of Keras' backend files.

    python benchmarks/parameter_coverage.py lenet5 [--seconds 600] [--strategies lemon,mixed]

Each strategy gets the same time on numpy and torch. Lines are those of `keras/src/backend/torch`
that the torch worker executed, of all that its files hold, counted by Python's own tracing.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from outvote.campaign.job import Budget, FuzzJob
from outvote.commands.blocks import seeds_of
from outvote.commands.fuzz.run import start
from outvote.dialects.keras.targets import BUILT_IN

# Runs inside the worker: notes every line of the backend's files once, and says how many there are.
TRACER = """
import dis, os, sys, threading, time
from pathlib import Path
import keras.src.backend.torch as backend
FOLDER = str(Path(backend.__file__).parent)
seen = set()
def lines_of(code):
    found = {{line for _, line in dis.findlinestarts(code) if line}}
    for inner in code.co_consts:
        if hasattr(inner, "co_code"):
            found |= lines_of(inner)
    return found
total = 0
for path in Path(FOLDER).rglob("*.py"):
    total += len(lines_of(compile(path.read_text(), str(path), "exec")))
def local(frame, event, arg):
    if event == "line":
        seen.add((frame.f_code.co_filename, frame.f_lineno))
    return local
def trace(frame, event, arg):
    return local if frame.f_code.co_filename.startswith(FOLDER) else None
def write():
    while True:
        time.sleep(1)
        told = [f"{{file}}:{{line}}" for file, line in list(seen)]
        Path({path!r}, str(os.getpid())).write_text("\\n".join([str(total), *told]))
threading.Thread(target=write, daemon=True).start()
sys.settrace(trace)
"""


def campaign(job: FuzzJob, folder: Path) -> tuple[dict[str, Any], int, int]:
    """The result, and how many lines were executed, of how many, by all torch workers together."""
    lines = folder / "lines"
    lines.mkdir()
    script = folder / "tracer.py"
    script.write_text(TRACER.format(path=str(lines)))
    torch = replace(BUILT_IN["torch"], setup=script)
    result = start(job.but(targets=(torch, BUILT_IN["numpy"])), folder / "out")
    told = [file.read_text().split("\n") for file in lines.iterdir()]
    return result, len({line for file in told for line in file[1:]}), int(told[0][0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("seeds", nargs="+", help="names of the zoo, or model files")
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--strategies", default="lemon,mixed")
    options = parser.parse_args()
    for strategy in options.strategies.split(","):
        job = FuzzJob(
            seeds=seeds_of(options.seeds, []),
            targets=(BUILT_IN["torch"], BUILT_IN["numpy"]),
            strategy=strategy,
            budget=Budget(seconds=options.seconds),
        )
        with tempfile.TemporaryDirectory() as folder:
            result, executed, total = campaign(job, Path(folder))
        kinds, values = result["kinds"], result["values"]
        print(
            f"{strategy}: {result['tested']} mutants, {kinds['exercised']} of "
            f"{kinds['drawable']} kinds, {values['parameters']} (kind, parameter) pairs, "
            f"{values['exercised']} (kind, parameter, value class) combinations, "
            f"{executed} of {total} backend lines after the import, "
            f"{len(result['findings'])} findings",
            flush=True,
        )


if __name__ == "__main__":
    main()
