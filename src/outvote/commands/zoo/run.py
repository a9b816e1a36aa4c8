"""`outvote zoo`: one model after the other, told of at once."""

from __future__ import annotations

from typing import Any

from outvote.commands.view import UNSEEN, View
from outvote.commands.zoo.job import BuildJob, ListJob, TrainJob
from outvote.core.dialect import zoo_of, zoos


def run(job: ListJob | BuildJob | TrainJob, view: View = UNSEEN) -> dict[str, Any]:
    """Do the job; whoever stops early keeps what is finished."""
    if isinstance(job, ListJob):
        return {"command": "zoo", "entries": [entry for zoo in zoos() for entry in zoo.entries()]}
    build = job if isinstance(job, BuildJob) else job.build
    found = zoo_of(build.names[0]).entries(build.names)
    entries = [entry.sized(build.size) for entry in found]
    done, interrupted = 0, False
    shop = _Workshop(job, build, entries)
    with shop.work.bench(build.out, shop.trainer, view.watch) as bench:
        try:
            for entry in entries:
                view.say(shop.made(bench, entry))
                done += 1
        except KeyboardInterrupt:
            interrupted = True
    return {"command": "zoo", "done": done, "of": len(entries), "interrupted": interrupted}


class _Workshop:
    """Builds or trains one entry of the zoo, as the job asks."""

    def __init__(self, job: BuildJob | TrainJob, build: BuildJob, entries: list[Any]) -> None:
        self.work = zoo_of(build.names[0]).workshop()
        self._job, self._seed = job, build.seed
        self.trainer = self.work.trainer(build.target)  # known before any data are read
        self._data = self.work.source_of(job.data, entries) if isinstance(job, TrainJob) else None

    def made(self, bench: Any, entry: Any) -> str:
        """What came of it, in a few lines."""
        if isinstance(self._job, TrainJob):
            return self._trained(bench, entry, self._job)
        made = self.work.build(bench, entry, self._seed)
        return f"{_figures(made)}\n    outvote check {made.model} --data {made.data}"

    def _trained(self, bench: Any, entry: Any, job: TrainJob) -> str:
        done = self.work.train(bench, entry, self._data, job.epochs, job.count, self._seed)
        form = "{:.1%} right" if done.is_classifier else "mean error {:.3g}"
        return (
            f"{_figures(done.made)}\n    {form.format(done.score)} on {done.tested_on} test samples"
            f" (one answer to all: {form.format(done.guess)}), trained on {done.trained_on} of "
            f"{done.source}, epochs: {done.epochs}\n"
            f"    outvote check {done.made.model} --data {done.made.data}"
        )


def _figures(made: Any) -> str:
    return f"{made.name}: {made.layers} layers, {made.weights:,} weights, {made.seconds:.1f} s"
