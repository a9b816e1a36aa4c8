"""The contract of every dialect, whatever its models are; its workers have one of their own.

A folder in `dialects` is held to it as soon as it is there; nothing is started.
"""

from __future__ import annotations

import ast
import inspect
from collections import Counter
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from outvote.core import parts as port
from outvote.core.dialect import dialect, dialect_names, dialects
from outvote.core.errors import UsageError
from outvote.core.target import CAPABILITIES, COSTS

pytestmark = pytest.mark.usefixtures("toy_dialect")
NEEDED = {"files": port.Files, "targets": port.Targets, "layers": port.Layers}
OPTIONAL = {
    "neurons": port.NeuronPlaces,
    "activations": port.ActivationPlaces,
    "logits": port.Logits,
    "reference": port.Reference,
    "sums": port.Sums,
    "widen": port.Widening,
    "mutate": port.Mutation,
    "bulk": port.Bulk,
    "relations": port.Relations,
    "reductions": port.Reductions,
    "script": port.Script,
    "lesson": port.LessonWords,
    "stage_cases": port.StageCases,
    "relation_script": port.RelationScript,
    "stage_script": port.StageScript,
    "specification": port.Specification,
    "regions": port.Regions,
    "live": port.Live,
    "draws": port.Draws,
    "zoo": port.Zoo,
}
every = pytest.mark.parametrize("name", [*dialect_names(), "toy"])


def owed(protocol: Any) -> set[str]:
    """What a part must have: the names in its Protocol."""
    functions = {n for n, value in vars(protocol).items() if inspect.isfunction(value)}
    return {n for n in functions | set(protocol.__annotations__) if not n.startswith("_")}


def test_the_contract_knows_every_part_of_the_port() -> None:
    own = {n.name for n in ast.parse(inspect.getsource(port)).body if isinstance(n, ast.ClassDef)}
    parts = {protocol.__name__ for protocol in (NEEDED | OPTIONAL).values()}
    assert own - {"Recipe", "ChannelReader", "OpenSieve"} == parts
    assert "inspect" in owed(port.Files)
    assert "SUFFIXES" in owed(port.Files)


@every
@pytest.mark.parametrize("part", NEEDED | OPTIONAL)
def test_a_part_has_what_its_protocol_names(name: str, part: str) -> None:
    assert part in OPTIONAL or dialect(name).has(part), f"dialects/{name} needs {part}.py"
    if dialect(name).has(part):
        module: ModuleType = dialect(name).part(part, "")
        missing = owed((NEEDED | OPTIONAL)[part]) - set(dir(module))
        assert not missing, f"dialects/{name}/{part} has no {sorted(missing)}"


@every
def test_its_files_are_told_by_their_endings_and_must_be_there(name: str, tmp_path: Path) -> None:
    files = dialect(name).files
    assert files.SUFFIXES
    for suffix in files.SUFFIXES:
        with pytest.raises(UsageError):  # nonsense is refused here, or by the worker that reads it
            files.inspect(tmp_path / f"nowhere{suffix}", None)
    assert Path(files.CASE_FILE).suffix in files.SUFFIXES
    assert files.saved(object(), tmp_path / "live") is None


@every
def test_its_targets_are_its_own_and_their_workers_are_there(name: str) -> None:
    targets = dialect(name).targets
    assert targets.BUILT_IN
    for key, target in targets.BUILT_IN.items():
        assert (key, name) == (target.name, target.dialect)
        assert target.library
        worker = dialect(name).folder / "workers" / target.worker
        assert worker.is_dir() or worker.with_suffix(".py").is_file()
        assert target.capabilities <= CAPABILITIES.keys()
        assert target.costs <= COSTS.keys()
    assert {*targets.DEFAULT, *targets.SEARCHED} <= targets.BUILT_IN.keys()


@every
def test_its_probe_is_a_model_of_its_own(name: str) -> None:
    model, inputs, answer = dialect(name).targets.probe()
    assert model.dialect == name
    assert len(inputs) == len(model.inputs)
    assert len(model.outputs) == 1
    assert answer.size
    for layer in model.layers:
        assert isinstance(dialect(name).layers.parameters(layer), dict)
        assert dialect(name).layers.renamed(layer, "other").name == "other"


def test_no_ending_and_no_target_is_of_two_dialects() -> None:
    endings = Counter(chain.from_iterable(wing.files.SUFFIXES for wing in dialects()))
    names = Counter(chain.from_iterable(wing.targets.BUILT_IN for wing in dialects()))
    assert [n for n, times in (endings + names).items() if times > 1] == []
