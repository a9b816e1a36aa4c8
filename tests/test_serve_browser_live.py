"""What a Chromium shows of campaigns at work, of findings old and new, and of a check by layer."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By

from chromium import text, value, wait
from conftest import write_fake_data, write_fake_model
from outvote.core.events import MutantsTested, Started
from outvote.core.files import save_npz
from outvote.store import facts
from outvote.store.owner import this_process
from outvote.store.rows import Reached
from outvote.store.store import Store
from served import Served, serving
from test_serve import data_of
from test_store import row_of

pytestmark = pytest.mark.browser

Browser = webdriver.Chrome
CREWS = [
    {"crew": 1, "doing": "attempt", "numbers": [48, 41], "node": "north", "tested": 1234},
    {"crew": 2, "doing": "look", "numbers": [7], "node": "south", "tested": 56},
]
SLOW = """
[targets.a]
extends = "fake"
library = "a"
[targets.stuck]
extends = "fake"
library = "stuck"
env = { OUTVOTE_FAKE = "hang:d2" }
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two campaigns at work; of what the second shows one finding is new and one is told anew."""
    folder = tmp_path_factory.mktemp("bench")
    at_work(folder / "first", {"aaaaaaaaaaaa": data_of("one"), "bbbbbbbbbbbb": data_of("two")})
    both = {"bbbbbbbbbbbb": data_of("two", triage="unknown"), "cccccccccccc": data_of("three")}
    at_work(folder / "second", both)
    pictured = folder / "first" / "findings" / "aaaaaaaaaaaa"
    pictured.mkdir(parents=True)
    ramp = np.linspace(0, 1, 2 * 8 * 8, dtype=np.float32).reshape(2, 8, 8, 1)
    save_npz(pictured / "inputs.npz", {"x": ramp})
    (pictured / "report.md").write_text("# two\n```python\nimport short\n```\n")
    (pictured / "repro.py").write_text("import long\n")
    write_fake_model(folder / "model.json")
    write_fake_data(folder / "data.npz")
    (folder / "outvote.toml").write_text(SLOW)
    return folder


def at_work(folder: Path, findings: dict[str, dict[str, Any]]) -> None:
    """A campaign that this process is at work on, begun an hour and a half ago."""
    folder.mkdir()
    with closing(Store(folder, create=True)) as store:
        created = datetime.fromtimestamp(time.time() - 5400, UTC)
        store.note(facts.CREATED, created.isoformat())
        store.note(facts.JOB, {"strategy": "mixed", "targets": ["a", "b"]})
        store.note(facts.OWNER, this_process())
        tallies = {"LA": [80, 5], "NS": [20, 0]}
        store.note(facts.STATE, {"tallies": tallies, "arms": {"layers": [9, 4]}})
        store.note(facts.BUSY, {"a": 30.0, "b": 60.0})
        store.note(facts.LINES, {"a": 5678})
        store.begin(Started("fuzz"))
        store.add(row_of(1, new="seed"))
        store.add(row_of(2, 1, "NS", new="Dense"))
        store.add(row_of(3, 2, "LA", new="LSTM"))
        for at, (fingerprint, finding) in enumerate(findings.items()):
            store.found(fingerprint, 3, 60.0 + at, finding)
        progressed(store, 100, 60.0)


def progressed(store: Store, number: int, seconds: float) -> None:
    share = seconds / 1200
    store.tell(MutantsTested(number, number, 2, seconds, share, kinds=number // 10, values=number))


@pytest.fixture(scope="module")
def served(root: Path) -> Iterator[Served]:
    with serving(root, config=root / "outvote.toml") as found:
        yield found


def body(browser: Browser) -> str:
    return str(browser.find_element(By.TAG_NAME, "body").text)


def open_run(browser: Browser, served: Served, name: str) -> None:
    browser.get(served.address)
    browser.find_element(By.LINK_TEXT, name).click()
    wait(browser, "document.querySelector('.figures')")


def figure(browser: Browser, name: str) -> str:
    """One of the numbers at the head of a campaign."""
    there = "[...document.querySelectorAll('.figures div')]"
    found = f"{there}.find(d => d.querySelector('dt').textContent == {name!r})"
    return str(value(browser, f"{found}.querySelector('dd').textContent"))


def rows_of(browser: Browser, section: str) -> list[list[str]]:
    """The table below a heading."""
    heading = f"[...document.querySelectorAll('h2')].find(h => h.textContent == {section!r})"
    rows = f"[...{heading}.closest('section').querySelectorAll('tbody tr')]"
    cells = "[...r.querySelectorAll('th, td')].map(c => c.textContent.trim())"
    return [list(row) for row in value(browser, f"{rows}.map(r => {cells})")]


def highest(browser: Browser, title: str) -> float:
    """How far up the chart of that title says that its lines reach."""
    figure = browser.find_element(By.XPATH, f"//figure[.//b[starts-with(., '{title}')]]")
    label = str(figure.find_element(By.TAG_NAME, "svg").get_dom_attribute("aria-label"))
    found = re.search(r"at most ([\d.,]+)", label)
    assert found, label
    assert figure.find_elements(By.TAG_NAME, "polyline")
    return float(found[1].replace(",", ""))


def test_counts_rates_and_the_time_left_move_by_themselves(
    browser: Browser, served: Served, root: Path
) -> None:
    open_run(browser, served, "first")
    assert figure(browser, "cases") == "100"
    assert figure(browser, "time left") == "19 min"
    assert rows_of(browser, "Targets")[0][:2] == ["a", "200"], "100 cases in 30 s"
    with closing(Store(root / "first", create=False)) as store:
        store.note(facts.BUSY, {"a": 60.0, "b": 60.0})
        progressed(store, 400, 120.0)
    wait(browser, "document.querySelector('.figures dd').textContent == '400'")
    assert figure(browser, "a minute") == "300"
    assert figure(browser, "time left") == "18 min"
    assert rows_of(browser, "Targets")[0][:2] == ["a", "400"]


def test_coverage_and_findings_over_time_are_drawn_further(
    browser: Browser, served: Served, root: Path
) -> None:
    open_run(browser, served, "second")
    assert highest(browser, "Findings") == 2
    names = "[...document.querySelectorAll('.legend-row span')].map(e => e.innerText.trim())"
    with closing(Store(root / "second", create=False)) as store:
        for number in (1, 2):
            store.reach(Reached(number, "a", 20.0 * number, {"layers.py": [number, 9]}))
        store.found("dddddddddddd", 3, 80.0, data_of("four"))
        progressed(store, 200, 120.0)
    wait(browser, "document.querySelector('.figures dd').textContent == '200'")
    wait(browser, "document.body.innerText.includes('Lines of each library')")
    assert highest(browser, "Findings") == 3
    assert highest(browser, "Coverage") == 1
    assert {"kinds of layers", "classes of parameter values"} <= set(value(browser, names))
    assert highest(browser, "Lines of each library") == 4
    assert figure(browser, "lines of a") == "4 of 5,678"


def test_which_rule_and_which_strategy_yields_is_told(browser: Browser, served: Served) -> None:
    open_run(browser, served, "first")
    assert rows_of(browser, "Rules") == [["LA", "80", "5", "2"], ["NS", "20", "0", "0"]]
    assert "Strategies: layers 4 new in 9 requests." in body(browser)


def test_what_each_crew_does_is_told_and_follows(
    browser: Browser, served: Served, root: Path
) -> None:
    open_run(browser, served, "first")
    with closing(Store(root / "first", create=False)) as store:
        store.note(facts.CREWS, [{**crew, "since": time.time()} for crew in CREWS])
    wait(browser, "document.body.innerText.includes('looks into 7')")
    told = [row[:4] for row in rows_of(browser, "Crews")]
    assert told == [["1", "north", "1,234", "runs 41 to 48"], ["2", "south", "56", "looks into 7"]]
    with closing(Store(root / "first", create=False)) as store:
        waits = {**CREWS[1], "doing": "waiting", "numbers": [], "since": time.time()}
        store.note(facts.CREWS, [{**CREWS[0], "since": time.time()}, waits])
    wait(browser, "!document.body.innerText.includes('looks into 7')")
    assert rows_of(browser, "Crews")[1][3] == "waits"


def test_only_what_is_new_since_is_kept(browser: Browser, served: Served, root: Path) -> None:
    titles = "[...document.querySelectorAll('a[data-row]')].map(a => a.textContent)"
    with closing(Store(root / "first", create=False)) as store:
        store.found("eeeeeeeeeeee", 3, 5000.0, data_of("a late one"))
    time.sleep(2.5)  # until the workbench has looked
    browser.get(f"{served.address}findings")
    assert {"one", "a late one"} <= set(value(browser, titles))
    browser.find_element(By.XPATH, "//option[.='in the last hour']").click()
    wait(browser, f"{titles}.join() == 'a late one'")
    browser.find_element(By.XPATH, "//option[.='ever']").click()
    wait(browser, f"{titles}.length > 2")
    # What was there when this browser was here last is no news to it.
    time.sleep(1.1)
    browser.get(f"{served.address}findings")
    with closing(Store(root / "first", create=False)) as store:
        since = datetime.fromisoformat(store.fact(facts.CREATED)).timestamp()
        store.found("ffffffffffff", 3, time.time() + 2 - since, data_of("a fresh one"))
    time.sleep(2.5)
    browser.find_element(By.XPATH, "//option[.='since my last visit']").click()
    wait(browser, f"{titles}.join() == 'a fresh one'")


@pytest.mark.parametrize(
    ("field", "choice", "kept"),
    [("triage", "unknown", {"unknown"}), ("kind", "crash", {"crash"}), ("accused", "a", {"a"})],
)
def test_a_choice_keeps_rows_of_its_own(
    browser: Browser, served: Served, field: str, choice: str, kept: set[str]
) -> None:
    column = {"triage": 1, "kind": 2, "accused": 4}[field]
    browser.get(f"{served.address}findings?place={key_of(browser, served, 'second')}")
    browser.find_element(By.XPATH, f"//select[@name='{field}']/option[.='{choice}']").click()
    wait(browser, f"(document.getElementById('rows').dataset.query ?? '').includes('{field}=')")
    cells = f"[...document.querySelectorAll('#rows td:nth-child({column})')]"
    assert set(value(browser, f"{cells}.map(c => c.textContent.trim())")) == kept


def key_of(browser: Browser, served: Served, name: str) -> str:
    browser.get(served.address)
    link = browser.find_element(By.LINK_TEXT, name).get_attribute("href")
    assert link is not None
    return link.rpartition("/")[2]


def test_the_input_is_shown_where_it_is_a_picture(browser: Browser, served: Served) -> None:
    browser.get(f"{served.address}finding/aaaaaaaaaaaa")
    sizes = "[...document.querySelectorAll('.wall img')].map(i => [i.naturalWidth, i.complete])"
    assert value(browser, sizes) == [[8, True], [8, True]]
    browser.get(f"{served.address}finding/cccccccccccc")
    assert "The input" not in body(browser)


def test_the_lineage_has_every_step_from_the_seed(browser: Browser, served: Served) -> None:
    browser.get(f"{served.address}finding/cccccccccccc")
    steps = [step.text for step in browser.find_elements(By.CSS_SELECTOR, ".lineage .step")]
    assert steps == ["seed", "NS Dense", "LA LSTM"]


@pytest.mark.parametrize(
    ("name", "copied"), [("short", "import short\n"), ("script", "import long\n")]
)
def test_each_script_has_a_button_that_copies_it(
    browser: Browser, served: Served, name: str, copied: str
) -> None:
    browser.get(f"{served.address}finding/aaaaaaaaaaaa")
    rights = ["clipboardReadWrite", "clipboardSanitizedWrite"]
    browser.execute_cdp_cmd("Browser.grantPermissions", {"permissions": rights})
    browser.find_element(By.CSS_SELECTOR, f"[data-copy='{name}']").click()
    wait(browser, f"document.querySelector(\"[data-copy='{name}']\").textContent == 'Copied'")
    read = "navigator.clipboard.readText().then(arguments[0], (e) => arguments[0](String(e)))"
    assert browser.execute_async_script(read).strip() == copied.strip()


def test_two_campaigns_are_compared(browser: Browser, served: Served) -> None:
    one, other = (key_of(browser, served, name) for name in ("first", "second"))
    browser.get(f"{served.address}compare?a={one}&b={other}")
    assert "three" in text(browser, "new")
    assert "one" in text(browser, "gone")
    changed = text(browser, "changed")
    assert "two" in changed
    assert "verdict: bug → unknown" in changed


def test_a_check_is_watched_by_layer_and_its_report_is_a_click_away(
    browser: Browser, served: Served, root: Path
) -> None:
    """A target that never leaves its second layer: the page shows where it is, and stops it."""
    browser.get(f"{served.address}models")
    names = [str(root / name) for name in ("model.json", "data.npz")]
    browser.find_element(By.ID, "files").send_keys("\n".join(names))
    wait(browser, "document.querySelectorAll('#given .good').length == 2")
    browser.find_element(By.ID, "start").click()
    wait(browser, "location.pathname.includes('/at/')")
    stuck = "[...document.querySelectorAll('tbody tr')].find(r => r.innerText.includes('stuck'))"
    wait(browser, f"({stuck})?.querySelector('td:last-child code')?.textContent == 'd2'")
    assert "--targets a,stuck" in text(browser, "command-line")
    button = "[...document.querySelectorAll('.head button')].find(b => b.textContent == 'Stop')"
    wait(browser, f"((one) => one && (one.click(), true))({button})")
    wait(browser, "document.querySelector('.head .badge').textContent == 'stopped'")
    report = browser.find_element(By.LINK_TEXT, "Whole report").get_attribute("href")
    assert report is not None
    browser.get(report)
    assert "Stopped early: a had finished." in body(browser)


def test_an_address_without_its_token_shows_nothing(browser: Browser, served: Served) -> None:
    bare = served.address.rsplit("/", 2)[0]
    for path in ("/", "/findings", f"/{'x' * 24}/", f"/{'x' * 24}/findings"):
        browser.get(bare + path)
        assert body(browser) == (
            "outvote: the address lacks the token that `outvote serve` has printed"
        )


def test_ten_windows_follow_a_campaign_at_once(
    browser: Browser, served: Served, root: Path
) -> None:
    own = browser.current_window_handle
    opened = []
    try:
        for _ in range(10):
            browser.switch_to.new_window("window")
            opened.append(browser.current_window_handle)
            open_run(browser, served, "first")
        with closing(Store(root / "first", create=False)) as store:
            progressed(store, 9999, 300.0)
        for handle in opened:
            browser.switch_to.window(handle)
            wait(browser, "document.querySelector('.figures dd').textContent == '9,999'")
    finally:
        for handle in opened:
            browser.switch_to.window(handle)
            browser.close()
        browser.switch_to.window(own)
