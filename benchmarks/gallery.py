"""Takes the pictures of docs/gallery.md: planted faults, checked, and their reports in a browser.

    make demo
    .venv/bin/python benchmarks/gallery.py

Needs what the demo has written, Chromium with chromedriver, Keras, JAX and the NumPy backend.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from selenium import webdriver
from selenium.webdriver.support.ui import WebDriverWait

from outvote import api

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
DEMO = ROOT / "demo-out" / "patched"
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
    if not (DEMO / "report.html").is_file():
        sys.exit(f"{DEMO} holds no report: run `make demo` first")
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--hide-scrollbars"):
        options.add_argument(argument)
    driver = webdriver.ChromeService(shutil.which("chromedriver"))
    browser = webdriver.Chrome(options=options, service=driver)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        checked = {fault: _checked(fault, _LAYERS[fault], folder) for fault in _LAYERS}
        for name, out in {"finding": DEMO, **checked}.items():
            browser.set_window_size(1100, 1600 if out == DEMO else 900)  # with the map, once
            browser.get((out / "report.html").as_uri())
            WebDriverWait(browser, 60).until(_drawn)
            browser.save_screenshot(str(IMAGES / f"{name}.png"))
        _workbench(browser, folder)
    browser.quit()


def _workbench(browser: webdriver.Chrome, folder: Path) -> None:
    """The page of the demo's finding, in `outvote serve` on a copy: it may write there."""
    shutil.copytree(DEMO, folder / "demo" / DEMO.name)
    (finding,) = (folder / "demo" / DEMO.name / "findings").iterdir()
    command = [sys.executable, "-u", "-m", "outvote", "serve", str(folder / "demo")]
    served = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert served.stdout is not None
    address = served.stdout.readline().split()[-1]
    browser.set_window_size(1280, 1280)
    browser.get(f"{address}finding/{finding.name}")
    WebDriverWait(browser, 60).until(_drawn)
    browser.save_screenshot(str(IMAGES / "workbench.png"))
    served.send_signal(signal.SIGINT)
    served.wait()
    _smaller(IMAGES / "workbench.png")


def _smaller(path: Path) -> None:
    """The picture with a palette: a page has few colours."""
    with Image.open(path) as picture:
        picture.convert("RGB").quantize(64).save(path, optimize=True)


def _drawn(browser: webdriver.Chrome) -> bool:
    return bool(browser.execute_script("return window.outvote && outvote.ready"))


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
