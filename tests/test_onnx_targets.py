"""The targets of ONNX: who is one vote, who is default, what brings one that is missing."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import onnx_models as made
from onnx_models import saved
from outvote.commands.check.job import Job
from outvote.commands.check.run import run_check
from outvote.core.dialect import dialect
from outvote.dialects.onnx.targets import BUILT_IN, DEFAULT
from outvote.judge.vote import vote
from outvote.targets.choose import choose_for

EXTRAS = tomllib.loads(Path("pyproject.toml").read_text())["project"]["optional-dependencies"]
WORKERS = Path("src/outvote/dialects/onnx/workers")


@pytest.mark.parametrize("missing", ["", "cv2", "onnxruntime"])
def test_the_plain_four_are_default_as_far_as_they_are_installed(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == missing else object()
    )
    rest = [name for name in DEFAULT if missing not in BUILT_IN[name].packages]
    assert [target.name for target in choose_for(dialect("onnx"), None)] == rest
    assert len(rest) == 4 - bool(missing)


@pytest.mark.parametrize(
    ("plain", "modes"),
    [
        ("onnxruntime", (":basic", ":extended", ":all")),
        ("openvino:onnx", (":dynamic", ":fast")),
    ],
)
def test_modes_of_a_runtime_are_one_vote(plain: str, modes: tuple[str, ...]) -> None:
    names = [plain, *(plain + mode for mode in modes)]
    targets = {name: BUILT_IN[name] for name in (*names, "opencv")}
    voted = vote(targets, [(plain, other) for other in names], "Conv")
    assert not voted.decided
    assert "one implementation each" in voted.reason


def test_who_computes_float64_in_float32_says_so() -> None:
    feigning = {name for name, target in BUILT_IN.items() if "float64" in target.feigns}
    assert feigning == {"opencv", *(n for n in BUILT_IN if n.startswith("openvino:onnx"))}
    assert not any(BUILT_IN[name].can("float64") for name in feigning)


@pytest.mark.parametrize("name", BUILT_IN)
def test_what_a_target_needs_is_brought_by_its_extra(name: str) -> None:
    target = BUILT_IN[name]
    assert (WORKERS / f"{target.worker}.py").is_file()
    brought = " ".join(line for extra in target.extra.split(",") for line in EXTRAS[extra])
    assert target.package in brought or "outvote[onnx]" in brought


@pytest.mark.frameworks
@pytest.mark.parametrize(
    ("name", "graph", "gap"),
    [
        ("torch:onnx", made.residual_net, ""),
        ("jax:onnx", made.convolution_net, ""),
        ("jax:onnx", made.residual_net, "Elu is not implemented"),
    ],
)
def test_a_partial_referee_agrees_where_it_can(
    name: str, graph: Callable[[], Any], gap: str, tmp_path: Path
) -> None:
    targets = (BUILT_IN["onnxruntime"], BUILT_IN["onnx-reference"], BUILT_IN[name])
    found = run_check(Job(saved(graph(), tmp_path), targets, every_layer=True))
    assert found.runs[name].ok is not bool(gap), found.runs[name].message
    assert gap in found.runs[name].message
    assert found.verdict == "consistent", [f.title for f in found.findings]
