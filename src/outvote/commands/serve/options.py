"""`outvote serve`: the workbench in a browser."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outvote.commands import blocks, values
from outvote.commands.codes import exit_codes
from outvote.core.errors import UsageError

if TYPE_CHECKING:
    from outvote.commands.serve.job import ServeJob

PLACE = 95
_EXAMPLES = """\
examples:
  outvote serve
      what commands have written below the current folder, live; prints the address
  outvote serve outvote-fuzz demo-out --open
      these folders, and open the browser
  outvote serve --port 9000
      for `ssh -L 9000:127.0.0.1:9000 HOST`: pages are only to be had from 127.0.0.1
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = blocks.new_parser(
        commands,
        "serve",
        "show campaigns, findings and checks in a browser, live, and start checks there",
        "Show campaigns, findings and checks below some folders in a browser, live: filter, read, "
        "compare, mark as known; pause and continue campaigns; drop a model and check it.",
        _EXAMPLES + exit_codes("ended with Ctrl-C"),
    )
    parser.add_argument(
        "folders",
        nargs="*",
        type=Path,
        metavar="DIR",
        help="where to look; default: here. The first is where notes and new runs go",
    )
    parser.add_argument(
        "--port", type=values.positive, metavar="N", help="default: 8642, or another that is free"
    )
    parser.add_argument("--open", action="store_true", help="open the page in the browser")
    blocks.add_config(parser)


def job_of(options: argparse.Namespace) -> ServeJob:
    """What the options ask for."""
    from outvote.commands.serve.job import ServeJob

    folders = tuple(path.absolute() for path in options.folders or [Path()])
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(f"{folder} is not a folder; name one that commands have written into")
    if options.port is not None and options.port > 65535:
        raise UsageError(f"--port {options.port} is too large; ports end at 65535")
    return ServeJob(folders, options.port, options.config, opens=options.open)
