"""The workbench in a real Chromium: runs, findings, models, two runs compared, live and safe."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import report_example
from chromium import log, text, value, wait
from outvote.core.events import FindingMet, MutantsTested, Started
from outvote.findings.known import load_known
from outvote.store import facts
from outvote.store.rows import Reached
from outvote.store.store import Row, Store
from served import Served, bred, checked, serving

pytestmark = pytest.mark.browser

HOSTILE = report_example.HOSTILE
Browser = webdriver.Chrome


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two checks and a campaign; one layer has a name that tries to become code."""
    from conftest import write_fake_data, write_fake_model

    folder = tmp_path_factory.mktemp("bench")
    model, data = write_fake_model(folder / "model.json"), write_fake_data(folder / "data.npz")
    checked(model, data, folder / "checked")
    checked(model, data, folder / "agreeing", "--targets", "a,b")
    bred(model, data, folder / "bred", "--budget", "24", "--minimise", "2", "--confirm", "0")
    hostile_campaign(folder / "hostile")
    return folder


def hostile_campaign(folder: Path) -> None:
    """A stored campaign in which every name comes from outside."""
    folder.mkdir()
    finding = report_example.hostile()["findings"][0]
    with closing(Store(folder, create=True)) as store:
        store.note(facts.JOB, {"strategy": HOSTILE, "targets": [HOSTILE]})
        store.note(facts.CREATED, "2026-03-14T09:26:53+00:00")
        store.begin(Started("fuzz"))
        store.add(Row(1, None, 1, None, None, "ok", 0.1, True, 3, 0.1, 0.5, new=HOSTILE))
        store.found(finding["fingerprint"], 1, 1.0, finding)
        store.tell(MutantsTested(1, 1, 1, seconds=1.0, share=0.5))


@pytest.fixture(scope="module")
def served(root: Path) -> Iterator[Served]:
    with serving(root, config=root / "outvote.toml") as found:
        yield found


def go(browser: Browser, served: Served, path: str = "") -> None:
    log(browser, "browser")
    browser.get(served.address + path)


def click(browser: Browser, selector: str) -> None:
    browser.find_element(By.CSS_SELECTOR, selector).click()


def body(browser: Browser) -> str:
    return str(browser.find_element(By.TAG_NAME, "body").text)


def run_named(browser: Browser, name: str) -> None:
    browser.find_element(By.LINK_TEXT, name).click()


def test_runs_are_listed_with_their_state(browser: Browser, served: Served) -> None:
    go(browser, served)
    rows = "[...document.querySelectorAll('#folders tbody tr')]"
    told = dict(value(browser, f"{rows}.map(r => [r.querySelector('a').textContent, r.innerText])"))
    assert set(told) == {"checked", "agreeing", "bred", "hostile"}
    assert "done" in told["checked"]
    assert "fuzz" in told["bred"]
    assert "\t24\t" in told["bred"]
    assert "gone" in told["hostile"], "it has not ended, and nobody is at work"
    assert log(browser, "browser") == []


def test_every_page_is_a_click_away(browser: Browser, served: Served) -> None:
    go(browser, served)
    for name in ("Findings", "Models", "Compare", "Runs"):
        link = browser.find_element(By.LINK_TEXT, name)
        box = "const b = arguments[0].getBoundingClientRect();"
        seen = "return document.elementFromPoint(b.x + b.width / 2, b.y + b.height / 2)"
        assert browser.execute_script(f"{box} {seen} === arguments[0]", link), f"{name} is hidden"
        link.click()
        wait(browser, f"document.querySelector('[aria-current]').textContent == '{name}'")


def test_a_campaign_shows_rates_rules_targets_and_findings(
    browser: Browser,
    served: Served,
) -> None:
    go(browser, served)
    run_named(browser, "bred")
    page = body(browser)
    for part in ("cases\n24", "Cases a minute", "Coverage", "Rules", "Targets", "Last cases"):
        assert part in page
    assert len(browser.find_elements(By.CSS_SELECTOR, "svg.line polyline")) >= 3
    assert "outvote fuzz --resume" in page
    assert "Newest findings" in page
    assert log(browser, "browser") == []


