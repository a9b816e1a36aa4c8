"""What a Keras worker answers about training: gradients, updates, steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from outvote.core import train_protocol as learn
from outvote.core.dtypes import asks_for
from outvote.core.model import digest_of
from outvote.dialects.keras.workers.keras3.backends import clipping, floats
from outvote.worker.main import Context, Handlers


@contextmanager
def _exactly(wide: bool) -> Iterator[None]:
    """Where float64 is asked for, all of it: Keras narrows some, being no library for that.

    Outside TensorFlow its rules of promotion make products float32; on TensorFlow casting a number
    of Python makes float32 of it first.
    """
    from keras.src import backend
    from keras.src.backend.common import dtypes

    narrow: dict[str, str] = getattr(dtypes, "BIT64_TO_BIT32_DTYPE", {})
    before, released = dict(narrow), backend.core.cast

    def cast(x: Any, dtype: Any) -> Any:
        plain = isinstance(x, float | int) and not isinstance(x, bool)
        return backend.convert_to_tensor(x, dtype=dtype) if plain else released(x, dtype)

    with floats(wide):
        try:
            if wide:
                narrow.pop("float64", None)
                backend.core.cast = cast
            yield
        finally:
            narrow.update(before)
            backend.core.cast = released


class Learner:
    """Layers of its own, and the last program that gives gradients: it may be compiled."""

    def __init__(
        self, context: Context, backend: Any, mode: str, new_workshop: Callable[[], Any]
    ) -> None:
        self._context = context
        self._backend = backend
        self._mode = mode
        self._new_workshop = new_workshop
        self._workshop: Any = None
        self._pullback: tuple[str, Any] = "", None

    @property
    def handlers(self) -> Handlers:
        return {
            learn.PrepareTraining: self.prepare,
            learn.PullBack: self.pull_back,
            learn.ApplyGradients: self.apply,
            learn.TrainSteps: self.train,
            learn.ListStages: self.stages,
        }

    def forget(self) -> None:
        """Drop what was kept from earlier requests."""
        self._workshop = None
        self._pullback = "", None

    def stages(self, request: learn.ListStages) -> learn.StagesListed:
        from outvote.dialects.keras.workers.keras3.stages import stages

        return stages()

    def prepare(self, request: learn.PrepareTraining) -> learn.TrainingPrepared:
        from outvote.dialects.keras.workers.keras3.lessons import prepare

        return prepare(self._new_workshop(), request)

    def pull_back(self, request: learn.PullBack) -> learn.PulledBack:
        from outvote.dialects.keras.workers.keras3.pullback import Pullback

        self._backend.set_wide(asks_for(request.model, "float64"))
        key = digest_of(
            request.model.to_json(),
            *(request.loss, request.penalty, request.exact, bool(request.sample_weight)),
            *(request.border, request.jitter),
            [digest is not None for digest in request.cotangents],
        )
        with _exactly(request.exact), clipping(request.border):
            if self._pullback[0] != key:
                self._workshop = self._workshop or self._new_workshop()
                made = Pullback(self._context, self._workshop, self._backend, self._mode, request)
                self._pullback = key, made
            pulled: learn.PulledBack = self._pullback[1].pull(request)
        return pulled

    def apply(self, request: learn.ApplyGradients) -> learn.GradientsApplied:
        from outvote.dialects.keras.workers.keras3.update import apply_gradients

        types = {self._context.blobs.get(digest).dtype.name for digest in request.weights}
        self._backend.set_wide("float64" in types)
        with _exactly("float64" in types):
            return apply_gradients(self._context, self._backend, self._mode, request)

    def train(self, request: learn.TrainSteps) -> learn.StepsTrained:
        """A copy of the model is trained: layers of its own."""
        from outvote.dialects.keras.workers.keras3.lessons import train_steps

        self._backend.set_wide(asks_for(request.model, "float64"))
        with _exactly(request.exact):
            return train_steps(self._context, self._new_workshop(), self._mode, request)
