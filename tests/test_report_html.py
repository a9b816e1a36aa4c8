"""`report.html`: what the page says, and that nothing in it can become code."""

from __future__ import annotations

import copy
import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest

import report_example
from outvote.report import page as page_parts
from outvote.report import rendered
from outvote.report.pages.check import view


class Page(HTMLParser):
    """Reads a page as a browser would: its elements, its visible text, its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text = ""
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag
        self.text += " "
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""
        self.text += " "

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts[-1] += data
        elif self._inside != "style":
            self.text += data

    def attributes(self, tag: str) -> list[dict[str, str | None]]:
        return [found for name, found in self.elements if name == tag]

    @property
    def sections(self) -> list[str | None]:
        return [found.get("id") for found in self.attributes("section")]

    @property
    def words(self) -> str:
        return " ".join(self.text.split())


def page(result: dict[str, Any]) -> Page:
    return Page(rendered("html", result))


def test_sections_stand_in_order() -> None:
    found = page(report_example.inconsistent()).sections
    shown = ["findings", "twins", "map", "pairs", "patterns", "examples", "targets", "setting"]
    assert found == ["verdict", *shown]


def test_empty_sections_are_left_out() -> None:
    result = report_example.consistent()
    assert page(result).sections == ["verdict", "pairs", "patterns", "targets", "setting"]
    for key in ("model", "data", "settings", "comparisons", "unique_inconsistencies", "examples"):
        del result[key]
    assert page(result).sections == ["verdict", "targets"]


@pytest.mark.parametrize(
    ("verdict", "tone"), [("consistent", "good"), ("inconsistent", "bad"), ("interrupted", "warn")]
)
def test_the_verdict_has_its_colour(verdict: str, tone: str) -> None:
    result = report_example.consistent() | {"verdict": verdict, "summary": "What happened."}
    first = page(result).attributes("section")[0]
    assert first["class"] == f"verdict {tone}"
    assert "What happened." in page(result).words


def test_a_finding_tells_everything() -> None:
    words = page(report_example.inconsistent()).words
    assert "5 of 5 targets finished" in words
    assert "4 of 10 pairs inconsistent" in words
    for part in ("accused patched", "first faulty layer block1_bn BatchNormalization"):
        assert part in words
    for part in ("distance 0.734 relative", "reproduce findings/9f2c5a7be013/repro.py"):
        assert part in words


def test_a_crash_has_no_map_and_no_scripts() -> None:
    found = page(report_example.crash())
    assert "map" not in found.sections
    assert len(found.scripts) == 1, "only the data, which is empty"
    assert "script-src 'none'" in str(found.attributes("meta")[1]["content"])
    assert "Process died with signal 11" in found.words
    assert "Not compared because they did not finish: openvino." in found.words


def test_map_data_arrives_as_it_was() -> None:
    result = report_example.hostile()
    data = json.loads(page(result).scripts[0])
    assert data[0]["localization"] == result["findings"][0]["localization"]


def test_hostile_names_make_no_element_and_no_link() -> None:
    harmless, hostile = page(report_example.inconsistent()), page(report_example.hostile())
    assert len(hostile.attributes("script")) == len(harmless.attributes("script"))
    assert "img" not in [tag for tag, found in hostile.elements if found.get("src") == "x"]
    assert not [f for _, f in hostile.elements if any(name.startswith("on") for name in f)]
    links = [str(found["href"]) for found in hostile.attributes("a")]
    assert "javascript%3Awindow.hacked%3D1" in links
    assert all(str(f["src"]).startswith("data:image/") for f in hostile.attributes("img"))
    assert report_example.HOSTILE in hostile.text, "it is shown as the text that it is"


def test_the_policy_allows_exactly_the_scripts_of_the_page() -> None:
    found = page(report_example.inconsistent())
    policy = str(found.attributes("meta")[1]["content"])
    assert policy.startswith("default-src 'none'")
    assert re.findall(r"'sha256-(.+?)'", policy) == [
        page_parts.digest(s) for s in found.scripts[1:]
    ]


def test_nothing_is_fetched_and_licences_travel_along() -> None:
    text = rendered("html", report_example.inconsistent())
    for tag, found in Page(text).elements:
        for name in ("src", "href", "srcset"):
            assert not re.match(r"(\w+:)?//", str(found.get(name) or "")), f"{tag} fetches"
    assert "sourceMappingURL" not in text
    assert "Chris Pettitt" in text
    assert "The Cytoscape Consortium" in text


def test_no_bundled_script_can_end_its_element() -> None:
    for script in page_parts.page_scripts():
        assert "</script" not in script.lower()
        assert "<!--" not in script


def test_matrix_cells_are_labelled_and_heated() -> None:
    result = report_example.inconsistent()
    matrix = view.matrix(result)
    assert matrix is not None
    assert matrix["names"] == ["tensorflow", "jax", "torch", "openvino", "patched"]
    first = matrix["rows"][0]["cells"]
    assert first[0] is None
    assert [cell["label"] for cell in first[1:]] == [
        "consistent",
        "consistent",
        "rounding",
        "inconsistent",
    ]
    assert [cell["heat"] for cell in first[1:]] == [0, 0, 0, 4]


def test_a_distance_that_is_not_a_number_is_the_hottest() -> None:
    result = report_example.inconsistent()
    pair = result["comparisons"][-1]
    pair["metrics"] = [metric | {"maximum": None} for metric in pair["metrics"]]
    cell = view.cell(pair, "relative")
    assert cell is not None
    assert (cell["text"], cell["heat"]) == ("not a number", view.HOTTEST)


def test_patterns_carry_the_id_of_their_unique_inconsistency() -> None:
    result = report_example.inconsistent()
    found = view.patterns(result)
    assert found is not None
    assert [chart["unique"] for chart in found["inconsistent"]] == ["U1", "U2", "U3"] * 4
    assert {chart["unique"] for chart in found["consistent"]} == {None}
    assert found["inconsistent"][0]["words"] == "16: 9, 15-8: 31, 7-4: 20, 3-2: 12, 1: 8, 0: 120"
    assert "unique U3" in page(result).words


def test_a_histogram_of_nothing_is_drawn_flat() -> None:
    pair = report_example.comparison("a", "b")
    metric = pair["metrics"][0] | {"pattern": {"bins": ["1", "0"], "counts": [0, 0]}}
    assert [bar["height"] for bar in view.chart(pair, metric, None)["bars"]] == [0, 0]


def test_examples_show_pictures_and_answers() -> None:
    found = page(report_example.inconsistent())
    assert [picture["alt"] for picture in found.attributes("img")] == ["Input 17", "Input 42"]
    assert "truth: seven" in found.words
    result = report_example.inconsistent()
    result["examples"] = [
        {
            "input": 4,
            "truth": None,
            "picture": None,
            "answers": [{"target": "jax", "values": [0.25]}],
        }
    ]
    assert "Input 4 jax 0.25" in page(result).words


def test_raw_scores_share_one_scale() -> None:
    answers = [{"target": "jax", "top": [["a", 12.0], ["b", -3.0]]}]
    shown = view.example({"input": 0, "truth": "a", "picture": None, "answers": answers})
    assert [bar["width"] for bar in shown["answers"][0]["bars"]] == [100, 0]


def test_transformed_models_show_their_error_along_the_graph() -> None:
    shown = rendered("html", report_example.inconsistent())
    told = shown[shown.index('id="twins"') :]
    assert '<span class="badge bad">spoilt</span>' in told
    assert '<span class="badge good">as far off as its type explains</span>' in told
    assert "<td>3 of 360 changed, D_CLASS 16</td>" in told
    carried = told.partition('<polyline class="carried" points="')[2].partition('"')[0].split()
    alone = told.partition('<polyline class="alone" points="')[2].partition('"')[0].split()
    assert (len(carried), len(alone)) == (3, 2)
    heights = [float(point.partition(",")[2]) for point in carried]
    assert heights[1] < heights[2] < heights[0]  # the largest error stands highest
    worst = told.partition("loses most")[2]
    assert worst.index(report_example.FAULTY) < worst.index("stem")


def test_several_maps_bring_a_choice() -> None:
    assert not page(report_example.inconsistent()).attributes("select")
    found = page(report_example.two_maps())
    assert len(found.attributes("select")) == 1
    assert len(found.attributes("option")) == 2


def test_every_table_has_headers_and_rendering_changes_nothing() -> None:
    result = report_example.inconsistent()
    before = copy.deepcopy(result)
    found = page(result)
    assert result == before
    assert all(head.get("scope") in ("col", "row") for head in found.attributes("th"))
