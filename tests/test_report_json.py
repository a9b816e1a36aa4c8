"""`result.json`: valid JSON whatever the figures are, and never half a file."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import report_example
from outvote import report
from outvote.core import files
from outvote.core.result import plain

FILES = sorted(("result.json", "report.md", "report.html", "junit.xml", "results.sarif"))


def json_of(result: dict[str, Any]) -> Any:
    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    return json.loads(report.rendered("json_file", result), parse_constant=refuse)


def test_a_result_survives_the_file() -> None:
    result = report_example.inconsistent()
    assert json_of(result) == result


def test_what_is_not_finite_becomes_null() -> None:
    result = {"nan": math.nan, "list": [math.inf, -math.inf, 1.5], "tuple": (1, np.float32("nan"))}
    expected = {"nan": None, "list": [None, None, 1.5], "tuple": [1, None]}
    assert json_of(result) == expected


def test_numpy_scalars_become_plain_numbers() -> None:
    value = plain({"count": np.int64(3), "rate": np.float32(0.5), 7: True})
    assert value == {"count": 3, "rate": 0.5, "7": True}
    assert type(value["count"]) is int


def test_something_else_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="Received: object"):
        plain({"a": [object()]})


def test_bytes_that_are_no_text_do_not_stop_the_reports(tmp_path: Path) -> None:
    result = report_example.crash()
    result["targets"][-1]["message"] = b"died: \xff\xfe".decode("utf-8", "surrogateescape")
    assert len(report.write_all(result, tmp_path)) == 5
    assert "died: \\udcff" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_write_all_makes_the_folder_and_every_format(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    written = report.write_all(report_example.consistent(), folder)
    names = [path.name for path in written]
    assert names[0] == "result.json", "if a later one fails, the data are there"
    assert sorted(names) == FILES
    assert sorted(folder.iterdir()) == sorted(written), "no temporary file is left"


def test_a_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = files.write_atomically(tmp_path / "result.json", "old")

    def fail(self: Path, target: Path) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        files.write_atomically(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
