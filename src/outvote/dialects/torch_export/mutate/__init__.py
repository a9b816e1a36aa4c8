"""What mutants of PyTorch programs are made of: new calls, and other arguments of old ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from outvote.mutate.registry import Rule
    from outvote.mutate.tools import Tools
    from outvote.run.pool import Pool


def mutation_rules() -> Mapping[str, Rule]:
    """The rules that know calls, found by their folder."""
    from outvote.dialects.torch_export.mutate import rules as folder
    from outvote.mutate.registry import rules_in

    return rules_in(folder)


def mutation_tools(pool: Pool, reader: str) -> Tools:
    """New calls and other arguments, as the PyTorch of one worker has them."""
    from outvote.dialects.torch_export.mutate.tools import TorchTools
    from outvote.run.pool import asker

    return TorchTools(pool.blobs, ask=asker(pool, reader))
