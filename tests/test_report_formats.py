"""Every format for every command: one door, one head, and nothing from outside becomes markup."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from every_command import RESULTS
from outvote import report
from outvote.report import formats
from test_hostile_text import MARKUP, kinds, marked_up

SOURCE = Path(report.__file__).parents[1]
COMMANDS = sorted(RESULTS)
GUIDE = Path(__file__).parent.parent / "docs" / "check.md"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_format_is_written_for_every_command(name: str, tmp_path: Path) -> None:
    result = RESULTS[name]
    written = {
        path.name: path.read_text(encoding="utf-8") for path in report.write_all(result, tmp_path)
    }
    assert json.loads(written["result.json"]) == result
    assert ElementTree.fromstring(written["junit.xml"]).get("name") == "outvote"
    assert json.loads(written["results.sarif"])["version"] == "2.1.0"
    for page in ("report.md", "report.html"):
        assert result["summary"].replace("'", "&#39;") in written[page] or (
            result["summary"] in written[page]
        )
    for target in result["targets"]:
        assert target["name"] in written["report.md"]
        assert target["name"] in written["report.html"]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_page_has_one_head_its_contents_and_its_warnings(name: str) -> None:
    result = {**RESULTS[name], "warnings": ["something weakens it"]}
    page = report.rendered("html", result)
    for once in (
        "<!doctype html>",
        "</head>",
        "<style>",
        "<main>",
        '<p class="brand">',
        "<footer>",
    ):
        assert page.count(once) == 1, once
    assert "Content-Security-Policy" in page
    sections = re.findall(r'<section id="([\w-]+)"', page)
    assert sections[0] == "verdict"
    assert len(set(sections)) == len(sections)
    contents = re.search(r'<nav id="contents"[^>]*>(.*?)</nav>', page)
    listed = re.findall(r'href="#([\w-]+)"', contents[1]) if contents else []
    assert listed == sections[1:] or len(sections) < 4
    assert "Warning: something weakens it." in page
    assert "> Warning: something weakens it." in report.rendered("markdown", result)


@pytest.mark.parametrize("name", COMMANDS)
def test_nothing_from_outside_becomes_markup(name: str) -> None:
    result = hostile(RESULTS[name])
    page = report.rendered("html", result)
    assert "<b>x</b>" not in page
    assert "&lt;b&gt;x&lt;/b&gt;" in page
    text = report.rendered("markdown", result)
    assert not kinds(text) & {"link_open", "html_inline", "html_block", "image", "s_open"}
    assert "http://evil" in text


def hostile(result: dict[str, Any]) -> dict[str, Any]:
    """As `marked_up`, but for what is one of a few words: they choose the page."""
    made: dict[str, Any] = marked_up(result)
    if "coverage" in result and (result["coverage"] or {}).get("models"):
        made["differences"]["per_model"] = {MARKUP: 1}
    return made


@pytest.mark.slow
def test_a_new_format_is_one_module_in_its_folder(tmp_path: Path) -> None:
    """It is found by its file, and every command writes it."""
    (tmp_path / "haiku.py").write_text(
        "FILE = 'report.txt'\ndef render(result, folder):\n    return result['summary']\n"
    )
    code = (
        "import sys; from outvote import report; from outvote.report import formats\n"
        f"formats.__path__.append({str(tmp_path)!r})\n"
        "import json; from pathlib import Path\n"
        f"written = report.write_all(json.load(sys.stdin), Path({str(tmp_path)!r}))\n"
        "print(*(path.name for path in written))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(RESULTS["nan"]),
        capture_output=True,
        text=True,
        check=True,
    )
    assert "report.txt" in done.stdout.split()
    assert (tmp_path / "report.txt").read_text() == RESULTS["nan"]["summary"]


def test_every_format_keeps_the_contract() -> None:
    assert len(report.names()) == len(list(Path(formats.__path__[0]).glob("[a-z]*.py")))
    for name in report.names():
        module = report._format(name)
        assert re.fullmatch(r"[\w.]+", module.FILE)
        assert isinstance(module.render(RESULTS["check"], Path("out")), str)
        assert f"`{module.FILE}`" in GUIDE.read_text(encoding="utf-8"), f"no row for {module.FILE}"


def test_there_is_one_door() -> None:
    """No command writes a format by itself."""
    for path in (SOURCE / "commands").rglob("*.py"):
        assert "report.formats" not in path.read_text(), path
