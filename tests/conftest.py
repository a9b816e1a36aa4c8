"""Fixtures shared by all tests. Real frameworks are started once for the whole session."""

from __future__ import annotations

import gc
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

import zygote
from outvote import dialects
from outvote.core.dialect import dialect
from outvote.core.target import Target
from outvote.dialects.keras.targets import BUILT_IN
from outvote.run.local import LocalPool
from outvote.run.pool import Pool
from outvote.targets.choose import missing_packages

if TYPE_CHECKING:
    from selenium import webdriver

    from outvote.campaign.crews import Crews
    from outvote.campaign.job import FuzzJob
    from outvote.commands.fuzz.run import Work
    from outvote.store.store import Store

# The same draws every time, no clock, nothing kept between runs: what fails, fails again.
settings.register_profile("same", deadline=None, derandomize=True, max_examples=25, database=None)
settings.load_profile("same")
# It would draw constants of ours too, of whatever is imported: others for one file than for all.
setattr(providers, "is_local_module_file", lambda path: False)  # noqa: B010
# A shell that starts tests in the background has them ignore Ctrl-C, which some of them press.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
pytest.register_assert_rewrite("worker_contract")  # it asserts, and is no test file

REAL = tuple(n for n, t in BUILT_IN.items() if t.worker == "keras3" and t.mode == "eager")
PLANTED = ("tensorflow", "jax", "torch")  # those for which examples/faults are written

# Files that take a minute or more, the longest first.
LONG = (
    *("test_versions", "test_ground_truth", "test_extras", "test_notebooks", "test_hostile"),
    *("test_onnx_check",),
)
SHARED = ("real_pool", "program_pool")  # what tests of several files share in one process

EXAMPLES = Path(__file__).parent.parent / "examples" / "faults"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A file whose tests all have a mark that is not asked for need not be imported."""
    if collection_path.suffix != ".py":
        return None
    mark = re.search(r"^pytestmark = pytest\.mark\.(\w+)$", collection_path.read_text(), re.M)
    return True if mark and f"not {mark[1]}" in config.option.markexpr else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those that take longest begin, so that no process of xdist ends long after the other."""
    items.sort(key=lambda item: _turn(item.path))


def _turn(path: Path) -> int:
    names = (*SHARED, *LONG)
    return names.index(found) if (found := _group(path)) in names else len(names)


@cache
def _group(path: Path) -> str:
    """Tests that xdist gives to one process: a file's, and all that share a pool."""
    text = path.read_text()
    return next((name for name in SHARED if name in text), path.stem)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
    """Instead of that of `--dist loadfile`, which knows nothing of the pool."""
    return ByGroup(config, log) if config.option.dist == "loadfile" else None


