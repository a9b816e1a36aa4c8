"""Every error that outvote raises on purpose, in one tree.

    OutvoteError
    ├── UsageError      the user can mend it: a file, a flag, a missing library (exit code 2)
    └── ProtocolError   a worker sent bytes that are not a message

What a worker does with a case (crash, hang, refusal) is never an exception: it is a Run.
"""

from __future__ import annotations


class OutvoteError(Exception):
    """Base of all errors raised on purpose."""


class UsageError(OutvoteError):
    """Something the user can mend. One sentence: what is wrong, the value received, the remedy."""


class ProtocolError(OutvoteError):
    """Bytes from another process that are not a message of ours."""