def test_a_campaign_is_followed_while_it_goes_on(
    browser: Browser,
    served: Served,
    root: Path,
) -> None:
    go(browser, served)
    run_named(browser, "hostile")
    wait(browser, "document.querySelector('.figures dd').textContent == '1'")
    with closing(Store(root / "hostile", create=False)) as store:
        store.note(facts.LINES, {HOSTILE: 5678})
        for number in (1, 2):
            at = 20.0 * number
            store.reach(Reached(number, HOSTILE, at, {"keras/src/layers.py": [number, 9]}))
        store.tell(MutantsTested(1234, 1200, 1, seconds=60.0, share=0.5, kinds=7, values=9))
    wait(browser, "document.querySelector('.figures dd').textContent == '1,234'")
    assert "4 of 5,678" in body(browser)
    assert "Lines of each library" in body(browser)
    assert value(browser, "window.hacked") is None


def test_a_campaign_is_paused_stopped_and_continued_from_its_page(
    browser: Browser,
    served: Served,
    root: Path,
) -> None:
    command = [sys.executable, "-m", "outvote", "fuzz", str(root / "model.json"), "--data"]
    command += [str(root / "data.npz"), "--targets", "a,b", "--config", str(root / "outvote.toml")]
    command += ["--budget", "10m", "--out", str(root / "led"), "--quiet"]
    begun = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    state = "document.querySelector('.head .badge').textContent"

    def press(name: str, then: str) -> None:
        # In one go: the page is made anew every second.
        buttons = "[...document.querySelectorAll('.head button')]"
        button = f"{buttons}.find(one => one.textContent == {name!r})"
        wait(browser, f"((one) => one && (one.click(), true))({button})")
        wait(browser, f"{state} == {then!r}")

    try:
        go(browser, served)
        wait(browser, "[...document.querySelectorAll('a')].some(a => a.textContent == 'led')")
        run_named(browser, "led")
        wait(browser, f"{state} == 'running'")
        press("Pause", "paused")
        press("Go on", "running")
        press("Stop", "stopped")
        assert begun.wait(60) == 130, "as by Ctrl-C"
        press("Continue", "running")
        assert "outvote fuzz --resume" in text(browser, "command-line")
        press("Stop", "stopped")
    finally:
        begun.kill()
        shutil.rmtree(root / "led")


def test_hostile_names_do_nothing(browser: Browser, served: Served) -> None:
    go(browser, served)
    assert HOSTILE in body(browser)
    run_named(browser, "hostile")
    assert HOSTILE in body(browser)
    go(browser, served, "findings?text=hacked")
    assert HOSTILE in body(browser)
    click(browser, "a[data-row]")
    wait(browser, "window.outvote && outvote.ready")
    assert HOSTILE in body(browser)
    assert value(browser, "window.hacked") is None
    assert log(browser, "browser") == [], "the policy had nothing to refuse"


def test_findings_are_filtered_as_one_types(browser: Browser, served: Served) -> None:
    go(browser, served, "findings")
    every = len(browser.find_elements(By.CSS_SELECTOR, "a[data-row]"))
    assert every > 1
    box = browser.find_element(By.ID, "search")
    box.send_keys("DENSE liar")
    wait(browser, "document.getElementById('rows').dataset.query == 'text=DENSE+liar'")
    kept = browser.find_elements(By.CSS_SELECTOR, "a[data-row]")
    assert kept
    assert all("Dense" in row.text for row in kept)
    box.send_keys(" no such word")
    wait(browser, "document.getElementById('total').textContent.includes('Nothing')")
    box.clear()
    box.send_keys(Keys.SPACE)
    for name, choice in (("triage", "bug"), ("accused", "liar")):
        browser.find_element(By.XPATH, f"//select[@name='{name}']/option[.='{choice}']").click()
    wait(browser, "document.getElementById('rows').dataset.query.includes('accused=liar')")
    wait(browser, "document.querySelectorAll('a[data-row]').length > 0")
    assert "accused=liar" in browser.current_url, "the address can be kept"
    click(browser, "[data-sort='times']")
    wait(browser, "document.getElementById('rows').dataset.query.includes('sort=times')")
    browser.find_element(By.XPATH, "//option[.='in the last hour']").click()
    wait(browser, "document.getElementById('rows').dataset.query.includes('since=')")
    assert log(browser, "browser") == []