class ByGroup(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """A group stays together, in the order of the collection."""

    def _split_scope(self, nodeid: str) -> str:
        return _group(self.config.rootpath / nodeid.partition("::")[0])


def pytest_collection_finish() -> None:
    """What was imported and collected stays: it need not be looked through for garbage."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


def fake(name: str, misdeed: str = "", library: str | None = None, precision: str = "") -> Target:
    """A fake target with a vote of its own; `precision` is what it declares, as JSON."""
    env = {"OUTVOTE_FAKE": misdeed} if misdeed else {}
    env |= {"OUTVOTE_FAKE_PRECISION": precision} if precision else {}
    return replace(BUILT_IN["fake"], name=name, env=env, library=library or name)


@pytest.fixture(scope="session", autouse=True)
def _quick_workers() -> Iterator[None]:
    """Workers are divided off processes that have imported what they need (tests/zygote.py)."""
    with zygote.quick_workers():
        yield


@pytest.fixture(scope="module")
def toy_dialect() -> Iterator[None]:
    """The folder of the toy (tests/dialects), known to this process and to its workers."""
    with pytest.MonkeyPatch.context() as patch:
        folder = str(Path(__file__).parent / "dialects")
        patch.setenv("OUTVOTE_DIALECTS", folder)
        patch.setattr(dialects, "__path__", [*dialects.__path__, folder])
        dialect.cache_clear()
        yield
    dialect.cache_clear()


def write_fake_model(path: Path) -> Path:
    """A file that the fake target reads: dense → relu → dense → add(skip) → softmax."""
    rng = np.random.default_rng(0)

    def weights(*shapes: tuple[int, ...]) -> list[Any]:
        return [rng.normal(size=shape).tolist() for shape in shapes]

    layers = [
        {"name": "d1", "kind": "Dense", "inputs": ["x"], "weights": weights((4, 6), (6,))},
        {"name": "relu", "kind": "ReLU", "inputs": ["d1"]},
        {"name": "d2", "kind": "Dense", "inputs": ["relu"], "weights": weights((6, 6), (6,))},
        {"name": "add", "kind": "Add", "inputs": ["d2", "d1"]},
        {"name": "soft", "kind": "Softmax", "inputs": ["add"]},
    ]
    data = {"class_name": "FakeModel", "input": [None, 4], "output": [None, 6], "layers": layers}
    path.write_text(json.dumps(data))
    return path


def write_fake_data(path: Path) -> Path:
    rng = np.random.default_rng(1)
    np.savez(path, x=rng.normal(size=(20, 4)).astype("float32"), y=rng.integers(0, 6, 20))
    return path


@pytest.fixture
def fake_model(tmp_path: Path) -> Path:
    return write_fake_model(tmp_path / "model.json")


@pytest.fixture
def fake_data(tmp_path: Path) -> Path:
    return write_fake_data(tmp_path / "data.npz")


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    """A real Chromium, for tests with the mark `browser`."""
    from chromium import opened

    with opened() as found:
        yield found


@pytest.fixture(scope="session")
def real_pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    """A worker per real backend, and one with faults planted, each started when first asked."""
    faults = {p.stem: p.read_text() for p in sorted(EXAMPLES.glob("*.py"))}
    assert faults
    text = Path(__file__).with_name("planted.py").read_text()
    script = tmp_path_factory.mktemp("planted") / "planted.py"
    script.write_text(text.replace("FAULTS: dict[str, str] = {}", f"FAULTS = {faults!r}"))
    planted = [replace(BUILT_IN[name], name=f"planted-{name}", setup=script) for name in REAL]
    with LocalPool([*(BUILT_IN[name] for name in REAL), *planted]) as pool:
        yield pool


@pytest.fixture(scope="session")
def program_pool() -> Iterator[Pool]:
    """A worker per target of PyTorch programs, each started when first asked."""
    known = dialect("torch_export").targets.BUILT_IN.values()
    with LocalPool([t for t in known if not t.device and not missing_packages(t)]) as pool:
        yield pool


def in_pool(pool: Pool) -> Work:
    """How a campaign works with targets that a pool has already."""
    from outvote.campaign.crews import OneCrew

    @contextmanager
    def work(job: FuzzJob, store: Store, out: Path, ready: Any) -> Iterator[Crews]:
        with closing(OneCrew(job, pool, out, store.tell)) as crews:
            yield crews

    return work


@contextmanager
def joined(pool: Pool, *targets: Target) -> Iterator[Pool]:
    """A pool with more targets for a while; then their memory is free again."""
    for target in targets:
        pool.add(target)
    yield pool
    for target in targets:
        pool.stop(target.name)
        del pool.targets[target.name]


@pytest.fixture(scope="session")
def keras_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Path]]:
    """Build and save Keras models in one process of their own, from snippets that set `model`."""
    builder = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("keras_builder.py"))],
        env={**os.environ, "KERAS_BACKEND": "jax", "OMP_NUM_THREADS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert builder.stdin is not None
    assert builder.stdout is not None

    def build(snippet: str, suffix: str = ".keras", after: str = "") -> Path:
        path = tmp_path_factory.mktemp("model") / f"model{suffix}"
        request = {"snippet": snippet, "path": str(path), "after": after}
        assert builder.stdin is not None
        assert builder.stdout is not None
        builder.stdin.write(json.dumps(request) + "\n")
        builder.stdin.flush()
        error = json.loads(builder.stdout.readline())
        assert error is None, error
        return path

    yield build
    builder.stdin.close()
    builder.stdout.close()
    builder.wait()


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built of a copy: a build writes into the folder that it builds."""
    root = Path(__file__).parent.parent
    folder = tmp_path_factory.mktemp("dist")
    copy = folder / "source"
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "build")
    shutil.copytree(root / "src", copy / "src", ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(root / name, copy / name)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(copy)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert list(folder.glob("*.tar.gz"))
    (found,) = folder.glob("*.whl")
    return found
