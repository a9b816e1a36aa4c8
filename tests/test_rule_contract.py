"""The contract of every mutation rule, on fake targets and so in seconds.

`test_rules.py` repeats on the real ones what depends on them: that every mutant runs everywhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from conftest import fake
from outvote.bench.reader import read_file
from outvote.campaign.probes.prober import GROUP, PROBES
from outvote.core.model import REF, Input, Layer, Model, Ref, Weight
from outvote.core.protocol import KindsListed, RunModel
from outvote.dialects.keras.mutate.catalogue import Catalogue
from outvote.dialects.keras.mutate.chains import Chain
from outvote.dialects.keras.mutate.tools import KerasTools, keras_tools
from outvote.mutate.registry import Impossible, Rule, all_rules, mutate
from outvote.mutate.subject import Subject
from outvote.run.local import LocalPool
from outvote.run.pool import Pool
from outvote.search.registry import strategies

RULES = all_rules("keras")
GUIDE = Path(__file__).parent.parent / "docs" / "fuzz.md"
SEEDS = 4
INPUTS = 3


def layer(name: str, kind: str, inputs: Sequence[str], *shapes: Any, **config: Any) -> Any:
    """A layer with weights of these shapes, drawn by its name."""
    rng = np.random.default_rng(list(name.encode()))
    weights = [rng.uniform(0.2, 1.0, shape).tolist() for shape in shapes]
    return {"name": name, "kind": kind, "inputs": list(inputs), "config": config,
            "weights": weights}  # fmt: skip


def normalisation(name: str, inputs: Sequence[str], width: int) -> Any:
    """A layer of which two weights are statistics, not connections."""
    made = layer(name, "BatchNormalization", inputs, *[(width,)] * 4)
    names = ("gamma", "beta", "moving_mean", "moving_variance")
    return {**made, "weights": dict(zip(names, made["weights"], strict=True))}


# The shape of an input, and the layers. Together they have a place for every rule.
MODELS: Mapping[str, tuple[list[Any], list[Any]]] = {
    "convolutions": (
        [None, 5, 3],
        [
            layer("c1", "Conv1D", ["x"], (3, 3, 4), (4,), activation="relu"),
            normalisation("norm", ["c1"], 4),
            layer("c2", "Conv1D", ["norm"], (2, 4, 4), (4,), activation="tanh"),
            layer("act", "Activation", ["c2"], activation="relu"),
            layer("mean", "GlobalAveragePooling1D", ["act"]),
            layer("d1", "Dense", ["mean"], (4, 6), (6,), units=6, activation="tanh"),
            layer("d2", "Dense", ["d1"], (6, 3), (3,), units=3),
            layer("soft", "Softmax", ["d2"]),
        ],
    ),
    "a branch, and a layer that is called twice": (
        [None, 4],
        [
            layer("one", "Dense", ["x"], (4, 4), (4,), units=4, activation="relu"),
            {
                **layer("two", "Dense", ["one"], (4, 4), (4,), units=4, activation="relu"),
                "weights": layer("one", "Dense", ["x"], (4, 4), (4,))["weights"],
                "shares": "one",
            },
            layer("relu", "ReLU", ["two"]),
            layer("add", "Add", ["relu", "one"]),
            layer("scale", "Rescaling", ["add"], scale=0.5),
            layer("last", "Dense", ["scale"], (4, 2), units=2),
        ],
    ),
}


@dataclass(frozen=True)
class Bench:
    """Two honest targets, what they lend to rules, and the models."""

    pool: Pool
    tools: KerasTools
    subjects: Mapping[str, Subject]

    def outputs(self, subject: Subject) -> list[np.ndarray]:
        """Of both targets, on inputs of its own where the rule drew some."""
        rng = np.random.default_rng(0)
        shape = [INPUTS, *(int(n or 1) for n in subject.model.inputs[0].shape[1:])]
        fed = subject.inputs or (rng.normal(size=shape).astype("float32"),)
        digests = tuple(map(self.pool.blobs.put, fed))
        request = RunModel(model=subject.model, inputs=digests, batch=len(fed[0]), steps=9)
        runs = self.pool.ask_all(["a", "b"], request)
        assert all(run.ok for run in runs.values()), [run.message for run in runs.values()]
        return [run.reply.outputs.arrays[0] for run in runs.values()]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("models")
    with LocalPool([fake("a"), fake("b")]) as pool:
        pool.start()
        subjects: dict[str, Subject] = {}
        for name, (shape, layers) in MODELS.items():
            path = folder / f"{len(subjects)}.json"
            data = {"class_name": "FakeModel", "input": shape, "output": [None, 2]}
            path.write_text(json.dumps({**data, "layers": layers}))
            read = read_file(pool, "a", path).reply
            subjects[name] = Subject.of(read.model, read.specs)
        tools = keras_tools(pool, "a")
        free = mutate(RULES["FL"], next(iter(subjects.values())), tools, (0,))
        assert free is not None
        subjects["a layer on tensors of its own"] = free
        yield Bench(pool, tools, subjects)


def rows_of_the_guide() -> dict[str, tuple[str, str]]:
    """Rules in the tables of the guide: group and title by name."""
    chapter = GUIDE.read_text().split("## The rules")[1].split("\n## ")[0]
    rows = {}
    for group, table in re.findall(r"group `(\w+)`:\n\n((?:\|.*\n)+)", chapter):
        for line in table.splitlines()[2:]:
            name, title, _ = (cell.strip() for cell in line.strip("|").split("|", 2))
            rows[name] = (group, title)
    return rows


def complaints(rule: Rule, bench: Bench) -> Iterator[str]:
    """What a rule lacks; nothing if it keeps the contract."""
    known = {group for module in strategies().values() for group in module.GROUPS}
    if not getattr(rule, "TITLE", ""):
        yield "it has no TITLE"
    if getattr(rule, "GROUP", None) not in known:
        yield f"its GROUP is none that a strategy uses ({', '.join(sorted(known))})"
    wanted = (getattr(rule, "GROUP", ""), getattr(rule, "TITLE", ""))
    if rows_of_the_guide().get(rule.NAME) != wanted:
        yield "docs/fuzz.md has no row with its name and title in the table of its group"
    found = [one for subject in bench.subjects.values() for one in mutants(rule, subject, bench)]
    if not found:
        yield "it makes no mutant of any of these models"


def mutants(rule: Rule, parent: Subject, bench: Bench) -> list[Subject]:
    found = (mutate(rule, parent, bench.tools, (seed,)) for seed in range(SEEDS))
    return [mutant for mutant in found if mutant is not None]


def text(subject: Subject) -> str:
    return json.dumps(subject.model.to_json(), sort_keys=True)


@pytest.mark.parametrize("name", list(RULES))
def test_a_rule_says_what_it_is_and_makes_mutants(bench: Bench, name: str) -> None:
    assert name == RULES[name].NAME
    assert list(complaints(RULES[name], bench)) == []


@pytest.mark.parametrize("model", list(MODELS))
@pytest.mark.parametrize("name", list(RULES))
def test_a_mutant_runs_is_repeatable_and_leaves_its_parent_alone(
    bench: Bench, name: str, model: str
) -> None:
    parent = bench.subjects[model]
    before = text(parent)
    shape = bench.outputs(parent)[0].shape
    made = mutants(RULES[name], parent, bench)
    assert [text(mutant) for mutant in mutants(RULES[name], parent, bench)] == [*map(text, made)]
    assert text(parent) == before
    for mutant in made:
        assert text(mutant) != before
        names = [item.name for item in mutant.model.inputs]
        names += [call.name for call in mutant.model.layers]
        assert list(mutant.specs) == names
        one, other = bench.outputs(mutant)
        assert mutant.inputs or one.shape == shape
        assert np.array_equal(one, other, equal_nan=True)
        for call in mutant.model.layers:
            if call.shares is not None:
                assert call.object_digest == mutant.model.layer(call.shares).object_digest


def test_a_chain_stands_in_the_place_of_the_tensor_it_begins_at(bench: Bench) -> None:
    """As MLA's does in the paper; what was there is not added to what the chain gives."""
    subject = bench.subjects["convolutions"]
    start = Ref("mean")
    chain = Chain(subject, start, bench.tools, np.random.default_rng(0))
    chain.reshape((7,))
    chain.restore(subject.spec(start))
    fold = ["Reshape", "ZeroPadding1D", "Reshape", "Reshape", "Cropping1D", "Reshape"]
    assert [made.kind for made in chain.layers] == fold
    (reader,) = chain.inserted().readers("mean")
    assert reader == chain.layers[0]


