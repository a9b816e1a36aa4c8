"""The mutation rules on ONNX graphs and real runtimes: mutants run, fit, and can be made again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnx_models as made
from onnx_models import NETS
from outvote.bench.noise import asking
from outvote.bench.reader import read_file
from outvote.campaign.family import changed_layers
from outvote.campaign.probes.illegal import draw_attempt
from outvote.cli import main
from outvote.core.case import random_data
from outvote.core.dialect import dialect
from outvote.core.model import Input, Layer, Model, Ref
from outvote.core.protocol import Ran, RunModel
from outvote.core.target import Run
from outvote.dialects.onnx.mutate.splice import Splice
from outvote.dialects.onnx.mutate.tools import OnnxTools, onnx_tools
from outvote.dialects.onnx.nouns.node import Origin, ref, with_origin
from outvote.dialects.onnx.targets import BUILT_IN
from outvote.mutate.neurons import neurons_of
from outvote.mutate.registry import Impossible, all_rules, mutate
from outvote.mutate.subject import Spec, Subject
from outvote.run.local import LocalPool
from outvote.run.pool import Pool

pytestmark = pytest.mark.frameworks
RULES = all_rules("onnx")
TARGETS = ("onnxruntime", "onnx-reference")
SEEDS = 6


@dataclass(frozen=True)
class Bench:
    pool: Pool
    tools: OnnxTools
    subjects: Mapping[str, Subject]

    def runs(self, subject: Subject, watch: tuple[str, ...] = ()) -> dict[str, Run[Ran]]:
        data = random_data(subject.model, 3, 0)
        digests = tuple(self.pool.blobs.put(array) for array in data.inputs)
        count = data.count
        request = RunModel(
            model=subject.model, inputs=digests, batch=count, watch=watch, rows=count
        )
        return self.pool.ask_all(TARGETS, request)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("models")
    with LocalPool([BUILT_IN[name] for name in TARGETS]) as pool:
        pool.start()
        subjects: dict[str, Subject] = {}
        for name, net in NETS.items():
            path = made.saved(net(), folder, f"{len(subjects)}.onnx")
            run = read_file(pool, "onnx-reference", path)
            assert run.ok, run.message
            subjects[name] = Subject.of(run.reply.model, run.reply.specs)
        yield Bench(pool, onnx_tools(pool, "onnx-reference"), subjects)


def mutants(bench: Bench, rule: str, model: str) -> list[Subject]:
    parent = bench.subjects[model]
    found = (mutate(RULES[rule], parent, bench.tools, (seed,)) for seed in range(SEEDS))
    return [mutant for mutant in found if mutant is not None]


def text(subject: Subject) -> str:
    return json.dumps(subject.model.to_json(), sort_keys=True)


def test_the_rules_are_those_of_the_papers() -> None:
    lemon = "LR LS LC LA MLA GF WS NAI NS NEB AFRm AFRp".split()
    assert {name for name, rule in RULES.items() if rule.GROUP == "lemon"} == set(lemon)
    assert {"NET", "BR"} <= set(RULES)


@pytest.mark.parametrize("rule", list(RULES))
def test_every_rule_makes_mutants_of_some_model(bench: Bench, rule: str) -> None:
    assert any(mutants(bench, rule, model) for model in NETS)
    keras = all_rules("keras")[rule]
    assert (keras.GROUP, keras.TITLE) == (RULES[rule].GROUP, RULES[rule].TITLE)


@pytest.mark.parametrize("model", list(NETS))
@pytest.mark.parametrize("rule", list(RULES))
def test_mutants_run_fit_and_can_be_made_again(bench: Bench, rule: str, model: str) -> None:
    parent = bench.subjects[model]
    before = text(parent)
    shapes = [o.shape for o in bench.runs(parent)["onnxruntime"].reply.outputs.arrays]
    found = mutants(bench, rule, model)
    assert [*map(text, mutants(bench, rule, model))] == [*map(text, found)]
    assert text(parent) == before
    alive = 0
    for mutant in found:
        assert text(mutant) != before
        names = [item.name for item in mutant.model.inputs]
        names += [layer.name for layer in mutant.model.layers]
        assert list(mutant.specs) == names
        changed = changed_layers(parent, mutant)
        runs = bench.runs(mutant, changed)
        ran = {name: run for name, run in runs.items() if run.ok}
        # Inference does not see everything that other attributes spoil.
        assert ran or rule == "NET", [run.message for run in runs.values()]
        alive += bool(ran)
        for run in ran.values():
            assert [o.shape for o in run.reply.outputs.arrays] == shapes
            for layer, states in run.reply.watched.items():
                told = mutant.specs[layer]
                assert [_form(s.array.shape, s.dtype, s.batch) for s in states] == [
                    _form(spec.shape, spec.dtype, spec.batch) for spec in told
                ]
    assert alive * 2 >= len(found)


def _form(shape: Any, dtype: str, batch: int | None) -> Any:
    """Apart from how many instances there are."""
    return [None if axis == batch else n for axis, n in enumerate(shape)], dtype, batch


def weights_of(bench: Bench, rule: str, name: str) -> tuple[Layer, np.ndarray, np.ndarray]:
    parent = bench.subjects["a skip"]
    for seed in range(200):
        mutant = mutate(RULES[rule], parent, bench.tools, (seed,))
        if mutant is not None and changed_layers(parent, mutant) == (name,):
            layers = (parent.model.layer(name), mutant.model.layer(name))
            old, new = (bench.tools.blobs.get(x.weights[0].digest) for x in layers)
            return layers[0], np.array(old), np.array(new)
    raise AssertionError(f"{rule} never chose {name}")


@pytest.mark.parametrize(("name", "axis"), [("conv1", 0), ("gemm", 0), ("matmul", 1)])
def test_neurons_are_what_a_node_gives(bench: Bench, name: str, axis: int) -> None:
    """Of constants, the axis that becomes channels; turning one's sign turns one channel."""
    layer, old, new = weights_of(bench, "NAI", name)
    old, new = np.moveaxis(old, axis, 0), np.moveaxis(new, axis, 0)
    turned = [i for i in range(len(old)) if not np.array_equal(old[i], new[i])]
    assert len(old) == neurons_of(bench.subjects["a skip"], bench.tools).count(layer)
    assert 1 <= len(turned) <= max(1, round(0.3 * len(old)))
    assert all(np.array_equal(new[i], -old[i]) for i in turned)


