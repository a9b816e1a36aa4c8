"""Some targets give a result and others raise: who is accused, and of what."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import fake
from outvote.cli import main
from outvote.commands.check.checked import Checked
from outvote.commands.check.job import Job
from outvote.commands.check.result import check_result
from outvote.commands.check.run import run_check
from outvote.core.errors import UsageError

NONE = {"x": np.zeros((0, 4), "float32")}


def checked(model: Path, misdeeds: dict[str, str], **more: Any) -> Checked:
    targets = tuple(fake(name, misdeed) for name, misdeed in misdeeds.items())
    return run_check(Job(model, targets, **more))


def test_a_minority_that_refuses_is_accused(fake_model: Path) -> None:
    (finding,) = checked(fake_model, {"a": "", "b": "", "c": "error:soft"}).findings
    assert (finding.kind, finding.accused, finding.triage) == ("crash", "c", "bug")


def test_a_majority_that_refuses_does_not_make_a_result_wrong(fake_model: Path) -> None:
    """What one implementation computes can be computed; nobody knows whether it is right."""
    misdeeds = {"a": "", "b": "error:soft", "c": "error:soft"}
    found = checked(fake_model, misdeeds, minimise=0.0)
    assert {finding.accused for finding in found.findings} == {None}
    assert found.verdict == "inconsistent"


def test_the_reference_knows_that_what_the_majority_refuses_can_be_computed(
    fake_model: Path,
) -> None:
    found = checked(fake_model, {"a": "", "b": "error:soft", "c": "error:soft"})
    assert {(f.kind, f.triage) for f in found.findings} == {("crash", "bug")}
    assert {name for f in found.findings for name in f.targets} == {"b", "c"}


def test_an_empty_result_that_the_majority_refuses_is_accused(fake_model: Path) -> None:
    found = checked(fake_model, {"a": "hollow:soft", "b": "error:soft", "c": "error:soft"})
    (finding,) = found.findings
    assert (finding.kind, finding.accused, finding.triage) == ("shape", "a", "bug")
    assert finding.title == (
        "a gives an empty result, and the others refuse, in Softmax layer 'soft'"
    )
    assert "2 independent implementations agree: b, c against a" in finding.reason


def test_an_empty_result_and_one_refusal_are_not_decided(fake_model: Path) -> None:
    (finding,) = checked(fake_model, {"a": "hollow:soft", "b": "error:soft"}).findings
    assert (finding.accused, finding.triage) == (None, "unknown")


def test_a_gap_is_no_vote_against_an_empty_result(fake_model: Path) -> None:
    misdeeds = {"a": "hollow:soft", "b": "unsupported:soft", "c": "unsupported:soft"}
    with pytest.raises(UsageError, match="only a could run the model"):
        checked(fake_model, misdeeds)


@pytest.mark.slow
def test_whoever_refuses_an_empty_batch_is_accused_however_many(fake_model: Path) -> None:
    misdeeds = {"a": "", "b": "picky:d2", "c": "picky:d2"}
    found = checked(fake_model, misdeeds, data=NONE, allow_empty=True)
    assert [(f.kind, f.accused, f.triage) for f in found.findings] == [
        ("crash", "b", "bug"),
        ("crash", "c", "bug"),
    ]
    assert {f.layer.name for f in found.findings if f.layer} == {"d2"}
    assert "a batch of no instances is legal" in found.findings[0].reason
    proofs = [finding.proof for finding in found.findings]
    assert [proof.specimen.count for proof in proofs if proof] == [0, 0]


@pytest.mark.slow
def test_what_fails_on_one_instance_too_is_not_about_the_empty_batch(fake_model: Path) -> None:
    misdeeds = {"a": "", "b": "", "c": "error:d2"}
    (finding,) = checked(fake_model, misdeeds, data=NONE, allow_empty=True).findings
    assert (finding.kind, finding.accused, finding.triage) == ("crash", "c", "bug")
    assert finding.proof is not None
    assert finding.proof.specimen.count == 1


def test_an_empty_batch_that_all_accept_is_consistent_and_says_what_that_means(
    fake_model: Path,
) -> None:
    found = checked(fake_model, {"a": "", "b": "lie:d2"}, data=NONE, allow_empty=True)
    assert found.verdict == "consistent"
    assert found.warnings == [
        "the batch is empty: only errors, shapes and types were compared, no values"
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # NumPy's own, of a mean of nothing, is none for users
        told = check_result(found)
    means = [metric["mean"] for pair in told["comparisons"] for metric in pair["metrics"]]
    assert means, "nothing was compared"
    assert set(means) == {None}


def test_other_shapes_of_an_empty_batch_are_found(fake_model: Path) -> None:
    misdeeds = {"a": "", "b": "", "c": "shape:d2"}
    found = checked(fake_model, misdeeds, data=NONE, allow_empty=True)
    assert ("c", "d2") in {(f.accused, f.layer.name) for f in found.findings if f.layer}


@pytest.mark.slow
def test_the_command_takes_an_empty_batch_when_told_to(
    fake_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "outvote.toml"
    config.write_text(
        '[targets.a]\nextends = "fake"\nlibrary = "a"\n'
        '[targets.b]\nextends = "fake"\nlibrary = "b"\nenv = { OUTVOTE_FAKE = "picky:soft" }\n'
    )
    np.savez(tmp_path / "none.npz", x=NONE["x"], y=np.zeros(0, "int64"))
    command = ["check", str(fake_model), "--data", str(tmp_path / "none.npz"), "--targets", "a,b"]
    command += ["--config", str(config), "--out", str(tmp_path / "out"), "--quiet"]
    assert main(command) == 2
    assert "--allow-empty" in capsys.readouterr().err
    assert main([*command, "--allow-empty"]) == 1
    assert "b fails" in " ".join(capsys.readouterr().out.split())
    assert "b fails" in (tmp_path / "out" / "report.html").read_text()