def test_gaussian_fuzzing_has_one_deviation_per_layer(bench: Bench) -> None:
    """A tenth of that of all weights together, also for a bias whose numbers are all alike."""
    rng = np.random.default_rng(0)
    values = {"kernel": rng.normal(0, 2.0, (50, 40)), "bias": np.full(40, 3.0)}
    blobs = bench.tools.blobs
    weights = tuple(Weight(n, blobs.put(v.astype("float32")), v.shape) for n, v in values.items())
    dense = Layer("d", "Dense", {}, args=[{REF: ["x", 0]}], weights=weights)
    items = (Input("x", (None, 50), "float32"),)
    subject = Subject(Model("m", items, (dense,), (Ref("d"),), "keras"), {})
    moved: dict[str, list[float]] = {"kernel": [], "bias": []}
    for seed in range(20):
        mutant = mutate(RULES["GF"], subject, bench.tools, (seed,))
        assert mutant is not None
        for weight in mutant.model.layers[0].weights:
            noise = (blobs.get(weight.digest) - values[weight.name]).reshape(-1)
            moved[weight.name] += noise[np.abs(noise) > 1e-6].tolist()
    wanted = 0.1 * np.concatenate([value.reshape(-1) for value in values.values()]).std()
    for name, noise in moved.items():
        assert np.std(noise) == pytest.approx(wanted, rel=0.15), name


