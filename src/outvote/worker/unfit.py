"""What a draw that does not work out raises."""

from __future__ import annotations


class Unfit(Exception):  # noqa: N818 - no error: another draw may
    """What was drawn is no case: PyTorch refuses it, or it cannot be handed over."""
