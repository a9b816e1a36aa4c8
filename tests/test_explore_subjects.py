"""What `explore` takes: models of one form, answers of one kind, features that keep their rules."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import fake
from outvote.core.arrays import Array
from outvote.core.errors import UsageError
from outvote.core.model import REF, Input, Layer, Model, Ref
from outvote.explore.job import Differences, Explored, ExploreJob, ModelUnderTest
from outvote.explore.legal import legal_range, read_features, rules_for
from outvote.explore.retrained import _labelled, _rest, _voted, retrain
from outvote.explore.second_target import confirmed, require_another
from outvote.explore.subjects import kind_of_answers, read_subjects, require_comparable

JOB = ExploreJob((Path("a"), Path("b")), {}, fake("searches"))


def subject(
    name: str, shape: tuple[int | None, ...] = (None, 4), *, dtype: str = "float32",
    answers: tuple[int | None, ...] = (None, 3), activation: str = "linear",
) -> ModelUnderTest:  # fmt: skip
    layer = Layer("d", "Dense", {"activation": activation}, [{REF: ["x", 0]}])
    model = Model(name, (Input("x", shape, dtype),), (layer,), (Ref("d"),), "keras")
    return ModelUnderTest(name, Path(f"{name}.keras"), model, answers)


# Models.


def test_models_that_take_and_give_the_same_can_be_compared() -> None:
    require_comparable([subject("a"), subject("b"), subject("c", activation="softmax")])


@pytest.mark.parametrize(
    ("pair", "says"),
    [
        (
            (subject("a", dtype="int32"), subject("b")),
            "input 'x' of a.keras takes int32: there is no gradient to follow to other integers; "
            "cut the model behind its embedding",
        ),
        (
            (subject("a"), subject("b", (None, 5))),
            "the models take different inputs: a.keras takes (4), b.keras takes (5); give models "
            "for the same data",
        ),
        (
            (subject("a", (None, None, 2)), subject("b", (None, 4, 2))),
            "a.keras takes (any, 2), b.keras takes (4, 2)",
        ),
        (
            (subject("a"), subject("b", answers=(None, 2))),
            "the models answer in different forms: a.keras gives (3), b.keras gives (2); give "
            "models with the same classes",
        ),
        (
            (subject("a", answers=(None, 5, 3)), subject("b", answers=(None, 5, 3))),
            "a.keras gives (5, 3), b.keras gives (5, 3)",
        ),
    ],
)
def test_models_that_cannot_be_compared(pair: tuple[Any, Any], says: str) -> None:
    with pytest.raises(UsageError) as refused:
        require_comparable(pair)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("job", "made", "kind"),
    [
        ({}, {}, "classes"),
        ({}, {"answers": (None, 1), "activation": "sigmoid"}, "classes"),
        ({"tolerance": 0.1}, {"answers": (None, 1)}, "values"),
        ({"edges": (0.0,)}, {"answers": (None, 1)}, "values"),
        ({"answers": "values", "tolerance": 0.1}, {}, "values"),
        ({"answers": "classes"}, {"answers": (None, 1)}, "classes"),
    ],
)
def test_the_kind_of_answers(job: dict[str, Any], made: dict[str, Any], kind: str) -> None:
    assert kind_of_answers(replace(JOB, **job), [subject("a", **made)] * 2) == kind


def test_values_need_a_border_and_classes_have_none() -> None:
    values = [subject("a", answers=(None, 1))] * 2
    with pytest.raises(UsageError, match=r"with --tolerance T .* or --bins E1,E2"):
        kind_of_answers(JOB, values)
    one_sigmoid = [subject("a", answers=(None, 1), activation="sigmoid"), values[0]]
    with pytest.raises(UsageError, match="the models give values, not classes"):
        kind_of_answers(JOB, one_sigmoid)
    for more in ({"tolerance": 0.0}, {"edges": (1.0,)}):
        with pytest.raises(UsageError, match="leave them out, or add --answers values"):
            kind_of_answers(replace(JOB, **more), [subject("a")] * 2)


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["a.keras", "b.keras"], ["a", "b"]),
        (["one/m.keras", "two/m.keras", "two/n.keras"], ["one/m", "two/m", "two/n"]),
        (["x/m.keras", "x/m.h5"], ["1: x/m", "2: x/m"]),
        (["m.keras", "m.keras"], ["1: /m", "2: /m"]),
    ],
)
def test_models_are_told_apart_by_as_much_of_their_path_as_it_takes(
    paths: list[str], names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = subject("a").model
    monkeypatch.setattr(
        "outvote.explore.subjects.read_model", lambda pool, path, weights: (model, [[None, 3]])
    )
    found = read_subjects(None, list(map(Path, paths)))  # type: ignore[arg-type]
    assert [item.name for item in found] == names
    assert [str(item.path) for item in found] == paths


# What may change.

FEATURES = "name,group,unit,increment,decrement,low,high\nsize,doc,2,1,0,0,\npages,doc,,yes,no,,9\n"


def features_in(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "features.csv"
    path.write_text(text)
    return path


def test_features_that_are_left_out_are_the_usual_ones(tmp_path: Path) -> None:
    found = read_features(features_in(tmp_path, FEATURES))
    assert found.names == ("size", "pages")
    assert found.unit.tolist() == [2.0, 1.0]
    assert (found.increment.tolist(), found.decrement.tolist()) == ([True, True], [False, False])
    np.testing.assert_array_equal(found.low, [0, np.nan])
    np.testing.assert_array_equal(found.high, [np.nan, 9])
    bare = read_features(features_in(tmp_path, "name\na\nb\n"))
    assert bare.increment.all()
    assert bare.decrement.all()
    assert bare.groups == ("", "")
    empty = read_features(features_in(tmp_path, "name,increment\na,\nb,1\n"))
    assert empty.increment.tolist() == [
        False,
        True,
    ]  # an empty cell says no


def test_a_file_that_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"the features file .*none\.csv does not exist"):
        read_features(tmp_path / "none.csv")
    (tmp_path / "binary.csv").write_bytes(b"name\n\xff\xfe\n")
    with pytest.raises(UsageError, match=r"binary\.csv is not a readable CSV file"):
        read_features(tmp_path / "binary.csv")
    with pytest.raises(UsageError, match="is not a readable CSV file"):
        read_features(tmp_path)


def rules(job: ExploreJob, array: Array, features: Any = None) -> Any:
    (found,) = rules_for(job, [array], features)
    return found


def test_a_feature_keeps_to_its_group_its_direction_and_its_range(tmp_path: Path) -> None:
    path = features_in(tmp_path, "name,group,decrement,low,high\na,g,1,-5,\nb,h,1,,7\nc,g,0,,\n")
    job = replace(JOB, constraint="integer", features=path, groups=("g",))
    found = rules(job, np.array([[0.0, 0.0, 3.0], [1.0, 4.0, 3.0]]), read_features(path))
    assert found.increase.tolist() == [True, False, True]
    assert found.decrease.tolist() == [True, False, False]
    assert found.low.tolist() == [-5, 0, 0]
    assert found.high.tolist() == [255, 7, 255]
    free = rules(replace(job, groups=()), np.zeros((1, 3)), read_features(path))
    assert (free.increase.tolist(), free.decrease.tolist()) == ([True] * 3, [True, True, False])


@pytest.mark.parametrize(
    ("text", "more", "says"),
    [
        ("name\na\n", {}, "describes 1 features, but an input has shape (2,)"),
        ("name,group\na,g\nb,h\n", {"groups": ("z",)}, "has no group 'z'; it has g, h"),
        ("name,low,high\na,3,2\nb,,\n", {}, "feature 'a' has the range 3 to 2; low must not be ab"),
        ("name\na\nb\n", {"constraint": "light"}, "light changes all values alike and cannot keep"),
    ],
)
def test_features_that_do_not_fit(
    tmp_path: Path, text: str, more: dict[str, Any], says: str
) -> None:
    path = features_in(tmp_path, text)
    job = replace(JOB, **{"constraint": "integer", "features": path, **more})
    with pytest.raises(UsageError) as refused:
        rules(job, np.zeros((3, 2)), read_features(path))
    assert says in str(refused.value)


def test_what_is_added_is_there_or_not(tmp_path: Path) -> None:
    job = replace(JOB, constraint="add-only")
    binary = np.array([[0.0, 1.0], [1.0, 0.0]])
    assert rules(job, binary).step == 1.0
    with pytest.raises(UsageError, match="that may be added holds other values than 0 and 1"):
        rules(job, binary * 0.5)
    path = features_in(tmp_path, "name,increment\na,1\nb,0\n")
    fixed = replace(job, features=path)
    mixed = np.array([[0.0, 0.5], [1.0, 0.2]])
    assert rules(fixed, mixed, read_features(path)).increase.tolist() == [True, False]


@pytest.mark.parametrize("constraint", ["occlusion", "blackout"])
def test_rectangles_need_pictures_that_hold_them(constraint: str) -> None:
    job = replace(JOB, constraint=constraint)
    with pytest.raises(UsageError, match=f"--constraint {constraint} needs pictures"):
        rules(job, np.zeros((2, 5)))
    with pytest.raises(UsageError, match="--rectangle 3x9 does not fit into pictures of 8x8"):
        rules(replace(job, rectangle=(3, 9)), np.zeros((2, 8, 8, 1)))
    assert rules(replace(job, rectangle=(3, 8)), np.zeros((2, 8, 8, 1))).rectangle == (3, 8)


def test_columns_of_a_table_have_ranges_of_their_own_and_pictures_have_one() -> None:
    table = np.array([[-400.0, 1.0], [300.0, 2.0]])
    low, high = legal_range(table, None)
    assert (low.tolist(), high.tolist()) == ([-400, 1], [300, 2])
    low, high = legal_range(table.reshape(1, 2, 2), None)
    assert (low.tolist(), high.tolist()) == ([[-400] * 2] * 2, [[300] * 2] * 2)


# Finds.


def explored_of(labels: list[list[int]]) -> Explored:
    """Finds on which models (rows) gave these classes."""
    answers = [np.eye(4)[row] for row in labels]
    count = len(labels[0])
    found = Differences(
        np.arange(count), [np.arange(count * 4.0).reshape(count, 4)], answers, answers,
        np.ones(count, int), np.zeros(count, int),
    )  # fmt: skip
    return Explored(JOB, subjects=[subject("a"), subject("b")], found=found)


def test_finds_are_labelled_by_more_than_half_or_not_at_all() -> None:
    voted = _voted(explored_of([[1, 0, 2], [1, 1, 2], [3, 2, 2]]))
    assert voted is not None
    assert voted[1].tolist() == [1, 2]
    assert voted[0][0][:, 0].tolist() == [0, 8]
    assert _voted(explored_of([[0, 1], [1, 0]])) is None
    assert _voted(Explored(JOB)) is None


def test_finds_beyond_those_that_are_trained_on_are_a_test() -> None:
    found = ([np.arange(5)], np.arange(5))
    assert _rest(found, 5) is None
    assert _rest(None, 1) is None
    rest = _rest(found, 2)
    assert rest is not None
    assert (rest[0][0].tolist(), rest[1].tolist()) == ([2, 3, 4], [2, 3, 4])


@pytest.mark.parametrize("truth", [None, np.zeros((2, 1), int), np.zeros(2)])
def test_data_to_train_on_needs_one_label_each(truth: Array | None) -> None:
    arrays = {"x": np.zeros((2, 4)), **({} if truth is None else {"y": truth})}
    with pytest.raises(UsageError, match="given with --retrain, needs y: one label for each"):
        _labelled(arrays, explored_of([[0], [1]]), "--retrain")
    inputs, labels = _labelled({**arrays, "y": np.array([1, 0])}, explored_of([[0], [1]]), "--test")
    assert (inputs[0].dtype.name, labels.tolist()) == ("float32", [1, 0])


def test_values_are_not_retrained_and_a_target_does_not_confirm_itself() -> None:
    class Trip:
        job = JOB
        explored = replace(explored_of([[0], [1]]), kind="values")

    with pytest.raises(UsageError, match="--retrain needs models that give classes"):
        retrain(Trip(), None)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="--confirm searches is the target that searches"):
        require_another(replace(JOB, confirm=JOB.target))
    require_another(JOB)
    assert confirmed(Trip(), explored_of([[0, 1], [1, 0]]).found) == [0, 1]  # type: ignore[arg-type]
