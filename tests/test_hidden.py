"""Libraries that are hidden from one that looks for them, and are there again afterwards."""

from __future__ import annotations

import subprocess
import sys

import pytest

from outvote.worker.hidden import hidden


def test_what_is_hidden_cannot_be_imported_and_can_be_afterwards() -> None:
    sys.modules.pop("colorsys", None)
    with hidden(["colorsys"]), pytest.raises(ImportError):
        import colorsys
    import colorsys

    assert colorsys.__name__ in sys.modules


def test_what_is_in_use_stays_in_use() -> None:
    import json

    with hidden(["json"]):
        import json as again
    assert again is json


KERAS = """
import sys
from outvote.worker.hidden import hidden
with hidden(["sklearn", "IPython", "cv2", "jax"]):
    import keras
assert not {"sklearn", "IPython", "cv2", "jax"} & set(sys.modules), "it was imported"
from keras.src.utils.module_utils import jax
assert jax.available, "Keras still thinks that it is missing"
import sklearn
"""


@pytest.mark.frameworks
def test_keras_gets_along_without_them_and_finds_them_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "tensorflow")
    done = subprocess.run([sys.executable, "-c", KERAS], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
