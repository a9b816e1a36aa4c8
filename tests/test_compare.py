"""Strategies side by side: the figures, what cannot be compared, and the reports."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from conftest import fake
from outvote.campaign.job import Budget, FuzzJob, SeedFile
from outvote.cli import main
from outvote.commands.fuzz.run import start
from outvote.core.errors import UsageError
from outvote.report import rendered
from outvote.store import facts
from outvote.store.comparison import compared
from outvote.store.store import Store


def row(pair: tuple[str, str], mutants_only: int, amplification: float | None) -> dict[str, Any]:
    return {
        "seed": "lenet",
        "targets": list(pair),
        "mutants_only": mutants_only,
        "initial_only": 1,
        "amplification": amplification,
        "largest": 0.5,
    }


def finding(accused: str | None, targets: list[str], at: float, triage: str = "bug") -> Any:
    return {"accused": accused, "targets": targets, "first_at": at, "triage": triage}


def campaign(strategy: str, seed: int, rows: list[Any], **more: Any) -> dict[str, Any]:
    settings = {
        "seed": seed,
        "targets": ["a", "b", "c"],
        "inputs": 8,
        "mad_threshold": 0.4,
        "rules": [],
        "breed_known": False,
        "budget": {"mutants": 60, "seconds": None, "coverage": None},
    }
    return {
        "strategy": strategy,
        "settings": {**settings, **more.pop("settings", {})},
        "seeds": [{"name": "lenet", "layers": 8}],
        "seconds": 12.0,
        "time": {"breeding": 10.0},
        "interrupted": False,
        "tested": 60,
        "findings": [],
        "amplification": rows,
        **more,
    }


AB, BC = ("a", "b"), ("b", "c")


def four() -> dict[str, dict[str, Any]]:
    findings = [
        finding("a", ["a"], 3.0),
        finding(None, ["b", "c"], 5.0),
        finding("b", ["b"], 6.0, "precision"),
    ]
    return {
        "g1": campaign("lemon", 0, [row(AB, 10, 0.5), row(BC, 2, None)], findings=findings),
        "g2": campaign("lemon", 1, [row(AB, 14, 1.5), row(BC, 4, None)]),
        "r1": campaign("random", 0, [row(AB, 3, 0.25), row(BC, 0, 0.75)]),
        "r2": campaign("random", 1, [row(AB, 3, 0.25), row(BC, 0, 0.25)]),
    }


def test_a_pair_has_mean_and_deviation_of_each_strategy() -> None:
    result = compared(four(), "now")
    ab, bc = result["pairs"]
    assert ab["targets"] == ["a", "b"]
    lemon, random = ab["strategies"]
    assert (lemon["strategy"], random["strategy"]) == ("lemon", "random")
    assert lemon["mutants_only"] == {"mean": 12.0, "deviation": pytest.approx(8**0.5)}
    assert lemon["amplification"]["mean"] == 1.0
    assert random["mutants_only"] == {"mean": 3.0, "deviation": 0.0}
    # Nobody has a seed that is inconsistent there: no rate, rather than 0.
    assert bc["strategies"][0]["amplification"] == {"mean": None, "deviation": None}


def test_findings_count_for_the_pairs_they_are_about_and_rounding_for_none() -> None:
    ab, bc = compared(four(), "now")["pairs"]
    assert ab["strategies"][0]["findings"]["mean"] == 0.5  # 1 and 0
    assert bc["strategies"][0]["findings"]["mean"] == 0.5
    assert bc["strategies"][1]["findings"]["mean"] == 0.0


def test_totals_of_a_strategy_run_over_all_pairs() -> None:
    lemon, random = compared(four(), "now")["strategies"]
    assert (lemon["campaigns"], random["campaigns"]) == (2, 2)
    assert lemon["mutants_only"]["mean"] == 15.0
    assert lemon["initial_only"]["mean"] == 2.0
    assert lemon["findings"]["mean"] == 1.0
    assert random["amplification"]["mean"] == pytest.approx(0.375)
    assert lemon["seconds"]["mean"] == 10.0  # breeding, without the start of frameworks


@pytest.mark.parametrize(
    ("key", "value"), [("targets", ["a", "b"]), ("inputs", 9), ("breed_known", True)]
)
def test_campaigns_that_differ_in_more_than_strategy_are_refused(key: str, value: Any) -> None:
    campaigns = four()
    campaigns["r1"]["settings"][key] = value
    with pytest.raises(UsageError, match=f"g1 and r1 cannot be compared, their {key} differ"):
        compared(campaigns, "now")
    campaigns = four()
    campaigns["r2"]["seeds"] = [{"name": "lenet", "layers": 9}]
    with pytest.raises(UsageError, match=r"seeds differ: .*8 layers.*9 layers"):
        compared(campaigns, "now")


def test_what_makes_the_figures_doubtful_is_said() -> None:
    assert compared(four(), "now")["warnings"] == []
    campaigns = four()
    campaigns["g2"]["settings"]["seed"] = 0
    campaigns["r1"]["interrupted"] = True
    campaigns["r1"]["settings"]["budget"] = {"mutants": None, "seconds": 20.0, "coverage": None}
    told = " ".join(compared(campaigns, "now")["warnings"])
    assert "r1 was stopped early" in told
    assert "g1 and g2 made the same choices (lemon, --seed 0)" in told
    assert "the budgets differ: g1 60 mutants, g2 60 mutants, r1 20 s" in told


def test_reports_show_the_table_and_escape_what_comes_from_outside() -> None:
    campaigns = {("<b>g1" if name == "g1" else name): c for name, c in four().items()}
    result = compared(campaigns, "now")
    text = rendered("markdown", result)
    assert "| a / b | lemon | 12 ± 2.83 | 1 ± 0 | 100.0 % ± 70.7 % | 0.5 ± 0.707 |" in text
    assert "| lemon | 2 | 15 ± 4.24 |" in text
    page = rendered("html", result)
    assert "12 ± 2.83" in page
    assert "&lt;b&gt;g1" in page
    assert "<b>g1" not in page
    assert page.count("<polyline") == 4


def both(model: Path, data: Path, folder: Path, mutants: int) -> list[Path]:
    """One campaign of each strategy on a target that lies."""
    targets = (fake("a"), fake("b"), fake("bad", "lie:Rescaling"))
    job = FuzzJob(
        (SeedFile("seed", model, data),),
        targets,
        budget=Budget(mutants=mutants),
        inputs=8,
        minimise=0.0,
    )
    folders = [folder / "guided", folder / "plain"]
    for out, strategy in zip(folders, ("lemon", "random"), strict=True):
        start(job.but(strategy=strategy), out)
    return folders


@pytest.mark.slow
def test_several_folders_are_compared_beside_the_first(
    fake_model: Path, fake_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    campaigns = both(fake_model, fake_data, tmp_path, mutants=24)
    guided, plain = map(str, campaigns)
    assert main(["report", guided, plain]) == 0
    told = capsys.readouterr().out
    assert "COMPARED  Inconsistencies that only mutants show: lemon" in told
    out = campaigns[0].with_name("guided-compared")
    result = json.loads((out / "result.json").read_text())
    assert result["command"] == "report"
    assert [c["strategy"] for c in result["campaigns"]] == ["lemon", "random"]
    assert [p["targets"] for p in result["pairs"]] == [["a", "b"], ["a", "bad"], ["b", "bad"]]
    assert all(s["findings"]["mean"] >= 1 for s in result["strategies"])
    assert all(s["tested"] == {"mean": 24.0, "deviation": None} for s in result["strategies"])
    assert (out / "report.html").is_file()
    assert (out / "report.md").is_file()


def test_bad_requests_are_one_sentence(
    fake_model: Path, fake_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def says(*arguments: str | Path) -> str:
        assert main(["report", *map(str, arguments)]) == 2
        text = capsys.readouterr().err
        assert "Traceback" not in text
        return text

    guided, plain = both(fake_model, fake_data, tmp_path, mutants=0)
    assert "holds no campaign" in says(guided, tmp_path / "missing")
    assert "was named twice" in says(guided, guided / ".." / guided.name)
    assert "is for the comparison of several campaigns" in says(guided, "--out", tmp_path / "x")
    assert "holds a campaign, with reports of its own" in says(guided, plain, "--out", guided)


def fuzz_arguments(model: Path, data: Path, out: Path) -> list[str]:
    config = out.with_suffix(".toml")
    config.write_text(
        '[targets.a]\nextends = "fake"\n[targets.bad]\nextends = "fake"\n'
        'env = { OUTVOTE_FAKE = "lie:Rescaling" }\n'
    )
    return [
        *("fuzz", str(model), "--data", str(data), "--targets", "a,bad", "--quiet"),
        *("--config", str(config), "--out", str(out), "--budget", "16", "--inputs", "8"),
        *("--minimise", "0"),
    ]


@pytest.mark.slow
def test_fuzz_spends_the_budget_again_on_the_other_strategy_and_reports_both(
    fake_model: Path, fake_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    arguments = [*fuzz_arguments(fake_model, fake_data, out), "--strategy", "lemon"]
    assert main([*arguments, "--compare", "random"]) == 1
    assert "COMPARED" in capsys.readouterr().out
    result = json.loads((out / "result.json").read_text())
    assert result["strategy"] == "lemon"
    assert [c["strategy"] for c in result["comparison"]["campaigns"]] == ["lemon", "random"]
    assert [c["tested"] for c in result["comparison"]["campaigns"]] == [16, 16]
    assert "Strategies by pair" in (out / "report.html").read_text()
    assert "## Strategies by pair" in (out / "report.md").read_text()
    assert json.loads((out / "random" / "result.json").read_text())["strategy"] == "random"
    # Written again from the stores, the report still holds both.
    assert main(["report", str(out)]) == 0
    again = json.loads((out / "result.json").read_text())["comparison"]
    assert again["pairs"] == result["comparison"]["pairs"]


def test_what_is_in_the_way_of_a_comparison_is_said_before_the_first_campaign(
    fake_model: Path, fake_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def says(*arguments: str) -> str:
        assert main([*fuzz_arguments(fake_model, fake_data, tmp_path / "out"), *arguments]) == 2
        assert not (tmp_path / "out" / "outvote.db").exists()
        return capsys.readouterr().err

    assert "no strategy 'best'" in says("--compare", "best")
    assert "name another" in says("--strategy", "lemon", "--compare", "lemon")
    (tmp_path / "out" / "random").mkdir(parents=True)
    with closing(Store(tmp_path / "out" / "random", create=True)) as store:
        store.note(facts.JOB, {})
    assert "holds a campaign already" in says("--compare", "random")
    assert main(["fuzz", "--resume", str(tmp_path), "--compare", "random"]) == 2
    assert "to compare stored ones" in capsys.readouterr().err
