"""Versions against pairs of backends: where an inconsistency came and where it went (CRADLE)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from outvote.core.target import Run, Target

_INSTALLED = "installed"


def version_of(target: Target) -> str:
    """The versions that a target's name asks for, as one row of the matrix."""
    return ",".join(target.requirements) or _INSTALLED


def plain_of(target: Target) -> str:
    """The target without its versions, as one side of a column."""
    return target.plain or target.name


def version_matrix(
    targets: Sequence[Target],
    runs: Mapping[str, Run],
    comparisons: Sequence[Mapping[str, Any]],
    uniques: Sequence[Mapping[str, Any]],
) -> dict[str, Any] | None:
    """Rows are versions, columns pairs of backends; None for a check of one version only."""
    versions = list(dict.fromkeys(version_of(target) for target in targets))
    rows = {v: {plain_of(t): t.name for t in targets if version_of(t) == v} for v in versions}
    pairs = list(dict.fromkeys(p for names in rows.values() for p in combinations(names, 2)))
    if len(versions) < 2 or not pairs:
        return None
    compared = {frozenset(c["targets"]): c for c in comparisons}
    return {
        "versions": versions,
        "pairs": [list(pair) for pair in pairs],
        "cells": [
            [_cell(rows[v], pair, runs, compared, uniques) for pair in pairs] for v in versions
        ],
    }


def _cell(
    names: Mapping[str, str],
    pair: tuple[str, str],
    runs: Mapping[str, Run],
    compared: Mapping[frozenset[str], Mapping[str, Any]],
    uniques: Sequence[Mapping[str, Any]],
) -> str | None:
    """The ids of the pair's unique inconsistencies, or in a word what there is instead."""
    if any(side not in names for side in pair):
        return None
    sides = [names[side] for side in pair]
    for name in sides:
        if name not in runs or not runs[name].ok:
            return runs[name].outcome.value if name in runs else "not run"
    found = compared.get(frozenset(sides))
    if found is None:
        return None
    if found["mismatch"]:
        return "shape"
    if not found["inconsistent"]:
        return str(found["explained"] or "consistent")
    ids = [u["id"] for u in uniques if sorted(sides) in [sorted(p) for p in u["pairs"]]]
    return ", ".join(ids)
