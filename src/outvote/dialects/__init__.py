"""One folder per vocabulary of models. Nobody imports a wing: `core/dialect.py` finds it.

`OUTVOTE_DIALECTS` names folders with more of them, in the driver and in its workers.
"""

import os

__path__ += filter(None, os.environ.get("OUTVOTE_DIALECTS", "").split(os.pathsep))
