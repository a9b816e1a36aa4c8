"""Names of targets: versions, grids, and what cannot be meant."""

from __future__ import annotations

import re

import pytest

from outvote.commands.check.matrix import version_matrix
from outvote.config import Config
from outvote.core.errors import UsageError
from outvote.core.requirements import checked, is_release, name_of, pinned, version_of
from outvote.core.target import Target
from outvote.dialects.keras.targets import BUILT_IN, helpers
from outvote.targets.choose import choose, known_targets
from outvote.targets.names import expanded, split_names

KNOWN = known_targets()


def chosen(text: str) -> list[Target]:
    return choose(split_names(text), KNOWN)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a,b:jit", ["a", "b:jit"]),
        ("torch,keras==3.9.0/torch", ["torch", "keras==3.9.0/torch"]),
        ("keras==3.14.1,jax==0.6.2/jax,torch", ["keras==3.14.1,jax==0.6.2/jax", "torch"]),
        ("keras=={3.8.0,3.9.0}/{a,b},c", ["keras=={3.8.0,3.9.0}/{a,b}", "c"]),
        ("a==1,b,c==2", ["a==1", "b", "c==2"]),
        ("a:m==1,b==2/c", ["a:m==1", "b==2/c"]),
    ],
)
def test_names_are_cut_at_the_right_commas(text: str, names: list[str]) -> None:
    assert split_names(text) == names


def test_braces_stand_for_every_combination() -> None:
    assert expanded("keras=={1,2}/{a,b}") == [
        *("keras==1/a", "keras==1/b"),
        *("keras==2/a", "keras==2/b"),
    ]


def test_a_name_with_a_version_is_its_target_with_requirements() -> None:
    (target,) = chosen("keras==3.9.0/torch:compile")
    assert target.requirements == ("keras==3.9.0",)
    assert (target.worker, target.mode, target.library) == ("keras3", "compile", "torch")
    assert (target.name, target.plain) == ("keras==3.9.0/torch:compile", "torch:compile")


@pytest.mark.parametrize(
    ("text", "plain", "requirements"),
    [
        ("onnxruntime==1.20.1", "onnxruntime", ("onnxruntime==1.20.1",)),
        ("onnxruntime:all==1.18.1", "onnxruntime:all", ("numpy<2", "onnxruntime==1.18.1")),
        ("opencv==4.10.0.84", "opencv", ("opencv-python-headless==4.10.0.84",)),
        ("openvino:onnx==2024.0.0", "openvino:onnx", ("numpy<2", "openvino==2024.0.0")),
        ("openvino==2024.0.0,numpy==2.0/openvino:onnx", "openvino:onnx",
         ("numpy==2.0", "openvino==2024.0.0")),
    ],
)  # fmt: skip
def test_a_runtime_s_release_goes_by_its_own_name(
    text: str, plain: str, requirements: tuple[str, ...]
) -> None:
    (target,) = chosen(text)
    assert (target.name, target.plain, target.library) == (text, plain, KNOWN[plain].library)
    assert target.requirements == requirements


