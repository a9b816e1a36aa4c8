"""Plant a misdeed in a fake target; assert what is found, who is accused, which layer is blamed."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import fake
from outvote.bench.noise import NoiseFloor, measure_noise
from outvote.bench.reader import read_model
from outvote.commands.check.checked import Checked
from outvote.commands.check.job import Job
from outvote.commands.check.result import check_result
from outvote.commands.check.run import run, run_check
from outvote.core.case import balanced_batch
from outvote.core.errors import UsageError
from outvote.core.target import Target
from outvote.findings.blame import Blame
from outvote.findings.finding import Finding
from outvote.judge.compare import Settings
from outvote.judge.tolerance import MORE_PROBES, PROBES
from outvote.localize.layers import localize
from outvote.run.local import LocalPool
from outvote.run.process import Limits


def check_with(model: Path, data: Path | None, *targets: Target, **more: Any) -> Checked:
    """A check whose findings stay as large as they are, if nobody wants them small."""
    limits = Limits(start_seconds=20, silence_seconds=2)
    settings = {"limits": limits, "minimise": 0.0, **more}
    return run_check(Job(model, targets, data=data, **settings))


KINDS = {"lie": "inconsistency", "permute": "inconsistency", "nan": "nan", "error": "crash"}
KINDS["shape"] = "shape"  # in the middle of a model it makes the NEXT layer raise


@pytest.mark.parametrize(
    ("misdeed", "layer"), [*itertools.product(KINDS, ("d1", "soft")), ("lie", "relu")]
)
def test_a_planted_fault_is_found_accused_and_localised(
    fake_model: Path, fake_data: Path, misdeed: str, layer: str
) -> None:
    targets = [fake("a"), fake("bad", f"{misdeed}:{layer}"), fake("c")]
    small = Job.minimise if layer == "d1" else 0.0
    checked = check_with(fake_model, fake_data, *targets, minimise=small)
    (finding,) = checked.findings
    assert (finding.kind, finding.accused, finding.triage) == (KINDS[misdeed], "bad", "bug")
    assert finding.layer is not None
    assert finding.layer.name == layer
    assert checked.verdict == "inconsistent"
    assert "2 independent implementations agree" in finding.reason


def test_another_dtype_is_a_finding(fake_model: Path, fake_data: Path) -> None:
    checked = check_with(
        fake_model,
        fake_data,
        fake("a"),
        fake("bad", "dtype:soft"),
        fake("c"),
        minimise=Job.minimise,
    )
    (finding,) = checked.findings
    assert (finding.kind, finding.accused) == ("shape", "bad")
    assert finding.title == "bad gives float64 instead of float32 in Softmax layer 'soft'"
    assert checked.comparisons[0].mismatch == "output 0 has dtype float32 against float64"


def test_a_fault_in_the_middle_does_not_accuse_the_layers_after_it(
    fake_model: Path, fake_data: Path
) -> None:
    """CRADLE's rate may point downstream; the layer alone does not."""
    checked = check_with(fake_model, fake_data, fake("a"), fake("b"), fake("bad", "lie:d1"))
    (finding,) = checked.findings
    assert finding.localization is not None
    assert [fault.layer.name for fault in finding.localization.faults] == ["d1"]
    rates = finding.localization.introductions["bad"]
    assert rates.first == "d1"
    # Worked out by hand from the definition: R = (δ - δ_pre) / (δ_pre + ε), ε = 1e-7.
    assert rates.rate["d1"] == pytest.approx(rates.delta["d1"] / 1e-7)
    before = max(rates.delta["d2"], rates.delta["d1"])
    assert rates.rate["add"] == pytest.approx((rates.delta["add"] - before) / (before + 1e-7))


def test_agreement_is_said_only_after_comparing(fake_model: Path, fake_data: Path) -> None:
    checked = check_with(fake_model, fake_data, fake("a"), fake("b"), fake("c"))
    assert checked.verdict == "consistent"
    assert checked.findings == []
    assert len(checked.comparisons) == 3
    assert {m.name for m in checked.comparisons[0].measured} == {"class", "mad", "relative"}
    assert len(checked.comparisons[0].measured[0].distances) == 20


def test_two_targets_cannot_decide(fake_model: Path, fake_data: Path) -> None:
    """Without a reference, that is: see tests/test_triage.py."""
    checked = check_with(fake_model, fake_data, fake("a"), fake("b", "lie:d2"), minimise=0.0)
    (finding,) = checked.findings
    assert (finding.accused, finding.triage) == (None, "unknown")
    assert finding.targets == ("a", "b")
    assert "cannot be decided" in finding.reason
    assert finding.layer is not None
    assert finding.layer.name == "d2"


