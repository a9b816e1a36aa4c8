"""Asserts that implementations agree: what the fixture `outvote` is, and `assert_consistent`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Unpack

from outvote.api.asked import job_asked
from outvote.api.given import Inputs, as_arrays, as_data, as_file
from outvote.api.options import CheckOptions
from outvote.api.result import Result
from outvote.commands.check.job import Job
from outvote.commands.check.result import check_result
from outvote.commands.check.run import Check
from outvote.core.arrays import Array
from outvote.core.case import Case, fit, random_data
from outvote.core.errors import UsageError
from outvote.core.result import plain
from outvote.judge.truth import interpret
from outvote.mutate.drawn import DrawnModel
from outvote.mutate.tools import Tools
from outvote.report.folder import prepare_folder, write_into
from outvote.run.folder import OwnedFolder
from outvote.run.watch import silent
from outvote.testing.callables import callables_of, disagreement
from outvote.testing.current import state
from outvote.testing.failure import failure_text
from outvote.testing.folders import folder_of
from outvote.testing.known import add_known, known_file
from outvote.testing.session import Setting
from outvote.testing.workers import Workers


class InconsistentError(AssertionError):
    """Implementations disagree. `result` says all that is known; None of plain callables."""

    def __init__(self, text: str, result: Result | None = None) -> None:
        super().__init__(text)
        self.result = result
        self.write: Callable[[], Path] | None = None

    def write_evidence(self) -> None:
        """Write reports and scripts, and say below the failure where they lie."""
        if self.write is not None:
            folder, self.write = self.write(), None
            for script in sorted(folder.glob("findings/*/repro.py")):
                self.add_note(f"repro: python {script}")
            self.add_note(f"report: {folder / 'report.html'}")


def assert_consistent(
    subject: Any,
    inputs: Inputs | None = None,
    y: Array | None = None,
    **options: Unpack[CheckOptions],
) -> Result | None:
    """The same as the fixture's, for tests without fixtures."""
    __tracebackhide__ = True
    return state.outvote().assert_consistent(subject, inputs, y, **options)


class Outvote:
    """Asserts with one set of workers, which the first test starts and all others use."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._workers = Workers(setting)

    def close(self) -> None:
        self._workers.close()

    def assert_consistent(
        self,
        subject: Any,
        inputs: Inputs | None = None,
        y: Array | None = None,
        **options: Unpack[CheckOptions],
    ) -> Result | None:
        """Raise `InconsistentError` where implementations disagree by more than rounding.

        `subject` is a model (in memory, or a file), a layer or function of Keras with its `inputs`,
        a model that `outvote.strategies` drew, or several callables that should give the same: a
        list, or a dict by name. Those run in this process, and there is no result.
        """
        __tracebackhide__ = True
        several = callables_of(subject)
        if several is not None:
            told = disagreement(several, inputs, options.get("tolerance"))
            if told is not None:
                raise InconsistentError(told)
            return None
        folder = folder_of(self._setting.out, state.test.name)
        result, write = self._checked(subject, inputs, y, options, folder)
        if not result.passed:
            self._refuse(result, write)
        return result

    def _refuse(self, result: Result, write: Callable[[], Path]) -> None:
        __tracebackhide__ = True
        if self._setting.update_known:
            state.notes += add_known(known_file(self._setting), result)
            return
        error = InconsistentError(failure_text(result), result)
        error.write = write
        raise error

    def check(
        self,
        subject: Any,
        inputs: Inputs | None = None,
        y: Array | None = None,
        **options: Unpack[CheckOptions],
    ) -> Result:
        """The same without an assertion: what was found."""
        folder = folder_of(self._setting.out, state.test.name)
        return self._checked(subject, inputs, y, options, folder)[0]

    def tools(self) -> Tools:
        """New layers for the strategies, as the Keras of one worker makes them."""
        return self._workers.tools(self._job(Path("drawn.keras"), None, {}))

    def _checked(
        self, subject: Any, x: Inputs | None, y: Array | None, options: CheckOptions, out: Path
    ) -> tuple[Result, Callable[[], Path]]:
        with OwnedFolder() as folder:
            if isinstance(subject, DrawnModel):
                job = self._job(Path("drawn.keras"), None, options)
                case = _case_of(subject, x, job.seed)
            else:
                path = as_file(subject, folder, inputs=x)
                job, case = self._job(path, as_data(x, y, folder), options), None
            pool, job = self._workers.pool_for(job)
            check = Check.opened(pool, job, silent, case)
            check.run()

        def write() -> Path:
            """Not before somebody wants to see it: Hypothesis fails a hundred times until then."""
            prepare_folder(out)
            check.write_evidence(out)
            write_into(out, _judged(check))
            return out

        return Result(data=_judged(check), folder=out, job=job), write

    def _job(self, path: Path, data: Path | None, options: Mapping[str, Any]) -> Job:
        setting = self._setting
        known = known_file(setting)
        usual: dict[str, Any] = {
            "targets": list(setting.targets) if setting.targets else None,
            "fail_on": setting.fail_on,
            "known": known if known.exists() else None,
            "confirm": 0,  # workers are shared: fresh ones would be started again and again
            "minimise": 0 if _is_drawing() else None,  # Hypothesis makes it small
        }
        given = {**usual, **state.test.options, **options}
        if setting.fail_on is not None and "fail_on" not in options:
            given["fail_on"] = setting.fail_on
        if "out" in given:
            raise UsageError("reports of tests go where --outvote-out says; leave out `out`")
        job: Job = job_asked("check", model=path, data=data, **given)
        return job


def _judged(check: Check) -> dict[str, Any]:
    return check.job.gate.judged(plain(check_result(check.checked)))


def _is_drawing() -> bool:
    """Whether Hypothesis is at work."""
    hypothesis = sys.modules.get("hypothesis")
    return hypothesis is not None and bool(hypothesis.currently_in_test_context())


def _case_of(drawn: DrawnModel, x: Inputs | None, seed: int) -> Case:
    if isinstance(x, str | Path):
        raise UsageError("a drawn model takes arrays, as `inputs_for` draws them")
    arrays = as_arrays(x, None)
    data = (
        random_data(drawn.model, 4, seed)
        if arrays is None
        else fit(arrays, drawn.model, "arrays", allow_nan=False)
    )
    shapes = drawn.output_shapes
    return Case(drawn.model, shapes, data, interpret(None, shapes[0]))
