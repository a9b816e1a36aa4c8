"""Losses and optimisers of PyTorch by name, and what a loss takes for the truth."""

from __future__ import annotations

import numpy as np
import pytest

from outvote.cli import main
from outvote.core.arrays import Array
from outvote.core.errors import UsageError
from outvote.dialects.torch_export.lesson import LOSSES, features, loss_for, named, truth_for

RNG = np.random.default_rng(0)
OUTPUT = RNG.normal(size=(4, 3)).astype("float32")
LABELS = np.array([0, 2, 1, 1])


@pytest.mark.parametrize("text", ["cross_entropy", "crossentropy", "CrossEntropyLoss"])
def test_a_loss_is_known_as_people_write_it(text: str) -> None:
    assert named(text, "--loss")["class_name"] == "CrossEntropyLoss"


def test_arguments_are_json() -> None:
    told = named('{"class_name": "sgd", "config": {"lr": 0.5}}', "--optimizer")
    assert told == {"class_name": "SGD", "config": {"lr": 0.5}}


@pytest.mark.parametrize(
    ("text", "option", "says"),
    [
        ("ctc", "--loss", "--loss 'ctc' is none that PyTorch programs are trained with here"),
        ("lbfgs", "--optimizer", "choose from Adadelta, "),
        ('{"class_name": 1}', "--optimizer", 'has no "class_name"'),
        ("{", "--loss", "--loss is no JSON"),
    ],
)
def test_what_is_not_known_is_refused(text: str, option: str, says: str) -> None:
    with pytest.raises(UsageError) as refused:
        named(text, option)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("output", "labels", "loss"),
    [
        (OUTPUT, LABELS, "CrossEntropyLoss"),
        (OUTPUT[:, :1], np.array([0, 1, 1, 0]), "BCEWithLogitsLoss"),
        (np.full((4, 1), 0.5), np.array([0, 1, 1, 0]), "BCELoss"),
        (OUTPUT, None, "MSELoss"),
    ],
)
def test_a_loss_fits_what_is_known(output: Array, labels: Array | None, loss: str) -> None:
    assert loss_for(output, labels) == {"class_name": loss}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("labels", [LABELS, None])
def test_a_truth_has_the_form_that_its_loss_takes(loss: str, labels: Array | None) -> None:
    truth = truth_for({"class_name": loss}, OUTPUT, labels, None, np.random.default_rng(0))
    if loss in ("CrossEntropyLoss", "NLLLoss", "MultiMarginLoss"):
        assert (truth.shape, truth.dtype) == ((4,), np.dtype("int64"))
        assert set(truth) <= {0, 1, 2}
    else:
        assert (truth.shape, truth.dtype) == (OUTPUT.shape, OUTPUT.dtype)
    if labels is not None and truth.ndim == 2:
        assert list(truth.argmax(axis=1)) == list(LABELS)
    if loss in ("SoftMarginLoss", "HingeEmbeddingLoss"):
        assert set(truth.reshape(-1)) == {-1.0, 1.0}


def test_pixels_have_classes_along_the_second_axis() -> None:
    output, labels = np.zeros((2, 3, 4, 5), "float32"), RNG.integers(0, 3, (2, 4, 5))
    drawn = truth_for({"class_name": "NLLLoss"}, output, None, None, RNG)
    rows = truth_for({"class_name": "MSELoss"}, output, labels, None, RNG)
    assert drawn.shape == (2, 4, 5)
    assert rows.shape == output.shape
    assert rows[1, labels[1, 2, 3], 2, 3] == 1.0


def test_an_optimiser_without_its_decay() -> None:
    decaying = {"class_name": "AdamW", "config": {"lr": 0.1, "weight_decay": 0.5}}
    assert features(decaying)["decay"]["config"] == {"lr": 0.1, "weight_decay": 0.0}
    assert features({"class_name": "SGD"}) == {}


def test_a_graph_of_onnx_is_not_trained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "model.onnx", "--train"]) == 2
    assert "none of the runtimes that run it here differentiates" in capsys.readouterr().err
