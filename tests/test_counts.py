"""The papers' own counts: CRADLE's clusters, LEMON's bugs and their cost, AUDEE's networks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from conftest import fake
from outvote.campaign.job import Budget, FuzzJob, SeedFile
from outvote.commands.check.job import Job
from outvote.commands.check.result import check_result
from outvote.commands.check.run import run_check
from outvote.commands.fuzz.run import start
from outvote.core.model import Input, Layer, Model, Ref, Weight
from outvote.store.counts import audee_counts, lemon_counts
from outvote.store.store import Row


def row(number: int, rule: str | None, network: str = "", inconsistent: bool = False) -> Row:
    fields = (number, None, 1, rule, None, "ok", None, False, 3, 0.1, 1.0)
    return Row(*fields, network=network, inconsistent=inconsistent)


ROWS = {n: row(n, None if n == 1 else "LA") for n in range(1, 9)}


def finding(fingerprint: str, accused: str | None, kind: str | None, **more: Any) -> dict[str, Any]:
    seen = {"first": 2, "last": 3, "first_at": 5.0, "triage": "bug"}
    return {"fingerprint": fingerprint, "accused": accused, "layer_kind": kind, **seen, **more}


def test_a_bug_of_lemon_is_a_target_and_a_layer_class() -> None:
    found = [
        finding("a", "torch", "Conv2D", first=4, first_at=9.0),
        finding("b", "torch", "Conv2D", first=3, first_at=7.0),  # by other parameters
        finding("c", "torch", "Dense"),
        finding("d", "jax", "Dense"),
        finding("e", None, "Dense"),  # nobody is outvoted
        finding("f", "jax", "ReLU", triage="precision"),
    ]
    counts = lemon_counts(found, ROWS, 60, 30.0)
    bugs = {(bug["target"], bug["layer_kind"]): bug for bug in counts["bugs"]}
    assert set(bugs) == {("torch", "Conv2D"), ("torch", "Dense"), ("jax", "Dense")}
    conv = bugs["torch", "Conv2D"]
    assert (conv["findings"], conv["first"], conv["first_at"]) == (["a", "b"], 3, 7.0)
    assert (counts["mutants_per_bug"], counts["seconds_per_bug"]) == (20.0, 10.0)


def test_who_shows_a_bug_mutants_or_initial_models() -> None:
    found = [
        finding("a", "torch", "Conv2D", first=2, last=5),
        finding("b", "torch", "Dense", first=1, last=1),
        finding("c", "jax", "Dense", first=1, last=6),
        finding("d", "jax", "ReLU", first=1, last=1),  # one cause by the seed alone,
        finding("e", "jax", "ReLU", first=3, last=3),  # the other by a mutant
    ]
    counts = lemon_counts(found, ROWS, 8, 1.0)
    told = {
        (bug["target"], bug["layer_kind"]): (bug["mutants_only"], bug["initial_only"])
        for bug in counts["bugs"]
    }
    assert told == {
        ("torch", "Conv2D"): (True, False),
        ("torch", "Dense"): (False, True),
        ("jax", "Dense"): (False, False),
        ("jax", "ReLU"): (False, False),
    }
    assert (counts["mutants_only"], counts["initial_only"]) == (1, 1)


def test_without_a_bug_there_is_no_price() -> None:
    counts = lemon_counts([], ROWS, 60, 30.0)
    assert (counts["bugs"], counts["mutants_per_bug"], counts["seconds_per_bug"]) == (
        [],
        None,
        None,
    )


def test_other_inputs_are_the_same_inconsistency_and_other_weights_another() -> None:
    rows = [
        row(1, None, "net", inconsistent=True),
        row(2, "IN", "net", inconsistent=True),  # other inputs
        row(3, "WT", "net with other weights", inconsistent=True),
        row(4, "NET", "another net"),
        row(5, "ILL", "", inconsistent=True),  # an illegal value is no network that was run
    ]
    assert audee_counts(rows) == {"networks": 3, "inconsistencies": 2}


def model(name: str = "d", digest: str = "0" * 64) -> Model:
    layer = Layer(name, "Dense", {"units": 2}, args=[{"$ref": ["x", 0]}])
    layer = replace(layer, weights=(Weight("kernel", digest, (2, 2)),))
    inputs = (Input("x", (None, 2), "float32"),)
    return Model("m", inputs, (layer,), (Ref(name),), dialect="keras")


def test_a_network_is_known_by_its_layers_and_weights_not_by_names() -> None:
    assert model().identity == model("renamed").identity
    assert model().identity != model(digest="1" * 64).identity


def checked(model: Path, data: Path, *misdeeds: str) -> dict[str, Any]:
    liars = [fake(f"liar{n}", misdeed) for n, misdeed in enumerate(misdeeds)]
    targets = (fake("a"), fake("b"), fake("c"), *liars)
    return check_result(run_check(Job(model, targets, data=data, minimise=0.0)))


def test_unique_inconsistencies_lead_to_their_findings_and_are_one_bug(
    fake_model: Path, fake_data: Path
) -> None:
    result = checked(fake_model, fake_data, "lie:d2")
    (found,) = result["findings"]
    assert result["unique_inconsistencies"]
    for unique in result["unique_inconsistencies"]:
        assert unique["findings"] == [found["fingerprint"]]
    (cluster,) = result["clusters"]
    assert (cluster["layer_kind"], cluster["target"]) == ("Dense", "liar0")
    assert cluster["uniques"] == [unique["id"] for unique in result["unique_inconsistencies"]]


def test_two_liars_are_two_clusters(fake_model: Path, fake_data: Path) -> None:
    result = checked(fake_model, fake_data, "lie:d2", "permute:relu")
    named = {(c["layer_kind"], c["target"]) for c in result["clusters"]}
    assert named == {("Dense", "liar0"), ("ReLU", "liar1")}
    accused = {f["fingerprint"]: f["accused"] for f in result["findings"]}
    for unique in result["unique_inconsistencies"]:
        involved = {name for pair in unique["pairs"] for name in pair} & {"liar0", "liar1"}
        assert {accused[fingerprint] for fingerprint in unique["findings"]} == involved


def test_where_targets_agree_nothing_is_clustered(fake_model: Path, fake_data: Path) -> None:
    result = checked(fake_model, fake_data)
    assert (result["unique_inconsistencies"], result["clusters"]) == ([], [])


def test_a_campaign_has_both_counts(fake_model: Path, fake_data: Path, tmp_path: Path) -> None:
    targets = (fake("a"), fake("b"), fake("bad", "lie:Rescaling"))
    seeds = (SeedFile("seed", fake_model, fake_data),)
    job = FuzzJob(seeds, targets, budget=Budget(mutants=16), inputs=8, minimise=0.0)
    result = start(job, tmp_path)
    lemon, audee = result["counts"]["lemon"], result["counts"]["audee"]
    (bug,) = lemon["bugs"]
    assert (bug["target"], bug["layer_kind"], bug["mutants_only"]) == ("bad", "Rescaling", True)
    assert lemon["mutants_per_bug"] == 16
    assert lemon["seconds_per_bug"] == result["time"]["breeding"]
    assert 0 < audee["inconsistencies"] < audee["networks"] <= 17
