"""`outvote bisect`: the search, and whole runs with the fake target in the place of releases."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conftest import fake
from outvote.cli import main
from outvote.commands.bisect.job import BisectJob
from outvote.commands.bisect.releases import Interval, narrowed
from outvote.commands.bisect.result import bisect_result
from outvote.commands.bisect.run import run_bisect
from outvote.core.errors import UsageError
from outvote.core.lesson import Lesson
from outvote.core.target import Target
from outvote.dialects.keras.targets import BUILT_IN

RELEASES = [f"1.{n}" for n in range(9)]


@pytest.mark.parametrize("first_bad", range(1, 9))
@pytest.mark.parametrize("broken", [(), (3,), (1, 2, 4, 5)])
@pytest.mark.parametrize(("at_once", "rounds"), [(1, 3), (2, 2), (3, 2), (7, 1), (50, 1)])
def test_the_search_steps_over_what_cannot_be_tried(
    first_bad: int, broken: tuple[int], at_once: int, rounds: int
) -> None:
    asked: list[int] = []
    turns = []

    def as_before(places: Sequence[int]) -> list[bool | None]:
        turns.append(len(places))
        asked.extend(places)
        return [None if place in broken else place < first_bad for place in places]

    *_, found = [Interval(0, 8), *narrowed(Interval(0, 8), as_before, at_once)]
    usable = [place for place in range(9) if place not in broken or place in (0, 8)]
    assert found.after == min(place for place in usable if place >= first_bad)
    assert found.before == max(place for place in usable if place < first_bad)
    assert len(asked) == len(set(asked))
    assert max(turns) <= at_once
    assert broken or len(turns) <= rounds


class Index:
    """Releases of a made-up package: what the fake target does on each of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.misdeeds: dict[str, str] = {}
        self.missing: set[str] = set()
        self.yanked: set[str] = set()
        monkeypatch.setattr("outvote.targets.environments.pip.releases", lambda *a: RELEASES)
        monkeypatch.setattr("outvote.dialects.keras.targets.with_versions", self._release)
        monkeypatch.setattr("outvote.commands.bisect.ground.yanked", self._withdrawn)
        monkeypatch.setattr("outvote.dialects.keras.targets.helpers", lambda targets: [])

    def _release(self, base: Target, requirements: tuple[str, ...], name: str) -> Target:
        version = requirements[0].partition("==")[2]
        if version in self.missing:
            raise UsageError(f"{name} could not be installed: no wheel")
        return fake(name, self.misdeeds.get(version, ""), library="tested")

    def _withdrawn(self, target: Target) -> str:
        return "a reason" if any(f"=={v}/" in target.name for v in self.yanked) else ""


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Index:
    return Index(monkeypatch)


def bisected(model: Path, data: Path, **changes: Any) -> dict[str, Any]:
    job = BisectJob(
        model, fake("tested"), (fake("a"), fake("b")), "made-up", RELEASES[0], RELEASES[-1], data
    )
    return bisect_result(run_bisect(replace(job, **changes)))


def test_the_first_bad_release_is_named_with_distances(
    index: Index, fake_model: Path, fake_data: Path
) -> None:
    index.misdeeds = dict.fromkeys(RELEASES[5:], "lie:d2")
    result = bisected(fake_model, fake_data)
    assert result["verdict"] == "changed"
    assert result["summary"] == "made-up on tested: first bad in 1.5, last good 1.4."
    found = result["bisect"]
    assert (found["change"], found["before"], found["after"]) == ("broken", "1.4", "1.5")
    rows = {row["version"]: row for row in found["releases"]}
    assert (rows["1.4"]["state"], rows["1.5"]["state"]) == ("consistent", "inconsistent")
    assert rows["1.4"]["distance"] == 0
    assert rows["1.5"]["distance"] > found["tolerance"]
    assert len(rows) <= 2 + 3


def test_the_first_fixed_release_is_named(index: Index, fake_model: Path, fake_data: Path) -> None:
    index.misdeeds = dict.fromkeys(RELEASES[:2], "shape:d2") | {"1.2": "error:relu"}
    result = bisected(fake_model, fake_data)
    assert result["summary"] == "made-up on tested: first fixed in 1.3, last bad 1.2."


def test_a_change_between_two_wrong_results_is_found(
    index: Index, fake_model: Path, fake_data: Path
) -> None:
    index.misdeeds = {v: "lie:d2" if v < "1.7" else "permute:d2" for v in RELEASES}
    result = bisected(fake_model, fake_data)
    assert result["summary"] == "made-up on tested: first changed in 1.7, last as before 1.6."


