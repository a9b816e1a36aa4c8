"""Campaigns on Ray's own cluster of several nodes on one machine: whoever dies, nothing is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import replace
from pathlib import Path
from threading import Timer
from typing import Any

import psutil
import pytest

from conftest import fake
from outvote.campaign.job import Budget, FuzzJob, SeedFile
from outvote.campaign.progress import Progress
from outvote.commands.bisect.job import BisectJob
from outvote.commands.bisect.run import run as run_bisect
from outvote.commands.check.job import Job as CheckJob
from outvote.commands.check.run import run as run_check
from outvote.commands.fuzz.run import on_cluster, replay, resume, start
from outvote.commands.view import UNSEEN, Nobody, View
from outvote.core.errors import UsageError
from outvote.core.target import Target
from outvote.dialects.onnx.targets import BUILT_IN
from outvote.fleet.address import Address
from outvote.fleet.cluster import QUIET
from outvote.store import facts
from outvote.store.store import Store
from test_bisect import Index
from test_bulk import PACK, targets_with
from test_fleet import lasting
from test_fuzz_fake import count_of
from test_onnx_bulk import LEAKS

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
    """A head that says it has a GPU, and a node beside it, with room for a crew each.

    Their processes know the toy dialect.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OUTVOTE_DIALECTS", str(Path(__file__).parent / "dialects"))
        for name, value in QUIET.items():
            patch.setenv(name, value)
        from ray.cluster_utils import Cluster

        few = {"object_store_memory": 80 << 20, "include_dashboard": False}
        head = {"num_cpus": ROOM, "num_gpus": 1, **few}
        made = Cluster(initialize_head=True, head_node_args=head)
        made.outvote = [made.add_node(num_cpus=ROOM, **few)]
        yield made
        made.shutdown()


def processes(root: psutil.Process, name: str) -> list[psutil.Process]:
    """Those of actors of a class; the system keeps 15 letters of a name."""
    found = []
    for process in root.children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # it has ended since
            if process.name().startswith(name[:15]):
                found.append(process)
    return found


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
        if progress.tested >= 24:
            once("a crew was shot", shoot)
        if progress.tested >= 48:
            once("a node left", lambda: cluster.remove_node(cluster.outvote.pop(), False))
        if progress.tested >= 72:
            once("a node came", lambda: cluster.outvote.append(cluster.add_node(num_cpus=ROOM)))

    job = job_of(fake_model, fake_data, 96, confirm=1, minimise=5.0)
    work = on_cluster(Address(head=cluster.address), ())
    result = start(job, tmp_path / "many", watch, work=work)
    assert happened == ["a crew was shot", "a node left", "a node came"]
    assert numbers_in(tmp_path / "many") == list(range(1, 98))
    assert (result["tested"], result["interrupted"]) == (96, False)
    (finding,) = result["findings"]
    assert finding["evidence"]["shown_again"] == 1, "whoever found it first"
    # Which specimen comes first hangs on the crews; of two targets, not every one accuses.
    assert finding["layer_kind"] == "Rescaling"
    assert "bad" in finding["targets"]
    assert (tmp_path / "many" / "findings" / finding["fingerprint"] / "report.md").is_file()
    assert capfd.readouterr() == ("", "")

    replay(tmp_path / "many", tmp_path / "one", TARGETS)
    assert lasting(tmp_path / "one") == lasting(tmp_path / "many")


def test_a_slow_crew_holds_nobody_up(
    cluster: Any, fake_model: Path, fake_data: Path, tmp_path: Path
) -> None:
    """One of two stands still in the middle of its work; the other does most of the rest."""
    slow: list[psutil.Process] = []
    nobody_goes_on = Timer(90, lambda: slow[0].resume())
    went_on: list[bool] = []

    def watch(progress: Progress) -> None:
        crews = processes(psutil.Process(), "ray::CrewHost")
        if progress.tested >= 16 and len(crews) == 2 and not slow:
            slow.append(crews[0])
            crews[0].suspend()
            nobody_goes_on.start()
        if progress.tested >= 72 and slow and not went_on:
            went_on.append(slow[0].status() == psutil.STATUS_STOPPED)
            slow[0].resume()

    work = on_cluster(Address(head=cluster.address), ())
    result = start(job_of(fake_model, fake_data, 96), tmp_path, watch, work=work)
    nobody_goes_on.cancel()
    assert went_on == [True]
    assert (result["tested"], numbers_in(tmp_path)) == (96, list(range(1, 98)))


