"""In other people's tests: the plug-in of pytest, assertions, strategies for Hypothesis."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis.database import InMemoryExampleDatabase

from outvote import strategies
from outvote.core.errors import UsageError
from outvote.findings.known import load_known
from outvote.mutate.drawn import DrawnModel
from outvote.testing import InconsistentError, assert_consistent
from outvote.testing.current import state
from outvote.testing.outvoted import Outvote
from outvote.testing.session import CurrentTest, Setting

X = np.random.default_rng(0).normal(size=(3, 4)).astype("float32")
# Three fakes; the last has a fault in every layer of a kind.
TARGETS = "\n".join(f'[targets.{name}]\nextends = "fake"\nlibrary = "{name}"' for name in "abc")
TARGETS += '\nenv = {OUTVOTE_FAKE = "lie:ReLU"}\n'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "outvote.toml").write_text(TARGETS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def outvote(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Outvote]:
    """As the plug-in makes it; the test at work asks for no options."""
    begun = Outvote(Setting(targets=("a", "b", "c"), out=folder / "out", root=folder))
    monkeypatch.setattr(state, "_begun", begun)
    monkeypatch.setattr(state, "test", CurrentTest("test_mine.py::test_it[a/b]"))
    yield begun
    begun.close()


def test_what_agrees_passes_and_has_a_result(outvote: Outvote, fake_model: Path) -> None:
    result = outvote.assert_consistent(fake_model, X, targets=["a", "b"])
    assert result is not None
    assert result.consistent
    assert not (result.folder or Path()).exists()


def test_a_failure_says_who_where_why_and_what(outvote: Outvote, fake_model: Path) -> None:
    with pytest.raises(InconsistentError) as failure:
        outvote.assert_consistent(fake_model, X, minimise=0)
    text = str(failure.value)
    assert text.startswith("c differs by 0.0099 (relative) in ReLU layer 'relu'.")
    assert "  accused: c\n  layer:   ReLU 'relu'\n  why:     " in text
    assert re.search(r"answers to input \d:\n  a  \[\d\] .*\n  b  \[\d\] .*\n  c  \[\d\] ", text)
    failure.value.write_evidence()
    *scripts, report = failure.value.__notes__
    where = "out/test_mine.py-test_it-a-b"
    assert f"/{where}/" in report
    assert Path(report.removeprefix("report: ")).is_file()
    for script in scripts:
        assert re.fullmatch(rf"repro: python .*/{where}/findings/[0-9a-f]{{12}}/repro.py", script)
        assert Path(script.removeprefix("repro: python ")).is_file()


@pytest.mark.slow
def test_known_findings_pass_and_are_listed_on_demand(fake_model: Path, folder: Path) -> None:
    updating = Outvote(Setting(targets=("a", "c"), update_known=True, root=folder))
    plain = Outvote(Setting(targets=("a", "c"), root=folder))
    state.notes.clear()
    try:
        with pytest.raises(InconsistentError):
            plain.assert_consistent(fake_model, X, minimise=0)
        updating.assert_consistent(fake_model, X, minimise=0)
        updating.assert_consistent(fake_model, X, minimise=0)
        (entry,) = load_known(folder / "known.toml", folder).entries
        assert entry.reason.startswith("accepted as it is: ReLU layer 'relu': a and c")
        (note,) = state.notes
        assert note.startswith(f"{entry.fingerprint} (ReLU layer")
        assert note.endswith(f"is now listed in {folder / 'known.toml'}")
        plain.assert_consistent(fake_model, X, minimise=0)
    finally:
        state.notes.clear()
        updating.close()
        plain.close()


def test_options_of_the_session_the_marker_and_the_call(
    fake_model: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting = Setting(targets=("a", "c"), fail_on="bug", memory=8, processes=2, root=folder)
    lenient = Outvote(setting)
    try:
        monkeypatch.setattr(state, "test", CurrentTest("t", {"fail_on": "any", "minimise": 0}))
        assert lenient.assert_consistent(fake_model, X)  # two targets: no bug can be told
        with pytest.raises(InconsistentError):
            lenient.assert_consistent(fake_model, X, fail_on="any")
        monkeypatch.setattr(state, "test", CurrentTest("t", {"target": ["a"]}))
        with pytest.raises(UsageError, match="there is no setting 'target' of check"):
            lenient.assert_consistent(fake_model)
        monkeypatch.setattr(state, "test", CurrentTest("t"))
        with pytest.raises(UsageError, match="--outvote-out"):
            lenient.assert_consistent(fake_model, out="here")
    finally:
        lenient.close()


def identity(x: Any) -> Any:
    return x


@pytest.mark.parametrize(
    ("functions", "message"),
    [
        ([np.tanh, lambda x: np.sinh(x) / np.cosh(x)], None),
        ({"sum": np.sum, "by parts": lambda x: x[::2].sum() + x[1::2].sum()}, None),
        ([identity, identity], None),
        ({"a": np.sin, "b": np.sin, "c": lambda x: np.sin(x) * 1.01}, "^c is outvoted by a, b\n"),
        ({"a": np.sin, "b": np.cos}, r"^a and b: apart by .*\n\nanswers to input \d:\n  a  "),
        ({"a": identity, "b": lambda x: x[:, :1]}, "^a and b: "),
        ({"a": identity, "b": lambda x: x.nothing}, "^a answer, and not the others:\n  b: Attrib"),
        ({"a": identity, "b": lambda x: x * np.nan}, "^a and b: apart by nan"),
    ],
)
def test_functions_of_any_library(functions: Any, message: str | None) -> None:
    if message is None:
        assert assert_consistent(functions, X.reshape(-1)) is None
        return
    with pytest.raises(InconsistentError, match=message):
        assert_consistent(functions, X)


def test_what_cannot_be_asserted_is_told(outvote: Outvote) -> None:
    with pytest.raises(UsageError, match="needs two functions or more"):
        assert_consistent([np.sin])
    with pytest.raises(UsageError, match="functions need `inputs`"):
        assert_consistent([np.sin, np.cos])
    with pytest.raises(UsageError, match="expected a Keras model or the path"):
        assert_consistent(3)


# Hypothesis

QUICK = settings(max_examples=20, phases=[Phase.generate, Phase.shrink])


def agreement(failed: list[DrawnModel], kinds: list[str] | None, use: settings) -> None:
    """The test of a backend, run at once; what it fails with is kept."""

    @use
    @given(strategies.models(kinds))
    def backends_agree(model: DrawnModel) -> None:
        try:
            assert_consistent(model)
        except InconsistentError:
            failed.append(model)
            raise

    with pytest.raises(InconsistentError, match=r"c differs by 0.0099 .* in ReLU layer 'relu_1'"):
        backends_agree()
    assert repr(failed[-1]) == "float32[12] → ReLU()"


@pytest.mark.slow
def test_a_planted_fault_is_found_and_shrunk_to_one_layer(outvote: Outvote) -> None:
    failed: list[DrawnModel] = []
    agreement(failed, None, QUICK)
    assert len(failed) > 1


@pytest.mark.slow
def test_what_has_failed_is_replayed_from_the_database(outvote: Outvote) -> None:
    database, kinds = InMemoryExampleDatabase(), ["Dense", "ReLU"]
    kept = settings(derandomize=False, database=database, max_examples=60)  # one in two finds it
    agreement([], kinds, settings(kept, phases=[Phase.generate, Phase.shrink]))
    again: list[DrawnModel] = []
    agreement(again, kinds, settings(kept, phases=[Phase.reuse]))
    assert len(again) <= 4, "what it holds is run again, and nothing is drawn"


@pytest.mark.slow
def test_inputs_and_parameters_are_drawn_for_a_model(outvote: Outvote) -> None:
    def with_inputs(model: DrawnModel) -> Any:
        return strategies.inputs_for(model).map(lambda inputs: (model, inputs))

    @QUICK
    @given(strategies.layers(["Dense"]).flatmap(with_inputs))
    def fits(drawn: tuple[DrawnModel, list[Any]]) -> None:
        model, (x,) = drawn
        assert [layer.kind for layer in model.model.layers] == ["Dense"]
        assert x.shape[1:] == model.model.inputs[0].shape[1:]
        assert np.isfinite(x).all()
        assert_consistent(model, [x])

    @QUICK
    @given(strategies.parameters("Dense"))
    def needed(values: dict[str, Any]) -> None:
        assert values["units"] > 0

    @QUICK
    @given(strategies.layers(["Lambda"]))
    def unknown(model: DrawnModel) -> None:
        raise AssertionError(model)

    fits()
    needed()
    with pytest.raises(UsageError, match="'Lambda' cannot be drawn: there is no such layer"):
        unknown()


# In a pytest of its own

TESTS = """
import numpy as np, pytest