@pytest.mark.parametrize("minimise", [0.0, 5.0])
@pytest.mark.parametrize(
    ("misdeed", "says"),
    [
        ("permute:s", r"a and b disagree by [\d.]+ \(relative\)"),
        ("nan:s", "a gives numbers, b gives NaN"),
        ("shape:s", r"a gives \(\d, \d\), b gives \(\d, \d\)"),
        ("dtype:s", "a gives float32, b gives float64"),
        ("error:s", r"a computes it, b fails \(.+\)"),
    ],
)
def test_what_is_not_decided_says_who_gives_what(
    misdeed: str, says: str, minimise: float, tmp_path: Path
) -> None:
    """No formula is known for `Scale`: nobody is accused, before it is examined and after."""
    layer = {"name": "s", "kind": "Scale", "config": {"by": 2.0}, "inputs": ["x"], "weights": []}
    data = {"class_name": "FakeModel", "input": [None, 6], "output": [None, 6], "layers": [layer]}
    model = tmp_path / "scale.json"
    model.write_text(json.dumps(data))
    x = {"x": np.arange(12, dtype=np.float32).reshape(2, 6)}
    job = Job(model, (fake("a"), fake("b", misdeed)), data=x, minimise=minimise)
    (finding,) = run_check(job).findings
    assert finding.accused is None
    assert re.fullmatch(f"Scale layer 's': {says}", finding.title), finding.title


def test_two_votes_of_one_library_cannot_outvote_another(fake_model: Path, fake_data: Path) -> None:
    targets = (fake("a", library="L"), fake("a2", library="L"), fake("b", "lie:d2"))
    (finding,) = check_with(fake_model, fake_data, *targets, minimise=0.0).findings
    assert finding.accused is None


def test_rounding_is_not_a_finding(fake_model: Path, fake_data: Path) -> None:
    """A target that is off by less than the tolerance, in every layer's last places."""
    checked = check_with(fake_model, fake_data, fake("a"), fake("b", "whisper:d1"), fake("c"))
    assert checked.verdict == "consistent"
    assert checked.findings == []


def test_rounding_beyond_the_tolerance_is_explained_by_the_noise_floor(
    fake_model: Path, fake_data: Path
) -> None:
    strict = Settings(tolerance=1e-8)
    checked = check_with(
        fake_model, fake_data, fake("a"), fake("b", "whisper:soft"), fake("c"), settings=strict
    )
    assert checked.explained == {("a", "b"), ("b", "c")}
    assert checked.verdict == "consistent"
    assert checked.noise is not None
    assert 0 < checked.noise.largest() < 1e-5


def test_an_unsupported_layer_is_a_gap_not_a_finding(fake_model: Path, fake_data: Path) -> None:
    checked = check_with(fake_model, fake_data, fake("a"), fake("b"), fake("c", "unsupported:d2"))
    assert checked.findings == []
    result = check_result(checked)
    assert result["summary"] == "2 targets agree on 20 inputs; c cannot run this model."
    assert result["targets"][2]["outcome"] == "unsupported"
    assert result["targets"][2]["layer"] == "d2"


def test_where_own_tensors_of_a_target_end_is_said(fake_model: Path, fake_data: Path) -> None:
    """It gives another shape in `d1`, which the layers behind take of others, but not of it."""
    targets = (fake("a"), fake("bad", "shape:d1"), fake("c"))
    (finding,) = check_with(fake_model, fake_data, *targets, minimise=0.0).findings
    assert finding.layer is not None
    assert finding.layer.name == "d1"
    told = "What bad computes by itself goes no further than Dense layer 'd2' (ValueError: "
    assert told in finding.reason


@pytest.mark.slow
def test_an_exception_on_one_target_accuses_it(fake_model: Path, fake_data: Path) -> None:
    targets = (fake("a"), fake("b"), fake("c", "error:d2"))
    checked = check_with(fake_model, fake_data, *targets, minimise=Job.minimise)
    (finding,) = checked.findings
    assert (finding.kind, finding.accused) == ("crash", "c")
    error = "ValueError: the fake target was told to raise"
    assert finding.title == f"c fails in Dense layer 'd2': {error}"


