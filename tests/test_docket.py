"""What is odd waits: known by a cheap key, looked into in its share of the time, kept if killed."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conftest import fake
from outvote.campaign import docket
from outvote.campaign.crew import Crew
from outvote.campaign.docket import Docket, OddCase
from outvote.campaign.job import Budget, FuzzJob, SeedFile
from outvote.campaign.keeper import Keeper
from outvote.campaign.novelty import OFTEN, Novelty
from outvote.campaign.odd import key_beside, key_of
from outvote.campaign.oracle import Judged
from outvote.campaign.progress import Progress
from outvote.campaign.totals import Totals
from outvote.commands.fuzz.run import resume, start
from outvote.core.frames import Frame, innermost_frame
from outvote.core.model import REF, Input, Layer, Model, Ref
from outvote.core.sifted import CauseKey, SuspectCase
from outvote.core.target import Outcome, Run
from outvote.store.rows import Birth
from outvote.store.store import Store

TRACE = """Traceback (most recent call last):
  File "/home/me/outvote/worker/main.py", line 12, in _answer
  File "/env/lib/python3.11/site-packages/keras/src/layers/layer.py", line 941, in __call__
  File "/env/lib/python3.11/site-packages/keras/src/backend/torch/nn.py", line 433, in conv
  File "/env/lib/python3.11/site-packages/torch/_ops.py", line 5, in __call__
