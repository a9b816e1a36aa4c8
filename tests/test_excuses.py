"""What is excused, and what must not be: lost sessions, layers nobody compared, settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from conftest import fake
from outvote.bench.reader import read_model
from outvote.commands.check.checked import Checked
from outvote.commands.check.job import Job
from outvote.commands.check.run import run_check
from outvote.core.arrays import Array
from outvote.core.errors import UsageError
from outvote.core.model import REF, Input, Layer, Model, Ref
from outvote.core.outputs import Outputs
from outvote.core.protocol import Ran, RunModel
from outvote.core.target import Outcome, Run, Target
from outvote.findings.blame import Blame
from outvote.judge.compare import Settings
from outvote.judge.precision import coarser
from outvote.localize.layers import Localization, localize
from outvote.localize.whole_graph import first_deviating_layer, prefix
from outvote.run.local import LocalPool
from outvote.run.pool import Pool
from outvote.run.process import Limits

LIMITS = Limits(start_seconds=20, silence_seconds=2)


def check_with(model: Path, data: Any, *targets: Target, **more: Any) -> Checked:
    settings = {"minimise": 0.0, **more}
    return run_check(Job(model, targets, data=data, limits=LIMITS, **settings))


def written(folder: Path, layers: list[dict[str, Any]]) -> Path:
    path = folder / "model.json"
    data = {"class_name": "FakeModel", "input": [None, 4], "output": [None, 4], "layers": layers}
    path.write_text(json.dumps(data))
    return path


# Sessions.


def test_who_dies_while_noise_is_measured_is_accused_of_nothing_else(fake_model: Path) -> None:
    """It is wrong in `d2`, and dies there once more; the layers after that are innocent."""
    targets = {t.name: t for t in (fake("a"), fake("b", "faint:d2"), fake("c"))}
    with LocalPool(targets.values(), limits=LIMITS) as pool:
        model, _ = read_model(pool, fake_model, None)
        inputs = [np.random.default_rng(0).normal(size=(1, 4)).astype("float32")]
        found = localize(pool, model, inputs, "a", targets, Settings())
    assert [(f.layer.name, f.kind, f.vote.outvoted) for f in found.faults] == [
        ("d2", "inconsistency", ("b",))
    ]
    assert list(found.isolated["c"]) == [layer.name for layer in model.layers]
    assert found.compared == 5


def test_every_layer_that_compares_none_is_an_error(fake_model: Path, fake_data: Path) -> None:
    targets = (fake("a", "error:open"), fake("b"))
    with pytest.raises(UsageError, match="none of the 5 layers could be compared alone: a was"):
        check_with(fake_model, fake_data, *targets, every_layer=True)
    # Nobody asked for the layers: the outputs were compared, and that is what is said.
    assert check_with(fake_model, fake_data, *targets).verdict == "consistent"


def test_how_many_layers_were_compared_is_said(
    fake_model: Path, fake_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    targets = (fake("a"), fake("b", "error:open"), fake("c"))
    checked = check_with(fake_model, fake_data, *targets, every_layer=True)
    assert checked.warnings == []  # the others compared all of them
    some = Localization(
        "a", {}, {"b": {"d1": 0.0, "relu": 0.0}}, {}, {}, (), {"a": "from Dense layer 'd2' on (E)"}
    )
    monkeypatch.setattr(Blame, "inside", lambda blame, index: ([], some))
    checked = check_with(fake_model, fake_data, fake("a"), fake("b"), every_layer=True)
    assert checked.warnings == [
        "2 of 5 layers were compared alone, on input 0; a was left out from Dense layer 'd2' on (E)"
    ]


def test_a_constant_model_says_how_many_layers_were_compared(tmp_path: Path) -> None:
    layers = [
        {"name": "b", "kind": "Scale", "inputs": ["x"], "config": {"by": 3.0}},
        {"name": "zero", "kind": "Scale", "inputs": ["b"], "config": {"by": 0.0}},
    ]
    model = written(tmp_path, layers)
    (told,) = check_with(model, None, fake("a"), fake("b")).warnings
    assert told.endswith("equal outputs say little; 2 of 2 layers were compared alone, on input 0")
    (told,) = check_with(model, None, fake("a", "error:open"), fake("b")).warnings
    assert "0 of 2 layers were compared alone" in told


def test_a_layer_that_is_wrong_alone_is_a_bug_however_chaotic_the_outputs_are(
    tmp_path: Path,
) -> None:
    """Which of two large numbers is larger decides all: rounding explains every difference."""
    layers: list[dict[str, Any]] = [
        {"name": "calm", "kind": "Rescaling", "inputs": ["x"], "config": {"scale": 1.0}},
        {"name": "loud", "kind": "Rescaling", "inputs": ["calm"], "config": {"scale": 1e7}},
        {"name": "soft", "kind": "Softmax", "inputs": ["loud"]},
    ]
    model = written(tmp_path, layers)
    x = np.tile(np.array([1.0, 1.0 + 2**-23, 0.5, 0.25], "float32"), (2, 1))
    x[1] *= 2
    data = {"x": x}
    checked = check_with(model, data, fake("a"), fake("bad", "permute:calm"), fake("c"))
    assert checked.explained == {("a", "bad"), ("bad", "c")}
    (finding,) = checked.findings
    assert finding.layer is not None
    assert (finding.accused, finding.layer.name, finding.triage) == ("bad", "calm", "bug")


# Declared precision.


TF32 = '{"products": "tf32"}'


@pytest.mark.slow
@pytest.mark.parametrize("minimise", [0.0, 5.0])
def test_rounding_by_a_declared_setting_is_no_bug(
    fake_model: Path, fake_data: Path, minimise: float
) -> None:
    def findings(precision: str, place: str) -> list[tuple[str, str, bool]]:
        targets = (fake("a"), fake("c", f"coarse:{place}", precision=precision), fake("b"))
        checked = check_with(fake_model, fake_data, *targets, minimise=minimise)
        reason = "c computes products of matrices in tf32 by its own setting"
        assert checked.verdict == ("consistent" if precision and place == "d2" else "inconsistent")
        return [(f.kind, f.triage, reason in f.reason) for f in checked.findings]

    assert findings(TF32, "d2") == [("inconsistency", "precision", True)]
    assert findings("", "d2") == [("inconsistency", "bug", False)]
    assert findings(TF32, "relu") == [("inconsistency", "bug", False)]  # which multiplies nothing


def test_a_setting_explains_its_places_and_no_more(fake_model: Path, fake_data: Path) -> None:
    liar = fake("c", "permute:d2", precision=TF32)
    (finding,) = check_with(fake_model, fake_data, fake("a"), liar, fake("b")).findings
    assert (finding.accused, finding.triage) == ("c", "bug")


def test_what_targets_declare() -> None:
    assert coarser({}) is None
    assert coarser({"inference": "f32", "matmul": "highest"}) is None
    everything, products = coarser({"inference": "bf16"}), coarser({"products": "tf32"})
    assert everything is not None
    assert products is not None
    relu, dense = Layer("r", "ReLU", {}), Layer("a", "Add", {}, args=[[{REF: ["x", 0]}] * 2])
    assert everything.explains(2.0**15, relu)
    assert not everything.explains(2.0**16, relu)
    assert (products.explains(8191, dense), products.explains(8192, dense)) == (True, False)
    assert not products.explains(1.5, relu)


# Where a difference of the whole graph begins.


class Cuts:
    """Stands for a pool: what two targets give for a model that is cut off after some layers."""

    def __init__(self, apart: list[float | None], dtype: str) -> None:
        self.apart, self.dtype = apart, dtype
        self.targets = {"a": fake("a"), "b": fake("b")}
        self.blobs = self

    def put(self, array: Array) -> str:
        return "digest"

    def ask_each(self, names: Any, requests: list[RunModel]) -> list[dict[str, Run]]:
        found = []
        for request in requests:
            apart = self.apart[len(request.model.layers) - 1]
            runs = {}
            for name in names:
                array = np.array([[1.0, 1.0 + (apart or 0.0) * (name == "b")]], self.dtype)
                failed = apart is None and name == "b"
                outcome = Outcome.ERROR if failed else Outcome.OK
                reply = Ran(outputs=Outputs((array,), (self.dtype,)))
                runs[name] = Run(name, outcome, reply)
            found.append(runs)
        return found


def chain(count: int) -> Model:
    layers, last = [], "x"
    for number in range(count):
        layers.append(Layer(f"l{number}", "ReLU", {}, args=[{REF: [last, 0]}]))
        last = f"l{number}"
    return Model("m", (Input("x", (None, 2), "float32"),), tuple(layers), (Ref(last),), "keras")


@pytest.mark.parametrize(
    ("apart", "dtype", "tolerance", "layer"),
    [
        ([2**-9, 2**-9, 0.5, 0.5], "float16", None, "l2"),  # two last places are no deviation
        ([2**-22, 2**-22, 0.5, 0.5], "float32", None, "l2"),
        ([2**-22, 2**-22, 0.5, 0.5], "float32", 0.0, "l0"),  # none is tolerated: that is asked
        ([0.5, None, 0.5, 0.5], "float32", None, None),  # a cut that does not run shows nothing
        ([0.0, 0.0, 0.0, 0.0], "float32", None, None),
    ],
)
def test_the_first_layer_that_deviates(
    apart: list[float | None], dtype: str, tolerance: float | None, layer: str | None
) -> None:
    pool = cast(Pool, Cuts(apart, dtype))
    inputs = [np.ones((1, 2), "float32")]
    found = first_deviating_layer(pool, chain(4), inputs, ("a", "b"), Settings(tolerance=tolerance))
    assert (found.name if found else None) == layer


def test_a_cut_off_model_keeps_its_weights() -> None:
    """The first call of a shared layer is cut off: the next one has the weights for itself."""
    first, *rest = chain(3).layers
    shared = [Layer(item.name, item.kind, {}, args=item.args, shares="l0") for item in rest]
    read = Layer("l1", "ReLU", {}, args=[{REF: ["x", 0]}], shares="l0")
    model = Model("m", chain(1).inputs, (first, read, shared[1]), (Ref("l2"),), "keras")
    assert [(item.name, item.shares) for item in prefix(model, 2).layers] == [
        ("l1", None),
        ("l2", "l1"),
    ]
