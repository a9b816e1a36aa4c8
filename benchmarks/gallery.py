"""Takes the pictures of docs/gallery.md: planted faults, checked, and their reports in a browser.

    .venv/bin/python benchmarks/gallery.py

Needs Chromium with chromedriver, Keras, JAX and the NumPy backend.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from selenium import webdriver

from outvote import api

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
_LAYERS = {
    "batchnorm_epsilon": "L.Conv2D(4, 3, name='conv'), L.BatchNormalization(name='norm'), L.ReLU()",
    "softmax_overflow": "L.Flatten(), L.Dense(5, name='wide'), L.Rescaling(500.0), L.Softmax()",
}
_BUILD = """
import keras; from keras import layers as L
keras.utils.set_random_seed(3)
keras.Sequential([keras.Input((8, 8, 1)), {layers}]).save({path!r})
"""


def main() -> None:
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--window-size=1100,900"):
        options.add_argument(argument)
    browser = webdriver.Chrome(options=options)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for fault, layers in _LAYERS.items():
            out = _checked(fault, layers, folder)
            browser.get((out / "report.html").as_uri())
            browser.save_screenshot(str(IMAGES / f"{fault}.png"))
    browser.quit()


def _checked(fault: str, layers: str, folder: Path) -> Path:
    """The reports of a model with such layers, on a target with the fault and two without."""
    model, config, out = folder / f"{fault}.keras", folder / "outvote.toml", folder / fault
    build = [sys.executable, "-c", _BUILD.format(layers=layers, path=str(model))]
    subprocess.run(build, env={**os.environ, "KERAS_BACKEND": "jax"}, check=True)
    script = ROOT / "examples" / "faults" / f"{fault}.py"
    config.write_text(f'[targets.patched]\nextends = "torch"\nlibrary = "x"\nsetup = "{script}"\n')
    targets = ["patched", "jax", "numpy"]
    print(api.check(model, targets=targets, config=config, out=out, confirm=0).summary)
    return out


if __name__ == "__main__":
    main()