def test_without_a_reference_results_are_held_against_the_first(
    index: Index, fake_model: Path, fake_data: Path
) -> None:
    index.misdeeds = dict.fromkeys(RELEASES[2:], "lie:d2")
    monkey = pytest.MonkeyPatch()
    monkey.setattr("outvote.dialects.keras.targets.helpers", lambda targets: [fake("reader")])
    with monkey.context():
        result = bisected(fake_model, fake_data, against=())
    monkey.undo()
    assert result["bisect"]["after"] == "1.2"
    assert {row["state"] for row in result["bisect"]["releases"]} == {"ran"}


def test_broken_and_yanked_releases_are_skipped_and_named(
    index: Index, fake_model: Path, fake_data: Path
) -> None:
    index.misdeeds = dict.fromkeys(RELEASES[5:], "lie:d2") | {"1.4": "exit:start"}
    index.missing, index.yanked = {"1.3"}, {"1.5"}
    result = bisected(fake_model, fake_data)
    found = result["bisect"]
    assert (found["before"], found["after"], found["untried"]) == (
        "1.2",
        "1.6",
        ["1.3", "1.4", "1.5"],
    )
    assert "1.3, 1.4, 1.5 between them could not be tried" in result["summary"]
    told = {
        row["version"]: row["message"] for row in found["releases"] if row["state"] == "skipped"
    }
    assert "no wheel" in told["1.3"]
    assert "does not start" in told["1.4"]
    assert told["1.5"] == "yanked: a reason"


def test_references_and_releases_are_listed_as_the_targets_they_were(
    index: Index, fake_model: Path, fake_data: Path
) -> None:
    index.misdeeds = dict.fromkeys(RELEASES[5:], "lie:d2") | {"1.4": "exit:start"}
    index.missing = {"1.3"}
    result = bisected(fake_model, fake_data, against=(fake("a"), fake("gone", "exit:start")))
    listed = {target["name"]: target for target in result["targets"]}
    rows = {row["version"]: row["target"] for row in result["bisect"]["releases"]}
    assert list(rows) == ["1.0", "1.2", "1.3", "1.4", "1.5", "1.8"]
    assert rows["1.3"] is None, "what cannot be installed is no target"
    assert rows["1.8"] == "made-up==1.8/tested"
    assert list(listed) == ["a", "gone", *(name for name in rows.values() if name)]
    silent = {name for name, target in listed.items() if not target["versions"]}
    assert silent == {"gone", "made-up==1.4/tested"}, "the others said what they are"


