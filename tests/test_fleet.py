"""The fleet without Ray: addresses, room, files that travel, numbers, and orders that kill."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from conftest import fake
from outvote.campaign.campaign import Campaign
from outvote.campaign.crews import Brood, Deadly, OneCrew
from outvote.campaign.job import Budget, FuzzJob, SeedFile
from outvote.campaign.numbers import Numbers
from outvote.campaign.report import Sitting, Standing
from outvote.cli import main
from outvote.commands.fuzz.run import replay, start
from outvote.core.errors import UsageError
from outvote.core.target import Target
from outvote.core.version import VERSION
from outvote.fleet.address import Address, address_of
from outvote.fleet.cluster import joined
from outvote.fleet.host import Shipment
from outvote.fleet.needs import Needs
from outvote.fleet.parcels import Post, unpacked
from outvote.run.local import LocalPool
from outvote.store import facts
from outvote.store.rows import ASKED, TOLD, VAIN, Birth, Turn
from outvote.store.store import Row, Store


def same(value: Any) -> Any:
    """An object store that is no further away than this process."""
    return value


# Addresses


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("local:1", Address(crews=1)),
        ("local:1024", Address(crews=1024)),
        ("auto", Address(head="auto")),
        ("10.0.0.7:6379", Address(head="10.0.0.7:6379")),
        ("[::1]:6379", Address(head="[::1]:6379")),
    ],
)
def test_an_address_is_so_many_crews_or_a_cluster(text: str, meant: Address) -> None:
    assert address_of(text) == meant


@pytest.mark.parametrize(
    "text",
    ["", "local", "local:0", "local:1025", "local:-1", "host", "h:0", "h:65536", "ray://h:1"],
)
def test_any_other_address_is_one_sentence(
    text: str, fake_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["fuzz", str(fake_model), "--targets", "fake", "--oracle", "metamorphic"]
    assert main([*asked, "--out", str(tmp_path / "out"), "--cluster", text]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert f"received {text!r}" in told
    assert "local:N with 1 to 1024 crews, auto, or HOST:PORT" in told


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield server


def test_where_nobody_listens_is_no_cluster(listening: socket.socket) -> None:
    port = listening.getsockname()[1]
    listening.close()
    with (
        pytest.raises(UsageError, match="nobody answers there"),
        joined(Address(head=f"127.0.0.1:{port}"), Needs()),
    ):
        pass


@pytest.mark.parametrize("says", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n"])
def test_whoever_else_listens_is_no_head(listening: socket.socket, says: bytes) -> None:
    def answer() -> None:
        wire, _ = listening.accept()
        wire.recv(64)
        wire.sendall(says)
        wire.close()

    thread = threading.Thread(target=answer)
    thread.start()
    head = f"127.0.0.1:{listening.getsockname()[1]}"
    with (
        pytest.raises(UsageError, match="is no head of a Ray cluster"),
        joined(Address(head=head), Needs()),
    ):
        pass
    thread.join()


# Room


def test_a_crew_needs_a_processor_for_each_target_at_work_and_the_memory_of_all() -> None:
    targets = [fake("a"), fake("b"), fake("c")]
    assert Needs.of(targets, None, 2 << 30) == Needs(3, 6 << 30, 0)
    assert Needs.of(targets, 2, 2 << 30) == Needs(2, 6 << 30, 0)
    assert Needs.of(targets, 9, None) == Needs(3, 0, 0)


def test_a_target_on_a_gpu_gets_one() -> None:
    on_gpu = Target("g", "keras", "fake", "g", device="gpu")
    needs = Needs.of([fake("a"), on_gpu], None, None)
    assert needs.options == {"num_cpus": 2, "num_gpus": 1}


def test_what_is_scarcest_says_how_many_crews_a_node_holds() -> None:
    needs = Needs(2, 4 << 30, 1)
    node = {"CPU": 16.0, "memory": float(64 << 30), "GPU": 3.0}
    assert needs.fit_into(node) == 3
    assert needs.fit_into({**node, "CPU": 5.0}) == 2
    assert needs.fit_into({**node, "memory": float((4 << 30) - 1)}) == 0
    assert needs.fit_into({"CPU": 16.0, "memory": float(64 << 30)}) == 0


# Files


def test_a_file_is_fetched_once_per_node_and_keeps_its_name(tmp_path: Path) -> None:
    (tmp_path / "data.npz").write_bytes(b"numbers")
    post, fetched = Post(same), []

    def get(data: bytes) -> bytes:
        fetched.append(data)
        return data

    parcel = post.data(tmp_path / "data.npz")
    first = unpacked(parcel, post.contents, get, tmp_path / "node")
    assert unpacked(parcel, post.contents, get, tmp_path / "node") == first
    assert (first.name, first.read_bytes(), fetched) == ("data.npz", b"numbers", [b"numbers"])


def test_one_content_is_put_once_whoever_needs_it(tmp_path: Path) -> None:
    put: list[bytes] = []
    post = Post(put.append)
    for name in ("one.npz", "two.npz"):
        (tmp_path / name).write_bytes(b"the same")
    assert post.data(tmp_path / "one.npz").key != post.data(tmp_path / "two.npz").key
    assert put == [b"the same"]


def test_a_model_in_parts_takes_the_parts_along_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"... location parts/weights.bin ...")
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "weights.bin").write_bytes(b"heavy")
    (tmp_path / "diary.txt").write_bytes(b"private")
    post = Post(same)
    parcel = post.model(tmp_path / "model.onnx")
    assert sorted(parcel.files) == ["model.onnx", "parts/weights.bin"]
    there = unpacked(parcel, post.contents, same, tmp_path / "node")
    assert (there.parent / "parts" / "weights.bin").read_bytes() == b"heavy"


def test_a_setup_script_takes_along_what_it_imports(tmp_path: Path) -> None:
    (tmp_path / "setup.py").write_text("import helper\n")
    (tmp_path / "helper.py").write_text("x = 1\n")
    (tmp_path / "other.py").write_text("y = 1\n")
    post = Post(same)
    parcel = post.script(tmp_path / "setup.py")
    there = unpacked(parcel, post.contents, same, tmp_path / "node")
    assert there.read_text() == "import helper\n"
    assert sorted(path.name for path in there.parent.iterdir()) == ["helper.py", "setup.py"]


def test_other_bytes_than_were_sent_are_not_kept(tmp_path: Path) -> None:
    (tmp_path / "data.npz").write_bytes(b"numbers")
    post = Post(same)
    parcel = post.data(tmp_path / "data.npz")
    with pytest.raises(UsageError, match="other bytes than sent"):
        unpacked(parcel, post.contents, lambda data: b"spoilt", tmp_path / "node")
    there = unpacked(parcel, post.contents, same, tmp_path / "node")
    assert there.read_bytes() == b"numbers"


def test_a_node_forgets_what_was_not_used_for_long(tmp_path: Path) -> None:
    post = Post(same)
    for name in ("old.npz", "new.npz"):
        (tmp_path / name).write_bytes(name.encode())
    old = unpacked(post.data(tmp_path / "old.npz"), post.contents, same, tmp_path / "node")
    os.utime(old.parent, (0, 0))
    unpacked(post.data(tmp_path / "new.npz"), post.contents, same, tmp_path / "node")
    assert not old.exists()


def test_a_node_with_another_version_of_outvote_says_so() -> None:
    job = FuzzJob((), (fake("a"), fake("b")))
    with pytest.raises(UsageError, match=rf"has outvote {VERSION}, and the campaign is of 0\.0\.0"):
        Shipment(job, (), {}, {}, version="0.0.0").unpack(same)


# Numbers and turns


def test_numbers_leave_nothing_out() -> None:
    numbers = Numbers([1, 2, 5])
    taken = [numbers.take() for _ in range(4)]
    assert taken == [3, 4, 6, 7]
    numbers.give_back(6)
    numbers.give_back(3)
    assert [numbers.take() for _ in range(3)] == [3, 6, 8]


def test_what_was_asked_and_not_told_is_known_to_the_store(tmp_path: Path) -> None:
    births = {n: Birth(n, 1, "LC", 0) for n in (2, 3, 4)}
    turns = [Turn(ASKED, births[2]), Turn(ASKED, births[3], "lemon"), Turn(ASKED, births[4])]
    turns += [Turn(TOLD, births[2], "", (2, 0.5, True, 0, 1)), Turn(VAIN, births[4])]
    with closing(Store(tmp_path, create=True)) as store:
        store.record(turns)
        assert store.turns() == turns
        assert store.unanswered() == [turns[1]]
        store.record([Turn(ASKED, Birth(4, 2, "LR", 0))])  # the number again, for another
        assert [turn.birth.number for turn in store.unanswered()] == [3, 4]


def test_what_crews_came_to_adds_up() -> None:
    one = Standing(Sitting(flaky=1, busy={"a": 1.0}, restarts={"a": 2}), {"a": 5, "b": 9})
    other = Standing(Sitting(flaky=2, busy={"a": 0.5, "b": 4.0}), {"a": 7})
    both = one + other
    assert (both.sitting.flaky, both.sitting.busy) == (3, {"a": 1.5, "b": 4.0})
    assert (both.sitting.restarts, both.peaks) == ({"a": 2}, {"a": 7, "b": 9})


# Campaigns


def job_of(model: Path, data: Path, **more: Any) -> FuzzJob:
    targets = (fake("a"), fake("b"), fake("bad", "lie:Rescaling"))
    settings = {"budget": Budget(mutants=24), "inputs": 8, "minimise": 0.0, **more}
    return FuzzJob((SeedFile("seed", model, data),), targets, **settings)


def lasting(folder: Path) -> tuple[list[Row], set[str]]:
    """What a store holds but for times, and how often a crew was reminded of a finding."""
    unlike = {"seconds": 0, "at": 0}
    with closing(Store(folder, create=False)) as store:
        rows = [vars(row) | unlike for row in store.rows()]
        return [Row(**row) for row in rows], {seen.fingerprint for seen in store.findings()}


class DeadlyCrew(OneCrew):
    """Dies of one order, for good."""

    deadly = ""

    def finish_one(self, more: Callable[[], Brood | None]) -> bool:
        brood = more()
        if brood is None:
            return False
        answer, thrown = None, False
        while True:
            try:
                order = brood.send(answer) if not thrown else brood.throw(Deadly("all died"))
            except StopIteration:
                return True
            thrown = order.doing == self.deadly
            if thrown:
                self.deadly = ""
                continue
            answer = order.by(self.crew)


@pytest.mark.slow
@pytest.mark.parametrize("order", ["make", "attempt", "settle"])
def test_an_order_that_kills_every_crew_ends_no_campaign(
    order: str, fake_model: Path, fake_data: Path, tmp_path: Path
) -> None:
    job = job_of(fake_model, fake_data)
    with closing(Store(tmp_path, create=True)) as store, LocalPool(job.targets) as pool:
        store.note(facts.JOB, job.stored())
        crews = DeadlyCrew(job, pool, tmp_path, store.tell)
        crews.deadly = order
        assert Campaign(job, store, crews).run()
        rows = store.rows()
        assert not store.unanswered()
    assert [row.number for row in rows] == list(range(1, 26))
    lost = [row for row in rows if row.outcome == "invalid"]
    assert len(lost) == (8 if order == "attempt" else 0)
    assert {row.message for row in lost} <= {"all died"}


@pytest.mark.slow
def test_a_campaign_is_gone_through_again(
    fake_model: Path, fake_data: Path, tmp_path: Path
) -> None:
    job = job_of(fake_model, fake_data, strategy="mixed")
    start(job, tmp_path / "one")
    replay(tmp_path / "one", tmp_path / "two", {t.name: t for t in job.targets})
    assert lasting(tmp_path / "two") == lasting(tmp_path / "one")


@pytest.mark.slow
def test_targets_that_give_other_results_change_the_rows_and_not_the_mutants(
    fake_model: Path, fake_data: Path, tmp_path: Path
) -> None:
    job = job_of(fake_model, fake_data, strategy="lemon")
    start(job, tmp_path / "one")
    others = {"a": fake("a"), "b": fake("b"), "bad": fake("bad")}
    replay(tmp_path / "one", tmp_path / "two", others)
    (one, _), (two, _) = lasting(tmp_path / "one"), lasting(tmp_path / "two")
    assert [(r.number, r.parent, r.rule, r.network, r.joined) for r in two] == [
        (r.number, r.parent, r.rule, r.network, r.joined) for r in one
    ]
    assert [r.inconsistent for r in two] != [r.inconsistent for r in one]


@pytest.mark.slow
def test_a_record_that_the_strategy_contradicts_says_where(
    fake_model: Path, fake_data: Path, tmp_path: Path
) -> None:
    job = job_of(fake_model, fake_data, strategy="lemon")
    start(job, tmp_path / "one")
    with closing(Store(tmp_path / "one", create=False)) as store:
        store.note(facts.JOB, job.but(strategy="random").stored())
    with pytest.raises(UsageError, match="the record wants mutant 2 by"):
        replay(tmp_path / "one", tmp_path / "two", {t.name: t for t in job.targets})


def test_there_is_nothing_to_go_through_in_a_folder_without_a_record(tmp_path: Path) -> None:
    job = FuzzJob((), (fake("a"), fake("b")))
    with closing(Store(tmp_path, create=True)) as store:
        store.note(facts.JOB, job.stored())
    with pytest.raises(UsageError, match="holds no order of mutants"):
        replay(tmp_path, tmp_path / "two", {t.name: t for t in job.targets})
