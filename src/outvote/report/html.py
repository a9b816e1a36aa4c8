"""`report.html`: one file that opens anywhere, with the map of layers to walk through.

Nothing is fetched: scripts and style are inlined, and a content security policy names the
only scripts that may run, so that no name of a layer can ever become code.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

from outvote.report import view, wording
from outvote.report.files import write_atomically
from outvote.report.json_file import plain

HERE = Path(__file__).parent
LIBRARIES = ("cytoscape", "dagre")
SCRIPTS = ("layout.js", "map.js", "report.js")


def write(result: dict[str, Any], folder: Path) -> Path:
    """Write `report.html` into the folder."""
    return write_atomically(folder / "report.html", render(result))


def render(result: dict[str, Any]) -> str:
    """The page as text."""
    context = view.page(plain(result))
    scripts = page_scripts() if context["maps"] else []
    page = template("report.html").render(
        **context,
        style=asset("report.css"),
        scripts=scripts,
        policy=policy(scripts),
        data=embedded(map_data(context["maps"])),
    )
    return str(page)


def template(name: str) -> Any:
    """A page's template, with our words for numbers; everything it shows is escaped."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for function in (wording.number, wording.size, wording.duration, wording.share, wording.some):
        environment.filters[function.__name__] = function
    return environment.get_template(name)


def asset(name: str) -> str:
    return (HERE / "assets" / name).read_text(encoding="utf-8")


def page_scripts() -> list[str]:
    """The libraries with their licences, then ours, each the text of one script element."""
    return [library(name) for name in LIBRARIES] + [asset(name) for name in SCRIPTS]


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


def map_data(findings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the script needs to draw each map."""
    keys = ("fingerprint", "title", "layer", "accused", "localization")
    return [{key: finding.get(key) for key in keys} for finding in findings]
