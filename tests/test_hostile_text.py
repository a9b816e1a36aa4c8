"""Names and messages from outside: none commands a terminal, none becomes Markdown's markup."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.live import Live
from rich.markdown import Markdown as RichMarkdown
from rich.markup import escape as escape_markup
from rich.table import Table
from rich.text import Text

import report_example
import report_explore
from outvote.cli import main
from outvote.commands import room
from outvote.commands.terminal import Screen, Terminal
from outvote.core.model import Layer
from outvote.core.protocol import Hello
from outvote.core.target import Outcome, Run
from outvote.core.text import printable
from outvote.findings.finding import Finding
from outvote.findings.issue_text import issue_text, with_releases
from outvote.report.tables import Markdown, code, escape, fence, marked, table

# The title of the window, an erased screen, a bell, a return, C1's CSI, text turned round,
# a second line by Unicode, half a character.
COMMANDS = "a\x1b]0;owned\x07\x1b[2J\r\x9b31m\u202e\u2028\udcff"
MARKUP = "](http://evil) <b>x</b> `c` **b** # h | $x$ _e_ [l](m) &lt; ~~s~~ ![i](j)"


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("conv2d_1 ünïcödé 深層 ✓\u00a0…", "conv2d_1 ünïcödé 深層 ✓\u00a0…"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("\x9b2J\x7f\x00", "\\x9b2J\\x7f\\x00"),
        ("\u202eexe.py\u2066", "\\u202eexe.py\\u2066"),
        ("half \udcff", "half \\udcff"),
    ],
)
def test_what_commands_a_terminal_is_spelt_out(given: str, shown: str) -> None:
    assert printable(given) == shown
    shown.encode("utf-8")


def in_a_table() -> Table:
    made = Table(title=COMMANDS)
    made.add_column(COMMANDS)
    made.add_row(COMMANDS)
    return made


@pytest.mark.parametrize(
    "given",
    [COMMANDS, f"[red]{escape_markup(COMMANDS)}[/]", Text(COMMANDS), in_a_table(),
     RichMarkdown(f"# {COMMANDS}\n\n```\n{COMMANDS}\n```\n")],
    ids=["text", "markup", "Text", "table", "markdown"],
)  # fmt: skip
@pytest.mark.parametrize("live", [True, False])
def test_only_rich_itself_commands_the_terminal(given: Any, live: bool) -> None:
    file = io.StringIO()
    screen = Screen(file=file, force_terminal=True, width=200, color_system="truecolor")
    if live:
        with Live(given, console=screen, auto_refresh=False) as shown:
            shown.refresh()
    else:
        screen.print(given)
    told = file.getvalue()
    assert "owned" in told
    for command in ("\x1b]0;", "\x07", "\x1b[2J", "\x9b", "\u202e", "\udcff"):
        assert command not in told, repr(command)


def test_columns_stay_in_line_beside_what_was_spelt_out() -> None:
    file = io.StringIO()
    made = Table()
    made.add_column("name")
    made.add_row("\x1b[2J")
    made.add_row("plain")
    Screen(file=file, width=80).print(made)
    assert len({len(line) for line in file.getvalue().splitlines()}) == 1


KEPT = {"verdict", "command", "fingerprint", "triage", "kind", "picture", "name", "metric", "mode"}


def hostile(value: Any, key: str = "") -> Any:
    """Every text of a result that comes from outside, with commands for the terminal."""
    if isinstance(value, dict):
        return {k: hostile(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [hostile(v, key) for v in value]
    return value + COMMANDS if isinstance(value, str) and key not in KEPT else value


def bisected() -> dict[str, Any]:
    row = {"version": "1", "state": "error", "message": COMMANDS, "distance": 1.0}
    bisect = {"package": COMMANDS, "before": "1", "after": "2", "releases": [row]}
    bisect["releases"][0]["distance_to_first"] = None  # type: ignore[index]
    return {"verdict": "changed", "summary": COMMANDS, "bisect": bisect}


def shown(command: str, result: dict[str, Any], out: Path) -> None:
    room(command, "show").show(result, SimpleNamespace(out=out), Terminal().out)


SHOWN: list[Callable[[Path], None]] = [
    lambda out: shown("check", hostile(report_example.inconsistent()), out),
    lambda out: shown("check", hostile(report_example.crash()), out),
    lambda out: shown("bisect", bisected(), out),
    lambda out: Terminal().say(COMMANDS),
    lambda out: shown("explore", {**report_explore.EXAMPLE, "summary": COMMANDS}, out),
]


@pytest.mark.parametrize("show", SHOWN)
def test_results_are_shown_without_commands(
    show: Callable[[Path], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    show(tmp_path)
    said = "".join(capsys.readouterr())
    assert "owned" in said
    assert said.replace("\n", "").isprintable()


def test_errors_and_findings_are_shown_without_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", f"{COMMANDS}.keras", "--targets", "fake,numpy"]) == 2
    with pytest.raises(SystemExit):
        main(["check", "m.keras", "--count", COMMANDS])
    (tmp_path / "report.md").write_text(f"# {COMMANDS[:-1]}\n")
    assert main(["show", str(tmp_path)]) == 0
    said = "".join(capsys.readouterr())
    assert said.count("owned") >= 3
    assert said.replace("\n", "").isprintable()


def parsed(text: str) -> list[Token]:
    """All tokens of a Markdown text, those inside lines too."""
    found = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)
    return [inner for token in found for inner in (token, *(token.children or []))]


def kinds(text: str) -> set[str]:
    return {token.type for token in parsed(text)}


PLAIN = {"paragraph_open", "inline", "text", "paragraph_close", "text_special"}


@pytest.mark.parametrize(
    "given",
    [MARKUP, "- a", "+ a", "1. a", "2) a", "---", "===", "> a", "# a", "\\", "a\n\n# b", "-", "1."],
)
def test_escaped_text_is_only_text(given: str) -> None:
    text = escape(given)
    assert kinds(text) == PLAIN or kinds(text) == PLAIN - {"text_special"}
    shown = "".join(t.content for t in parsed(text) if t.type in ("text", "text_special"))
    assert shown == " ".join(given.split())


def test_names_and_numbers_stay_readable() -> None:
    for text in ("block1_conv_2", "-1.5", "3.15.1", "a.keras", "(2, 3): 0.1, 0.2"):
        assert escape(text) == text


def test_a_table_keeps_its_columns() -> None:
    lines = table(["a", "b"], [[MARKUP, code(MARKUP)], [marked("{} – {}", MARKUP, code("x")), "y"]])
    cells = [t for t in parsed("\n".join(lines)) if t.type in ("td_open", "th_open")]
    assert len(cells) == 6
    assert kinds("\n".join(lines)) & {"link_open", "html_inline", "image", "strong_open"} == set()
    assert table(["a"], []) == ["None.", ""]


def test_what_is_markdown_already_is_not_escaped_twice() -> None:
    once = escape("a*b")
    assert escape(once) == once == Markdown("a\\*b")


@pytest.mark.parametrize("log", ["```\n# out", "````` `` ~~~", "plain"])
def test_a_fence_is_longer_than_any_inside(log: str) -> None:
    (block,) = parsed("\n".join(fence(log, "python")))
    assert (block.type, block.content.rstrip("\n"), block.info) == ("fence", log, "python")


LOG = "Traceback\n```\n# owned\n\n## Since when\n\nnever\n\n## Versions\n\n| no | no |\n"
RELEASES = [{"version": "1|2", "state": "<b>", "distance": 0.5}]


def finding() -> Finding:
    layer = Layer("d", MARKUP, {"units": "```\n# owned"}, args=[{"$ref": ["x", 0]}])
    return Finding("crash", MARKUP, MARKUP, (MARKUP,), MARKUP, "bug", "keras", layer, detail=LOG)


def hello(version: str) -> Hello:
    return Hello(versions={version: version}, precision={}, python="3", platform="x")


def headings(text: str) -> list[str]:
    found = parsed(text)
    return [found[i + 1].content for i, t in enumerate(found) if t.type == "heading_open"]


def test_the_text_of_an_issue_holds_only_our_markup() -> None:
    hellos = {MARKUP: Run(MARKUP, Outcome.OK, hello(MARKUP))}
    text = issue_text(finding(), hellos, "print('```')\n# owned")
    assert not kinds(text) & {"link_open", "html_inline", "html_block", "image", "strong_open"}
    assert len(headings(text)) == 5
    assert headings(text)[2:] == ["Script that judges", "Log", "Versions"]
    assert LOG.strip() in [t.content.strip() for t in parsed(text) if t.type == "fence"]


def test_what_bisect_adds_stands_before_the_versions_whatever_the_log_says() -> None:
    text = issue_text(finding(), {"a": Run("a", Outcome.OK, hello("numpy"))}, None)
    once = with_releases(text, MARKUP, RELEASES)
    assert headings(once)[-2:] == ["Since when", "Versions"]
    assert LOG.strip() in [t.content.strip() for t in parsed(once) if t.type == "fence"]
    assert with_releases(once, MARKUP, RELEASES) == once
    assert once.count("1\\|2") == 1


def marked_up(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        return {k: marked_up(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [marked_up(v, key) for v in value]
    return MARKUP if isinstance(value, str) and key not in KEPT - {"name"} else value


def test_every_printer_prints_on_a_screen() -> None:
    """rich's own Console would let names through."""
    import outvote

    made = [
        path.name
        for path in Path(outvote.__file__).parent.rglob("*.py")
        if "Console(" in path.read_text().replace("class Screen(Console)", "")
    ]
    assert made == []
