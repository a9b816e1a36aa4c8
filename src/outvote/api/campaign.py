"""`fuzz` from Python: to its end, or in the background while its events are read."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from outvote.api.asked import job_asked
from outvote.api.given import Inputs, as_data, as_file
from outvote.api.options import FuzzOptions
from outvote.api.progress import view_for
from outvote.api.result import Result
from outvote.campaign.progress import Progress
from outvote.commands.fuzz.job import NewCampaign, Replay, Resumption
from outvote.commands.fuzz.run import run as run_fuzz
from outvote.commands.view import View
from outvote.core.errors import UsageError
from outvote.core.events import Event
from outvote.run.folder import OwnedFolder
from outvote.store.follow import follow as follow_store
from outvote.store.follow import last_run

FuzzJobs = NewCampaign | Resumption | Replay


def fuzz(
    seeds: Any = (),
    x: Inputs | None = None,
    *,
    progress: bool | None = None,
    **options: Unpack[FuzzOptions],
) -> Result:
    """Breed mutants of models, and look into every difference until its layer is found.

    `seeds` are models, or names of the zoo: one, or a list; `x` are the inputs of the first that is
    a file. Without `out` the campaign is forgotten when the result is there.
    """
    with OwnedFolder() as folder:
        job = _job(seeds, x, folder, options)
        return _result(run_fuzz(job, view_for(progress)), job, options)


def campaign(
    seeds: Any = (), x: Inputs | None = None, **options: Unpack[FuzzOptions]
) -> BackgroundCampaign:
    """The same in the background. Use it with `with`, which stops it at the end of the block:

    with api.campaign("lenet5", budget=200) as running:
        for event in running:
            print(event)
    running.result()
    """
    folder = OwnedFolder()
    try:
        return BackgroundCampaign(_job(seeds, x, folder.path, options), options, folder)
    except BaseException:
        folder.remove()
        raise


def follow(folder: str | Path, *, wait: bool = True) -> Iterator[Event]:
    """The events of the last run of a command in a folder, also of another process.

    They come as they happen, until the run has ended; without `wait`, those that there are.
    """
    if not Path(folder).is_dir():
        raise UsageError(f"there is no folder {folder} to follow")
    return (told.event for told in follow_store(Path(folder), lambda: wait))


class BackgroundCampaign:
    """A campaign at work in a thread; iterating gives its events until it ends."""

    def __init__(self, job: FuzzJobs, options: FuzzOptions, folder: OwnedFolder) -> None:
        self._job, self._options, self._folder = job, options, folder
        self._before = last_run(job.out)  # of a campaign that is resumed
        self._stopping = threading.Event()
        self._told: dict[str, Any] | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="outvote campaign", daemon=True)

    def __enter__(self) -> BackgroundCampaign:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()
        self._thread.join()
        self._folder.remove()

    def __iter__(self) -> Iterator[Event]:
        for told in follow_store(self._job.out, self._thread.is_alive, self._before):
            yield told.event

    def stop(self) -> None:
        """End it after the generation it is in; what it has found stays."""
        self._stopping.set()

    def result(self) -> Result:
        """Wait for its end; raises what the campaign raised."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        assert self._told is not None
        return _result(self._told, self._job, self._options)

    def _run(self) -> None:
        try:
            self._told = run_fuzz(self._job, _Stoppable(self._stopping))
        except BaseException as error:  # told to whoever asks for the result
            self._error = error


class _Stoppable:
    """A View that presses Ctrl-C for a campaign that runs where no key reaches it."""

    def __init__(self, stopping: threading.Event) -> None:
        self._stopping = stopping
        self._view: View = view_for(False)
        self.watch, self.announce, self.say = self._view.watch, self._view.announce, self._view.say

    @contextmanager
    def progress(self) -> Iterator[Callable[[Progress], None]]:
        def tell(progress: Progress) -> None:
            if self._stopping.is_set():
                raise KeyboardInterrupt

        yield tell


def _job(seeds: Any, x: Inputs | None, folder: Path, options: FuzzOptions) -> FuzzJobs:
    alone = isinstance(seeds, str | Path) or not isinstance(seeds, Sequence)
    given = [seeds] if alone else list(seeds)
    files = [str(as_file(seed, folder, f"seed{n}")) for n, seed in enumerate(given, 1)]
    data = as_data(x, None, folder)
    job: FuzzJobs = job_asked("fuzz", seeds=files, data=data and [data], **options)
    if isinstance(job, NewCampaign | Replay) and job.out is None:
        job = replace(job, out=folder / "campaign")
    return job


def _result(told: dict[str, Any], job: FuzzJobs, options: FuzzOptions) -> Result:
    kept = "out" in options or isinstance(job, Resumption)
    return Result(data=told, folder=job.out if kept else None, job=job)
