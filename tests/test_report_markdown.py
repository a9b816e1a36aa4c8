"""`report.md`: the verdict first, then only what there is to say."""

from __future__ import annotations

from pathlib import Path

import pytest

import report_example
from outvote.report import rendered, wording, write_all


def test_the_verdict_comes_first() -> None:
    lines = rendered("markdown", report_example.inconsistent()).splitlines()
    assert lines[0] == "# ❌ Inconsistent"
    assert lines[2].startswith("**patched is outvoted by 4 libraries")
    assert "model `small_resnet` · 200 inputs · outvote 0.1.0 check · 42 s" in lines


def test_a_finding_names_accused_layer_distance_and_repro() -> None:
    text = rendered("markdown", report_example.inconsistent())
    assert "### patched is outvoted in BatchNormalization" in text
    assert "- accused: `patched`" in text
    assert "- layer: `block1_bn` (BatchNormalization)" in text
    assert "- distance: 0.734 (relative)" in text
    assert "- inputs: 17, 42, 3, 150, 88, 91, 5, 12 and 4 more" in text
    assert "- reproduce: `python findings/9f2c5a7be013/repro.py`" in text


def test_pairs_are_labelled() -> None:
    text = rendered("markdown", report_example.inconsistent())
    assert "| `tensorflow` – `jax` | consistent | 3.2e-7 |" in text
    assert "| `tensorflow` – `openvino` | rounding | 4.1e-5 |" in text
    assert "| `torch` – `patched` | **inconsistent** | 0.734 |" in text


def test_a_consistent_result_has_no_findings() -> None:
    text = rendered("markdown", report_example.consistent())
    assert text.startswith("# ✅ Consistent\n")
    assert "## Findings" not in text


def test_a_crash_says_where_and_why() -> None:
    text = rendered("markdown", report_example.crash())
    assert "**crash** at `conv2d_3`: Process died with signal 11 (segmentation fault)." in text
    assert "distance:" not in text


def test_a_distance_that_is_not_a_number_is_said() -> None:
    result = report_example.inconsistent()
    result["comparisons"][-1]["metrics"][2]["maximum"] = float("nan")
    result["findings"][0] |= {"distance": None, "accused": None}
    text = rendered("markdown", result)
    assert "| `openvino` – `patched` | **inconsistent** | not a number |" in text
    assert "- distance: not a number (relative)" in text
    assert "- accused: undecided" in text


def test_names_cannot_become_markup_or_break_a_table() -> None:
    result = report_example.hostile()
    result["targets"][0]["name"] = "a|b`c\nd"
    text = rendered("markdown", result)
    outside_code = "".join(text.split("`")[::2])
    assert "<script" not in outside_code.replace("\\<", "")
    assert "`a¦b'c d`" in text


def test_it_is_written(tmp_path: Path) -> None:
    result = report_example.consistent()
    assert (tmp_path / "report.md") in write_all(result, tmp_path)
    assert (tmp_path / "report.md").read_text(encoding="utf-8") == rendered("markdown", result)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "not a number"),
        (0.0, "0"),
        (16, "16"),
        (16.0, "16"),
        (0.7341, "0.734"),
        (1e-4, "1e-4"),
        (3.21e-7, "3.2e-7"),
        (40210.4, "40210"),
        (-2.5e9, "-2.5e9"),
    ],
)
def test_numbers_have_three_digits(value: float | None, text: str) -> None:
    assert wording.number(value) == text


def test_sizes_and_times() -> None:
    assert wording.size(734003200) == "700 MiB"
    assert wording.size(5 * 1024**5) == "5.12e+03 TiB"
    assert wording.duration(6.44) == "6.4 s"
    assert wording.duration(600) == "10 min"
    assert wording.share(0.9712) == "97.1 %"
