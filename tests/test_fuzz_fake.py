"""Campaigns on fake targets: found and named once, repeatable, killed and resumed, shot at."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import fake
from outvote.bench.reader import reader
from outvote.campaign.investigate import Investigator
from outvote.campaign.job import Budget, FuzzJob, SeedFile
from outvote.campaign.oracle import judge
from outvote.campaign.runner import ModelRun, Runner
from outvote.campaign.seeds import read_seeds
from outvote.cli import main
from outvote.commands.fuzz.run import resume, start
from outvote.commands.report.job import ReportJob
from outvote.commands.report.run import run as run_report
from outvote.core.errors import UsageError
from outvote.core.target import Outcome, Run, Target
from outvote.dialects.keras.targets import BUILT_IN
from outvote.findings.finding import Finding
from outvote.run.local import LocalPool
from outvote.run.process import Limits, Process
from outvote.store import facts
from outvote.store.store import FILE, Store
from outvote.targets.choose import find_target

pytestmark = pytest.mark.slow


def job_of(model: Path, data: Path | None, targets: list[Target], **more: Any) -> FuzzJob:
    """A short campaign, whose findings stay as large as they are."""
    settings = {"budget": Budget(mutants=16), "inputs": 8, "minimise": 0.0, **more}
    return FuzzJob((SeedFile("seed", model, data),), tuple(targets), **settings)


def honest() -> list[Target]:
    return [fake("a"), fake("b"), fake("c")]


def one_that(misdeed: str) -> list[Target]:
    return [fake("a"), fake("b"), fake("bad", misdeed)]


def test_honest_targets_give_no_finding_and_every_mutant_counts(
    fake_model: Path, fake_data: Path, tmp_path: Path
) -> None:
    job = job_of(fake_model, fake_data, honest(), budget=Budget(mutants=40))
    result = start(job, tmp_path / "out")
    assert result["verdict"] == "consistent"
    assert result["findings"] == []
    assert (result["tested"], result["valid"], result["invalid"]) == (40, 40, 0)
    assert sum(rule["tested"] for rule in result["rules"]) == 40
    used = {rule["rule"] for rule in result["rules"] if rule["tested"]}
    # The fake layers have no activations, and the skip connection stands in NEB's way.
    assert used >= {"LR", "LS", "LC", "LA", "MLA", "GF", "WS", "NAI", "NS"}
    assert (tmp_path / "out" / "report.html").is_file()


def test_a_fault_in_a_kind_that_only_mutants_hold_is_found_once_and_named(
    fake_model: Path, fake_data: Path, tmp_path: Path
) -> None:
    more = {"budget": Budget(mutants=32), "minimise": FuzzJob.minimise}
    job = job_of(fake_model, fake_data, one_that("lie:Rescaling"), **more)
    result = start(job, tmp_path / "out")
    (finding,) = result["findings"]
    assert (finding["kind"], finding["accused"]) == ("inconsistency", "bad")
    assert finding["layer_kind"] == "Rescaling"
    assert finding["triage"] == "bug"
    assert finding["count"] > 1
    assert finding["found_by"] == "mutant"
    (bug,) = result["bugs"]
    assert (bug["by_mutants"], bug["mutants"]) == (1, finding["first"] - 1)
    assert 0 < bug["seconds"] < finding["first_at"]
    assert finding["lineage"][0]["rule"] is None
    assert finding["lineage"][-1]["mutant"] == finding["first"]
    assert "Rescaling" in finding["lineage"][-1]["new"]
    folder = tmp_path / "out" / "findings" / finding["fingerprint"]
    assert "Rescaling" in (folder / "report.md").read_text()


def test_a_finding_with_weights_is_confirmed_long_after_it_was_found(
    fake_model: Path, fake_data: Path, tmp_path: Path
) -> None:
    """Weights of mutants that are gone are swept away; not those of a finding."""
    more = {"budget": Budget(mutants=24), "minimise": FuzzJob.minimise}
    job = job_of(fake_model, fake_data, one_that("lie:d1"), **more)
    findings = start(job, tmp_path / "out")["findings"]
    assert {f["layer_kind"] for f in findings} == {"Dense"}
    assert {f["evidence"]["shown_again"] for f in findings} == {1}


def test_a_fault_of_the_seed_is_not_the_mutants_merit(
    fake_model: Path, fake_data: Path, tmp_path: Path
) -> None:
    result = start(job_of(fake_model, fake_data, one_that("lie:d2")), tmp_path / "out")
    (finding,) = (f for f in result["findings"] if f["layer_kind"] == "Dense")
    assert (finding["found_by"], finding["first"]) == ("seed", 1)
    assert [step["rule"] for step in finding["lineage"]] == [None]
    (bug,) = result["bugs"]
    assert (bug["by_seeds"], bug["initial_only"]) == (1, 0)  # mutants show it too
    job = job_of(fake_model, fake_data, one_that("lie:d2"), budget=Budget(mutants=0))
    (bug,) = start(job, tmp_path / "seeds alone")["bugs"]
    assert (bug["by_seeds"], bug["initial_only"], bug["mutants"]) == (1, 1, None)


def test_a_layer_that_feeds_nothing_is_compared_on_more_than_the_first_input(
    fake_model: Path, fake_data: Path, tmp_path: Path
) -> None:
    targets = one_that("late:Rescaling")
    job = job_of(fake_model, fake_data, targets, strategy="layers", budget=Budget(mutants=24))
    (finding,) = start(job, tmp_path / "out")["findings"]
    assert (finding["accused"], finding["layer_kind"]) == ("bad", "Rescaling")


@pytest.mark.parametrize("feeds", ["the output", "nothing"])
def test_the_second_library_that_errs_on_a_layer_is_no_hit_of_the_first(
    feeds: str, tmp_path: Path
) -> None:
    """One is wrong on all numbers, the other on large ones, which come second."""
    layers = [{"name": "s", "kind": "Rescaling", "config": {"scale": 2.0}, "inputs": ["x"]}]
    if feeds == "nothing":  # then only what it gives itself shows that targets part
        layers.append({"name": "end", "kind": "ReLU", "inputs": ["x"]})
    path = tmp_path / "model.json"
    data = {"class_name": "FakeModel", "input": [None, 3], "output": [None, 3], "layers": layers}
    path.write_text(json.dumps(data))
    targets = [fake("a"), fake("b"), fake("bad", "lie:s"), fake("worse", "loud:s"), fake("c")]
    looks: list[set[str | None]] = []
    with LocalPool(targets) as pool:
        pool.start()
        runner = Runner(pool, [target.name for target in targets])
        investigator = Investigator(runner, targets, FuzzJob((), ()).settings, seconds=5.0)
        for size in (1, 100, 1, 100):
            (tmp_path / "x.npz").unlink(missing_ok=True)
            np.savez(tmp_path / "x.npz", x=np.full((4, 3), size, np.float32))
            job = job_of(path, tmp_path / "x.npz", targets)
            (seed,) = read_seeds(pool, job)
            question = ModelRun(seed, seed.case.model, ["s"], rows=4)
            judged = judge(runner.run([question])[0], ["s"], seed.case.truth, job.settings)
            concluded = investigator.look(seed, seed.case.model, judged)
            looks.append({finding.accused for finding in concluded.findings})
            assert concluded.again or concluded.findings
    assert looks == [{"bad"}, {"worse"}, set(), set()]


@pytest.mark.parametrize(
    ("misdeed", "kind"),
    [("crash", "crash"), ("error", "crash"), ("nan", "nan"), ("shape", "shape")],
)
def test_every_kind_of_misdeed_becomes_its_finding(
    fake_model: Path, fake_data: Path, tmp_path: Path, misdeed: str, kind: str
) -> None:
    job = job_of(fake_model, fake_data, one_that(f"{misdeed}:Rescaling"), rules=("LA", "GF"))
    result = start(job, tmp_path / "out")
    kinds = {(f["kind"], f["accused"], f["layer_kind"]) for f in result["findings"]}
    assert kinds == {(kind, "bad", "Rescaling")}
    assert result["tested"] == 16


def test_who_dies_of_a_layer_again_and_again_is_asked_once_more_the_first_time_alone(
    fake_model: Path, fake_data: Path
) -> None:
    """Each death takes a worker: a kind of layer that is known to be deadly takes no more."""
    targets = [fake("a"), fake("bad", "crash:Dense")]
    with LocalPool(targets) as pool:
        pool.start()
        runner = Runner(pool, ["a", "bad"])
        (seed,) = read_seeds(pool, job_of(fake_model, fake_data, targets))
        question = ModelRun(seed, seed.case.model)
        deaths = []
        for _ in range(2):
            before = pool.restarts["bad"]
            (runs,) = runner.run([question])
            assert runs["a"].ok
            assert runs["bad"].outcome is Outcome.CRASH
            deaths.append(pool.restarts["bad"] - before)
        assert deaths == [2, 1]
        assert runner.flaky == 0


def test_a_hang_is_a_finding_and_the_campaign_goes_on(
    fake_model: Path, fake_data: Path, tmp_path: Path
) -> None:
    job = job_of(
        fake_model,
        fake_data,
        one_that("hang:Rescaling"),
        budget=Budget(mutants=16),
        limits=Limits(silence_seconds=1.0),
        rules=("LA", "GF"),
    )
    result = start(job, tmp_path / "out")
    assert {(f["kind"], f["accused"]) for f in result["findings"]} == {("hang", "bad")}
    assert result["tested"] == 16


def test_a_clean_gap_is_no_finding(fake_model: Path, fake_data: Path, tmp_path: Path) -> None:
    job = job_of(fake_model, fake_data, one_that("unsupported:Rescaling"), rules=("LA", "GF"))
    result = start(job, tmp_path / "out")
    assert result["findings"] == []
    assert result["valid"] == 16


def test_rounding_is_no_finding(fake_model: Path, fake_data: Path, tmp_path: Path) -> None:
    result = start(job_of(fake_model, fake_data, one_that("whisper:Dense")), tmp_path / "out")
    assert result["findings"] == []


def essence(result: dict[str, Any]) -> Any:
    rules = [(r["rule"], r["tested"], r["amplified"], r["joined"]) for r in result["rules"]]
    found = [(f["fingerprint"], f["count"], f["first"], f["last"]) for f in result["findings"]]
    return result["tested"], rules, found


def test_the_same_seed_gives_the_same_campaign(
    fake_model: Path, fake_data: Path, tmp_path: Path
) -> None:
    def run(name: str, seed: int) -> Any:
        targets = one_that("lie:Rescaling")
        job = job_of(fake_model, fake_data, targets, strategy="lemon", seed=seed)
        return essence(start(job, tmp_path / name))

    first = run("one", 3)
    assert run("two", 3) == first
    assert run("three", 4) != first


def test_a_campaign_that_is_resumed_equals_one_that_was_not(
    fake_model: Path, fake_data: Path, tmp_path: Path
) -> None:
    targets = one_that("lie:Rescaling")
    whole = start(job_of(fake_model, fake_data, targets), tmp_path / "whole")
    half = job_of(fake_model, fake_data, targets, budget=Budget(mutants=8))
    start(half, tmp_path / "half")
    known = {target.name: target for target in targets}
    rest = resume(tmp_path / "half", known, changes={"budget": Budget(mutants=16)})
    assert essence(rest) == essence(whole)


def test_totals_run_over_all_sittings(fake_model: Path, fake_data: Path, tmp_path: Path) -> None:
    job = job_of(fake_model, fake_data, honest(), budget=Budget(mutants=16), memory_limit=1 << 20)
    first = start(job, tmp_path / "out")
    assert first["time"]["recycled"] >= 3
    known = {target.name: target for target in honest()}
    changes = {"budget": Budget(mutants=24), "memory_limit": 1 << 40}  # none is recycled now
    rest = resume(tmp_path / "out", known, changes=changes)
    assert rest["time"]["recycled"] == first["time"]["recycled"]
    assert rest["time"]["making"] > first["time"]["making"]
    for before, after in zip(first["targets"], rest["targets"], strict=True):
        assert after["restarts"] == before["restarts"]
        assert after["seconds"] > before["seconds"]


def count_of(table: str, folder: Path) -> int:
    """Look into the store of a running campaign, as another process may."""
    try:
        with closing(sqlite3.connect(f"file:{folder / FILE}?mode=ro", uri=True)) as db:
            (count,) = db.execute(f"SELECT count(*) FROM {table}").fetchone()
    except sqlite3.OperationalError:  # not written yet
        return 0
    return int(count)


def wait_for_findings(folder: Path, process: subprocess.Popen[str]) -> int:
    """How many mutants a campaign has stored when it has found something."""
    while not count_of("findings", folder):
        assert process.poll() is None, "the campaign ended early"
        time.sleep(0.02)
    return count_of("mutants", folder)


def started(model: Path, data: Path, out: Path) -> tuple[subprocess.Popen[str], Path]:
    """A long campaign in a process of its own, and the configuration it uses."""
    config = out.with_suffix(".toml")
    config.write_text(
        "".join(
            f'[targets.{name}]\nextends = "fake"\nlibrary = "{name}"\n'
            + (f'env = {{ OUTVOTE_FAKE = "{misdeed}" }}\n' if misdeed else "")
            for name, misdeed in (("a", ""), ("b", ""), ("bad", "lie:Rescaling"))
        )
    )
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "outvote", "fuzz", str(model), "--data", str(data)),
            *("--targets", "a,b,bad", "--quiet", "--config", str(config), "--out", str(out)),
            *("--budget", "4000", "--inputs", "8", "--minimise", "0"),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    return process, config


def test_ctrl_c_ends_a_campaign_and_keeps_what_was_found(
    fake_model: Path, fake_data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    process, _ = started(fake_model, fake_data, out)
    wait_for_findings(out, process)
    process.send_signal(signal.SIGINT)
    told, _ = process.communicate(timeout=30)
    assert process.returncode == 1  # what was found is found
    assert "go on with: outvote fuzz --resume" in told.replace("\n", " ")
    result = json.loads((out / "result.json").read_text())
    assert result["interrupted"]
    assert result["findings"]
    assert (out / "report.html").is_file()


def test_ctrl_c_while_findings_are_confirmed_keeps_them_and_writes_the_reports(
    fake_model: Path, fake_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted = []

    def stop(self: Investigator, times: int, *chosen: object) -> list[Finding]:
        interrupted.append(times)
        signal.raise_signal(signal.SIGINT)
        return []

    monkeypatch.setattr(Investigator, "confirm", stop)
    out = tmp_path / "out"
    result = start(job_of(fake_model, fake_data, one_that("lie:Rescaling"), confirm=2), out)
    assert interrupted == [2]
    assert result["interrupted"]
    assert result["findings"]
    assert (out / "report.html").is_file()
    monkeypatch.undo()
    again = resume(out, {target.name: target for target in one_that("lie:Rescaling")})
    assert not again["interrupted"]
    assert {f["fingerprint"] for f in result["findings"]} == {
        f["fingerprint"] for f in again["findings"]
    }


def test_a_resumed_campaign_keeps_its_options(fake_model: Path, fake_data: Path) -> None:
    targets = honest()
    job = job_of(
        fake_model,
        fake_data,
        targets,
        minimise=3.0,
        confirm=4,
        rules=("LR",),
        jobs=2,
        limits=Limits(silence_seconds=7.0),
        memory_limit=5,
        keep_outputs=False,
    )
    stored = json.loads(json.dumps(job.stored()))
    again = FuzzJob.restored(stored, {target.name: target for target in targets})
    assert again == job
    del stored["minimise"], stored["confirm"]  # written by an older version
    assert FuzzJob.restored(stored, {t.name: t for t in targets}).confirm == FuzzJob.confirm


def test_limits_that_are_said_again_are_kept_and_the_others_stay(
    fake_model: Path, fake_data: Path, tmp_path: Path
) -> None:
    config = tmp_path / "outvote.toml"
    config.write_text("".join(f'[targets.{name}]\nextends = "fake"\n' for name in "ab"))
    out = ["--quiet", "--config", str(config)]
    start_of = ["fuzz", str(fake_model), "--data", str(fake_data), "--targets", "a,b", *out]
    start_of += ["--out", str(tmp_path / "out"), "--budget", "8"]

    def settings(*arguments: str) -> tuple[Any, ...]:
        assert main(list(arguments)) == 0
        told = json.loads((tmp_path / "out" / "result.json").read_text())["settings"]
        return told["timeout"], told["memory_limit"], told["jobs"], told["budget"]["mutants"]

    start_of += ["--timeout", "11", "--memory", "2", "--jobs", "1"]
    assert settings(*start_of) == (11.0, 2 << 30, 1, 8)
    again = ["fuzz", "--resume", str(tmp_path / "out"), *out]
    assert settings(*again, "--budget", "16") == (11.0, 2 << 30, 1, 16)
    assert settings(*again, "--timeout", "12") == (12.0, 2 << 30, 1, 16)


def test_killed_in_the_middle_it_loses_no_finding_and_counts_nothing_twice(
    fake_model: Path, fake_data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    process, config = started(fake_model, fake_data, out)
    before = wait_for_findings(out, process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    result = run_report(ReportJob(out))
    assert result["tested"] >= before - 1
    assert result["interrupted"]
    found = {f["fingerprint"] for f in result["findings"]}
    assert found
    budget = result["tested"] + 16
    more = ["--config", str(config), "--budget", str(budget), "--quiet"]
    assert main(["fuzz", "--resume", str(out), *more]) == 1
    with closing(sqlite3.connect(out / FILE)) as db:
        numbers = [n for (n,) in db.execute("SELECT number FROM mutants ORDER BY number")]
    assert numbers == list(range(1, budget + 2))  # the seed is number 1
    assert found <= {f["fingerprint"] for f in run_report(ReportJob(out))["findings"]}


def test_workers_that_are_shot_at_random_are_replaced_and_blamed_for_nothing(
    fake_model: Path, fake_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One worker is shot with every generation that is stored, in the middle of the next."""
    over = threading.Event()
    rng = random.Random(0)
    alive: dict[str, Process] = {}
    shots = 0

    def greet(process: Process) -> Run:
        alive[process.target.name] = process
        return original(process)

    def shoot() -> None:
        nonlocal shots
        seen = 0
        while not over.wait(0.02):
            count = count_of("mutants", tmp_path / "out")
            if count > seen:
                victim = alive[rng.choice(sorted(alive))]
                if victim.alive:
                    os.kill(victim.pid, signal.SIGKILL)
                    shots += 1
                seen = count

    original = Process.greet
    monkeypatch.setattr(Process, "greet", greet)
    thread = threading.Thread(target=shoot)
    thread.start()
    try:
        job = job_of(fake_model, fake_data, honest(), budget=Budget(mutants=48))
        result = start(job, tmp_path / "out")
    finally:
        over.set()
        thread.join()
    assert shots > 2
    assert result["tested"] == 48
    assert result["findings"] == []
    assert sum(t["restarts"] for t in result["targets"]) > 0


