"""A real Chromium for the tests of pages, and what they ask of it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait


def program(*names: str) -> str:
    for name in names:
        if found := shutil.which(name):
            return found
    told = f"The browser tests need {' or '.join(names)} on the PATH; none was found."
    if os.environ.get("CI"):
        pytest.fail(told)
    pytest.skip(told)  # a machine where nobody may install a browser can still run the rest


@contextmanager
def opened() -> Iterator[webdriver.Chrome]:
    """A browser without a window, until the block ends."""
    options = webdriver.ChromeOptions()
    options.binary_location = program("chromium", "google-chrome")
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    options.add_argument("--window-size=1280,1000")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(program("chromedriver"))
    driver = webdriver.Chrome(options=options, service=service)
    yield driver
    driver.quit()


def log(browser: webdriver.Chrome, kind: str) -> list[dict[str, Any]]:
    """What the browser logged since this was last asked."""
    rows: list[dict[str, Any]] = browser.get_log(kind)  # type: ignore[no-untyped-call]
    return rows


def wait(browser: webdriver.Chrome, condition: str) -> None:
    script = f"return Boolean({condition})"
    WebDriverWait(browser, 60).until(lambda driver: driver.execute_script(script), condition)


def value(browser: webdriver.Chrome, expression: str) -> Any:
    return browser.execute_script(f"return {expression}")


def text(browser: webdriver.Chrome, name: str) -> str:
    return str(browser.find_element(By.ID, name).text)
