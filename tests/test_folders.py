"""Temporary folders: nobody loses the one that it lives in, and nobody leaves one behind."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest
from filelock import FileLock

from outvote.run import folder
from outvote.run.folder import OwnedFolder


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def test_a_folder_that_is_swept_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two runs that start at once: one takes the other's new folder for one that was left."""
    gone: list[Path] = []

    class Late(FileLock):
        def acquire(self, *args: object, **more: object) -> object:  # type: ignore[override]
            if not gone:  # as it ends where the folder goes between its opening and its locking
                gone.append(Path(self.lock_file).parent)
                shutil.rmtree(gone[0])
                raise FileNotFoundError(errno.ENOENT, "No such file", self.lock_file)
            return super().acquire()

    monkeypatch.setattr(folder, "FileLock", Late)
    with OwnedFolder() as own:
        assert own.is_dir()
        assert (own / "owner.lock").exists()
        assert gone != [own]
        assert [path.name for path in tmp_path.iterdir()] == [own.name]


def test_a_folder_whose_lock_is_gone_when_it_is_held_is_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gone: list[Path] = []

    class Gone(FileLock):
        def acquire(self, *args: object, **more: object) -> object:  # type: ignore[override]
            held = super().acquire()
            if not gone:
                gone.append(Path(self.lock_file).parent)
                shutil.rmtree(gone[0])
            return held

    monkeypatch.setattr(folder, "FileLock", Gone)
    with OwnedFolder() as own:
        assert gone != [own]
        assert own.is_dir()


def test_a_folder_goes_with_its_owner_and_may_be_gone_already(tmp_path: Path) -> None:
    own = OwnedFolder()
    (own.path / "weights").write_bytes(bytes(10))
    own.remove()
    own.remove()
    assert list(tmp_path.iterdir()) == []


def test_what_nobody_owns_goes_after_a_week_and_links_and_files_stay(tmp_path: Path) -> None:
    old, new, file = (tmp_path / f"outvote-{name}" for name in ("old", "new", "file"))
    left, link = tmp_path / "outvote-left", tmp_path / "outvote-link"
    for path in (old, new, left, tmp_path / "elsewhere"):
        path.mkdir()
    (left / "owner.lock").touch()  # nobody holds it
    file.write_text("of the user")
    link.symlink_to(tmp_path / "elsewhere")
    week = 7 * 86400
    os.utime(old, (0, old.stat().st_mtime - week - 60))
    os.utime(new, (0, new.stat().st_mtime - week + 60))
    with OwnedFolder() as own:
        left_over = {path.name for path in tmp_path.iterdir()}
    assert left_over == {own.name, "outvote-new", "outvote-file", "outvote-link", "elsewhere"}


def test_two_owners_keep_their_own(tmp_path: Path) -> None:
    with OwnedFolder() as first, OwnedFolder() as second:
        assert first != second
        assert {path.name for path in tmp_path.iterdir()} == {first.name, second.name}
    assert list(tmp_path.iterdir()) == []