@pytest.mark.outvote(targets=["a", "b"])
def test_good(outvote):
    assert outvote.assert_consistent("model.json").consistent

@pytest.mark.outvote(minimise=0)
def test_bad(outvote):
    outvote.assert_consistent("model.json", np.ones((3, 4), "float32"))
"""


FAKES = f"""
import sys

sys.path.append({str(Path(__file__).parent)!r})
import pytest, zygote

@pytest.fixture(scope="session", autouse=True)
def _quick_workers():
    with zygote.quick_workers():
        yield
"""


def run_pytest(*arguments: str, text: str = TESTS, **env: str) -> str:
    Path("test_mine.py").write_text(text)
    Path("conftest.py").write_text(FAKES)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "outvote.testing.plugin", *arguments],
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **env},
        capture_output=True,
        text=True,
    )
    assert not done.stderr, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_plug_in_in_two_processes_of_xdist(fake_model: Path, folder: Path) -> None:
    shared = ("--outvote-targets", "a,b,c", "--strict-markers")
    told = run_pytest(*shared, "-p", "xdist", "-n", "2", "--outvote-out", "reports")
    assert "1 failed, 1 passed" in told
    assert "  accused: c" in told
    assert f"report: {folder}/reports/test_mine.py-test_bad/report.html" in told
    assert "outvoted.py" not in told.partition("short test summary")[0], "our frames are hidden"
    assert "is now listed in" in run_pytest(*shared, "-k", "bad", "--outvote-update-known")


KERAS = """
import keras, numpy as np
from hypothesis import Phase, given, settings
from outvote import strategies
from outvote.testing import assert_consistent

