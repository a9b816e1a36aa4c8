"""Transformations of programs that lose something: by what file, and what they compute in then."""

from __future__ import annotations

FILES = {"fp16": "narrow", "bf16": "narrow", "int8": "int8"}
PRECISION = {"fp16": "f16", "bf16": "bf16", "int8": "int8"}
