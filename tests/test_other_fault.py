"""What a finding was made small to must accuse one of those that the finding accuses."""

from __future__ import annotations

import pytest

from outvote.triage.examine import is_other_fault
from outvote.triage.verdict import Verdict


@pytest.mark.parametrize(
    ("before", "after", "other"),
    [
        (("numpy", "jax"), ("tensorflow", "torch"), True),
        (("numpy", "jax"), ("numpy",), False),
        (("numpy",), ("numpy", "jax"), False),
        ((), ("numpy",), False),  # smaller, it can be said who is wrong
        (("numpy",), (), False),
    ],
)
def test_a_smaller_case_that_accuses_none_of_them_shows_another_fault(
    before: tuple[str, ...], after: tuple[str, ...], other: bool
) -> None:
    assert is_other_fault(Verdict("bug", before, ""), Verdict("bug", after, "")) is other
