"""Runs snippets that build Keras models, one JSON line each; Keras is imported once."""

from __future__ import annotations

import json
import os
import sys
import traceback

answers = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)  # whatever Keras prints must not mix with the answers

import keras  # noqa: E402
import numpy as np  # noqa: E402
from keras import layers, ops  # noqa: E402

for line in sys.stdin:
    request = json.loads(line)
    scope = {"keras": keras, "np": np, "layers": layers, "ops": ops}
    keras.utils.set_random_seed(0)
    try:
        exec(request["snippet"], scope)
        scope["model"].save(request["path"])
        exec(request["after"], scope)
        error = None
    except Exception:
        error = traceback.format_exc()
    answers.write(json.dumps(error) + "\n")
