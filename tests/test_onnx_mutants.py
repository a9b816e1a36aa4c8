"""The rules on ONNX graphs, in this process: what comes out is valid, fits, and is new.

`test_onnx_rules.py` runs them on real runtimes; here every rule meets every model in milliseconds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import onnx
import pytest

from onnx_here import NAME, Here
from onnx_models import NETS
from outvote.campaign.family import changed_layers
from outvote.core.case import random_data
from outvote.core.model import Layer, Ref
from outvote.dialects.onnx.mutate.splice import Splice, computed_before
from outvote.dialects.onnx.mutate.tools import OnnxTools, onnx_tools
from outvote.dialects.onnx.nouns.node import Origin, ref, with_origin
from outvote.dialects.onnx.workers.shared.assemble import assemble
from outvote.mutate.registry import Impossible, all_rules, mutate
from outvote.mutate.subject import Spec, Subject
from outvote.run.pool import Pool

RULES = all_rules("onnx")
SEEDS = 2


@dataclass(frozen=True)
class Stable:
    """A worker, tools, and the models that are mutated."""

    here: Here
    tools: OnnxTools
    subjects: Mapping[str, Subject]

    def mutants(self, rule: str, name: str, count: int = SEEDS) -> list[Subject]:
        parent = self.subjects[name]
        found = (mutate(RULES[rule], parent, self.tools, (seed,)) for seed in range(count))
        return [mutant for mutant in found if mutant is not None]


@pytest.fixture(scope="module")
def stable(tmp_path_factory: pytest.TempPathFactory) -> Stable:
    here = Here(tmp_path_factory.mktemp("stable"))
    subjects = {name: here.subject(net()) for name, net in NETS.items()}
    return Stable(here, onnx_tools(cast(Pool, here), NAME), subjects)


def text(subject: Subject) -> str:
    return json.dumps(subject.model.to_json(), sort_keys=True)


@pytest.mark.parametrize("rule", RULES)
def test_mutants_are_valid_new_repeatable_and_leave_their_parent_alone(
    stable: Stable, rule: str
) -> None:
    made_of = 0
    for name, parent in stable.subjects.items():
        before, specs = text(parent), dict(parent.specs)
        found = stable.mutants(rule, name)
        assert [*map(text, stable.mutants(rule, name))] == [*map(text, found)]
        assert (text(parent), dict(parent.specs)) == (before, specs)
        for mutant in found:
            made_of += 1
            assert text(mutant) != before
            assert mutant.model.inputs == parent.model.inputs
            proto = assemble(mutant.model, stable.here.blobs).proto
            inferred = onnx.shape_inference.infer_shapes(proto, strict_mode=True, data_prop=True)
            for output in inferred.graph.output:
                output.type.tensor_type.SetInParent()
            onnx.checker.check_model(inferred)
    assert made_of, f"{rule} found no place in any model"


@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("rule", ["LA", "MLA", "BR", "NET", "LC", "LR", "AFRm", "AFRp"])
def test_tensors_are_what_a_mutant_says_of_them(stable: Stable, rule: str, name: str) -> None:
    for mutant in stable.mutants(rule, name):
        data = random_data(mutant.model, 3, 0)
        names = tuple(layer.name for layer in mutant.model.layers)
        assert list(mutant.specs) == [*(i.name for i in mutant.model.inputs), *names]
        changed = changed_layers(stable.subjects[name], mutant)
        assert changed or len(names) < len(stable.subjects[name].model.layers)
        run = stable.here.asked(mutant.model, data.inputs, watch=changed, rows=3)
        if not run.ok:  # inference does not see everything that other attributes spoil
            assert rule == "NET" or "implement" in run.message, run.message
            continue
        for layer, states in run.reply.watched.items():
            for state, spec in zip(states, mutant.specs[layer], strict=True):
                told = [n for axis, n in enumerate(spec.shape) if axis != spec.batch]
                held = [n for axis, n in enumerate(state.array.shape) if axis != state.batch]
                assert (held, state.dtype, state.batch) == (told, spec.dtype, spec.batch), layer


# What a splice is made of


def test_a_new_node_may_read_what_is_computed_before_its_place(stable: Stable) -> None:
    subject = stable.subjects["a skip"]
    before = computed_before(subject, Ref("relu"))
    assert [r.producer for r in before] == ["x", "conv1", "norm", "relu"]
    assert computed_before(subject, Ref("x")) == [Ref("x")]


@pytest.mark.parametrize(
    "wanted",
    [
        Spec((None, 4, 6, 6), "float64"),
        Spec((None, 144), "float32"),
        Spec((None, 2, 5), "float32"),
        Spec((None, 200), "float32"),
        Spec((None, 7, 2), "int32"),
    ],
)
def test_a_chain_is_led_back_to_any_form(stable: Stable, wanted: Spec) -> None:
    """Another type, laid flat, cut, filled with zeros; and nothing where it has the form."""
    subject, rng = stable.subjects["a skip"], np.random.default_rng(0)
    splice = Splice(subject, Ref("relu"), stable.tools, rng)
    splice.restore(subject.spec(Ref("relu")))
    assert splice.layers == []
    splice.restore(wanted)
    assert splice.spec == wanted
    layers = [*subject.model.layers[:3], *splice.layers]
    led = replace(subject.model, layers=tuple(layers), outputs=(splice.end,))
    (x,) = random_data(subject.model, 3, 0).inputs
    (found,) = stable.here.run(led, [x]).outputs.arrays
    (plain,) = stable.here.run(replace(led, outputs=(Ref("relu"),)), [x]).outputs.arrays
    assert (found.shape, found.dtype.name) == ((3, *wanted.shape[1:]), wanted.dtype)
    flat, given = found.reshape(3, -1), plain.reshape(3, -1).astype(wanted.dtype)
    kept = min(flat.shape[1], given.shape[1])
    np.testing.assert_array_equal(flat[:, :kept], given[:, :kept])
    assert not flat[:, kept:].any(), "what is added is zeros"


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        (Spec((None, None), "float32"), "cannot become"),
        (Spec((4, 6), "float32", None), "cannot become"),
        (Spec((4, None), "float32", 1), "cannot become|axis 1"),
    ],
)
def test_forms_that_cannot_be_reached_are_said(stable: Stable, wanted: Spec, reason: str) -> None:
    splice = Splice(stable.subjects["a skip"], Ref("relu"), stable.tools, np.random.default_rng(0))
    with pytest.raises(Impossible, match=reason):
        splice.restore(wanted)


def test_names_of_new_nodes_are_taken_by_nobody(stable: Stable) -> None:
    subject = stable.subjects["a skip"]
    splice = Splice(subject, Ref("relu"), stable.tools, np.random.default_rng(0))
    for spec in (Spec((None, 144), "float32"), Spec((None, 12, 12), "float32")):
        splice.restore(spec)
    names = [layer.name for layer in splice.layers]
    assert names == ["reshape_1", "reshape_2"]


def test_where_nothing_fits_a_rule_gives_nothing(stable: Stable) -> None:
    subject = stable.subjects["a skip"]
    splice = Splice(subject, Ref("relu"), stable.tools, np.random.default_rng(0))
    with pytest.raises(Impossible, match="no node at"):
        splice.draw(kinds=["StringNormalizer"])


def test_old_sets_are_not_led_back(stable: Stable) -> None:
    """Before opset 11, Slice and Pad had attributes in the place of tensors."""
    relu = with_origin(Layer("y", "Relu", {}, [ref("x")]), Origin({"": 9}))
    subject = stable.subjects["a skip"]
    model = replace(subject.model, layers=(relu,), outputs=(Ref("y"),))
    old = Subject(model, {"x": subject.specs["x"], "y": subject.specs["x"]})
    splice = Splice(old, Ref("y"), stable.tools, np.random.default_rng(0))
    with pytest.raises(Impossible, match="old set"):
        splice.restore(Spec((None, 5), "float32"))


# Attributes


def test_of_attributes_that_are_left_out_the_default_counts(stable: Stable) -> None:
    subject, tools = stable.subjects["a skip"], stable.tools
    assert tools.parameters(subject.model.layer("conv1"))["group"] == 1
    assert tools.parameters(subject.model.layer("elu")) == {"alpha": 0.5}
    assert tools.parameters(subject.model.layer("relu")) == {}
    others = tools.others(subject.model.layer("elu"), "alpha", 0.5)
    assert others
    assert 0.5 not in others
    unknown = replace(subject.model.layer("relu"), kind="own::Thing")
    assert (tools.parameters(unknown), tools.illegal(unknown)) == ({}, [])


def test_attributes_that_onnx_refuses_make_no_variant(stable: Stable) -> None:
    subject, tools = stable.subjects["a skip"], stable.tools
    soft = subject.model.layer("soft")
    refused = tools.refused
    rng = np.random.default_rng(0)
    assert tools.variant(soft, {"axis": 7}, subject.reads(soft), rng) is None
    assert tools.refused == refused + 1, "what was refused is counted"
    changed = tools.variant(soft, {"axis": 0}, subject.reads(soft), rng)
    assert changed is not None
    assert changed.config == {"axis": 0}
    assert soft.config.get("axis") != 0


def test_kinds_are_drawn_or_have_their_reason(stable: Stable) -> None:
    tools = stable.tools
    assert not set(tools.kinds) & set(tools.not_covered)
    assert set(tools.kinds) | set(tools.not_covered) == set(tools.operators)
    assert "Relu" in tools.kinds
    assert tools.not_covered["If"]
