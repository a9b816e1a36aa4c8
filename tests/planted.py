"""A setup script that plants all the faults of examples/faults at once, to save workers."""

import runpy
from pathlib import Path

for script in sorted((Path(__file__).parent.parent / "examples" / "faults").glob("*.py")):
    runpy.run_path(str(script))