RuntimeError: no
"""


def test_the_place_of_an_error_is_the_innermost_in_the_library_that_is_asked_for() -> None:
    assert innermost_frame(TRACE, "keras") == Frame("keras/src/backend/torch/nn.py", 433, "conv")
    assert innermost_frame(TRACE, "jax") == Frame("torch/_ops.py", 5, "__call__")
    assert innermost_frame("RuntimeError: no", "keras") is None


@pytest.mark.parametrize(
    "folder", ["environments/keras-3.4.1-aca4", "environments/a/lib/python3.11/site-packages"]
)
def test_a_place_in_an_environment_of_another_version_is_told_as_in_any(folder: str) -> None:
    there = TRACE.replace("env/lib/python3.11/site-packages", f"cache/{folder}")
    assert innermost_frame(there, "keras") == innermost_frame(TRACE, "keras")


def model_of(kind: str, **config: Any) -> Model:
    layer = Layer("one", kind, {"name": "one", **config}, args=[{REF: ["x", 0]}])
    return Model("m", (Input("x", (None, 3), "float32"),), (layer,), (Ref("one"),), "keras")


def failing(message: str, trace: str = TRACE) -> Judged:
    run: Run[Any] = Run("torch", Outcome.ERROR, message=message, layer="one", detail=trace)
    return Judged({"torch": run}, {}, {}, (), {})


def test_errors_from_one_place_are_of_one_family_and_each_layer_is_looked_at_once() -> None:
    first = key_of(model_of("Conv1D"), failing("size 3 of 'a'"))
    assert first == key_of(model_of("Conv1D"), failing("size 7 of 'b'"))
    second = key_of(model_of("Conv2D"), failing("size 7 of 'b'"))
    assert first.family == second.family
    assert "keras/src/backend/torch/nn.py:433" in first.family
    assert first != second
    run = replace(failing("no", trace="").failed["torch"], layer=None)  # of a graph as a whole
    assert key_of(model_of("Conv2D"), Judged({"torch": run}, {}, {}, (), {})).family == (
        "torch: error in Conv2D"
    )
    elsewhere = TRACE.replace("/keras/src", "/tensorflow/python")
    for trace in ("", elsewhere):  # another library's door says nothing
        other = key_of(model_of("Conv2D"), failing("size 7 of 'b'", trace))
        assert other.family == "torch: error in Conv2D"


def test_what_parts_others_is_not_hidden_by_a_failure_that_is_known(tmp_path: Path) -> None:
    run = failing("no").failed["torch"]
    model = model_of("Conv2D")
    parted = Judged({"torch": run}, {}, {}, (), {"one": "jax: inconsistency"})
    failure, beside = key_of(model, parted), key_beside(model, parted)
    assert beside is not None
    assert beside.family == "Conv2D | jax: inconsistency"
    assert key_beside(model, failing("no")) is None
    with closing(Store(tmp_path, create=True)) as store:
        waits = Docket(store, Keeper(store, lambda: 0.0), Totals(store), confirms=True)

        def is_new(number: int) -> bool:
            birth = Birth(number, 0, "FL", 0)
            return waits.add(OddCase(failure, birth, True, beside)).is_new

        def looked() -> CauseKey | None:
            one = waits.next()
            if one is not None:
                waits.looked(one, None)
            return one.case.key if one else None

        assert is_new(1)  # which waits for its failure
        assert is_new(2)  # and this for what is beside it
        assert {looked(), looked()} == {failure, beside}
        assert not is_new(3)
        assert looked() is None
        alone = key_of(model, Judged({}, {}, {}, (), {"one": "jax: inconsistency"}))
        assert alone.family == beside.family
        assert waits.add(OddCase(alone, Birth(4, 0, "FL", 0), True, None)).is_new


def test_words_of_parameters_tell_differences_apart_and_sizes_do_not() -> None:
    def key(padding: str, size: int) -> CauseKey:
        judged = Judged({}, {}, {}, (), {"one": "torch: inconsistency"})
        return key_of(model_of("AveragePooling1D", pool_size=size, padding=padding), judged)

    assert key("same", 2) == key("same", 3)
    assert key("same", 2) != key("valid", 2)
    assert key("same", 2).family == key("valid", 2).family


def test_a_family_that_brought_nothing_new_waits_behind_the_others_and_not_for_good() -> None:
    novelty: Novelty[SuspectCase] = Novelty(most_vain=None)
    for number, (family, detail) in enumerate([("a", "1"), ("a", "2"), ("b", "1"), ("b", "2")]):
        key = CauseKey(family, detail)
        novelty.add(number, key, [SuspectCase(key, b"", ())])
    order = []
    while (one := novelty.next()) is not None:
        order.append(one.number)
        novelty.looked(one, ["f"], one.case.key.family == "b")
    assert order == [0, 2, 3, 1]


def test_what_was_looked_at_least_goes_first_and_what_differs_in_type_alone_last() -> None:
    novelty: Novelty[SuspectCase] = Novelty(most_vain=None)
    families = ["A | torch: nan", "A | numpy: shape", "B | numpy: type", "B | torch: values"]
    for number, family in enumerate([*families, "C | torch: shape"]):
        key = CauseKey(family)
        novelty.add(number, key, [SuspectCase(key, b"", ())])
    order = []
    while (one := novelty.next()) is not None:
        order.append(one.number)
        novelty.looked(one, ["f"], new=True)
    assert order == [0, 3, 4, 1, 2]


def order_of(*keys: CauseKey) -> list[int]:
    """In which order they are looked at, each of which brings something new."""
    novelty: Novelty[SuspectCase] = Novelty(most_vain=None)
    for number, key in enumerate(keys):
        novelty.add(number, key, [SuspectCase(key, b"", ())])
    order = []
    while (one := novelty.next()) is not None:
        order.append(one.number)
        novelty.looked(one, ["f"], new=True)
    return order


def test_symptoms_take_turns() -> None:
    failures = [CauseKey(f"torch: error in f{n}, torch/nn.py:{n}") for n in range(3)]
    values = [CauseKey(f"{kind} | torch: inconsistency", "float32") for kind in "AB"]
    order = order_of(*failures, CauseKey("C | torch: nan"), *values)
    assert [("fail", "nan", "values")[(n > 2) + (n > 3)] for n in order] == [
        *("fail", "nan", "values"),
        *("fail", "values", "fail"),
    ]


def test_where_each_part_was_looked_at_the_whole_is_not_new() -> None:
    conv = "error in conv, tensorflow/nn.py:7"
    seen = [f"tensorflow: {conv}", "torch: error in conv, torch/nn.py:8"]
    both = f"graph: {conv}; torch: error in conv, torch/nn.py:8"
    other = f"tensorflow: {conv}; torch: error in pad, torch/nn.py:9"
    keys = [CauseKey(family) for family in (*seen, both, other)]
    assert order_of(*keys) == [0, 1, 3, 2]
    said = ["Conv1D: ValueError no room", "Conv2D: ValueError no room", "Conv2D: TypeError no int"]
    assert order_of(*[CauseKey(seen[0], words) for words in said]) == [0, 2, 1]
    nans = [
        "A | torch: nan",
        "A | jax: nan",
        "A | torch: nan; jax: nan",
        "A | numpy: nan; jax: nan",
    ]
    assert order_of(*[CauseKey(family) for family in nans]) == [0, 1, 3, 2]


def test_what_shows_in_few_comes_before_what_shows_in_many() -> None:
    keys = [CauseKey("A | torch: nan; jax: nan"), CauseKey("A | torch: nan")]
    assert order_of(*keys) == [1, 0]


FAINT = CauseKey("A | torch: type")


def test_what_is_met_often_is_not_kept_waiting_by_ever_new_ones() -> None:
    novelty: Novelty[SuspectCase] = Novelty(most_vain=None)
    first, often = CauseKey("A | torch: nan", "first"), CauseKey("A | torch: nan", "often")
    ever_new = [CauseKey(f"{n} | torch: nan") for n in range(OFTEN)]

    def look_after(*met: CauseKey) -> CauseKey:
        for number, key in enumerate(met):
            novelty.add(number, key, [SuspectCase(key, b"", ())])
        one = novelty.next()
        assert one is not None
        novelty.looked(one, ["f"], new=True)
        return one.case.key

    order = [look_after(first), look_after(*ever_new, *[often] * 3, *[FAINT] * 4)]
    order += [look_after() for _ in range(OFTEN - 2)]
    assert order == [first, *ever_new[: OFTEN - 2], often]


@pytest.mark.parametrize(
    ("family", "detail", "is_faint"),
    [
        ("A | torch: type; numpy: type", "float32", True),
        ("A | torch: inconsistency", "padding=same, bfloat16", True),
        ("A | torch: inconsistency", "padding=same, mixed_float16", True),
        ("A | numpy: inconsistency", "padding=same, float64", True),
        ("A | torch: inconsistency", "padding=same, float32", False),
        ("A | torch: nan", "padding=same, float16", False),
        ("A | torch: inconsistency; numpy: shape", "float16", False),
        ("torch: error in f, torch/nn.py:1", "A: TypeError of float16", False),
    ],
)
def test_types_alone_and_digits_of_unusual_types_are_faint(
    family: str, detail: str, is_faint: bool
) -> None:
    assert CauseKey(family, detail).is_faint is is_faint


@pytest.mark.slow
def test_what_waits_is_told_and_looked_into_when_the_campaign_goes_on(
    fake_model: Path, fake_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    targets = (fake("a"), fake("b"), fake("bad", "lie:Rescaling"))
    seeds = (SeedFile("seed", fake_model, fake_data),)
    job = FuzzJob(seeds, targets, budget=Budget(mutants=24, seconds=600.0), inputs=8, minimise=0.0)
    for name, none in (("SHARE", -1.0), ("AFTER", 0.0)):
        monkeypatch.setattr(docket, name, none)
    first = start(job, tmp_path / "out")
    assert first["findings"] == []
    ((look, met),) = first["waiting"]
    assert look == "Rescaling | bad: inconsistency"
    assert met > 1
    assert first["time"]["waiting"] == 1
    assert "1 kinds of differences wait" in first["summary"]
    assert "Rescaling" in (tmp_path / "out" / "report.md").read_text()
    monkeypatch.undo()
    known = {target.name: target for target in targets}
    rest = resume(tmp_path / "out", known, changes={"budget": Budget(mutants=24)})
    (finding,) = rest["findings"]
    assert (finding["accused"], finding["layer_kind"]) == ("bad", "Rescaling")
    assert rest["waiting"] == []
    with closing(Store(tmp_path / "out", create=False)) as store:
        shown = [row.number for row in store.rows() if row.inconsistent]
    assert len(shown) == met, "also those that looked like the one which waited"


@pytest.mark.slow
def test_a_finding_of_a_sitting_that_was_stopped_is_confirmed_by_the_next(
    fake_model: Path, fake_data: Path, tmp_path: Path
) -> None:
    targets = (fake("a"), fake("b"), fake("bad", "lie:Rescaling"))
    seeds = (SeedFile("seed", fake_model, fake_data),)
    job = FuzzJob(seeds, targets, budget=Budget(mutants=80), inputs=8, confirm=1)

    def watch(progress: Progress) -> None:
        if progress.findings:
            raise KeyboardInterrupt

    (finding,) = start(job, tmp_path, watch)["findings"]
    assert finding["evidence"]["shown_again"] is None
    with closing(Store(tmp_path, create=False)) as store:
        enough = Budget(mutants=len(store.rows()) - 1)
    known = {target.name: target for target in targets}
    (finding,) = resume(tmp_path, known, changes={"budget": enough})["findings"]
    assert finding["evidence"]["shown_again"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 2])
def test_findings_that_time_was_too_short_to_confirm_are_confirmed_by_the_next_sitting(
    times: int, fake_model: Path, fake_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lies = {"bad": "lie:Rescaling", "worse": "lie:ReLU"}
    targets = (fake("a"), fake("b"), *(fake(name, lie) for name, lie in lies.items()))
    seeds = (SeedFile("seed", fake_model, fake_data),)
    budget = Budget(mutants=80, seconds=600.0)
    job = FuzzJob(seeds, targets, budget=budget, inputs=8, confirm=times)

    def shown(result: dict[str, Any]) -> list[int | None]:
        return [finding["evidence"]["shown_again"] for finding in result["findings"]]

    monkeypatch.setattr(docket, "SEARCHING", 1.0)
    first = shown(start(job, tmp_path))
    assert sorted(first, key=str) == [times, *[None] * (len(first) - 1)]
    assert len(first) > 1
    monkeypatch.undo()
    known = {target.name: target for target in targets}
    more = resume(tmp_path, known, changes={"budget": Budget(mutants=80)})
    assert shown(more) == [times] * len(first)


def test_looks_and_confirming_leave_most_of_the_time_to_new_cases(tmp_path: Path) -> None:
    with closing(Store(tmp_path, create=True)) as store:
        totals = Totals(store)
        waits = Docket(store, Keeper(store, lambda: totals.seconds), totals, confirms=True)
    waits.searches = 60.0
    assert waits.is_due
    assert not waits.is_over
    assert waits.left == pytest.approx(40.0)
    waits.looks = 24.0
    assert not waits.is_due
    assert not waits.is_over
    assert waits.left == pytest.approx(16.0)
    waits.looks = 45.0
    assert waits.is_over
    assert waits.left == 0.0


@pytest.mark.slow
def test_what_a_look_waits_for_is_time_of_new_cases(
    fake_model: Path, fake_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A generation that is under way ends before a look begins."""
    dockets: list[Docket] = []
    wait, rest, looked = 0.2, Crew.rest, Docket.looked

    def late(crew: Crew) -> None:
        time.sleep(wait)
        rest(crew)

    def note(docket: Docket, *told: Any) -> None:
        dockets.append(docket)
        looked(docket, *told)

    monkeypatch.setattr(Crew, "rest", late)
    monkeypatch.setattr(Docket, "looked", note)
    targets = (fake("a"), fake("b"), fake("bad", "lie:ReLU"))
    seeds = (SeedFile("seed", fake_model, fake_data),)
    budget = Budget(mutants=24, seconds=600.0)
    job = FuzzJob(seeds, targets, budget=budget, inputs=8, minimise=0.0, confirm=0)
    spent = start(job, tmp_path / "out")["time"]
    assert dockets
    assert dockets[-1].looks <= spent["looking"] + wait / 2


@pytest.mark.slow
def test_who_watches_takes_no_time_of_the_campaign(
    fake_model: Path, fake_data: Path, tmp_path: Path
) -> None:
    """Such as a benchmark that runs the scripts of what was found."""
    watched: list[tuple[float, float, float]] = []  # by the campaign's clock; from when to when
    slept = 0.4

    def watch(progress: Progress) -> None:
        began = time.monotonic()
        time.sleep(slept)
        watched.append((progress.seconds, began, time.monotonic()))

    seeds = (SeedFile("seed", fake_model, fake_data),)
    job = FuzzJob(seeds, (fake("a"), fake("b")), budget=Budget(mutants=16), inputs=8, confirm=0)
    start(job, tmp_path / "out", watch)
    (before, _, left), (after, came, _) = watched[:2]
    assert after - before < came - left + slept / 2
