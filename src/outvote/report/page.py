"""What every page is made of: templates, style, scripts, and the policy that lets only these run.

Nothing is fetched: scripts and style are inlined, and a content security policy names the
only scripts that may run, so that no name of a layer can ever become code.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from outvote.report import wording

HERE = Path(__file__).parent
LIBRARIES = ("cytoscape", "dagre")
SCRIPTS = ("layout.js", "fold.js", "map.js", "report.js")


@dataclass(frozen=True)
class Page:
    """What the page of one command shows beside its result, and the scripts that it needs."""

    values: Mapping[str, Any] = field(default_factory=dict)  # for its template, by name
    scripts: Sequence[str] = ()
    data: Any = None  # for the scripts


def template(name: str) -> Any:
    """A page's template, with our words for numbers; everything it shows is escaped."""
    return environment().get_template(name)


@cache
def environment(*folders: Path) -> Any:
    """One for all pages: it keeps the templates that it has compiled, which takes longest.

    Templates in further folders may use ours.
    """
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([*folders, HERE / "templates"]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for function in (wording.number, wording.size, wording.duration, wording.share, wording.some):
        environment.filters[function.__name__] = function
    environment.filters["contents"] = contents
    return environment


def contents(body: str) -> list[tuple[str, str]]:
    """The sections of a page with their headings. Only our templates make sections."""
    from markupsafe import Markup

    found = re.findall(r'<section id="([\w-]+)"[^>]*>\s*<h2>(.*?)</h2>', body, flags=re.DOTALL)
    return [(name, Markup(heading)) for name, heading in found]  # noqa: S704 - escaped already


def asset(name: str) -> str:
    return (HERE / "assets" / name).read_text(encoding="utf-8")


def page_scripts() -> list[str]:
    """The libraries with their licences, then ours, each the text of one script element."""
    return [library(name) for name in LIBRARIES] + [asset(name) for name in SCRIPTS]


def sift_scripts(findings: Sequence[Mapping[str, Any]]) -> list[str]:
    """What filters the table of causes, where there are so many that it has one."""
    return [asset("sift.js")] if len(findings) > 3 else []


def library(name: str) -> str:
    """A bundled library. Its source map is not shipped, so nothing may ask for it."""
    code = re.sub(r"^//# sourceMappingURL=.*$", "", asset(f"{name}.min.js"), flags=re.MULTILINE)
    return f"/*! {name}\n{asset(f'{name}.LICENSE')}*/\n{code}"


def policy(scripts: list[str]) -> str:
    """The content security policy: these scripts, inline style, embedded pictures, no network."""
    allowed = " ".join(f"'sha256-{digest(script)}'" for script in scripts) or "'none'"
    return f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src {allowed}"


def digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")


def embedded(data: Any) -> str:
    """JSON that may stand inside a script element: no character of it can end the element."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