@pytest.mark.parametrize("backend", ["theano", "tensorflow"])
def test_keras_2_is_another_worker_in_a_classic_environment(backend: str) -> None:
    (target,) = chosen(f"keras==2.1.4/{backend}")
    assert (target.worker, target.recipe) == ("keras2", backend)
    assert target.requirements == ("keras==2.1.4",)
    assert target.library == backend  # a version is no independent vote


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("keras==3.9.0,torch", "'keras==3.9.0' names a version but no target"),
        ("onnxruntime==1.20.1,numpy==1.26.4,opencv", "'numpy==1.26.4' names a version"),
        ("onnxruntime==x;y", "is not a requirement"),
        ("onnxruntime=={1.20.1,1.20.1}", "named twice"),
        ("keras==3.9.0/tosch", "there is no target 'tosch'; did you mean 'torch'?"),
        ("keras=={3.9.0/torch", "braces in 'keras=={3.9.0/torch' do not match"),
        ("keras=={3.9.0,}/torch", "hold an empty choice"),
        ("--index-url==x/torch", "is not a requirement"),
        ("keras==2.4.0/theano", "Keras 2.4.0 is not supported; choose 2.0.5 to 2.3.1"),
        ("keras==2.1.4/torch", "Keras 2.1.4 runs on theano, mxnet, tensorflow, not on torch"),
        ("keras==2.1.4/tensorflow:xla", "not on tensorflow:xla"),
        ("keras==3.9.0/theano", "Keras 3 has no backend 'theano'"),
        ("keras==2.2.4/mxnet", "ask for keras-mxnet"),
        ("keras==3.9.0/fake", "fake has no versions"),
        ("keras=={3.9.0,3.9.0}/torch", "named twice"),
    ],
)
def test_what_cannot_be_meant_is_said(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        chosen(text)


def test_requirements_in_the_configuration() -> None:
    tables = {"old": {"extends": "torch", "requirements": ["keras == 3.9.0"], "env": {"A": "1"}}}
    target = known_targets(Config(targets=tables))["old"]
    assert (target.requirements, target.plain) == (("keras==3.9.0",), "torch")
    assert (target.name, target.env) == ("old", {"A": "1"})
    tables["classic"] = {"extends": "tensorflow", "requirements": ["keras==2.1.4"]}
    assert known_targets(Config(targets=tables))["classic"].worker == "keras2"


@pytest.mark.parametrize("asked", ["keras==3.9.0", [1], ["-e ."], ["keras @ file:///x"]])
def test_requirements_that_are_none_are_refused(asked: object) -> None:
    with pytest.raises(UsageError, match="requirement"):
        known_targets(Config(targets={"old": {"extends": "torch", "requirements": asked}}))


@pytest.mark.parametrize(
    ("text", "name", "version"),
    [
        ("keras==3.9.0", "keras", "3.9.0"),
        ("Keras_MXNet===2.2.4.3", "keras-mxnet", "2.2.4.3"),
        ("tensorflow[and-cuda]==2.21.0", "tensorflow", "2.21.0"),
        ("keras==3.9.*", "keras", None),
        ("keras>=3.9,<3.11", "keras", None),
        ("keras", "keras", None),
    ],
)
def test_requirements_are_read_as_pip_reads_them(text: str, name: str, version: str | None) -> None:
    assert checked(f" {text} ", "here") == text
    assert (name_of(text), pinned(text)) == (name, version)


@pytest.mark.parametrize("text", ["keras=3.9", "-r x.txt", "", "keras; python_version>'3'"])
def test_what_is_no_requirement_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"here: .* is not a requirement; write it like keras"):
        checked(text, "here")


def test_candidates_come_before_their_release_and_builds_do_not_count() -> None:
    names = ["2.9.0", "2.10.0rc1", "2.10.0", "2.10.0.post1", "unknown", "2.9.0.dev3"]
    assert sorted(names, key=version_of) == [
        *("unknown", "2.9.0.dev3", "2.9.0", "2.10.0rc1", "2.10.0", "2.10.0.post1"),
    ]
    assert version_of("2.9.0+cpu") == version_of("2.9.0")


def test_a_configuration_cannot_change_what_a_release_means() -> None:
    tables = {"onnxruntime==1.20.1": {"extends": "opencv"}}
    with pytest.raises(UsageError, match=r"would change what 'onnxruntime==1\.20\.1' means"):
        known_targets(Config(targets=tables))


def test_versions_have_an_order() -> None:
    assert sorted(["3.15.1", "3.9.0", "3.9", "2.10"], key=version_of)[0] == "2.10"
    assert version_of("3.9") == version_of("3.9.0")
    assert [is_release(v) for v in ("3.9.0", "3.0.0rc1", "2.1.0.dev1", "1.0.post1")] == [
        *(True, False, False, True),
    ]


def test_a_helper_reads_the_model_where_no_target_is_the_installed_keras() -> None:
    assert helpers([BUILT_IN["jax"]]) == []
    for text in ("keras==2.1.4/theano", "keras==3.3.3/jax"):
        (helper,) = helpers(chosen(text))
        assert (helper.worker, helper.requirements) == ("keras3", ())


def test_a_check_of_one_version_has_no_matrix() -> None:
    assert version_matrix([BUILT_IN["jax"], BUILT_IN["torch"]], {}, [], []) is None