@pytest.mark.usefixtures("toy_dialect")
def test_cases_in_bulk_are_shared_out_and_none_is_tried_twice(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who found something is shot, so another crew meets it again, and confirms it."""
    monkeypatch.setattr("outvote.campaign.sift._STRETCH", 2 * PACK)
    shot: set[int] = set()
    at_work: set[int] = set()

    def watch(progress: Progress) -> None:
        crews = processes(psutil.Process(), "ray::CrewHost")
        at_work.add(len(crews))
        if progress.tested >= 6 * PACK and not shot:
            for crew in crews:
                shot.add(crew.pid)
                os.kill(crew.pid, signal.SIGKILL)

    targets = targets_with("Softmax")
    settings: dict[str, Any] = {"jobs": ROOM, "memory_limit": MEMORY}
    job = FuzzJob((), tuple(targets.values()), budget=Budget(mutants=12 * PACK), **settings)
    work = on_cluster(Address(head=cluster.address), ())
    result = start(job, tmp_path, watch, work=work)
    assert (len(shot), max(at_work)) == (2, 2)
    with closing(Store(tmp_path, create=False)) as store:
        *open_ones, (behind, _) = store.fact(facts.SIFTED_LEFT)
    left = sum(end - at for at, end in open_ones)
    assert result["tested"] == result["valid"] == behind - left
    (finding,) = result["findings"]
    assert finding["evidence"]["shown_again"] == 1
    assert finding["count"] > 50


def test_graphs_of_onnx_are_shared_out_and_a_planted_fault_is_found(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real runtimes on the nodes: the setup script of one travels there, and is outvoted.

    A second holds several packs here, and ends where a stretch does.
    """
    monkeypatch.setattr("outvote.campaign.sift._STRETCH", 5 * PACK)
    script = tmp_path / "leaks.py"
    script.write_text(LEAKS)
    reference = BUILT_IN["onnx-reference"]
    planted = replace(reference, name="planted", library="planted", setup=script)
    targets = (BUILT_IN["onnxruntime"], reference, planted)
    settings: dict[str, Any] = {"jobs": ROOM, "memory_limit": 1 << 30}
    budget = Budget(mutants=20 * PACK)
    job = FuzzJob((), targets, "layers", budget, confirm=1, minimise=3.0, **settings)
    work = on_cluster(Address(head=cluster.address), ())
    at_work: set[int] = set()

    def watch(progress: Progress) -> None:
        at_work.add(len(processes(psutil.Process(), "ray::CrewHost")))

    result = start(job, tmp_path / "out", watch, work=work)
    assert max(at_work) == 2
    with closing(Store(tmp_path / "out", create=False)) as store:
        *open_ones, (behind, _) = store.fact(facts.SIFTED_LEFT)
    left = sum(end - at for at, end in open_ones)
    assert result["tested"] == behind - left >= 20 * PACK, "every number once"
    found = {(f["accused"], f["layer_kind"]): f for f in result["findings"]}
    assert found["planted", "Relu"]["triage"] == "bug"
    assert found["planted", "Relu"]["evidence"]["shown_again"] == 1, "in fresh workers there"


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

    def until(table: str, rows: int, number: signal.Signals, *options: str) -> int:
        """A driver of its own that gets a signal when its store has so many."""
        command = [sys.executable, "-m", "outvote", "fuzz", *options, "--budget", "4000", *there]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, text=True) as driver:
            while count_of(table, out) < rows:
                assert driver.poll() is None, "it ended early"
                time.sleep(0.05)
            driver.send_signal(number)
            return driver.wait()

    assert until("findings", 1, signal.SIGINT, *fresh, *few) == 1  # what was found is found
    before = count_of("mutants", out)
    assert until("mutants", before + 16, signal.SIGKILL, "--resume", str(out)) == -signal.SIGKILL
    with closing(Store(out, create=False)) as store:
        given_out = [turn.birth.number for turn in store.unanswered()]
        known = {seen.fingerprint for seen in store.findings()}
    budget = Budget(mutants=max(*numbers_in(out), *given_out) + 10)
    result = resume(out, TARGETS, changes={"budget": budget})
    assert numbers_in(out) == list(range(1, result["tested"] + 2))
    assert set(given_out) <= set(numbers_in(out))
    assert known <= {finding["fingerprint"] for finding in result["findings"]}
    replay(out, tmp_path / "again", TARGETS)
    assert lasting(tmp_path / "again") == lasting(out)


