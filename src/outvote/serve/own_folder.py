"""What the workbench writes, and where: a folder of its own, and known.toml beside it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from outvote.core.errors import UsageError
from outvote.core.files import write_atomically
from outvote.findings.known import FILE_NAME, Known, load_known
from outvote.findings.known_entries import with_entry, without_entry

NAME = "outvote-serve"
_LONGEST_NOTE = 100_000
_FINGERPRINT = re.compile("[0-9a-f]{12}")


@dataclass(frozen=True)
class OwnFolder:
    """`outvote-serve` in the first folder that was given."""

    root: Path

    @property
    def path(self) -> Path:
        return self.root / NAME

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def known_file(self) -> Path:
        return self.root / FILE_NAME

    def known(self) -> dict[str, Known]:
        """The entries of known.toml by fingerprint; UsageError where it cannot be read."""
        if not self.known_file.exists():
            return {}
        return {
            known.fingerprint: known for known in load_known(self.known_file, self.root).entries
        }

    def know(self, entry: Known) -> None:
        """Write an entry, in the place of an older one of its fingerprint."""
        self.known()  # what cannot be read is not written over
        text = self.known_file.read_text("utf-8") if self.known_file.exists() else ""
        write_atomically(self.known_file, with_entry(text, entry))

    def forget(self, fingerprint: str) -> None:
        """Take an entry out."""
        if fingerprint in self.known():
            text = without_entry(self.known_file.read_text("utf-8"), fingerprint)
            write_atomically(self.known_file, text)

    def note(self, fingerprint: str) -> str:
        path = self._note(fingerprint)
        return path.read_text("utf-8") if path.is_file() else ""

    def noted(self) -> set[str]:
        """The findings that have a note."""
        return {path.stem for path in (self.path / "notes").glob("*.md")}

    def write_note(self, fingerprint: str, text: str) -> None:
        if len(text) > _LONGEST_NOTE:
            raise UsageError(
                f"a note has at most {_LONGEST_NOTE:,} letters; received {len(text):,}"
            )
        path = self._note(fingerprint)
        if text.strip():
            write_atomically(path, text)
        else:
            path.unlink(missing_ok=True)

    def _note(self, fingerprint: str) -> Path:
        if not _FINGERPRINT.fullmatch(fingerprint):
            raise UsageError(f"a fingerprint has 12 digits; received {fingerprint!r}")
        return self.path / "notes" / f"{fingerprint}.md"

    def new_run(self, name: str) -> Path:
        """An empty folder for a run that is started from a page."""
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(name).stem).strip(".-")[:40] or "model"
        day = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
        for more in ("", *(f"-{n}" for n in range(2, 100))):
            path = self.path / "runs" / f"{day}-{plain}{more}"
            try:
                path.mkdir(parents=True)
            except FileExistsError:
                continue
            return path
        raise UsageError(f"{self.path / 'runs'} holds a hundred runs of this second; try again")
