"""False bugs on released libraries: the zoo and keras.applications, part of ground_truth.py."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from applications import NAMES, build
from ground_truth_bench import BACKENDS, check_model, open_pool
from outvote.dialects.keras.targets import BUILT_IN
from outvote.dialects.keras.zoo.catalog import ENTRIES
from outvote.dialects.keras.zoo.seeds import seed_file
from outvote.run.pool import Pool

_FINDINGS = Path(__file__).parent.parent / "docs" / "findings.md"


def run_clean(
    out: Path, names: list[str] | None, oracle: str = "", backends: Sequence[str] = BACKENDS
) -> None:
    """Check every model on the released targets; print each `bug`, and how many are false."""
    known = known_bugs()
    false = bugs = 0
    wanted = names or [*ENTRIES, *NAMES]
    print(f"{'model':20} {'seconds':>7}  verdict")
    with open_pool() as pool:
        for place, name in enumerate(wanted):
            began = time.monotonic()
            result = check_clean(pool, name, out, oracle, backends)
            called = [f for f in result["findings"] if f["triage"] == "bug"]
            listed = [not f["relation"] and is_known(f, known) for f in called]
            bugs, false = bugs + len(called), false + listed.count(False)
            print(
                f"{name:20} {time.monotonic() - began:7.0f}  {result['verdict']}  "
                f"[{place + 1} of {len(wanted)}]",
                flush=True,
            )
            if result["relations"]:
                told = (f"{row['relation']} {row['asked']}" for row in result["relations"])
                print(f"    asked: {', '.join(told)}", flush=True)
            for finding, is_listed in zip(called, listed, strict=True):
                print(f"    {'listed' if is_listed else 'FALSE'}: {finding['title']}", flush=True)
    print(
        f"\n{bugs} bug verdicts on {len(wanted)} models, false (not in docs/findings.md): {false}"
    )


def check_clean(
    pool: Pool, name: str, out: Path, oracle: str = "", backends: Sequence[str] = BACKENDS
) -> dict[str, Any]:
    """What a check of one model on the released targets says; with an oracle one is enough."""
    model, data = model_files(pool, name)
    folder = out / "clean" / name
    folder.mkdir(parents=True)
    targets = tuple(BUILT_IN[backend] for backend in backends)
    return check_model(pool, targets, model, data, folder, count=2, oracle=oracle)


def model_files(pool: Pool, name: str) -> tuple[Path, Path | None]:
    """A model of the zoo with its data, or one of keras.applications, for random inputs."""
    if name in ENTRIES:
        return seed_file(name, pool=pool)
    return build(name, Path(tempfile.gettempdir()) / "outvote-apps"), None


def known_bugs() -> list[tuple[str, str]]:
    """What docs/findings.md lists: (the cell with the layer, the cell with who errs)."""
    rows = [line.split("|") for line in _FINDINGS.read_text(encoding="utf-8").splitlines()]
    return [(row[1], row[2]) for row in rows if len(row) >= 5 and "`" in row[1]]


def is_known(finding: dict[str, Any], known: list[tuple[str, str]]) -> bool:
    """Whether the list has this kind of layer for this library."""
    library = str(finding["accused"]).partition(":")[0]
    kind = re.compile(rf"`{finding['layer_kind']}[(`]")
    return any(kind.search(layers) and library in who for layers, who in known)