def test_workers_that_grow_are_recycled_and_counted(
    fake_model: Path, fake_data: Path, tmp_path: Path
) -> None:
    job = job_of(fake_model, fake_data, honest(), memory_limit=1 << 20)
    result = start(job, tmp_path / "out")
    assert result["tested"] == 16
    assert result["time"]["recycled"] >= 3


def test_coverage_ends_a_campaign(fake_model: Path, fake_data: Path, tmp_path: Path) -> None:
    job = job_of(fake_model, fake_data, honest(), budget=Budget(coverage=0.8))
    result = start(job, tmp_path / "out")
    assert result["kinds"]["exercised"] >= 0.8 * result["kinds"]["drawable"]
    assert result["tested"] > 0


def test_the_newest_keras_reads_seeds_and_a_helper_where_only_old_ones_run() -> None:
    """An older Keras cannot read what a newer one wrote, nor list its layers."""
    old = [find_target(f"keras=={v}/torch", BUILT_IN) for v in ("3.5.0", "3.9.0")]
    assert reader([*old, BUILT_IN["jax"]]) == BUILT_IN["jax"]
    assert reader([*old, BUILT_IN["jax"], BUILT_IN["torch"]]) == BUILT_IN["torch"]
    assert reader(old) not in old
    assert not reader(old).requirements
    patched = replace(BUILT_IN["torch"], name="patched", setup=Path("fault.py"))
    assert reader([patched, BUILT_IN["tensorflow"]]) == BUILT_IN["tensorflow"]


