"""The documentation cannot rot: commands parse, options are named, links lead somewhere."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from every_command import RESULTS
from outvote.cli import _parser, main
from outvote.findings.blame import WHOLE_GRAPH
from outvote.judge.rows import DecisionRow, table
from outvote.triage.stage_verdict import STAGE_ROWS
from outvote.triage.verdict import ROWS

ROOT = Path(__file__).parent.parent
COMMANDS = ("check", "fuzz", "explore", "coverage", "pollution", "serve", "targets", "zoo")
GUIDES = {name: ROOT / "docs" / f"{name}.md" for name in COMMANDS}
GUIDES |= dict.fromkeys(("localize", "nan"), ROOT / "docs" / "localize.md")
GUIDES |= {"bisect": ROOT / "docs" / "versions.md"}
GUIDES |= dict.fromkeys(("report", "show"), ROOT / "docs" / "fuzz.md")
GUIDES |= dict.fromkeys(("doctor", "completion"), ROOT / "docs" / "install.md")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
ALL_PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
FIRST_CHECK = "The first check on your own model"

# Their keys are data (names of packages, of parameters, ranks), not part of the form.
FREE_FORM = {
    "versions",
    "precision",
    "accuracy",
    "accuracy_difference",
    "parameters",
    "config",
    "errors",
    "per_model",
} | {
    "drawn",
    "not_covered",
    "counts",
    "accepted_everywhere",
    "lines",
}


def blocks(text: str, *languages: str) -> list[str]:
    """The contents of the fenced blocks in these languages."""
    fences = re.findall(r"^```(\w+)\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    return [content for language, content in fences if language in languages]


def section(text: str, heading: str) -> str:
    found = re.search(rf"^## {re.escape(heading)}$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"there is no section {heading!r}"
    return found[1]


def commands(text: str) -> list[list[str]]:
    """Arguments of every `outvote ...` line in console and sh blocks."""
    lines = [line for block in blocks(text, "console", "sh") for line in block.splitlines()]
    words = [shlex.split(line.removeprefix("$ "), comments=True) for line in lines]
    return [line[1:] for line in words if line and line[0] in ("outvote", ".venv/bin/outvote")]


def prose(path: Path) -> str:
    """A page without its fenced blocks."""
    return re.sub(r"^```.*?^```", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)


@cache
def subcommands() -> dict[str, argparse.ArgumentParser]:
    (found,) = [a for a in _parser()._actions if isinstance(a, argparse._SubParsersAction)]
    return dict(found.choices)


def actions_of(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Its options, and those of the commands inside it."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from actions_of(inner)
        else:
            yield action


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_every_command_line_parses(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in commands(page.read_text()):
        try:
            _parser(arguments).parse_args(arguments)
        except SystemExit:
            pytest.fail(f"{page.name}: outvote {shlex.join(arguments)}: {capsys.readouterr().err}")


def test_there_are_command_lines_to_parse() -> None:
    assert all(commands(page.read_text()) for page in (ROOT / "README.md", *GUIDES.values()))


def test_every_command_has_a_guide_that_the_readme_links() -> None:
    assert subcommands().keys() == GUIDES.keys()
    readme = (ROOT / "README.md").read_text()
    for page in PAGES[1:]:
        assert f"({relative(page)})" in readme, f"README.md does not link {page.name}"


@pytest.mark.parametrize("command", GUIDES)
def test_every_option_is_in_its_guide(command: str) -> None:
    guide = GUIDES[command].read_text()
    for action in actions_of(subcommands()[command]):
        name = action.option_strings[-1] if action.option_strings else action.dest
        assert re.search(rf"`{re.escape(name)}[ `]", guide), (
            f"{GUIDES[command].name} does not document {name}"
        )


@pytest.mark.parametrize("command", GUIDES)
def test_no_guide_names_an_option_that_is_gone(command: str) -> None:
    known = {name for parser in subcommands().values() for a in actions_of(parser)
             for name in a.option_strings}  # fmt: skip
    named = set(re.findall(r"`(--[a-z][a-z0-9-]*)", GUIDES[command].read_text()))
    assert named <= known, f"{GUIDES[command].name} names {sorted(named - known)}"


def test_the_defaults_in_the_guide_are_those_of_the_program() -> None:
    rows = re.findall(r"^\| `(--[a-z-]+) [^`]+` \|.*\| ([\d.]+) \|$", GUIDES["check"].read_text(),
                      flags=re.MULTILINE)  # fmt: skip
    actions = {name: a for a in subcommands()["check"]._actions for name in a.option_strings}
    told = {name: float(value) for name, value in rows}
    expected = {
        name: float(actions[name].default)
        for name in actions
        if type(actions[name].default) in (int, float)
    }
    assert told == expected


@pytest.mark.parametrize("page", ALL_PAGES, ids=relative)
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if link.startswith(("http://", "https://", "mailto:")):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{page.name} links {link}, which does not exist"
        if anchor:
            assert anchor in anchors(target), f"{page.name} links {link}: no such heading"


def anchors(page: Path) -> set[str]:
    """Headings as GitHub makes anchors of them."""
    headings = re.findall(r"^#+ (.*)$", prose(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            if key not in FREE_FORM:
                yield from keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys(inner)


@pytest.mark.parametrize("name", RESULTS)
def test_every_key_of_a_result_is_documented(name: str) -> None:
    """That these results have the form of those that commands write: test_result_schema.py."""
    page = (ROOT / "docs" / "result-json.md").read_text()
    unnamed = {key for key in keys(RESULTS[name]) if f"`{key}`" not in page}
    # `pattern` is shown as an example, which holds its keys in quotes.
    unnamed = {key for key in unnamed if f'"{key}"' not in page}
    assert not unnamed, f"docs/result-json.md does not name {sorted(unnamed)}"


@pytest.mark.parametrize("page", ALL_PAGES, ids=relative)
def test_python_snippets_compile(page: Path) -> None:
    for snippet in blocks(page.read_text(), "python"):
        compile(snippet, page.name, "exec")


def backticked_paths(page: Path) -> set[str]:
    """What looks like a path of ours in backticks; capitals stand for a name to choose."""
    found = re.findall(r"`((?:src|docs|tests|examples|benchmarks)/[\w./-]+)`", page.read_text())
    return {path for path in found if "NAME" not in path}


@pytest.mark.parametrize("page", ALL_PAGES, ids=relative)
def test_every_path_named_in_backticks_exists(page: Path) -> None:
    for path in backticked_paths(page):
        assert (ROOT / path).exists(), f"{page.name} names {path}, which does not exist"


def test_the_architecture_page_stays_one_page_and_names_files() -> None:
    page = ROOT / "ARCHITECTURE.md"
    assert len(page.read_text().split()) <= 640
    assert len(backticked_paths(page)) > 10


def test_every_name_that_papers_md_gives_for_a_file_is_in_that_file() -> None:
    text = (ROOT / "docs" / "papers.md").read_text()
    named = re.findall(r"((?:`[\w.]+`,? ?)+) in `(src/[\w./]+\.py)`", text)
    assert named
    for names, path in named:
        source = (ROOT / path).read_text()
        for name in re.findall(r"`([\w.]+)`", names):
            last = name.rpartition(".")[2]
            assert re.search(rf"\b{last}\b", source), f"papers.md: {path} has no {name}"


def test_the_changelog_has_this_version() -> None:
    from outvote import __version__

    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text()


MODEL = """
import keras, numpy as np
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, activation="softmax")])
x_val = np.random.default_rng(0).normal(size=(10, 4)).astype("float32")
y_val = np.arange(10) % 3
"""


@pytest.mark.frameworks
def test_the_first_check_of_the_readme_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its snippet saves a model, then its commands run; without a wish, on two light targets."""
    first = section((ROOT / "README.md").read_text(), FIRST_CHECK)
    (snippet,) = blocks(first, "python")
    saving = [sys.executable, "-c", MODEL + snippet]
    env = {**os.environ, "KERAS_BACKEND": "jax"}
    subprocess.run(saving, cwd=tmp_path, env=env, check=True, capture_output=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("outvote.dialects.keras.targets.DEFAULT", ("jax", "openvino"))
    ran = {tuple(arguments) for arguments in commands(first)}
    assert len(ran) == 2
    for arguments in ran:
        assert main([*arguments, "--quiet"]) == 0
        assert "CONSISTENT  2 targets agree on 10 inputs." in capsys.readouterr().out
        assert (tmp_path / "outvote-out" / "report.html").exists()


def test_every_listed_disagreement_has_its_script() -> None:
    """benchmarks/live_findings.py runs them on the accused; the next test on one target."""
    page = (ROOT / "docs" / "findings.md").read_text()
    linked = set(re.findall(r"\(findings/([\w-]+\.py)\)", page))
    scripts = {path.name: path.read_text() for path in (ROOT / "docs" / "findings").glob("*.py")}
    assert linked == scripts.keys()
    assert len(scripts) > 20
    for name, text in scripts.items():
        compile(text, name, "exec")
        assert len(text.splitlines()) <= 45, name


def listed_disagreements() -> list[tuple[str, list[str]]]:
    """The rows that benchmarks/live_findings.py writes, each with the heading above it."""
    page = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
    told = page.partition("<!-- begin: live_findings.py -->")[2]
    rows, heading = [], ""
    for line in told.partition("<!-- end: live_findings.py -->")[0].splitlines():
        heading = line.removeprefix("## ") if line.startswith("## ") else heading
        if line.startswith("| ["):
            rows.append((heading, line.removeprefix("| ").removesuffix(" |").split(" | ")))
    return rows


def test_a_listed_disagreement_says_what_it_is_and_each_cause_once() -> None:
    causes = []
    for heading, (layers, who, what, verdict, where, _, upstream) in listed_disagreements():
        assert not re.search(r"gives (.+) instead of \1$", what), what
        assert not what.endswith("disagree"), f"{layers}: how?"
        assert verdict in ("bug", "unknown", "difference")
        assert upstream
        causes.append((heading, who, what, where))
    assert len(causes) > 20
    assert len(set(causes)) == len(causes), Counter(causes).most_common(3)


@pytest.mark.frameworks
def test_the_scripts_of_disagreements_accuse_numpy_where_the_page_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from live_findings import exit_codes

    rows = {
        name: who.split(", ")
        for _, (layers, who, *_) in listed_disagreements()
        for name in re.findall(r"\(findings/([\w-]+\.py)\)", layers)
    }
    decided = {name: who for name, who in rows.items() if "undecided" not in name}
    folder = ROOT / "docs" / "findings"
    scripts = [folder / n for n in decided if "'numpy'" in (folder / n).read_text()]
    assert len(scripts) > 10
    wrong = {script.name for script, code in exit_codes(scripts, "numpy") if code}
    assert wrong == {script.name for script in scripts if "numpy" in decided[script.name]}


@pytest.mark.parametrize(
    ("guide", "mark", "rows"),
    [
        ("verdicts.md", "rows", ROWS),
        ("verdicts.md", "whole-graph rows", WHOLE_GRAPH),
        ("training.md", "stage rows", STAGE_ROWS),
    ],
)
def test_the_guide_prints_the_table_of_verdicts(
    guide: str, mark: str, rows: Sequence[DecisionRow[Any]]
) -> None:
    text = (ROOT / "docs" / guide).read_text(encoding="utf-8")
    printed = text.partition(f"<!-- {mark} -->\n")[2].partition(f"<!-- /{mark} -->")[0]
    assert printed == table(rows), f"print it: {table(rows)}"