def open_finding(browser: Browser, served: Served) -> str:
    """The outvoted layer of the check, and its fingerprint."""
    go(browser, served)
    run_named(browser, "checked")
    link = browser.find_element(By.CSS_SELECTOR, "a[data-row]")
    fingerprint = str(link.get_attribute("href")).partition("/finding/")[2][:12]
    link.click()
    wait(browser, "document.querySelector('.finding')")
    return fingerprint


def test_a_finding_shows_numbers_heat_map_and_map_of_layers(
    browser: Browser,
    served: Served,
) -> None:
    open_finding(browser, served)
    heads = [e.text for e in browser.find_elements(By.CSS_SELECTOR, ".values thead th")]
    assert heads[0] == "place"
    assert {"a", "b", "liar"} <= set(heads)
    rows = browser.find_elements(By.CSS_SELECTOR, ".values tbody tr")
    assert rows
    assert rows[0].find_elements(By.CSS_SELECTOR, ".heat4"), "the largest difference comes first"
    loaded = "[...document.querySelectorAll('img.heat')].map(i => i.naturalWidth)"
    assert all(value(browser, loaded))
    wait(browser, "window.outvote && outvote.ready")
    assert value(browser, "outvote.current.cy.nodes('.faulty').length") == 1
    assert "first faulty layer\nd2" in text(browser, "map-panel")
    assert log(browser, "browser") == []


def test_script_and_issue_are_copied(browser: Browser, served: Served) -> None:
    open_finding(browser, served)
    browser.execute_cdp_cmd(
        "Browser.grantPermissions",
        {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]},
    )
    click(browser, "[data-copy='issue']")
    wait(browser, "document.querySelector(\"[data-copy='issue']\").textContent == 'Copied'")
    copied = browser.execute_async_script(
        "const done = arguments[0];"
        "navigator.clipboard.readText().then(done, (e) => done(String(e)))"
    )
    assert copied.startswith("# liar differs by")
    assert copied == browser.find_element(By.ID, "issue").get_attribute("textContent")


def test_the_lineage_of_a_bred_finding_leads_to_its_seed(
    browser: Browser,
    served: Served,
) -> None:
    go(browser, served)
    run_named(browser, "bred")
    click(browser, "a[data-row]")
    steps = [step.text for step in browser.find_elements(By.CSS_SELECTOR, ".lineage .step")]
    assert steps[0] == "model"


def test_a_note_stays(browser: Browser, served: Served) -> None:
    fingerprint = open_finding(browser, served)
    note = browser.find_element(By.ID, "note")
    note.clear()
    note.send_keys("seen by <b>me</b>")
    wait(browser, "document.querySelector('.own [data-said]').textContent == 'Saved.'")
    browser.refresh()
    assert browser.find_element(By.ID, "note").get_attribute("value") == "seen by <b>me</b>"
    go(browser, served, f"findings?text={fingerprint}")
    assert "has a note" in body(browser)


def test_a_known_finding_is_written_to_known_toml_and_taken_out_again(
    browser: Browser,
    served: Served,
    root: Path,
) -> None:
    (root / "known.toml").write_text(
        '# ours\n[[known]]\nfingerprint = "0123456789ff"\nreason = "an older one"\n'
    )
    fingerprint = open_finding(browser, served)
    browser.find_element(By.NAME, "reason").send_keys('told "upstream" \\ waiting')
    browser.find_element(By.NAME, "link").send_keys("https://example.org/1")
    click(browser, ".own form button")
    wait(browser, "document.querySelector('[data-value]')")
    entries = {known.fingerprint: known for known in load_known(root / "known.toml", root).entries}
    assert entries[fingerprint].reason == 'told "upstream" \\ waiting'
    assert entries[fingerprint].link == "https://example.org/1"
    assert entries["0123456789ff"].reason == "an older one"
    assert (root / "known.toml").read_text().startswith("# ours\n")
    go(browser, served, f"findings?text={fingerprint}&status=known")
    assert "known: told" in body(browser)
    open_finding(browser, served)
    click(browser, "[data-value]")
    wait(browser, "!document.querySelector('[data-value]')")
    left = tomllib.loads((root / "known.toml").read_text())["known"]
    assert [entry["fingerprint"] for entry in left] == ["0123456789ff"]


