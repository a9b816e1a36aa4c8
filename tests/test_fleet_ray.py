"""Campaigns on Ray's own cluster of several nodes on one machine: whoever dies, nothing is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest

from conftest import DRIVER, fake
from outvote.campaign.job import Budget, FuzzJob, SeedFile
from outvote.campaign.progress import Progress
from outvote.commands.check.job import Job as CheckJob
from outvote.commands.check.run import run as run_check
from outvote.commands.fuzz.run import on_cluster, replay, resume, start
from outvote.core.errors import UsageError
from outvote.core.protocol import File, Read
from outvote.core.target import Target
from outvote.fleet.address import Address
from outvote.fleet.cluster import QUIET
from outvote.fleet.fleet import pool_on
from outvote.run.process import Limits
from outvote.store.store import Store
from test_fleet import lasting
from test_fuzz_fake import count_of

pytestmark = pytest.mark.frameworks

TARGETS = {"a": fake("a"), "bad": fake("bad", "lie:Rescaling")}
ROOM = len(TARGETS)  # processors that a crew asks for
MEMORY = 64 << 20  # bytes of a worker


def job_of(model: Path, data: Path, mutants: int, **more: Any) -> FuzzJob:
    settings = {"inputs": 8, "minimise": 0.0, "confirm": 0, "memory_limit": MEMORY, **more}
    targets = tuple(TARGETS.values())
    return FuzzJob((SeedFile("s", model, data),), targets, budget=Budget(mutants), **settings)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head that runs no crew, and two nodes with room for one each."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in QUIET.items():
            patch.setenv(name, value)
        from ray.cluster_utils import Cluster

        few = {"object_store_memory": 80 << 20, "include_dashboard": False}
        made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **few})
        made.outvote = [made.add_node(num_cpus=ROOM, **few) for _ in range(2)]
        yield made
        made.shutdown()


def processes(root: psutil.Process, name: str) -> list[psutil.Process]:
    """Those of actors of a class; the system keeps 15 letters of a name."""
    return [p for p in root.children(recursive=True) if p.name().startswith(name[:15])]


def numbers_in(folder: Path) -> list[int]:
    with closing(Store(folder, create=False)) as store:
        return [row.number for row in store.rows()]


def test_crews_and_nodes_die_and_join_and_every_mutant_is_there_once(
    cluster: Any,
    fake_model: Path,
    fake_data: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    happened: list[str] = []

    def once(name: str, act: Callable[[], object]) -> None:
        if name not in happened:
            happened.append(name)
            act()

    def shoot() -> None:
        os.kill(processes(psutil.Process(), "ray::CrewHost")[0].pid, signal.SIGKILL)

    def watch(progress: Progress) -> None:
        if progress.tested >= 40:
            once("a crew was shot", shoot)
        if progress.tested >= 80:
            once("a node left", lambda: cluster.remove_node(cluster.outvote.pop(), False))
        if progress.tested >= 120:
            once("a node came", lambda: cluster.outvote.append(cluster.add_node(num_cpus=ROOM)))

    job = job_of(fake_model, fake_data, 200)
    work = on_cluster(Address(head=cluster.address), ())
    result = start(job, tmp_path / "many", watch, work=work)
    assert happened == ["a crew was shot", "a node left", "a node came"]
    assert numbers_in(tmp_path / "many") == list(range(1, 202))
    assert (result["tested"], result["interrupted"]) == (200, False)
    (finding,) = result["findings"]
    assert (finding["targets"], finding["layer_kind"]) == (["a", "bad"], "Rescaling")
    assert (tmp_path / "many" / "findings" / finding["fingerprint"] / "report.md").is_file()
    assert capfd.readouterr() == ("", "")

    replay(tmp_path / "many", tmp_path / "one", TARGETS)
    assert lasting(tmp_path / "one") == lasting(tmp_path / "many")


def test_stopped_there_killed_there_and_ended_here(
    cluster: Any, fake_model: Path, fake_data: Path, tmp_path: Path
) -> None:
    out, config = tmp_path / "out", tmp_path / "targets.toml"
    config.write_text(
        '[targets.a]\nextends = "fake"\nlibrary = "a"\n'
        '[targets.bad]\nextends = "fake"\nlibrary = "bad"\n'
        'env = { OUTVOTE_FAKE = "lie:Rescaling" }\n'
    )
    there = ["--config", str(config), "--cluster", cluster.address, "--quiet"]
    fresh = [str(fake_model), "--data", str(fake_data), "--targets", "a,bad", "--out", str(out)]
    few = ["--inputs", "8", "--minimise", "0", "--confirm", "0", "--memory", "0.0625"]

    def until(mutants: int, number: signal.Signals, *options: str) -> int:
        """A driver of its own that gets a signal when so many are stored."""
        command = [sys.executable, DRIVER, "fuzz", *options, "--budget", "4000", *there]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, text=True) as driver:
            while count_of("mutants", out) < mutants:
                assert driver.poll() is None, "it ended early"
                time.sleep(0.05)
            driver.send_signal(number)
            return driver.wait()

    assert until(30, signal.SIGINT, *fresh, *few) == 1  # what was found is found
    before = count_of("mutants", out)
    assert until(before + 30, signal.SIGKILL, "--resume", str(out)) == -signal.SIGKILL
    with closing(Store(out, create=False)) as store:
        given_out = [turn.birth.number for turn in store.unanswered()]
        known = {seen.fingerprint for seen in store.findings()}
    budget = Budget(mutants=max(*numbers_in(out), *given_out) + 10)
    result = resume(out, TARGETS, changes={"budget": budget})
    assert numbers_in(out) == list(range(1, result["tested"] + 2))
    assert set(given_out) <= set(numbers_in(out))
    assert known <= {finding["fingerprint"] for finding in result["findings"]}
    replay(out, tmp_path / "again", TARGETS)
    # Who looked like a mutant that waited for its look is known to the driver that was killed.
    assert lasting(tmp_path / "again", marked=False) == lasting(out, marked=False)


def test_a_check_on_nodes_says_what_it_says_here(
    fake_model: Path, fake_data: Path, tmp_path: Path, cluster: Any
) -> None:
    """Weights, inputs and the proof's model travel; a host that is shot is replaced."""
    targets = (fake("a"), fake("b"), fake("bad", "lie:d2"))

    def told(cluster: Address | None, out: Path) -> Any:
        job = CheckJob(fake_model, targets, data=fake_data, out=out, confirm=1, cluster=cluster)
        (finding,) = run_check(job)["findings"]
        keys = ("fingerprint", "accused", "layer", "triage", "distance")
        files = sorted(path.name for path in (out / "findings").rglob("*"))
        return {key: finding[key] for key in keys}, files

    there = Address(head=cluster.address)
    assert told(there, tmp_path / "there") == told(None, tmp_path / "here")

    with pool_on(there, targets[:1], limits=Limits()) as pool:
        digest = pool.blobs.put_file(fake_model)
        read = Read(file=File("model.json", digest))
        first = pool.ask("a", read)
        os.kill(processes(psutil.Process(), "ray::TargetHost")[0].pid, signal.SIGKILL)
        again = pool.ask("a", read)
        assert again.reply.model == first.reply.model
        weight = again.reply.model.layer("d1").weights[0]
        assert pool.blobs.get(weight.digest).shape == weight.shape


def test_a_target_that_does_not_start_there_is_said_in_one_sentence(
    fake_model: Path, fake_data: Path, tmp_path: Path, cluster: Any
) -> None:
    job = job_of(fake_model, fake_data, 8)
    broken: tuple[Target, ...] = (fake("a"), fake("bad", "exit:start"))
    work = on_cluster(Address(head=cluster.address), ())
    with pytest.raises(UsageError, match="target 'bad' could not be started"):
        start(job.but(targets=broken), tmp_path / "out", work=work)


def test_a_cluster_without_room_for_a_crew_says_what_one_needs(
    fake_model: Path, fake_data: Path, tmp_path: Path, cluster: Any
) -> None:
    job = job_of(fake_model, fake_data, 8, memory_limit=1 << 50)
    work = on_cluster(Address(head=cluster.address), ())
    with pytest.raises(UsageError, match=r"no node .* has room for a crew \(2 CPUs, 2.1e\+06 GiB"):
        start(job, tmp_path / "out", work=work)
