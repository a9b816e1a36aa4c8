"""What is asked of a worker of this wing that draws graphs by the thousand."""

from __future__ import annotations

from dataclasses import dataclass

from outvote.core.batch import DrawCases


@dataclass(frozen=True, kw_only=True)
class DrawGraphs(DrawCases, deed="draw graphs"):
    """Graphs in one of some versions of the set of operators."""

    opsets: tuple[int, ...] = (17,)