x = np.random.default_rng(0).normal(size=(2, 8)).astype("float32")

def test_a_layer(outvote):
    outvote.assert_consistent(keras.layers.LayerNormalization(), inputs=x)

def test_a_function(outvote):
    outvote.assert_consistent(lambda a: keras.ops.softmax(a * 2), inputs=x)

def test_a_model(outvote):
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(3)])
    outvote.assert_consistent(model, inputs=x)

@given(strategies.models(["Dense", "ReLU", "ELU", "Rescaling"]))
@settings(max_examples=30, deadline=None, derandomize=True, database=None,
          phases=[Phase.generate, Phase.shrink])
def test_a_backend(model):
    assert_consistent(model, targets=["mine", "numpy"])
"""
PLANTED = """
from keras.src import backend
honest = backend.nn.elu
backend.nn.elu = lambda x, alpha=1.0: honest(x, alpha=alpha * 1.1)
"""


@pytest.mark.frameworks
def test_layers_functions_models_and_a_planted_backend(folder: Path) -> None:
    Path("planted.py").write_text(PLANTED)
    Path("outvote.toml").write_text('[targets.mine]\nextends = "numpy"\nsetup = "planted.py"\n')
    told = run_pytest(
        *("-p", "_hypothesis_pytestplugin", "--outvote-targets", "numpy,jax"),
        text=KERAS,
        KERAS_BACKEND="numpy",
    )
    assert "1 failed, 3 passed" in told, told
    assert re.search(r"model=float32\[12\] → ELU\(\)", told), told
    assert "ELU layer 'elu_1'" in told
