"""Modes on an NVIDIA GPU, and what tells NVIDIA's libraries what to compute in."""

from __future__ import annotations

# By mode: what is set before CUDA is loaded. Without TF32, float32 is computed in float32.
ON_CUDA = {"cuda": {}, "cuda-highest": {"NVIDIA_TF32_OVERRIDE": "0"}}
