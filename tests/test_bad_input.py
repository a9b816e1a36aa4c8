"""Bad input: one clear sentence, exit code 2, no traceback, nothing lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest

from outvote.cli import main
from outvote.core.protocol import R, Request
from outvote.core.target import Run
from outvote.run.local import LocalPool

TOML = """
[targets.a]
extends = "fake"
library = "a"
[targets.b]
extends = "fake"
library = "b"
[targets.dead]
extends = "fake"
env = {OUTVOTE_FAKE = "exit:start"}
[targets.raises]
extends = "fake"
env = {OUTVOTE_FAKE = "error:start"}
[targets.broken]
extends = "jax"
setup = "broken.py"
"""


@pytest.fixture
def run(
    tmp_path: Path,
    fake_model: Path,
    fake_data: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Callable[..., tuple[int, str]]:
    """Run `outvote check` in a folder with an outvote.toml; returns exit code and stderr."""
    (tmp_path / "outvote.toml").write_text(TOML)
    (tmp_path / "broken.py").write_text("raise RuntimeError('the patch does not apply')")
    monkeypatch.chdir(tmp_path)

    def check(*arguments: str) -> tuple[int, str]:
        try:
            code = main(["check", *arguments])
        except SystemExit as stop:
            code = int(stop.code or 0)
        return code, capsys.readouterr().err

    return check


def bad(result: tuple[int, str], *parts: str) -> None:
    """Exit code 2 and one line of error that says all the parts."""
    code, err = result
    assert code == 2, err
    said = [line for line in err.splitlines() if line.startswith("outvote: ")]
    assert len(said) == 1, err
    assert "Traceback" not in err
    for part in parts:
        assert part in said[0], said[0]


AB = ("--targets", "a,b")


@pytest.mark.slow
def test_a_good_run_exits_0_and_findings_exit_1(run: Callable[..., tuple[int, str]]) -> None:
    assert run("model.json", *AB, "--data", "data.npz")[0] == 0
    toml = Path("outvote.toml").read_text()
    Path("outvote.toml").write_text(
        toml + '[targets.liar]\nextends = "fake"\nlibrary = "c"\nenv = {OUTVOTE_FAKE = "lie:d1"}\n'
    )
    assert run("model.json", "--targets", "a,b,liar", "--data", "data.npz")[0] == 1
    assert (
        json.loads(Path("outvote-out/result.json").read_text())["findings"][0]["accused"] == "liar"
    )


def test_missing_files(run: Callable[..., tuple[int, str]]) -> None:
    bad(run("none.keras"), "none.keras does not exist")
    bad(run("model.json", *AB, "--data", "none.npz"), "none.npz does not exist")
    bad(run("model.json", *AB, "--weights", "none.h5"), "none.h5 does not exist")
    bad(run("model.json", *AB, "--config", "none.toml"), "none.toml does not exist")
    bad(run("model.json", *AB, "--custom", "none.py"), "none.py", "--custom")


def test_files_that_are_not_models(run: Callable[..., tuple[int, str]], tmp_path: Path) -> None:
    (tmp_path / "model.txt").write_text("hello")
    bad(run("model.txt", *AB), "'.txt'", ".keras, .h5, .hdf5, .json")
    (tmp_path / "text.keras").write_text("hello")
    bad(run("text.keras", *AB), "not a whole .keras archive")
    (tmp_path / "text.h5").write_text("hello")
    bad(run("text.h5", *AB), "not an HDF5 file")
    (tmp_path / "text.json").write_text("[1, 2")
    bad(run("text.json", *AB), "not readable JSON")
    (tmp_path / "list.json").write_text("[1, 2]")
    bad(run("list.json", *AB), "not a model architecture")
    bad(run(".", *AB), "not a file")
    with zipfile.ZipFile("empty.keras", "w") as archive:
        archive.writestr("readme.txt", "x")
    bad(run("empty.keras", *AB), "not a Keras model", "config.json")


def test_a_truncated_archive(run: Callable[..., tuple[int, str]]) -> None:
    with zipfile.ZipFile("whole.keras", "w") as archive:
        archive.writestr("config.json", "{}")
        archive.writestr("model.weights.h5", os.urandom(5000))
    Path("cut.keras").write_bytes(Path("whole.keras").read_bytes()[:3000])
    bad(run("cut.keras", *AB), "cut.keras", "cut off")
    data = bytearray(Path("whole.keras").read_bytes())
    data[200] ^= 0xFF
    Path("flipped.keras").write_bytes(data)
    bad(run("flipped.keras", *AB), "damaged")


@pytest.mark.parametrize(
    "name", ["../evil.py", "/etc/evil", "a/../../evil", "C:\\evil", "..\\evil"]
)
def test_an_archive_that_would_escape_is_refused(
    run: Callable[..., tuple[int, str]], name: str
) -> None:
    with zipfile.ZipFile("slip.keras", "w") as archive:
        archive.writestr("config.json", "{}")
        archive.writestr("model.weights.h5", "x")
        archive.writestr(name, "evil")
    bad(run("slip.keras", *AB), "refused", "points outside the archive")


@pytest.mark.slow
def test_a_bomb_is_refused(run: Callable[..., tuple[int, str]]) -> None:
    with zipfile.ZipFile("bomb.keras", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("config.json", "{}")
        archive.writestr("model.weights.h5", bytes(50_000_000))
    bad(run("bomb.keras", *AB), "refused", "would unpack")


@pytest.mark.parametrize(
    ("arrays", "parts"),
    [
        ({"x": np.zeros((5, 7), "float32")}, ["shape (5, 7)", "takes (any, 4)", "reshape"]),
        ({"x": np.zeros((5,), "float32")}, ["shape (5)", "takes (any, 4)"]),
        ({"x": np.zeros((0, 4), "float32")}, ["holds no inputs", "(0, 4)"]),
        ({"x": np.array([["a"] * 4])}, ["dtype <U1", "numbers"]),
        ({"x": np.full((2, 4), 1j)}, ["dtype complex128"]),
        ({"z": np.zeros((5, 4), "float32")}, ["must hold x", "it holds z"]),
        ({"x": np.array([[0, 0, 0, 0], [0, np.nan, 0, 0]])}, ["NaN", "instance 1", "--allow-nan"]),
        ({"x": np.zeros((2, 4)), "y": np.array([0, 6])}, ["label 6", "6 classes, 0 to 5"]),
        ({"x": np.zeros((2, 4)), "y": np.array([0, 1, 2])}, ["y has shape (3)", "2 inputs"]),
        ({"x": np.zeros((2, 4)), "y": np.array(["a", "b"])}, ["y has dtype <U1"]),
        ({"x": np.zeros((2, 4)), "y": np.array([0.5, 1.5])}, ["does not fit the model's output"]),
        ({"x": np.zeros((2, 4)), "y": np.full((2, 6), np.nan)}, ["y holds NaN"]),
    ],
)
def test_data_that_does_not_fit(
    run: Callable[..., tuple[int, str]], arrays: dict[str, np.ndarray], parts: list[str]
) -> None:
    np.savez("bad.npz", **arrays)  # type: ignore[arg-type]
    bad(run("model.json", *AB, "--data", "bad.npz"), *parts)


def test_data_files_that_cannot_be_read(run: Callable[..., tuple[int, str]]) -> None:
    Path("text.npz").write_text("hello")
    bad(run("model.json", *AB, "--data", "text.npz"), "text.npz is not a whole .npz file")
    np.save("single.npy", np.zeros(3))
    bad(run("model.json", *AB, "--data", "single.npy"), "single array")
    np.savez("objects.npz", x=np.array([{}], dtype=object))
    bad(run("model.json", *AB, "--data", "objects.npz"), "objects.npz", "allow_pickle=False")


def test_targets_that_cannot_be_used(run: Callable[..., tuple[int, str]]) -> None:
    bad(run("model.json", "--targets", "a,tensorflwo"), "no target 'tensorflwo'", "'tensorflow'")
    bad(run("model.json", "--targets", "a,nothing-like-it"), "`outvote targets` lists them")
    bad(run("model.json", "--targets", "a"), "needs two targets", "received a")
    bad(run("model.json", "--targets", "a,a"), "named twice")
    bad(run("model.json", "--targets", "a,,b"), "separated by commas")
    bad(
        run("model.json", "--targets", "a,dead"),
        "'dead' could not be started",
        "exited with code 3",
    )
    bad(run("model.json", "--targets", "a,raises"), "'raises' could not be started", "ValueError")


@pytest.mark.frameworks
def test_a_setup_script_that_fails(run: Callable[..., tuple[int, str]]) -> None:
    bad(
        run("model.json", "--targets", "a,broken"), "'broken' could not", "the patch does not apply"
    )


def test_a_target_that_is_not_installed(
    run: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    bad(
        run("model.json", "--targets", "a,jax"), "needs keras and jax", "pip install 'outvote[jax]'"
    )
    bad(run("model.json"), "0 of the default ones", "pip install 'outvote[jax,torch]'")


@pytest.mark.parametrize(
    ("toml", "parts"),
    [
        ("[targets.x]\n", ["[targets.x]", "needs `extends`"]),
        ('[targets.x]\nextends = "tensorflwo"', ["no target 'tensorflwo'"]),
        ('[targets.x]\nextends = "jax"\nmodes = 1', ["unknown key 'modes'"]),
        ('[targets.x]\nextends = "jax"\nmode = "xla"', ["mode 'xla' is unknown", "eager, jit"]),
        ('[targets.x]\nextends = "jax"\nsetup = "no.py"', ["no.py, which does not exist"]),
        ('[targets.x]\nextends = "y"\n[targets.y]\nextends = "x"', ["circle"]),
        ('[targets.x]\nextends = "jax"\nrequirements = "a"', ["`requirements` is a list", "'a'"]),
        ('[targets.x]\nextends = "jax"\nenv = 3', ["`env` is a table"]),
        ("[target]\n", ["unknown table [target]"]),
        ("targets = 3\n", ["targets are tables"]),
        ("[[[", ["could not be read"]),
    ],
)
def test_a_configuration_that_makes_no_sense(
    run: Callable[..., tuple[int, str]], toml: str, parts: list[str]
) -> None:
    Path("outvote.toml").write_text(toml)
    bad(run("model.json", "--targets", "fake,x"), *parts)


def test_flags_that_contradict(run: Callable[..., tuple[int, str]]) -> None:
    np.savez("plain.npz", x=np.zeros((2, 4), "float32"))
    bad(run("model.json", *AB, "--data", "plain.npz", "--metric", "class"), "needs ground truth")
    bad(run("model.json", *AB, "--metric", "best"), "'best' is unknown", "class, mad, relative")
    bad(run("model.json", *AB, "--count", "0"), "--count", "from 1, received '0'")
    bad(run("model.json", *AB, "--p", "120"), "from 0 to 100")
    bad(run("model.json", *AB, "--mad-threshold", "nan"), "number from 0 to 1e+09, received 'nan'")
    bad(run("model.json", *AB, "--noise-factor", "-1"), "received '-1'")
    bad(run("model.json", *AB, "--memory", "0"), "above 0, received '0'")
    bad(run("model.json", *AB, "--no-such-flag"), "--no-such-flag", "--help")
    with zipfile.ZipFile("m.keras", "w") as archive:
        archive.writestr("config.json", "{}")
    bad(run("m.keras", *AB, "--weights", "data.npz"), "--weights goes with an architecture")


def test_an_output_folder_that_cannot_be_written(run: Callable[..., tuple[int, str]]) -> None:
    Path("file").write_text("x")
    bad(run("model.json", *AB, "--out", "file/out"), "file/out cannot be written", "--out")
    bad(run("model.json", *AB, "--out", "/proc/nowhere"), "cannot be written")


@pytest.mark.slow
def test_a_disk_that_fills_up_while_writing(
    run: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The results of an earlier run stay whole; the failure is one sentence."""
    assert run("model.json", *AB, "--data", "data.npz")[0] == 0
    before = Path("outvote-out/report.html").read_text()
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000));"
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "from outvote.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "check", "model.json", *AB, "--data", "data.npz"],
        capture_output=True,
        text=True,
        check=False,
    )
    bad(
        (done.returncode, done.stderr),
        "outvote-out/outvote.db",
        "cannot be written",
        "free some space",
    )
    assert Path("outvote-out/report.html").read_text() == before
    json.loads(Path("outvote-out/result.json").read_text())
    written = {"result.json", "report.md", "report.html", "junit.xml", "results.sarif"}
    left = {path.name for path in Path("outvote-out").iterdir()}
    assert {name for name in left if not name.startswith("outvote.db")} == written