def test_a_layer_that_keras_gets_tomorrow_joins_by_itself() -> None:
    def parameter(name: str) -> dict[str, object]:
        return {"name": name, "required": True, "default": None}

    tomorrow = {
        "Conv9Mystery2D": [parameter("filters"), parameter("kernel_size")],
        "Oracle": [parameter("prophecy")],
    }
    catalogue = Catalogue.of(KindsListed(kinds=tomorrow, activations=["relu"]))
    assert catalogue.kinds["Conv9Mystery2D"].ranks == (3,)
    assert catalogue.not_covered == {"Oracle": "no values are known for its parameter prophecy"}


def nowhere(subject: Subject, tools: Any) -> list[Any]:
    return []


def everywhere(subject: Subject, tools: Any) -> list[Any]:
    return [subject]


def hopeless(subject: Subject, site: Any, tools: Any, rng: np.random.Generator) -> Subject:
    raise Impossible("nothing ever fits")


@pytest.mark.parametrize("sites", [nowhere, everywhere])
def test_a_rule_that_lacks_everything_is_told_so(bench: Bench, sites: Any) -> None:
    idle = cast(Rule, SimpleNamespace(NAME="XX", sites=sites, apply=hopeless))
    told = list(complaints(idle, bench))
    assert len(told) == 4
    for word in ("TITLE", "GROUP", "docs/fuzz.md", "no mutant"):
        assert any(word in complaint for complaint in told), word


@pytest.mark.slow
def test_the_guide_lists_the_rules_and_the_probes_and_nothing_else() -> None:
    probes = {name: (GROUP, title) for name, title in PROBES.items()}
    rules = {name: (rule.GROUP, rule.TITLE) for name, rule in RULES.items()}
    assert rows_of_the_guide() == {**rules, **probes}
