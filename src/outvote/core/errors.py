"""Every error that outvote raises on purpose, in one tree.

    OutvoteError
    ├── UsageError      the user can mend it: a file, a flag, a missing library (exit code 2)
    ├── ProtocolError   a worker sent bytes that are not a message
    └── ReaderGoneError nobody reads our output any more

What a worker does with a case (crash, hang, refusal) is never an exception: it is a Run.
Any other exception that reaches the command line is an error inside outvote (exit code 3).
"""

from __future__ import annotations

import errno


class OutvoteError(Exception):
    """Base of all errors raised on purpose."""


class UsageError(OutvoteError):
    """Something the user can mend. One sentence: what is wrong, the value received, the remedy."""


class ProtocolError(OutvoteError):
    """Bytes from another process that are not a message of ours."""


class ReaderGoneError(OutvoteError):
    """The other end of our standard output was closed: whoever read it has seen enough."""


# What the system refuses for reasons that the user can mend. Any other OSError is our own.
_REMEDIES = {
    errno.ENOSPC: "free some space, or choose another folder",
    errno.EDQUOT: "free some space, or choose another folder",
    errno.EFBIG: "free some space, or choose another folder",
    errno.EACCES: "check the rights, or choose another folder",
    errno.EPERM: "check the rights, or choose another folder",
    errno.EROFS: "choose a folder that can be written",
    errno.EMFILE: "allow more open files (ulimit -n), or name fewer targets",
    errno.ENFILE: "allow more open files, or name fewer targets",
    errno.ENOMEM: "free memory, or give fewer inputs",
}


def remedy_for(error: OSError) -> str | None:
    """What the user can do about a refusal of the system; None where it is our own error."""
    return _REMEDIES.get(error.errno or 0)