def interrupt_after(names: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C as soon as these targets have run the model."""
    original = LocalPool.ask_all
    finished: set[str] = set()

    def ask_all(
        pool: LocalPool, asked: Iterable[str], request: Request[R], done: Callable[[Run[R]], None]
    ) -> dict[str, Run[R]]:
        def then(run: Run[R]) -> None:
            done(run)
            finished.add(run.target)
            if finished == names:
                os.kill(os.getpid(), signal.SIGINT)

        return original(pool, asked, request, then)

    monkeypatch.setattr(LocalPool, "ask_all", ask_all)


def test_ctrl_c_stops_cleanly_and_keeps_what_was_found(
    run: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Path("outvote.toml").open("a") as toml:
        toml.write('[targets.stuck]\nextends = "fake"\nenv = {OUTVOTE_FAKE = "hang:d2"}\n')
    interrupt_after({"a", "b"}, monkeypatch)
    code, said = run("model.json", "--data", "data.npz", "--targets", "a,b,stuck")
    assert code == 130, said
    assert "Traceback" not in said
    result = json.loads(Path("outvote-out/result.json").read_text())
    assert result["verdict"] == "interrupted"
    assert [t["outcome"] for t in result["targets"] if t["name"] in "ab"] == ["ok", "ok"]
    assert "a, b had finished" in result["summary"].replace("b, a", "a, b")
    assert [pair["inconsistent"] for pair in result["comparisons"]] == [False]
