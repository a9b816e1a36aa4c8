"""What mutants of ONNX graphs are made of: operators, their attributes, new nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from outvote.mutate.registry import Rule
    from outvote.mutate.tools import Tools
    from outvote.run.pool import Pool


def mutation_rules() -> Mapping[str, Rule]:
    """The rules that know operators by name, found by their folder."""
    from outvote.dialects.onnx.mutate import rules as folder
    from outvote.mutate.registry import rules_in

    return rules_in(folder)


def mutation_tools(pool: Pool, reader: str) -> Tools:
    """New nodes and other attributes, as the ONNX of one worker has them."""
    from outvote.dialects.onnx.mutate.tools import onnx_tools

    return onnx_tools(pool, reader)