def test_two_runs_are_compared(browser: Browser, served: Served) -> None:
    go(browser, served, "compare")
    for name, run in (("a", "agreeing (check)"), ("b", "checked (check)")):
        browser.find_element(By.XPATH, f"//select[@name='{name}']/option[.='{run}']").click()
    wait(browser, "document.getElementById('new')")
    assert "New 1" in body(browser)
    assert "Gone 0" in body(browser)
    assert "liar differs" in browser.find_element(By.ID, "new").text


DROP = """
const dropped = new DataTransfer();
for (const [name, content] of arguments[0]) {
  const bytes = Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0));
  dropped.items.add(new File([bytes], name));
}
const told = { dataTransfer: dropped, bubbles: true, cancelable: true };
document.getElementById("drop").dispatchEvent(new DragEvent("drop", told));
"""


def contents(path: Path) -> list[str]:
    """A file as a page can be handed it."""
    return [path.name, base64.b64encode(path.read_bytes()).decode()]


def test_a_dropped_model_is_checked_and_watched(
    browser: Browser,
    served: Served,
    root: Path,
) -> None:
    go(browser, served, "models")
    browser.execute_script(DROP, [contents(root / "model.json"), contents(root / "data.npz")])
    wait(browser, "document.querySelectorAll('#given .good').length == 2")
    assert "x (20, 4)" in text(browser, "given")
    chosen = "[...document.querySelectorAll('#choices input:checked')].map(i => i.value)"
    assert value(browser, chosen) == ["a", "b", "liar"]
    click(browser, "#start")
    wait(browser, "location.pathname.includes('/at/')")
    wait(browser, "document.querySelector('.head .badge').textContent == 'done'")
    page = body(browser)
    assert "liar differs by" in page
    assert "Running 20 inputs" in page
    command = text(browser, "command-line")
    assert command.startswith("outvote check outvote-serve/runs/")
    (folder,) = (root / "outvote-serve" / "runs").iterdir()
    result = json.loads((folder / "result.json").read_text())
    assert result["verdict"] == "inconsistent", "an ordinary folder of the command line"
    assert log(browser, "browser") == []


def test_a_file_that_is_no_model_is_refused_and_not_kept(
    browser: Browser,
    served: Served,
    root: Path,
    tmp_path: Path,
) -> None:
    before = kept(root)
    (tmp_path / "evil.keras").write_bytes(b"no archive")
    go(browser, served, "models")
    browser.find_element(By.ID, "files").send_keys(str(tmp_path / "evil.keras"))
    wait(browser, "document.querySelector('#given .bad')")
    assert "is not a whole" in text(browser, "given")
    assert kept(root) == before


def kept(root: Path) -> list[Path]:
    """What the workbench has written, without what SQLite makes while a store is read."""
    paths = (root / "outvote-serve").rglob("*")
    return sorted(path for path in paths if not path.name.endswith(("-shm", "-wal")))


def test_everything_can_be_reached_without_a_mouse(browser: Browser, served: Served) -> None:
    go(browser, served)
    page = browser.find_element(By.TAG_NAME, "body")
    page.send_keys("2")
    wait(browser, "location.pathname.endsWith('/findings')")
    active = "document.activeElement"
    assert value(browser, f"{active}.id") == "search"
    browser.switch_to.active_element.send_keys(Keys.ESCAPE)
    browser.find_element(By.TAG_NAME, "body").send_keys("j")
    first = value(browser, f"{active}.href")
    browser.switch_to.active_element.send_keys("j")
    assert value(browser, f"{active}.href") != first
    browser.switch_to.active_element.send_keys("k")
    assert value(browser, f"{active}.href") == first
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    wait(browser, "location.pathname.includes('/finding/')")
    browser.find_element(By.TAG_NAME, "body").send_keys("2")
    wait(browser, "location.pathname.endsWith('/findings')")
    browser.switch_to.active_element.send_keys(Keys.ESCAPE)
    browser.find_element(By.TAG_NAME, "body").send_keys("/")
    assert value(browser, f"{active}.id") == "search"


