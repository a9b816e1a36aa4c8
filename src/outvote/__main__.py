"""`python -m outvote`: the command line, without the current folder among what is imported."""

import sys

if not sys.flags.safe_path:
    del sys.path[0]  # -m puts the current folder there, and models are kept beside strange files

from outvote.cli import main

sys.exit(main())
