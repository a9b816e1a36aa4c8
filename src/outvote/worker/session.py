"""Computes a model one layer at a time, so that the driver can watch and swap what goes in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from outvote.core import protocol as ask
from outvote.core.model import Layer, Model
from outvote.core.states import State
from outvote.worker.main import Context, Handlers

Compute = Callable[[Layer, Sequence[State]], Sequence[State]]


class Session:
    """This target's own tensors so far; each is dropped after its last use.

    `known`: those that were found at once, by a run of the whole model.
    """

    def __init__(
        self,
        model: Model,
        inputs: Sequence[State],
        compute: Compute,
        known: Mapping[str, Sequence[State]] = MappingProxyType({}),
    ) -> None:
        self._compute = compute
        self._places = {layer.name: place for place, layer in enumerate(model.layers)}
        self._layers = model.layers
        self._last_use = model.last_use()
        self._held: dict[str, Sequence[State]] = {
            **{item.name: [state] for item, state in zip(model.inputs, inputs, strict=True)},
            **known,
        }

    def step(self, name: str, given: Sequence[State] | None) -> ask.Stepped:
        """The layer on own tensors (kept), then on the given ones; both come back.

        Own tensors may be missing or unfit, because an earlier layer went wrong; then only the
        given ones count. Without given ones, an error is the answer.
        """
        place = self._places[name]
        layer = self._layers[place]
        own: tuple[State, ...] | None = None
        failed = ""
        try:
            own = self._own(layer)
        except Exception as error:
            if given is None:
                raise
            failed = f"{type(error).__name__}: {error}"
        for producer in layer.inputs:
            if self._last_use[producer] == place:
                self._held.pop(producer, None)
        isolated = None if given is None else self.call(name, given)
        return ask.Stepped(own=own, isolated=isolated, own_error=failed)

    def call(self, name: str, given: Sequence[State]) -> tuple[State, ...]:
        """The layer on the given tensors alone."""
        return tuple(self._compute(self._layers[self._places[name]], given))

    def _own(self, layer: Layer) -> tuple[State, ...]:
        if layer.name not in self._held:
            given = [self._held[ref.producer][ref.index] for ref in layer.refs()]
            self._held[layer.name] = self._compute(layer, given)
        return tuple(self._held[layer.name])


class Sessions:
    """Answers what is asked of a session; a worker has one at a time."""

    def __init__(self, context: Context, begun: Callable[[ask.OpenSession], Session]) -> None:
        self._context = context
        self._begun = begun
        self._session: Session | None = None

    @property
    def handlers(self) -> Handlers:
        return {
            ask.OpenSession: self.open,
            ask.StepLayer: self.step,
            ask.CallLayer: self.call,
            ask.CloseSession: self.close,
        }

    def open(self, request: ask.OpenSession) -> ask.Done:
        self._context.begin(len(request.model.layers))
        self._session = self._begun(request)
        return ask.Done()

    def step(self, request: ask.StepLayer) -> ask.Stepped:
        """A layer on this target's own tensors and, if given, on another target's."""
        assert self._session is not None
        reply = self._session.step(request.layer, request.given)
        self._context.step()
        return reply

    def call(self, request: ask.CallLayer) -> ask.Called:
        """A layer on the given tensors alone."""
        assert self._session is not None
        return ask.Called(outputs=self._session.call(request.layer, request.given))

    def close(self, request: ask.CloseSession) -> ask.Done:
        self._session = None
        return ask.Done()