def test_statistics_of_a_normalisation_are_no_connections(bench: Bench) -> None:
    norm = bench.subjects["a skip"].model.layer("norm")
    places = dialect("onnx").neurons
    assert [places.is_statistic(norm, weight) for weight in norm.weights] == [False] * 2 + [
        True
    ] * 2


def test_blocked_neurons_have_no_effect(bench: Bench) -> None:
    """The way out of Gemm's goes through Tanh to rows of MatMul; a skip blocks the others."""
    subject = bench.subjects["a skip"]
    found = [mutate(RULES["NEB"], subject, bench.tools, (seed,)) for seed in range(20)]
    mutants = [mutant for mutant in found if mutant is not None]
    assert {changed_layers(subject, mutant) for mutant in mutants} == {("matmul",)}
    for mutant in mutants:
        new = np.array(bench.tools.blobs.get(mutant.model.layer("matmul").weights[0].digest))
        assert (new == 0).all(axis=1).sum() == 2  # 30 % of six


def test_a_chain_leads_back_to_any_form(bench: Bench) -> None:
    subject = bench.subjects["a skip"]
    start = Ref("gemm")
    for size in (2, 40):
        splice = Splice(subject, start, bench.tools, np.random.default_rng(0))
        splice.restore(Spec((None, size), "float64"))
        splice.restore(Spec((None, 2, 3), "float32"))
        splice.restore(subject.spec(start))
        runs = bench.runs(splice.inserted(), tuple(layer.name for layer in splice.layers))
        for run in runs.values():
            assert run.ok, run.message
            assert run.reply.watched[splice.layers[-1].name][0].array.shape == (3, 6)
    with pytest.raises(Impossible):
        Splice(subject, start, bench.tools, np.random.default_rng(0)).restore(
            Spec((6,), "float32", None)
        )