def test_nothing_changed_is_said(index: Index, fake_model: Path, fake_data: Path) -> None:
    result = bisected(fake_model, fake_data)
    assert result["verdict"] == "unchanged"
    assert result["summary"] == (
        "made-up on tested: nothing changed between 1.0 and 1.8 (consistent)."
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"first": "0.9"}, "made-up 0.9 is not on the index; near it are 1."),
        ({"first": "1.8", "last": "1.2"}, "--from 1.8 is not older than --to 1.2"),
    ],
)
def test_a_range_that_is_none_is_refused(
    index: Index, fake_model: Path, fake_data: Path, changes: dict[str, str], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        bisected(fake_model, fake_data, **changes)


def test_an_end_that_cannot_be_used_is_refused(
    index: Index, fake_model: Path, fake_data: Path
) -> None:
    index.missing = {"1.8"}
    with pytest.raises(UsageError, match=r"1.8 cannot be used, and it is an end .* no wheel"):
        bisected(fake_model, fake_data)


def test_an_interruption_keeps_what_was_tried(
    index: Index, fake_model: Path, fake_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.misdeeds = dict.fromkeys(RELEASES[5:], "lie:d2")
    release = index._release

    def stopped(base: Target, requirements: tuple[str, ...], name: str) -> Target:
        if requirements == ("made-up==1.4",):
            raise KeyboardInterrupt
        return release(base, requirements, name)

    monkeypatch.setattr("outvote.dialects.keras.targets.with_versions", stopped)
    result = bisected(fake_model, fake_data)
    assert result["verdict"] == "interrupted"
    assert "first bad in 1.8, last good 1.0 so far" in result["summary"]


@pytest.fixture
def finding(
    index: Index, fake_model: Path, fake_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """The command for a finding that accuses `c`, in a folder with the outvote.toml of `a` to `c`.

    The folder of a finding names the case; result.json beside it names who was accused.
    """
    monkeypatch.chdir(tmp_path)
    tables = [f'[targets.{n}]\nextends = "fake"\nlibrary = "{n}"\n' for n in ("a", "b", "c")]
    Path("outvote.toml").write_text("".join(tables))
    folder = Path("out", "findings", "0123456789ab")
    folder.mkdir(parents=True)
    (folder / "model.keras").write_bytes(fake_model.read_bytes())
    (folder / "inputs.npz").write_bytes(fake_data.read_bytes())
    (folder / "report.md").write_text("# c lies\n\n## Versions\n\n| c | 1 |\n")
    accused = {"fingerprint": folder.name, "accused": "c"}
    targets = [{"name": name} for name in ("a", "b", "c")]
    Path("out", "result.json").write_text(json.dumps({"findings": [accused], "targets": targets}))
    index.misdeeds = dict.fromkeys(RELEASES[3:], "lie:d2")
    monkeypatch.setattr(
        "outvote.commands.bisect.run.inspect", lambda *a: None
    )  # it is no archive of Keras
    range_of = ["--package", "made-up", "--from", "1.0", "--to", "1.8"]
    return ["bisect", str(folder), *range_of, "--out", "bis"]


@pytest.mark.slow
def test_the_command_takes_a_finding_and_writes_its_result(
    finding: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, command = Path(finding[1]), [*finding, "--config", "outvote.toml"]
    assert main(command) == 1
    first = (folder / "report.md").read_text()
    assert main(command) == 1
    assert (folder / "report.md").read_text() == first  # said once
    assert first.index("first bad in 1.3") < first.index("| 1.3 | inconsistent |")
    assert first.index("| 1.3 | inconsistent |") < first.index("## Versions\n\n| c | 1 |")
    shown = capsys.readouterr().out
    assert "CHANGED  made-up on c: first bad in 1.3, last good 1.2." in shown
    result = json.loads(Path("bis", "result.json").read_text())
    assert result["bisect"]["reference"] == "a"
    assert "first bad in 1.3" in Path("bis", "report.html").read_text()
    assert "| `1.3` | inconsistent |" in Path("bis", "report.md").read_text()


def test_a_finding_does_not_start_what_a_found_file_defines_unless_it_is_named(
    finding: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(finding) == 2
    assert capsys.readouterr().err == (
        "outvote: the finding in out/findings/0123456789ab names the target 'c', and "
        "outvote.toml, which lies here, defines it; as you named neither, it is not started. "
        "If both are yours, add: --config outvote.toml\n"
    )
    assert main([*finding, "--target", "c"]) == 2
    assert "names the target 'a', and outvote.toml" in capsys.readouterr().err
    assert main([*finding, "--target", "c", "--against", "a,b"]) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["model.json"], "name it with --target"),
        (["."], "holds no case"),
        (["model.json", "--target", "fake", "--package", "a b;c"], "is not a requirement"),
    ],
)
def test_a_case_that_is_none_is_refused(
    arguments: list[str], said: str, fake_model: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert main(["bisect", *arguments, "--from", "1", "--to", "2"]) == 2
    assert said in capsys.readouterr().err


def test_training_needs_a_target_that_trains(
    index: Index, fake_model: Path, fake_data: Path
) -> None:
    with pytest.raises(UsageError, match="needs a target that trains"):
        bisected(fake_model, fake_data, lesson=Lesson({"class_name": "SGD"}))


@pytest.mark.frameworks
def test_the_release_that_trains_otherwise_is_found(
    index: Index, monkeypatch: pytest.MonkeyPatch, keras_file: Any, tmp_path: Path
) -> None:
    """What the model gives is the same: only with `--train` is there anything to find."""
    script = tmp_path / "plant.py"
    script.write_text(
        "from keras.src.optimizers.sgd import SGD\nplain = SGD.update_step\n"
        "SGD.update_step = lambda self, g, v, rate: plain(self, 2 * g, v, rate)\n"
    )

    def release(base: Target, requirements: tuple[str, ...], name: str) -> Target:
        doubled = requirements[0].endswith(RELEASES[1])
        return replace(base, name=name, setup=script if doubled else None)

    monkeypatch.setattr("outvote.dialects.keras.targets.with_versions", release)
    path = keras_file("model = keras.Sequential([keras.Input((3,)), layers.Dense(2)])")
    ends = "made-up", RELEASES[0], RELEASES[1]
    lesson = Lesson({"class_name": "SGD"}, steps=2)
    job = BisectJob(path, BUILT_IN["jax"], (BUILT_IN["jax"],), *ends, lesson=lesson)
    result = bisect_result(run_bisect(job))
    assert result["summary"] == "made-up on jax: first bad in 1.1, last good 1.0."


@pytest.mark.frameworks
def test_the_release_that_mended_keras_is_found_on_the_index(
    keras_file: Any, tmp_path: Path
) -> None:
    """Keras 3.4.0 mended CategoryEncoding on NumPy; needs the package index, or a cache."""
    path = keras_file(
        "model = keras.Sequential([keras.Input((1,), dtype='int32'),"
        "layers.CategoryEncoding(num_tokens=4, output_mode='multi_hot')])"
    )
    job = BisectJob(path, BUILT_IN["numpy"], (BUILT_IN["jax"],), "keras", "3.3.2", "3.4.1")
    result = bisect_result(run_bisect(job))
    assert result["summary"] == "keras on numpy: first fixed in 3.4.0, last bad 3.3.3."
