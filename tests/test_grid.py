"""The matrix of versions and pairs, from real runs of the fake target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conftest import fake
from outvote.commands.check.job import Job
from outvote.commands.check.result import check_result
from outvote.commands.check.run import run_check
from outvote.core.arrays import Array
from outvote.core.model import Model
from outvote.core.target import Target
from outvote.localize.layers import Localization, localize
from outvote.report import rendered
from outvote.run.pool import Pool


def release(version: str, plain: str, misdeed: str = "") -> Target:
    """A fake target that passes for a version of another; nothing has to be built for it."""
    made = fake(f"lib=={version}/{plain}", misdeed, library=plain)
    return replace(made, requirements=(f"lib=={version}",), plain=plain)


@pytest.fixture
def result(fake_model: Path, fake_data: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """`b` lies in 2.0 and 3.0 alike, otherwise in 4.0; in 5.0 it fails, in 6.0 it is not there."""
    monkeypatch.setattr("outvote.commands.check.run.provide", lambda targets, *more: targets)
    asked = []

    def once(pool: Pool, model: Model, inputs: Sequence[Array], *more: Any) -> Localization:
        asked.append((inputs[0].tobytes(), more[0], tuple(more[1])))
        return localize(pool, model, inputs, *more)

    monkeypatch.setattr("outvote.findings.blame.localize", once)
    misdeeds = {"1.0": "", "2.0": "lie:d2", "3.0": "lie:d2", "4.0": "permute:d2", "5.0": "error:d2"}
    targets = [release(v, "a") for v in (*misdeeds, "6.0")]
    targets += [release(v, "b", misdeed) for v, misdeed in misdeeds.items()]
    job = Job(fake_model, tuple(targets), data=fake_data, minimise=0.0, count=4)
    made = check_result(run_check(job))
    assert len(set(asked)) == len(asked), "pairs that differ on one input are looked into once"
    return made


@pytest.mark.slow
def test_equal_patterns_of_a_pair_share_an_id_over_versions_and_reports_show_it(
    result: dict[str, Any],
) -> None:
    matrix = result["version_matrix"]
    assert matrix["versions"] == [f"lib=={n}.0" for n in range(1, 7)]
    assert matrix["pairs"] == [["a", "b"]]
    ((one,), (two,), (three,), (four,), (five,), (six,)) = matrix["cells"]
    assert (one, five, six) == ("consistent", "error", None)
    assert two == three
    assert two.startswith("U")
    assert four.startswith("U")
    assert not set(two.split(", ")) & set(four.split(", "))
    uniques = {unique["id"]: unique for unique in result["unique_inconsistencies"]}
    for label in two.split(", "):
        assert ["lib==2.0/a", "lib==2.0/b"] in uniques[label]["pairs"]
    # The reports show it.
    assert f"| `lib==2.0` | {two} |" in rendered("markdown", result)
    page = rendered("html", result)
    assert 'id="versions"' in page
    assert f"<b>{two}</b>" in page