def test_when_no_target_can_run_nothing_passes(fake_model: Path, fake_data: Path) -> None:
    with pytest.raises(UsageError, match="nothing was compared: a: ValueError"):
        check_with(fake_model, fake_data, fake("a", "error:d1"), fake("b", "error:d1"))


def test_one_target_that_runs_agrees_with_nobody(fake_model: Path, fake_data: Path) -> None:
    with pytest.raises(UsageError, match="only a could run the model, so nothing was compared"):
        check_with(fake_model, fake_data, fake("a"), fake("b", "unsupported:d1"))
    with pytest.raises(UsageError, match="needs two targets; received a"):
        check_with(fake_model, fake_data, fake("a"))


def test_an_output_too_narrow_for_the_labels_is_reported(fake_model: Path, fake_data: Path) -> None:
    checked = check_with(fake_model, fake_data, fake("a"), fake("b"), fake("bad", "shape:soft"))
    result = check_result(checked)
    assert [target["accuracy"] is None for target in result["targets"]] == [False, False, True]
    assert result["findings"][0]["kind"] == "shape"


@pytest.mark.slow
def test_the_findings_of_an_earlier_run_do_not_stay(
    fake_model: Path, fake_data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    for misdeed in ("lie:d1", "lie:relu"):
        targets = (fake("a"), fake("bad", misdeed), fake("c"))
        result = run(Job(fake_model, targets, data=fake_data, out=out, minimise=0.0))
    (left,) = (out / "findings").iterdir()
    assert left.name == result["findings"][0]["fingerprint"]


def _constant_model(tmp_path: Path) -> Path:
    """A model that ignores its input: its last layer multiplies by zero."""
    layers = [
        {"name": "a", "kind": "Scale", "inputs": ["x"], "config": {"by": 2.0}},
        {"name": "b", "kind": "Scale", "inputs": ["a"], "config": {"by": 3.0}},
        {"name": "zero", "kind": "Scale", "inputs": ["b"], "config": {"by": 0.0}},
    ]
    path = tmp_path / "constant.json"
    data = {"class_name": "FakeModel", "input": [None, 4], "output": [None, 4], "layers": layers}
    path.write_text(json.dumps(data))
    return path


def test_outputs_that_ignore_the_input_do_not_pass_for_agreement(tmp_path: Path) -> None:
    """Equal outputs prove nothing here, so every layer is compared, and the fault is found."""
    model = _constant_model(tmp_path)
    checked = check_with(model, None, fake("a"), fake("bad", "lie:b"), fake("c"))
    assert not any(pair.inconsistent for pair in checked.comparisons)
    (finding,) = checked.findings
    assert finding.layer is not None
    assert (finding.accused, finding.layer.name) == ("bad", "b")
    assert "hardly depend on the inputs" in checked.warnings[0]
    honest = check_with(model, None, fake("a"), fake("b"), fake("c"))
    assert honest.verdict == "consistent"
    assert honest.warnings == checked.warnings


def test_every_layer_is_compared_on_request(fake_model: Path, fake_data: Path) -> None:
    """A fault too small for the outputs' tolerance shows in its own layer."""
    targets = (fake("a"), fake("b", "murmur:d1"), fake("c"))
    loose = Settings(tolerance=1e-3)
    assert check_with(fake_model, fake_data, *targets, settings=loose).findings == []
    checked = check_with(fake_model, fake_data, *targets, settings=loose, every_layer=True)
    assert [f.layer and f.layer.name for f in checked.findings] == ["d1"]
    assert checked.warnings == []


def test_a_metric_that_needs_truth_without_truth_is_an_error(fake_model: Path) -> None:
    settings = Settings(metrics=("class",))
    with pytest.raises(UsageError, match="--metric class needs ground truth"):
        check_with(fake_model, None, fake("a"), fake("b"), settings=settings)


def test_the_most_inconsistent_input_is_localised_and_equal_patterns_are_one_inconsistency(
    fake_model: Path, fake_data: Path
) -> None:
    checked = check_with(fake_model, fake_data, fake("a"), fake("bad", "lie:d2"), fake("c"))
    (finding,) = checked.findings
    relative = next(m for m in checked.comparisons[0].measured if m.name == "relative")
    assert finding.inputs == (int(np.argmax(relative.distances)),)
    unique = check_result(checked)["unique_inconsistencies"]
    assert [entry["pairs"] for entry in unique if entry["metric"] == "relative"] == [
        [["a", "bad"], ["bad", "c"]]
    ]


@pytest.mark.slow
def test_results_and_evidence_are_written(
    fake_model: Path, fake_data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    targets = (fake("a"), fake("bad", "lie:d2"), fake("c"))
    result = run(Job(fake_model, targets, data=fake_data, out=out))
    stored = json.loads((out / "result.json").read_text())
    assert stored == json.loads(json.dumps(result))
    assert (out / "report.html").exists()
    assert (out / "report.md").exists()
    (finding,) = stored["findings"]
    folder = out / "findings" / finding["fingerprint"]
    assert {p.name for p in folder.iterdir()} == {
        "repro.py",
        "report.md",
        "model.keras",
        "inputs.npz",
        "outputs.npz",
    }
    assert finding["repro"] == f"findings/{finding['fingerprint']}/repro.py"
    localization = finding["localization"]
    assert localization["isolated"]["first"] == "d2"
    assert localization["introduction_rate"]["first"] == "d2"
    assert [n["id"] for n in localization["map"]["nodes"] if n["faulty"]] == ["d2"]
    assert ["d1", "add"] in localization["map"]["edges"]


@pytest.mark.slow
def test_fingerprints_name_the_cause_not_the_occurrence(fake_model: Path, fake_data: Path) -> None:
    def fingerprint(misdeed: str) -> str:
        targets = (fake("a"), fake("bad", misdeed), fake("c"))
        (finding,) = check_with(fake_model, fake_data, *targets).findings
        return finding.fingerprint

    first = fingerprint("lie:d1")
    assert first == fingerprint("lie:d2")  # both are Dense
    assert first != fingerprint("lie:relu")


@pytest.mark.parametrize(
    ("count", "limit", "batch"), [(8, 32, 8), (64, 32, 32), (40, 32, 20), (37, 32, 32), (0, 32, 0)]
)
def test_batches_are_even_where_possible(count: int, limit: int, batch: int) -> None:
    assert balanced_batch(count, limit) == batch


def test_a_gap_is_left_out_of_one_layer_and_not_of_the_others(fake_model: Path) -> None:
    """What a target lacks is no fault, and it goes on with the layers that follow."""
    with LocalPool([fake("a"), fake("b"), fake("c", "unsupported:d2")]) as pool:
        model, _ = read_model(pool, fake_model, None)
        x = np.random.default_rng(0).normal(size=(1, 4)).astype("float32")
        found = localize(pool, model, [x], "a", dict(pool.targets), Settings())
    assert found.faults == ()
    assert set(found.isolated["b"]) - set(found.isolated["c"]) == {"d2"}


@pytest.mark.parametrize(
    ("by_layer", "factor", "rounds"),
    [
        (True, 5e3, [(PROBES,)]),
        (False, 5e3, [(PROBES,), (PROBES, MORE_PROBES)]),
        (False, 1.0, [(PROBES,)]),
    ],
)
@pytest.mark.slow
def test_noise_is_measured_closely_where_no_layer_alone_is_to_blame(
    monkeypatch: pytest.MonkeyPatch,
    fake_model: Path,
    fake_data: Path,
    by_layer: bool,
    factor: float,
    rounds: list[Any],
) -> None:
    """The lie is beyond the noise of the whole model; by the first factor it is not far."""
    asked: list[Any] = []

    def measured(*arguments: Any) -> NoiseFloor | None:
        asked.append(arguments[-1])
        return measure_noise(*arguments)

    def differences(self: Blame, *arguments: Any) -> list[Finding]:
        found = localised(self, *arguments)
        return found if by_layer else [finding.but(fault=None) for finding in found]

    localised = Blame.differences
    monkeypatch.setattr(Blame, "differences", differences)
    monkeypatch.setattr("outvote.commands.check.run.measure_noise", measured)
    targets = (fake("a"), fake("b"), fake("bad", "lie:d1"))
    settings = Settings(noise_factor=factor)
    (finding,) = check_with(fake_model, fake_data, *targets, settings=settings).findings
    assert finding.accused == "bad"
    assert asked == rounds


def test_a_number_among_the_data_is_refused_as_it_is(fake_model: Path, tmp_path: Path) -> None:
    data = tmp_path / "number.npz"
    np.savez(data, allow_pickle=False, x0=np.float32(1))
    with pytest.raises(UsageError, match="shape"):
        check_with(fake_model, data, fake("a"), fake("b"), count=2)