@pytest.mark.parametrize("width", [390, 1900])
def test_no_page_scrolls_sideways(browser: Browser, served: Served, width: int) -> None:
    size = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 500}
    fits = "document.documentElement.scrollWidth <= innerWidth"
    fingerprint = open_finding(browser, served)
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        for path in ("", "findings", f"finding/{fingerprint}", "models", "compare"):
            go(browser, served, path)
            assert value(browser, fits), path
        go(browser, served)
        run_named(browser, "bred")
        assert value(browser, fits)
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_light_and_dark(browser: Browser, served: Served, scheme: str) -> None:
    """The contrast of WCAG's level AA, of every text on the page against what is behind it."""
    feature = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": feature})
    try:
        open_finding(browser, served)
        assert value(browser, f"({CONTRAST})()") == []
        go(browser, served, "findings")
        assert value(browser, f"({CONTRAST})()") == []
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


CONTRAST = """() => {
  const parts = (c) => c.match(/[\\d.]+/g).map(Number);
  const light = (c) => {
    const linear = (v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    const [r, g, b] = parts(c).map((v) => linear(v / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const c = getComputedStyle(e).backgroundColor;
      if ((parts(c)[3] ?? 1) === 1) return c;
    }
    return "rgb(255, 255, 255)";
  };
  const bad = [];
  for (const e of document.querySelectorAll("main *, header *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.checkVisibility() || e.closest(".is-known, .stage, :disabled")) continue;
    const [a, b] = [light(getComputedStyle(e).color), light(behind(e))].sort((x, y) => y - x);
    const told = [e.tagName, e.className, e.textContent.slice(0, 30)].join(" ");
    if ((a + 0.05) / (b + 0.05) < 4.5) bad.push(told);
  }
  return bad;
}"""


def test_a_foreign_origin_reads_and_changes_nothing(
    browser: Browser,
    served: Served,
    root: Path,
) -> None:
    """A page of another origin that has even learnt the token."""
    fingerprint = open_finding(browser, served)
    address = f"{served.address}finding/{fingerprint}/note"

    class Foreign(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>foreign</title>")

        def log_message(self, *told: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Foreign) as other:
        Thread(target=other.serve_forever, daemon=True).start()
        browser.get(f"http://127.0.0.1:{other.server_port}/")
        sent = "{method: 'POST', body: JSON.stringify({text: 'evil'})"
        tried = (
            f"fetch({served.address!r}).then((a) => a.text())",
            f"fetch({address!r}, {sent}, headers: {{'x-outvote': '1'}}}})",
            f"fetch({address!r}, {sent}, mode: 'no-cors'}}).then((a) => a.text()).then((t) => "
            "{ if (!t) throw 'unread' })",
        )
        for one in tried:
            told = browser.execute_async_script(
                f"const done = arguments[0]; {one}.then(() => done('read'), (e) => done(String(e)))"
            )
            assert told != "read", one
        frame = (
            "const f = document.createElement('iframe'); const done = arguments[0];"
            f"f.src = {served.address!r}; f.onload = () => done(f.contentDocument === null);"
            "document.body.append(f)"
        )
        assert browser.execute_async_script(frame) is True
        other.shutdown()
    note = root / "outvote-serve" / "notes" / f"{fingerprint}.md"
    assert not note.exists() or "evil" not in note.read_text()
    log(browser, "browser")


def test_nothing_is_asked_from_another_place(browser: Browser, served: Served) -> None:
    log(browser, "performance")
    open_finding(browser, served)
    wait(browser, "window.outvote && outvote.ready")
    messages = [json.loads(row["message"])["message"] for row in log(browser, "performance")]
    asked = [
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    ]
    assert len(asked) > 5
    assert [u for u in asked if not u.startswith((served.address, "data:"))] == []


def test_a_new_finding_appears_in_the_table(browser: Browser, served: Served, root: Path) -> None:
    with closing(Store(root / "hostile", create=False)) as store:
        finding = report_example.inconsistent()["findings"][0] | {"title": "a fresh one"}
        store.found("feedfeedfeed", 1, 2.0, finding)
        assert isinstance(store.events()[-1].event, FindingMet)
    go(browser, served, "findings")
    for _ in range(40):
        browser.find_element(By.ID, "search").send_keys(Keys.SPACE)
        browser.get(f"{served.address}findings?text=fresh")
        if "a fresh one" in body(browser):
            return
    pytest.fail("the table does not know it")
