"""What campaigns have come to, by the folders that hold them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from outvote.core.errors import UsageError
from outvote.core.result import moment
from outvote.store.comparison import compared
from outvote.store.store import Store
from outvote.store.summary import fuzz_result


def stored_result(out: Path) -> dict[str, Any]:
    """What the campaign in a folder has come to."""
    with closing(Store(out, create=False)) as store:
        if store.fact("state") is None:
            raise UsageError(f"the campaign in {out} was stopped before its seeds had run")
        return campaign_result(store, out)


def campaign_result(store: Store, out: Path) -> dict[str, Any]:
    """The result of a campaign, with those it was compared with by `--compare`."""
    result = fuzz_result(store)
    rivals = [out / name for name in store.fact("rivals", [])]
    if rivals:
        others = {str(folder): stored_result(folder) for folder in rivals}
        result["comparison"] = compared({str(out): result, **others}, moment())
    return result


def comparison_of(folders: Sequence[Path]) -> dict[str, Any]:
    """Stored campaigns held against each other, strategy by strategy."""
    for folder in folders:
        if [other.resolve() for other in folders].count(folder.resolve()) > 1:
            raise UsageError(f"{folder} was named twice; a campaign is no repetition of itself")
    return compared({str(folder): stored_result(folder) for folder in folders}, moment())
