"""A result of `outvote explore`, made by hand, with a name that tries to be markup."""

from __future__ import annotations

from typing import Any

NAME = "<b>evil</b>"

EXAMPLE: dict[str, Any] = {
    "schema": 2,
    "command": "explore",
    "outvote": "0",
    "created": "2026-01-01T00:00:00+00:00",
    "seconds": 1.0,
    "verdict": "inconsistent",
    "summary": "1 of 1 seed led to inputs on which the models differ.",
    "warnings": [],
    "targets": [
        {"name": "torch", "library": "torch", "mode": "eager", "versions": {}, "precision": {}}
        | {"python": None, "platform": None, "setup": None, "requirements": [], "config": None}
    ],
    "findings": [],
    "interrupted": False,
    "gate": None,
    "causes": [],
    "models": [{"name": NAME, "path": "a.keras", "layers": 1, "weights": 1, "neurons": 1}],
    "data": {"source": NAME, "instances": 1},
    "settings": {
        "constraint": "none",
        "lambda1": 1.0,
        "lambda2": 0.1,
        "step": 10.0,
        "threshold": 0.0,
        "iterations": 20,
        "until_coverage": None,
        "answers": "classes",
        "tolerance": None,
        "bins": [],
        "skip": [],
        "batch_size": 128,
        "seed": 0,
    },
    "seeds": 1,
    "already_different": 0,
    "differences": {
        "total": 1,
        "confirmed_on": NAME,
        "unconfirmed": 0,
        "per_model": {NAME: 1},
        "confusion": [{"from": 0, "to": 1, "count": 1}],
        "mean_l1": None,
        "mean_iterations": 1.0,
        "first_seconds": None,
    },
    "coverage": {
        "threshold": 0.0,
        "average": 1.0,
        "cycles": 1,
        "models": [
            {
                "model": NAME,
                "neurons": 1,
                "covered": 1,
                "coverage": 1.0,
                "layers": [{"name": NAME, "kind": "Dense", "neurons": 1, "covered": 1}],
            }
        ],
        "curves": {},
    },
    "search_seconds": 1.0,
    "seeds_per_second": None,
    "baselines": {},
    "retraining": None,
    "examples": [
        {
            "seed": 0,
            "iterations": 1,
            "before": None,
            "after": None,
            "changes": [{"feature": NAME, "before": 0.0, "after": 1.0}],
            "label": None,
            "answers": [
                {
                    "model": NAME,
                    "before": {"values": [0.0]},
                    "after": {"class": 1, "confidence": 0.5},
                    "deviates": True,
                }
            ],
        }
    ],
    "inputs": "inputs.npz",
}
