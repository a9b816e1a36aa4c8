"""The report in a real Chromium: the map is drawn, found, walked, and silent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import report_example
from chromium import log, text, value, wait
from outvote.report import rendered
from test_report_size import check

pytestmark = pytest.mark.browser


def show(browser: webdriver.Chrome, result: dict[str, Any], folder: Path) -> str:
    """Open the report of a result; its address is returned once the map is drawn."""
    log(browser, "browser")
    log(browser, "performance")
    (folder / "report.html").write_text(rendered("html", result, folder), encoding="utf-8")
    address = (folder / "report.html").as_uri()
    browser.get(address)
    wait(browser, "window.outvote && outvote.ready")
    return address


def test_the_map_is_drawn_and_opens_at_the_fault(browser: webdriver.Chrome, tmp_path: Path) -> None:
    show(browser, report_example.inconsistent(), tmp_path)
    assert browser.find_elements(By.CSS_SELECTOR, "#map-canvas canvas")
    assert value(browser, "outvote.current.cy.nodes().length") == 25
    assert value(browser, "outvote.current.cy.edges().length") == 27
    assert value(browser, "outvote.current.layout") == "dagre"
    assert value(browser, "outvote.current.cy.nodes('.red').length") == 6
    assert value(browser, "outvote.current.cy.nodes('.faulty').length") == 3
    assert "first faulty layer\nblock1_bn" in text(browser, "map-panel")
    assert log(browser, "browser") == []


def test_the_path_leads_from_the_input_to_the_fault(
    browser: webdriver.Chrome, tmp_path: Path
) -> None:
    show(browser, report_example.inconsistent(), tmp_path)
    path = value(browser, "outvote.current.path.map(i => outvote.current.nodes[i].id)")
    assert path == ["image", "stem_conv", "stem_relu", "block1_conv", "block1_bn"]
    assert value(browser, "outvote.current.cy.edges('.path').length") == 4


def test_search_counts_and_jumps(browser: webdriver.Chrome, tmp_path: Path) -> None:
    show(browser, report_example.inconsistent(), tmp_path)
    box = browser.find_element(By.ID, "map-search")
    box.send_keys("BATCHnorm")
    assert text(browser, "map-count") == "3 matches"
    assert value(browser, "outvote.current.cy.nodes('.hit').length") == 3
    box.send_keys(Keys.ENTER)
    assert text(browser, "map-count") == "1 of 3 matches"
    assert "block1_bn" in text(browser, "map-panel")
    box.send_keys(Keys.ENTER)
    assert "block2_bn" in text(browser, "map-panel")
    box.clear()
    box.send_keys("no such layer")
    assert text(browser, "map-count") == "0 matches"


def test_first_faulty_centres_and_tells(browser: webdriver.Chrome, tmp_path: Path) -> None:
    show(browser, report_example.inconsistent(), tmp_path)
    browser.execute_script("outvote.choose(0)")
    assert "image" in text(browser, "map-panel")
    browser.find_element(By.ID, "map-first").click()
    panel = text(browser, "map-panel")
    for part in ("block1_bn", "BatchNormalization", "0.21 (tolerance 1e-5)", "(1, 28, 28, 5)"):
        assert part in panel
    assert "epsilon\n0.001" in panel
    place = value(browser, "outvote.current.cy.nodes('.first').renderedPosition()")
    size = browser.find_element(By.ID, "map-canvas").size
    assert place["x"] == pytest.approx(size["width"] / 2, abs=3)
    assert place["y"] == pytest.approx(size["height"] / 2, abs=3)


def test_a_layer_tells_its_figures_under_the_pointer(
    browser: webdriver.Chrome, tmp_path: Path
) -> None:
    show(browser, report_example.inconsistent(), tmp_path)
    canvas = browser.find_element(By.ID, "map-canvas")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", canvas)
    actions = webdriver.ActionChains(browser)
    actions.move_to_element_with_offset(canvas, 40, 5).move_to_element(canvas).perform()
    wait(browser, "!document.getElementById('map-tip').hidden")
    tip = text(browser, "map-tip")
    assert tip.startswith("block1_bn\nBatchNormalization\nδ ")
    assert "alone 0.21 (tolerance 1e-5)" in tip
    assert "shape (1, 28, 28, 5)" in tip


def test_a_click_opens_the_panel(browser: webdriver.Chrome, tmp_path: Path) -> None:
    show(browser, report_example.inconsistent(), tmp_path)
    canvas = browser.find_element(By.ID, "map-canvas")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", canvas)
    browser.execute_script("outvote.choose(0); outvote.choose(outvote.current.first)")
    browser.execute_script("outvote.current.cy.panBy({x: 0, y: 110})")
    webdriver.ActionChains(browser).move_to_element(canvas).click().perform()
    wait(browser, "document.querySelector('#map-panel h3').textContent != 'block1_bn'")
    chosen = value(browser, "outvote.current.cy.nodes('.chosen').map(n => n.data('index'))")
    shown = value(browser, f"outvote.current.nodes[{chosen[0]}].id")
    assert shown in text(browser, "map-panel")


def test_only_one_map_is_alive(browser: webdriver.Chrome, tmp_path: Path) -> None:
    show(browser, report_example.two_maps(), tmp_path)
    assert value(browser, "outvote.maps.map(m => m.nodes)") == [25, 60]
    browser.execute_script("window.old = outvote.current.cy")
    browser.find_element(By.CSS_SELECTOR, "#map-select option[value='1']").click()
    wait(browser, "outvote.ready && outvote.current.index == 1")
    assert value(browser, "old.destroyed()") is True
    assert value(browser, "outvote.current.cy.nodes().length") == 60
    assert report_example.middle(60) in text(browser, "map-panel")
    notes = browser.find_elements(By.CLASS_NAME, "map-notes")
    assert [note.is_displayed() for note in notes] == [False, True]
    assert log(browser, "browser") == []


def test_a_thousand_layers_stay_usable(browser: webdriver.Chrome, tmp_path: Path) -> None:
    show(browser, report_example.big(), tmp_path)
    assert value(browser, "outvote.current.cy.nodes().length") == 1000
    assert value(browser, "outvote.current.layout") == "layered"
    assert value(browser, "outvote.current.layoutMs") < 1000
    zoom = value(browser, "outvote.current.cy.zoom()")
    assert zoom > 0.6, "it opens at a zoom at which names can be read"
    assert report_example.middle(1000) in text(browser, "map-panel")
    browser.find_element(By.ID, "map-fit").click()
    assert value(browser, "outvote.current.cy.zoom()") < 0.1
    wide = "document.documentElement.scrollWidth <= innerWidth"
    assert value(browser, wide), "the page does not scroll sideways"
    assert log(browser, "browser") == []


def test_five_thousand_layers_are_folded_until_they_are_asked_for(
    browser: webdriver.Chrome, tmp_path: Path
) -> None:
    show(browser, report_example.big(5000), tmp_path)
    current = "outvote.current"
    assert value(browser, f"{current}.cy.nodes().length") < 500
    folded = value(browser, f"{current}.cy.nodes('.folded').length")
    assert folded > 0
    assert report_example.middle(5000) in text(browser, "map-panel")
    assert value(browser, f"{current}.cy.zoom()") > 0.6
    inside = value(browser, f"{current}.cy.nodes('.folded')[0].data('folded')")
    assert value(browser, f"{current}.cy.getElementById('n{inside}').length") == 0
    browser.execute_script(f"outvote.choose({inside})")  # as a click on the box, or a search, does
    assert value(browser, f"{current}.cy.getElementById('n{inside}').length") == 1
    assert value(browser, f"{current}.cy.nodes('.folded').length") == folded - 1
    assert value(browser, f"{current}.nodes[{inside}].id") in text(browser, "map-panel")
    assert log(browser, "browser") == []


def test_hostile_names_do_nothing(browser: webdriver.Chrome, tmp_path: Path) -> None:
    show(browser, report_example.hostile(), tmp_path)
    browser.find_element(By.ID, "map-first").click()
    assert report_example.HOSTILE in text(browser, "map-panel")
    browser.find_element(By.ID, "map-search").send_keys("</script>", Keys.ENTER)
    assert text(browser, "map-count") == "1 of 1 match"
    browser.execute_script("outvote.current.cy.nodes('.first').emit('mouseover')")
    assert report_example.HOSTILE in text(browser, "map-tip")
    assert value(browser, "window.hacked") is None
    assert log(browser, "browser") == []


def test_nothing_is_asked_from_the_network(browser: webdriver.Chrome, tmp_path: Path) -> None:
    address = show(browser, report_example.inconsistent(), tmp_path)
    messages = [json.loads(row["message"])["message"] for row in log(browser, "performance")]
    asked = [
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    ]
    assert [url for url in asked if not url.startswith("data:image/")] == [address]


def test_a_narrow_screen_does_not_scroll_sideways(
    browser: webdriver.Chrome, tmp_path: Path
) -> None:
    size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        show(browser, report_example.inconsistent(), tmp_path)
        assert value(browser, "document.documentElement.scrollWidth") == 390
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_many_findings_are_filtered(browser: webdriver.Chrome, tmp_path: Path) -> None:
    show(browser, check(40), tmp_path)
    shown = (
        "[...document.querySelectorAll('article.finding')].filter(e => e.checkVisibility()).length"
    )
    assert value(browser, shown) == 40
    browser.find_element(By.ID, "sift").send_keys("TARGET3 crash")
    kept = value(browser, shown)
    assert 0 < kept < 10
    assert text(browser, "sift-count") == f"{kept} of 40"
    rows = "[...document.querySelectorAll('#causes tbody tr')].filter(e => !e.hidden).length"
    assert value(browser, rows) == kept
    assert log(browser, "browser") == []
