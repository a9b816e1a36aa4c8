"""Releases of ONNX runtimes side by side, each in an environment that pip has built.

They come from the package index, or from the user's cache folder; without either, these tests fail
with pip's reason.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from onnx import helper

import onnx_models as made
from onnx_models import model, saved, value
from outvote.cli import main
from outvote.commands.check.job import Job
from outvote.commands.check.run import run
from outvote.targets.choose import choose, known_targets

pytestmark = pytest.mark.frameworks
OLD, NEW = "1.20.1", "1.31.1"


def checked(path: Path, *names: str) -> dict[str, Any]:
    return run(Job(path, tuple(choose(names, known_targets())), count=2))


def test_a_grid_of_releases_and_modes_has_its_matrix(tmp_path: Path) -> None:
    """The model is read here, where no target runs."""
    path = saved(made.convolution_net(), tmp_path)
    result = checked(path, f"onnxruntime=={{{OLD},{NEW}}}/{{onnxruntime,onnxruntime:all}}")
    assert result["verdict"] == "consistent"
    told = [target["versions"]["onnxruntime"] for target in result["targets"]]
    assert told == [OLD, OLD, NEW, NEW]
    assert result["version_matrix"] == {
        "versions": [f"onnxruntime=={OLD}", f"onnxruntime=={NEW}"],
        "pairs": [["onnxruntime", "onnxruntime:all"]],
        "cells": [["consistent"], ["consistent"]],
    }


def test_bisect_names_the_release_since_which_a_graph_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Opset 23 came after 1.20. The package is the target's own, and one index page is enough."""
    asked: list[str] = []

    def releases(package: str, links: Any = ()) -> list[str]:
        asked.append(package)
        return [OLD, NEW]

    monkeypatch.setattr("outvote.targets.environments.pip.releases", releases)
    node = helper.make_node("Relu", ["x"], ["y"], name="relu")
    path = saved(model([node], [value("x", [2])], [value("y", [2])], opset=23), tmp_path)
    command = ["bisect", str(path), "--target", "onnxruntime", "--from", OLD, "--to", NEW]
    assert main([*command, "--out", str(tmp_path / "out"), "--quiet"]) == 1
    assert asked == ["onnxruntime"]
    told = f"onnxruntime on onnxruntime: first fixed in {NEW}, last bad {OLD}."
    assert told in capsys.readouterr().out
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    states = {row["version"]: row["state"] for row in result["bisect"]["releases"]}
    assert states == {OLD: "unsupported", NEW: "consistent"}
    assert result["bisect"]["reference"] == "openvino:onnx"
