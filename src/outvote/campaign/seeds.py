"""The models a campaign starts from: read, with their data, and the truth to measure D_MAD by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from outvote.bench.reader import read_file, reader
from outvote.campaign.job import FuzzJob, SeedFile
from outvote.core.blobs import BlobStore
from outvote.core.case import Case, Data, fit, load_data, random_data
from outvote.core.dialect import dialect, inspect
from outvote.core.errors import UsageError
from outvote.core.known_answers import KnownAnswers, answers_of
from outvote.core.model import Model, digest_of
from outvote.core.outputs import Outputs
from outvote.judge.truth import interpret, presumed
from outvote.mutate.subject import Subject
from outvote.run.pool import Pool


@dataclass(frozen=True)
class Seed:
    """An initial model, ready to be run."""

    name: str
    case: Case
    subject: Subject
    inputs: tuple[str, ...]  # digests of its inputs in the blob store
    answers: KnownAnswers | None = None  # where it is known what it must answer

    def case_of(self, model: Model) -> Case:
        """A descendant on the same inputs."""
        return replace(self.case, model=model)


def read_seeds(pool: Pool, job: FuzzJob) -> list[Seed]:
    """All seeds, read by the first released, eager target; in bulk, a model of one layer."""
    if job.in_bulk:
        return [_probe(pool, job)]
    return [_read(pool, job, file) for file in job.seeds]


def _probe(pool: Pool, job: FuzzJob) -> Seed:
    """What every target can run: the root of cases that descend from no model."""
    model, inputs, right = dialect(job.dialect).targets.probe()
    axes = tuple(item.batch for item in model.inputs)
    shapes = [list(right.shape)]
    case = Case(model, shapes, Data(tuple(inputs), None, "drawn", axes), interpret(None, shapes[0]))
    digests = tuple(pool.blobs.pin(pool.blobs.put(array)) for array in inputs)
    specs = {model.outputs[0].producer: ((tuple(right.shape), right.dtype.name),)}
    return Seed("free graphs", case, Subject.of(model, specs), digests)


def check_files(seeds: Sequence[SeedFile]) -> None:
    """Say what is wrong with a file before any framework is started."""
    for seed in seeds:
        inspect(seed.model, None)
        if seed.data is not None:
            load_data(seed.data)


def _read(pool: Pool, job: FuzzJob, file: SeedFile) -> Seed:
    target = reader(job.targets)
    run = read_file(pool, target.name, file.model)
    if not run.ok:
        raise UsageError(f"reading {file.model} failed in {target.name}: {run.message}")
    model, shapes = run.reply.model, run.reply.output_shapes
    answers = None
    if file.data is None:
        data = random_data(model, job.inputs, job.seed)
    else:
        arrays, source = load_data(file.data), str(file.data)
        answers = answers_of(arrays, source)
        if answers is None:  # they are the answers to all inputs, NaN among them
            arrays = {name: array[: job.inputs] for name, array in arrays.items()}
        none = job.inputs == 0
        data = fit(arrays, model, source, allow_nan=answers is not None, allow_empty=none)
    case = Case(model, shapes, data, interpret(data.truth, shapes[0]))
    digests = tuple(pool.blobs.pin(pool.blobs.put(array)) for array in data.inputs)
    return Seed(file.name, case, Subject.of(model, run.reply.specs), digests, answers)


def drawn_seed(blobs: BlobStore, subject: Subject) -> Seed:
    """A model on inputs of its own: it descends from no file, and nobody knows its answers."""
    model, arrays = subject.model, subject.inputs
    shapes = [list(subject.spec(ref).shape) for ref in model.outputs]
    data = Data(arrays, None, "drawn", tuple(item.batch for item in model.inputs))
    digests = tuple(blobs.put(array) for array in arrays)
    case = Case(model, shapes, data, interpret(None, shapes[0]))
    return Seed(f"tensors {digest_of(digests)[:12]}", case, subject, digests)


def with_truth(seed: Seed, outputs: Sequence[Outputs]) -> Seed:
    """D_MAD needs ground truth; where the data has none, what the targets answer is overdone."""
    if seed.case.truth.kind != "none":
        return seed
    firsts = [found.rows[0] for found in outputs]
    shape = firsts[0].shape  # who gives another one is a finding, and has no say
    if not firsts[0].size or not outputs[0].arrays[0].shape:
        return seed  # nothing, or one number for all instances: D_MAD has nothing to go by
    truth = presumed([array for array in firsts if array.shape == shape])
    return replace(seed, case=replace(seed.case, truth=truth))
