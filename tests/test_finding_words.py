"""What a finding says: who does what where, what would be right, and the issue that is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import fake
from outvote.core.model import REF, Input, Layer, Model, Ref
from outvote.core.outputs import Outputs
from outvote.core.protocol import Hello
from outvote.core.specimen import Specimen
from outvote.core.target import Outcome, Run, Target
from outvote.dialects.onnx.targets import BUILT_IN as ONNX
from outvote.findings.answer import right_answer
from outvote.findings.blame import by_cause, told_by
from outvote.findings.finding import (
    Finding,
    Proof,
    cause_of,
    findings_from_failures,
    findings_from_faults,
    head_of,
    title_of,
)
from outvote.findings.issue_text import issue_text, with_releases
from outvote.judge.observation import Observation
from outvote.judge.rounding import Gap, Rounding
from outvote.judge.vote import Vote
from outvote.localize.causal import Cause
from outvote.localize.isolated import Deed, Fault
from outvote.localize.layers import Localization

LAYER = Layer("d", "Dense", {"units": 3, "dtype": "float32"}, args=[{REF: ["x", 0]}])
MODEL = Model("m", (Input("x", (None, 2), "float32"),), (LAYER,), (Ref("d"),), "keras")
X = np.array([[1.0, 2.0]], np.float32)


def gives(*values: Any, dtype: str = "float32") -> Outputs:
    return Outputs((np.array(values, dtype),), (dtype,))


def fails(message: str = "ValueError: no", outcome: Outcome = Outcome.ERROR) -> Run:
    return Run("bad", outcome, message=message)


def seen(
    outputs: Mapping[str, Outputs],
    failures: Mapping[str, Run] | None = None,
    kind: str = "inconsistency",
    majority: tuple[str, ...] = ("a", "b"),
    distance: float = 0.25,
) -> Observation:
    names = [*outputs, *(failures or {})]
    others = tuple((name,) for name in names if name not in majority)
    groups = (majority, *others) if majority else tuple((name,) for name in names)
    vote = Vote(groups, majority, "two libraries agree")
    return Observation(outputs, failures or {}, kind, Gap(distance, 1e-5), Rounding(()), vote)


def proof_of(observation: Observation, **more: Any) -> Proof:
    made = {"matter": {}, "defaults": {}, "layers_before": 5, "numbers_before": 90, **more}
    return Proof(Specimen(MODEL, (X,)), observation, seconds=1.0, complete=True, **made)


def finding_of(observation: Observation, **more: Any) -> Finding:
    values = {"proof": proof_of(observation), "layer": LAYER, "library": "bad", **more}
    kind = observation.kind or ""
    return Finding(kind, "a title", "a reason", ("bad",), "bad", "bug", "keras", **values)


TWO = {"a": gives(1, 2), "b": gives(1, 2)}


# Titles


@pytest.mark.parametrize(
    ("kind", "accused", "observation", "title"),
    [
        (
            *("inconsistency", "bad", seen({**TWO, "bad": gives(1, 3)})),
            "bad differs by 0.25 (relative) in Dense layer 'd'",
        ),
        (
            *("inconsistency", "bad", seen({**TWO, "bad": gives(1, 3)}, distance=np.inf)),
            "bad differs in infinities in Dense layer 'd'",
        ),
        (
            *("nan", "bad", seen({**TWO, "bad": gives(1, np.nan)}, kind="nan")),
            "bad gives NaN, unlike the others, in Dense layer 'd'",
        ),
        (
            *("nan", "bad", seen({"a": gives(np.nan), "bad": gives(1)}, kind="nan")),
            "bad drops NaN, unlike the others, in Dense layer 'd'",
        ),
        (
            *("crash", "bad", seen(TWO, {"bad": fails("ValueError: no")}, "crash")),
            "bad fails in Dense layer 'd': ValueError: no",
        ),
        (
            *("hang", "bad", seen(TWO, {"bad": fails("silent", Outcome.HANG)}, "hang")),
            "bad hangs in Dense layer 'd': silent",
        ),
        (
            *("shape", "bad", seen({**TWO, "bad": gives(1)}, kind="shape")),
            "bad gives (1,) instead of (2,) in Dense layer 'd'",
        ),
        (
            *("shape", "bad", seen({**TWO, "bad": gives(1, 2, dtype="float64")}, kind="shape")),
            "bad gives float64 instead of float32 in Dense layer 'd'",
        ),
        (
            *("shape", "a", seen({"a": gives()}, {"bad": fails()}, "shape", majority=("bad",))),
            "a gives an empty result, and the others refuse, in Dense layer 'd'",
        ),
        (
            *("shape", "gone", seen(TWO, kind="shape")),
            "gone gives another shape or dtype in Dense layer 'd'",
        ),
        (
            *("inconsistency", None, seen({"a": gives(1), "b": gives(2)}, majority=())),
            "Dense layer 'd': a and b disagree by 0.25 (relative)",
        ),
        (
            *("nan", None, seen({"a": gives(1), "b": gives(np.nan)}, kind="nan", majority=())),
            "Dense layer 'd': a gives numbers, b gives NaN",
        ),
        (
            *("crash", None, seen({"a": gives(1)}, {"b": fails("died")}, "crash", majority=())),
            "Dense layer 'd': a computes it, b fails (died)",
        ),
        (
            *("shape", None, seen({"a": gives(1), "b": gives(1, 2)}, kind="shape", majority=())),
            "Dense layer 'd': a gives (1,), b gives (2,)",
        ),
    ],
)
def test_a_title_says_who_does_what_where(
    kind: str, accused: str | None, observation: Observation, title: str
) -> None:
    assert title_of(kind, accused, LAYER, observation, alone=True) == title
    whole = title_of(kind, accused, LAYER, observation, alone=False)
    assert "Dense layer 'd', in the whole graph only" in whole


def test_what_frameworks_wrap_around_a_message_is_taken_off() -> None:
    wrapped = (
        "ValueError: ValueError: Exception encountered when calling Dense.call().\n\n"
        "{{function_node __wrapped__X}} the sizes differ [Op:MatMul] name: \n"
        "Arguments received by Dense.call():\n  • inputs=tf.Tensor"
    )
    title = title_of("crash", "bad", LAYER, seen(TWO, {"bad": fails(wrapped)}, "crash"), True)
    assert title == "bad fails in Dense layer 'd': ValueError: the sizes differ"
    long = title_of("crash", "bad", LAYER, seen(TWO, {"bad": fails("x" * 500)}, "crash"), True)
    assert long.endswith("x…")
    assert len(long) < 200


# Who and what is the cause


@settings(max_examples=20)
@given(st.permutations(["a", "b", "c"]), st.permutations(["size", "padding", "flag"]))
def test_a_fingerprint_does_not_know_in_which_order_things_came(
    targets: list[str], parameters: list[str]
) -> None:
    values = {"size": 3, "padding": "same", "flag": True}
    matter = {name: values[name] for name in parameters}
    found = finding_of(seen(TWO), proof=proof_of(seen(TWO), matter=matter), library=None)
    other = found.but(targets=("a", "b", "c"))
    assert found.but(targets=tuple(targets)).fingerprint == other.fingerprint


def test_a_fingerprint_is_of_the_cause_and_not_of_words_names_and_figures() -> None:
    found = finding_of(seen(TWO))
    same = found.but(
        title="other words", reason="r", distance=9.0, inputs=(4,), triage="unknown", detail="log"
    )
    assert found.fingerprint == same.fingerprint
    renamed = replace(LAYER, name="dense_77")
    assert found.but(proof=None, layer=renamed).fingerprint == found.but(proof=None).fingerprint
    for change in ({"kind": "nan"}, {"library": "jax"}, {"layer": replace(LAYER, kind="Conv2D")}):
        assert found.but(proof=None, **change).fingerprint != found.but(proof=None).fingerprint
    half = replace(LAYER, config={**LAYER.config, "dtype": "float16"})
    assert found.but(proof=None, layer=half).fingerprint != found.but(proof=None).fingerprint


def test_whose_code_is_at_fault() -> None:
    plain = fake("t", library="torch")
    assert cause_of(plain, "Dense") == "torch"
    assert cause_of(replace(plain, setup=Path("p/mend.py")), "Dense") == "torch with mend.py"
    borrowing = replace(plain, borrows={"numpy": ("*Pool*",)})
    assert cause_of(borrowing, "MaxPooling2D") == "numpy"
    assert cause_of(borrowing, None) == "torch"
    assert cause_of(ONNX["twin:simplified"], "Relu") == "simplified by onnxsim"


def test_error_messages_are_known_again_without_their_figures() -> None:
    assert head_of("rank 3 of [1, 2]") == head_of("rank 15 of [9]") == "rankof"
    assert len(head_of("x" * 500)) == 60


# Failures


def targets_of(*names: str) -> dict[str, Target]:
    return {name: fake(name) for name in names}


def test_a_target_that_fails_where_two_libraries_finish_is_accused() -> None:
    ok = Run("a", Outcome.OK)
    runs = {"a": ok, "b": replace(ok, target="b"), "bad": replace(fails("E: x"), layer="d")}
    (found,) = findings_from_failures(runs, targets_of(*runs), MODEL)
    assert (found.accused, found.triage, found.layer) == ("bad", "bug", LAYER)
    assert found.title == "bad fails in Dense layer 'd': E: x"


@pytest.mark.parametrize("kind", ["crash", "hang"])
def test_a_failure_of_a_layer_alone_is_told_as_of_a_whole_model(kind: str) -> None:
    """So that what is known covers it, and it is not looked into twice."""
    outcome = Outcome.HANG if kind == "hang" else Outcome.ERROR
    run = replace(fails("E: x", outcome), layer="d")
    runs = {"a": Run("a", Outcome.OK), "b": Run("b", Outcome.OK), "bad": run}
    (whole,) = findings_from_failures(runs, targets_of(*runs), MODEL)
    vote = Vote((("a", "b"), ("bad",)), ("a", "b"), "r")
    deeds = {"bad": Deed(kind, 0.0)}
    fault = Fault(LAYER, (), TWO, kind, 0.0, 0.0, vote, {"bad": "E: x"}, deeds)
    seen_alone = Localization("a", {}, {}, {}, {}, (fault,))
    (alone,) = findings_from_faults(seen_alone, targets_of(*runs), [0])
    assert (alone.kind, alone.accused) == (whole.kind, whole.accused) == (kind, "bad")
    if kind == "crash":
        assert alone.title == whole.title == "bad fails in Dense layer 'd': E: x"
    else:
        assert alone.title == "bad hangs in Dense layer 'd': E: x"


def test_where_one_finishes_nobody_is_accused_and_gaps_are_no_findings() -> None:
    runs = {"a": Run("a", Outcome.OK), "bad": fails(), "gap": fails(outcome=Outcome.UNSUPPORTED)}
    (found,) = findings_from_failures(runs, targets_of(*runs), MODEL)
    assert (found.targets, found.accused, found.triage) == (("bad",), None, "unknown")
    assert found.layer is None
    assert findings_from_failures({"a": Run("a", Outcome.OK)}, targets_of("a"), MODEL) == []


def test_targets_of_one_library_that_fail_alike_are_one_finding() -> None:
    runs = {name: Run(name, Outcome.OK) for name in "ab"}
    runs |= {name: replace(fails(), target=name) for name in ("bad", "bad:jit")}
    targets = {**targets_of("a", "b"), **{n: fake(n, library="bad") for n in ("bad", "bad:jit")}}
    assert len(findings_from_failures(runs, targets, MODEL)) == 1
    runs["bad:jit"] = replace(runs["bad:jit"], outcome=Outcome.HANG)
    assert len(findings_from_failures(runs, targets, MODEL)) == 2


def test_a_refusal_speaks_against_who_accepts() -> None:
    vote = Vote((("a", "b"), ("bad",)), ("a", "b"), "r")
    fault = Fault(LAYER, (), {"bad": gives()}, "shape", 0.0, 0.0, vote, {"a": "no", "b": "no"})
    found = Finding("shape", "t", "r", ("bad",), "bad", "bug", "keras", fault=fault)
    assert fault.is_refused
    assert told_by(found) == {"a", "b", "bad"}
    assert told_by(found.but(fault=None)) == {"bad"}


@pytest.mark.parametrize("order", [1, -1])
def test_of_one_cause_what_its_type_does_not_explain_is_told(order: int) -> None:
    found = finding_of(seen({**TWO, "bad": gives(1, 3)}))
    both = [found, found.but(triage="precision")][::order]
    (told,) = by_cause(both).values()
    assert told.triage == "bug"


# What would be right


def answer(observation: Observation, triage: str = "bug", **more: Any) -> tuple[Any, str]:
    found = finding_of(observation).but(triage=triage)
    return right_answer(found, proof_of(observation, **more))


def test_the_exact_result_is_right_where_it_is_known_and_someone_is_wrong() -> None:
    exact = Outputs((np.array([1.0, 2.5]),), ("float64",))
    right, source = answer(seen({**TWO, "bad": gives(1, 3)}), expected=exact, source="the formula")
    assert (right.tolist(), right.dtype, source) == ([1.0, 2.5], np.float32, "the formula")
    right, source = answer(seen(TWO), "unknown", expected=exact, source="the formula")
    assert right.tolist() == [1.0, 2.0], "undecided: not even the formula accuses"


@pytest.mark.parametrize(
    ("kind", "numbers"), [("shape", [1.0, 2.0]), ("inconsistency", [1.0, 2.5])]
)
def test_where_the_form_is_at_stake_those_who_have_it_say_the_numbers(
    kind: str, numbers: list[float]
) -> None:
    """The formula may have none there."""
    exact = Outputs((np.array([1.0, 2.5]),), ("float64",))
    right, _ = answer(seen({**TWO, "bad": gives(1)}, kind=kind), expected=exact, source="it")
    assert right.tolist() == numbers
    longer = Outputs((np.array([1.0, 2.5, 3.0]),), ("float64",))
    right, _ = answer(seen({**TWO, "bad": gives(1)}, kind=kind), expected=longer, source="it")
    assert right.tolist() == [1.0, 2.5, 3.0], "they have not"


def test_else_it_is_what_the_majority_agrees_on_or_one_side_says_and_never_the_accused() -> None:
    right, source = answer(seen({"a": gives(1, 2), "bad": gives(9, 9)}, majority=("bad",)))
    assert right.tolist() == [1, 2]
    right, source = answer(seen({"bad": gives(9, 9), **TWO}))
    assert (right.tolist(), source) == ([1, 2], "a, b: what they agree on")
    right, source = answer(seen({"bad": gives(9, 9), "a": gives(1, 2)}, majority=()))
    assert (right.tolist(), source) == ([1, 2], "a: one side's answer: it is undecided")


def test_a_right_target_may_refuse() -> None:
    refused = seen({"bad": gives()}, {"a": fails()}, "shape", majority=("a",))
    assert answer(refused) == (None, "the others, which refuse this with an exception")
    nobody = seen({}, {"bad": fails()}, "crash", majority=())
    assert answer(nobody) == (None, "nobody: no target gives a result")


# The issue


HELLOS = {
    name: Run(
        name,
        Outcome.OK,
        Hello(versions={"keras": "3.15.1"}, precision={}, python="3.11", platform="Linux"),
    )
    for name in ("a", "bad")
}


def test_an_issue_tells_all_that_was_learnt() -> None:
    exact = Outputs((np.array([1.0, 2.0]),), ("float64",))
    observation = seen({**TWO, "bad": gives(1, 3)}, {"hung": fails("no\nprogress", Outcome.HANG)})
    proof = proof_of(
        observation,
        matter={"padding": "same"},
        causes=(Cause("size", 3, (2, 4), 5),),
        errors={"bad": 0.5, "a": 0.0},
        expected=exact,
        source="the formula",
        shown=2,
        tried=3,
    )
    text = issue_text(finding_of(observation, proof=proof, detail="the log"), HELLOS, "print(1)")
    for part in (
        "# a title",
        "- kind: inconsistency; verdict: bug",
        "- smallest case: 1 layer, 2 numbers (from 5 and 90)",
        "- it needs `padding='same'`",
        "- targets agree with `2`, `4` instead of `size=3`",
        "- shown again in 2 of 3 fresh workers",
        "```python\nprint(1)",
        "distance to the exact result",
        "hang: no progress",
        "by the formula. Rounding of the input",
        "## Log\n\n```\nthe log",
        "keras 3.15.1",
    ):
        assert part in text, part
    order = [
        "# a title",
        "## Script that judges",
        "## What each target gives",
        "## Expected",
        "## Log",
    ]
    places = [text.index(heading) for heading in [*order, "## Versions"]]
    assert places == sorted(places)


def test_an_issue_without_a_proof_shows_the_layer_and_what_was_given() -> None:
    fault = Fault(LAYER, (), TWO, "nan", 0.0, 0.0, Vote((), (), "r"), {})
    found = finding_of(seen(TWO)).but(proof=None, fault=fault)
    text = issue_text(found, HELLOS, None)
    assert "## The layer: Dense" in text
    assert '"units": 3' in text
    assert "(2,): 1, 2" in text
    assert "## Script that judges" not in text


def test_types_are_told_where_they_differ_and_long_arrays_are_cut() -> None:
    many = gives(*range(20))
    text = issue_text(finding_of(seen({"a": many, "b": gives(1, dtype="int32")})), HELLOS, None)
    assert "float32 (20,): 0, 1, 2, 3, 4, 5, 6, 7, …" in text
    assert "int32 (1,): 1" in text


def test_what_bisect_found_stands_before_the_versions_once() -> None:
    releases: list[dict[str, Any]] = [
        {"version": "1.0", "state": "consistent", "distance": 0.0},
        {"version": "1.1", "state": "inconsistent", "distance": 0.12345},
        {"version": "1.2", "state": "skipped", "distance": None},
    ]
    text = issue_text(finding_of(seen(TWO)), HELLOS, None)
    for summary in ("first bad in 1.0", "first bad in 1.1", "first bad in 1.1"):
        text = with_releases(text, summary, releases)
    assert text.count("## Since when") == 1
    assert "first bad in 1.0" not in text, "what was said before goes"
    assert text.count("first bad in 1.1") == 1
    assert text.count("| 0.12 |") == 1
    assert text.index("## Since when") < text.index("## Versions")