def test_a_check_on_nodes_says_what_it_says_here(
    fake_model: Path, fake_data: Path, tmp_path: Path, cluster: Any
) -> None:
    """Weights, inputs and the proof's model travel; a host that is shot is replaced.

    The target that wants a GPU gets the one of the cluster, the other one none.
    """
    stages: list[str] = []
    gpus: set[str] = set()

    class Shooting(Nobody):
        """A View of a terminal in which somebody shoots when the inputs are about to run."""

        def watch(self, text: str, pool: Any, names: Any) -> AbstractContextManager[object]:
            if text.startswith("Running"):
                stages.append(text)
                for host in processes(psutil.Process(), "ray::TargetHost"):
                    told = [p.environ().get("CUDA_VISIBLE_DEVICES", "") for p in host.children()]
                    gpus.update(told)
                os.kill(processes(psutil.Process(), "ray::TargetHost")[0].pid, signal.SIGKILL)
            return super().watch(text, pool, names)

    def told(view: View, cluster: Address | None, out: Path) -> Any:
        targets = (fake("a"), replace(fake("bad", "lie:d2"), device="gpu"))
        job = CheckJob(fake_model, targets, data=fake_data, out=out, confirm=1, cluster=cluster)
        (finding,) = run_check(job, view)["findings"]
        keys = ("fingerprint", "targets", "layer", "triage", "distance")
        files = sorted(path.name for path in (out / "findings").rglob("*"))
        return {key: finding[key] for key in keys}, files

    there = Address(head=cluster.address)
    assert told(Shooting(), there, tmp_path / "there") == told(UNSEEN, None, tmp_path / "here")
    assert len(stages) == 1
    assert gpus == {"", "0"}


def test_releases_are_tried_side_by_side(
    fake_model: Path, fake_data: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    Index(monkeypatch).misdeeds = {"1.4": "lie:d2", "1.5": "lie:d2"}
    stages: list[str] = []

    class Listening(Nobody):
        def watch(self, text: str, pool: Any, names: Any) -> AbstractContextManager[object]:
            stages.append(text)
            return super().watch(text, pool, names)

    there = Address(head=cluster.address)
    range_of = ("made-up", "1.3", "1.5")
    job = BisectJob(fake_model, fake("tested"), (fake("a"),), *range_of, fake_data, cluster=there)
    result = run_bisect(job, Listening())
    assert result["summary"] == "made-up on tested: first bad in 1.4, last good 1.3."
    probing = [text for text in stages if text.startswith("Probing")]
    assert [text.partition(" (")[0] for text in probing] == [
        "Probing made-up 1.3, 1.5",
        "Probing made-up 1.4",
    ]


HOLD = """
import sys, time, ray
ray.init(address=sys.argv[1], log_to_driver=False, logging_level="ERROR")
@ray.remote(num_cpus=0, num_gpus=1)
class Holder:
    pass
holder = Holder.remote()
ray.get(holder.__ray_ready__.remote())
print("held", flush=True)
time.sleep(3600)
"""


def test_a_crew_whose_target_wants_a_gpu_waits_for_one_and_says_so(
    fake_model: Path,
    fake_data: Path,
    tmp_path: Path,
    cluster: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("outvote.fleet.crews._PLACING", 0.0)
    command = [sys.executable, "-c", HOLD, cluster.address]
    said: list[str] = []
    seen: set[str] = set()

    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"

        def say(text: str) -> None:
            said.append(text)
            holder.kill()

        def watch(progress: Progress) -> None:
            for crew in processes(psutil.Process(), "ray::CrewHost"):
                seen.update(p.environ().get("CUDA_VISIBLE_DEVICES", "") for p in crew.children())

        targets = (TARGETS["a"], replace(TARGETS["bad"], device="gpu"))
        work = on_cluster(Address(head=cluster.address), (), say)
        start(job_of(fake_model, fake_data, 8).but(targets=targets), tmp_path, watch, work=work)
    assert said == [
        "1 of 1 crews wait for room on the cluster: each needs 2 CPUs, 0.125 GiB of memory, "
        "1 GPU free on one node"
    ]
    assert "0" in seen, "the number of the one that Ray gave to it"
    assert numbers_in(tmp_path) == list(range(1, 10))


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
