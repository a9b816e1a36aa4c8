"""Holds results against the form that is published: result.schema.json."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

import jsonschema
from jsonschema.exceptions import best_match


@cache
def schema() -> dict[str, Any]:
    text = files("outvote.report").joinpath("schema/result.schema.json").read_text("utf-8")
    read: dict[str, Any] = json.loads(text)
    return read


@cache
def _validator() -> Any:
    return jsonschema.Draft202012Validator(schema())


def is_valid(result: Any) -> bool:
    return bool(_validator().is_valid(result))


def faults(result: Any) -> str | None:
    """What is wrong with the form of a result, or None."""
    error = best_match(_validator().iter_errors(result))
    return None if error is None else f"{error.json_path}: {error.message[:400]}"


def nulls_in_the_way(result: Any) -> set[tuple[Any, ...]]:
    """The ways to every null that the form does not allow."""
    errors = list(_validator().iter_errors(result))
    direct = {tuple(e.absolute_path) for e in errors if e.instance is None}
    inner = (e for error in errors for e in error.context if e.instance is None)
    return direct or {tuple(e.absolute_path) for e in inner}


def require_form(result: Any) -> None:
    """Fail where a result has a key too many or too few, or one of another type."""
    from outvote.core.result import plain

    told = faults(plain(result))
    assert told is None, f"result.json is not of the form in result.schema.json: {told}"
