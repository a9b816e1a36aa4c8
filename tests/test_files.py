"""Files are written whole or not at all; `.npz` files hold what they were given, on every NumPy."""

from __future__ import annotations

import re
import stat
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pytest

from outvote.core.files import named_inputs, save_npz, write_atomically

SOURCE = Path(__file__).parents[1] / "src" / "outvote"


@pytest.mark.parametrize("compressed", [False, True])
def test_an_npz_holds_the_arrays_under_their_names_and_no_other(
    tmp_path: Path, compressed: bool
) -> None:
    """Also under names that np.savez keeps for itself, and in their order."""
    names = ["file", "allow_pickle", "x", "a b", "args"]
    arrays = {name: np.full((2, i), i, np.float16) for i, name in enumerate(names)}
    path = save_npz(tmp_path / "a.npz", arrays, compressed)
    with np.load(path, allow_pickle=False) as file:
        assert file.files == names
        for name in names:
            assert file[name].dtype == np.float16
            assert np.array_equal(file[name], arrays[name])
    assert [p.name for p in tmp_path.iterdir()] == ["a.npz"]


def test_objects_are_refused_and_leave_no_file(tmp_path: Path) -> None:
    old = save_npz(tmp_path / "a.npz", {"x": np.zeros(1)}).read_bytes()
    with pytest.raises(ValueError, match="pickle"):
        save_npz(tmp_path / "a.npz", {"x": np.zeros(1), "y": np.array([{}], object)})
    assert [p.name for p in tmp_path.iterdir()] == ["a.npz"]
    assert (tmp_path / "a.npz").read_bytes() == old


def test_nobody_saves_arrays_past_the_helper() -> None:
    """`np.savez(allow_pickle=False)` saves a stray array before NumPy 2.2."""
    call = re.compile(r"^[^`\"]*np\.savez", re.MULTILINE)  # prose may speak of it
    users = [path for path in SOURCE.rglob("*.py") if call.search(path.read_text())]
    assert users == []


def test_a_writer_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = write_atomically(tmp_path / "new" / "a.txt", "old\udcff")
    assert path.read_text() == "old\\udcff"

    def fail(file: BinaryIO) -> None:
        file.write(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, fail)
    assert path.read_text() == "old\\udcff"
    assert [p.name for p in path.parent.iterdir()] == ["a.txt"]


def test_rights_follow_the_user(tmp_path: Path) -> None:
    """A result is as readable as any file that the user makes."""
    (tmp_path / "other").write_text("")
    path = write_atomically(tmp_path / "mine", "")
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE((tmp_path / "other").stat().st_mode)


def test_inputs_have_the_names_of_data_files() -> None:
    one, two = np.zeros(1), np.ones(1)
    assert list(named_inputs([one])) == ["x"]
    assert list(named_inputs((one, two))) == ["x0", "x1"]
