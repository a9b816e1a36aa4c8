"""What mutants are made of: kinds of layers, their parameters and values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from outvote.mutate.registry import Rule
    from outvote.mutate.tools import Tools
    from outvote.run.pool import Pool


def mutation_rules() -> Mapping[str, Rule]:
    """The rules that know layers by name, found by their folder."""
    from outvote.dialects.keras.mutate import rules as folder
    from outvote.mutate.registry import rules_in

    return rules_in(folder)


def mutation_tools(pool: Pool, reader: str) -> Tools:
    """New layers and other parameters, as the Keras of one worker has them."""
    from outvote.dialects.keras.mutate.tools import keras_tools

    return keras_tools(pool, reader)
