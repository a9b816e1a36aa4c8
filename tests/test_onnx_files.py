"""ONNX files before they are parsed, and the runtimes as targets: names, releases, who reads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import onnx_models as made
from onnx_here import NAME, Here
from outvote.core.errors import UsageError
from outvote.dialects.onnx import files, targets
from outvote.dialects.onnx.targets import BUILT_IN
from outvote.targets.choose import find_target, known_targets


def test_a_file_that_is_there_passes(tmp_path: Path) -> None:
    files.inspect(made.saved(made.recurrent_net(), tmp_path), None)


def test_what_cannot_be_a_model_is_said_with_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def says(path: Path, weights: Path | None = None) -> str:
        with pytest.raises(UsageError) as refused:
            files.inspect(path, weights)
        assert path.name in str(refused.value)
        return str(refused.value)

    path = tmp_path / "model.onnx"
    assert "does not exist" in says(path)
    path.mkdir()
    assert "is not a file" in says(path)
    path.rmdir()
    path.write_bytes(b"")
    assert "is empty" in says(path)
    path.write_bytes(b"123")
    told = says(path, tmp_path / "w.h5")
    assert "--weights goes with an architecture in a .json file" in told
    monkeypatch.setattr(files, "_MAX_BYTES", 2)
    assert "it has 3 bytes, and more than 2 do not fit" in says(path)
    assert "store large weights as external data" in says(path)


def test_a_model_in_memory_is_saved_as_it_is(tmp_path: Path) -> None:
    proto = made.recurrent_net()
    path = tmp_path / "model.onnx"
    assert files.saved(proto, path) == path
    assert path.read_bytes() == proto.SerializeToString()
    assert files.saved(object(), path) is None
    assert files.saved(np.ones(3), path) is None


# Releases


@pytest.mark.parametrize(
    ("name", "requirements"),
    [
        ("onnxruntime==1.20.1", ("onnxruntime==1.20.1",)),
        ("onnxruntime==1.18.0", ("numpy<2", "onnxruntime==1.18.0")),
        ("openvino:onnx==2024.0.0", ("numpy<2", "openvino==2024.0.0")),
        ("openvino:onnx==2025.0.0", ("openvino==2025.0.0",)),
        ("opencv==4.9.0.80", ("numpy<2", "opencv-python-headless==4.9.0.80")),
        ("opencv==4.10.0.84", ("opencv-python-headless==4.10.0.84",)),
        ("onnx-reference==1.16.0", ("onnx==1.16.0",)),
    ],
)
def test_a_release_brings_the_numpy_that_it_needs(name: str, requirements: tuple[str, ...]) -> None:
    found = find_target(name, known_targets())
    assert set(found.requirements) == set(requirements)
    assert found.plain == name.partition("==")[0]
    assert "onnx_ir" not in found.packages, "it reads no files there"


def test_a_release_of_a_mode_is_in_that_mode() -> None:
    found = find_target("onnxruntime:all==1.20.1", known_targets())
    assert (found.mode, found.costs) == ("all", BUILT_IN["onnxruntime:all"].costs)


def test_someone_here_reads_where_all_targets_are_elsewhere() -> None:
    old = find_target("onnxruntime==1.20.1", known_targets())
    here = BUILT_IN["opencv"]
    assert targets.helpers([old, here]) == []
    (helper,) = targets.helpers([old, replace(here, python=Path("python3"))])
    assert helper == replace(BUILT_IN[NAME], name="onnx-reference (reads the model)")


def test_without_onnx_there_is_no_helper(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "missing_packages", lambda target: ["onnx"])
    with pytest.raises(UsageError, match="reading ONNX files takes onnx and onnx_ir"):
        targets.helpers([find_target("onnxruntime==1.20.1", known_targets())])


def test_who_reads_is_here_released_and_quick() -> None:
    runtime, reference = BUILT_IN["onnxruntime"], BUILT_IN[NAME]
    patched = replace(reference, name="patched", setup=Path("s.py"))
    old = find_target("onnx-reference==1.16.0", known_targets())
    order = sorted([old, patched, runtime, reference], key=targets.reading_order)
    assert order == [reference, runtime, patched, old]


# What targets are


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_target_says_what_it_is(name: str) -> None:
    target = BUILT_IN[name]
    assert target.dialect == "onnx"
    assert target.extra
    assert {"read", "save", "step"} <= target.capabilities
    if target.original:
        assert target.name == f"twin:{target.mode}"
        assert target.original in BUILT_IN
        assert "float64" not in target.capabilities
    elif target.mode != "eager":
        assert not target.is_eager, "an optimiser sees several nodes at once"


def test_modes_of_a_library_are_one_vote() -> None:
    ours = [target for target in BUILT_IN.values() if target.worker == "onnxruntime"]
    levels = [target for target in ours if not target.device]
    assert len(levels) == 4
    assert {target.library for target in levels} == {"onnxruntime"}
    assert {target.library for target in ours if target.device} == {"onnxruntime:gpu"}


def test_the_probe_of_the_wing_holds(tmp_path: Path) -> None:
    """What `outvote targets` asks of a runtime, asked of the reference here."""
    model, inputs, right = targets.probe()
    (found,) = Here(tmp_path).run(model, inputs).outputs.arrays
    np.testing.assert_array_equal(found, right)