def test_illegal_values_are_drawn_and_refused(bench: Bench) -> None:
    subject = bench.subjects["a skip"]
    seen = set()
    for seed in range(30):
        attempt = draw_attempt(subject, bench.tools, np.random.default_rng(seed))
        assert attempt is not None
        run = bench.pool.ask("onnxruntime", attempt.request)
        seen.add((attempt.layer.kind, attempt.name))
        if attempt.value == "no_such" and attempt.layer.kind != "Softmax":
            assert not run.ok, attempt.told
    assert len(seen) > 8


def test_a_legal_node_passes_where_illegal_values_are_tried(bench: Bench) -> None:
    subject = bench.subjects["a skip"]
    pool_layer = subject.model.layer("pool")
    now = bench.tools.parameters(pool_layer)
    request = bench.tools.attempt(pool_layer, now, subject.reads(pool_layer))
    for name in TARGETS:
        run = bench.pool.ask(name, request)
        assert run.ok, run.message
        assert run.reply.shapes == [[2, 4, 3, 3]]


def test_other_attributes_are_legal_ones(bench: Bench) -> None:
    subject = bench.subjects["a skip"]
    elu = subject.model.layer("elu")
    assert bench.tools.parameters(elu) == {"alpha": 0.5}
    found = bench.tools.varied(elu, {"alpha": 2.0}, subject.reads(elu))
    assert found is not None
    assert found[0].config == {"alpha": 2.0}
    assert found[1] == subject.specs["elu"]
    soft = subject.model.layer("soft")
    assert (
        bench.tools.variant(soft, {"axis": 7}, subject.reads(soft), np.random.default_rng(0))
        is None
    )


def test_a_number_without_a_dimension_is_moved_like_others(bench: Bench) -> None:
    relu = with_origin(Layer("y", "Relu", {}, [ref("x")], batch=(None,)), Origin({"": 17}))
    model = Model("m", (Input("x", (), "float32", None),), (relu,), (Ref("y"),), "onnx")
    (found,) = asking(bench.pool, model, [np.array(2.0, np.float32)], TARGETS)([0])
    assert {name: outputs.arrays[0].shape for name, outputs in found.items()} == dict.fromkeys(
        TARGETS, ()
    )


LEAKY = """
import numpy as np
from onnx.reference.ops.op_relu import Relu
Relu._run = lambda self, x: (np.where(x > 0, x, x * 0.01).astype(x.dtype),)
"""


@pytest.mark.parametrize("strategy", ["layers", "lemon", "audee", "mixed"])
@pytest.mark.parametrize("net", [made.residual_net, made.recurrent_net])
def test_campaigns_breed_from_files(strategy: str, net: Any, tmp_path: Path) -> None:
    """A leaky Relu planted in a witness is found wherever it stands in the seed."""
    (tmp_path / "leaky.py").write_text(LEAKY)
    (tmp_path / "outvote.toml").write_text(
        '[targets.planted]\nextends = "onnx-reference"\nsetup = "leaky.py"\n'
    )
    arguments = ["fuzz", str(made.saved(net(), tmp_path)), "--strategy", strategy]
    arguments += ["--config", str(tmp_path / "outvote.toml"), "--budget", "24", "--confirm", "0"]
    arguments += ["--targets", "onnxruntime,onnx-reference,planted", "--minimise", "0"]
    out = tmp_path / "out"
    code = main([*arguments, "--inputs", "4", "--quiet", "--out", str(out)])
    result = json.loads((out / "result.json").read_text())
    assert code == (1 if result["gate"]["failing"] else 0)
    assert result["tested"] == 24
    assert result["valid"] > 18
    if net is made.residual_net:
        accused = {(found["accused"], found["layer"]) for found in result["findings"]}
        assert ("planted", "relu") in accused