def test_guidance_needs_no_labels(fake_model: Path, fake_data: Path, tmp_path: Path) -> None:
    """A target's own answer as the truth gave the seed the largest ACC there is."""
    targets = one_that("murmur:ReLU")
    unknown = fake_data.with_name("unlabelled.npz")
    with np.load(fake_data) as file:
        np.savez(unknown, x=file["x"])
    told = {}
    for name, data in (("with", fake_data), ("without", unknown)):
        job = job_of(
            fake_model, data, targets, strategy="lemon", breed_known=True, budget=Budget(mutants=32)
        )
        result = start(job, tmp_path / name)
        joined = sum(rule["joined"] for rule in result["rules"])
        told[name] = result["seeds"][0]["acc"], joined, result["amplification"]
    for acc, joined, rows in told.values():
        pairs, inputs = 2, 8  # with the target that murmurs
        assert 0 < acc < 0.01 * pairs * inputs
        assert 6 < joined < 28
        assert max(row["largest"] for row in rows) > 2 * acc / pairs / inputs


def test_bad_requests_are_one_sentence(
    fake_model: Path, fake_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def says(*arguments: str) -> str:
        assert main(["fuzz", "--targets", "fake,numpy", *arguments]) == 2
        text = capsys.readouterr().err
        assert "Traceback" not in text
        return text

    out = ["--out", str(tmp_path / "new")]
    assert "name at least one seed" in says(*out)
    assert "does not exist" in says("missing.keras", *out)
    assert "no strategy 'best'" in says(str(fake_model), "--strategy", "best", *out)
    with pytest.raises(SystemExit):
        main(["fuzz", str(fake_model), "--until-coverage", "0"])
    assert "expected a part such as 0.8 or 80%, received '0'" in capsys.readouterr().err
    assert "--inputs 0 is for --strategy layers" in says(str(fake_model), "--inputs", "0", *out)
    assert "no rule 'XX'" in says(str(fake_model), "--rules", "XX", *out)
    assert "holds no campaign" in says("--resume", str(tmp_path))
    start(job_of(fake_model, fake_data, honest(), budget=Budget(mutants=8)), tmp_path / "old")
    assert "holds a campaign already" in says(str(fake_model), "--out", str(tmp_path / "old"))
    (tmp_path / "old" / FILE).write_bytes(b"no database" * 100)
    assert "not a readable store" in says("--resume", str(tmp_path / "old"))


def test_a_store_of_another_version_is_refused(tmp_path: Path) -> None:
    with closing(Store(tmp_path, create=True)) as store:
        store.note(facts.SCHEMA, 99)
    with pytest.raises(UsageError, match="another version"):
        Store(tmp_path, create=False)
