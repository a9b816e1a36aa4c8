"""`python driver.py ARGUMENTS`: `outvote ARGUMENTS`, with fakes that are divided off it.

For tests that need a driver of its own, to stop it or to kill it.
"""

import sys

import zygote

if __name__ == "__main__":
    with zygote.quick_workers(zygote.divided):
        from outvote.cli import main

        sys.exit(main())
