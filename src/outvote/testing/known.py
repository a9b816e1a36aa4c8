"""The file of known findings in tests, and how `--outvote-update-known` adds to it."""

from __future__ import annotations

import json
from pathlib import Path

from filelock import FileLock

from outvote.api.result import Result
from outvote.findings.known import FILE_NAME, load_known
from outvote.testing.session import Setting


def known_file(setting: Setting) -> Path:
    """The named file, or `known.toml` in the folder of the tests."""
    return setting.known or setting.root / FILE_NAME


def add_known(path: Path, result: Result) -> list[str]:
    """List what fails in the file, also where several processes do; says what was added."""
    failing = set(result.data["gate"]["failing"])
    with FileLock(path.with_name(f".{path.name}.lock")):
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        known = load_known(path if text else None, path.parent / "nowhere").entries
        listed = {entry.fingerprint for entry in known}
        new = [f for f in result.findings if f["fingerprint"] in failing - listed]
        entries = [_entry(finding) for finding in new]
        path.write_text(
            "\n".join([*([text.rstrip() + "\n"] if text else []), *entries]), encoding="utf-8"
        )
    return [f"{f['fingerprint']} ({f['title']}) is now listed in {path}" for f in new]


def _entry(finding: dict[str, str]) -> str:
    reason = f"accepted as it is: {' '.join(finding['title'].split())}"
    return f'[[known]]\nfingerprint = "{finding["fingerprint"]}"\nreason = {json.dumps(reason)}\n'
