"""New calls and other arguments for old ones, as one worker's PyTorch has them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from outvote.core.model import Input, Layer, Model, Ref, with_refs
from outvote.core.protocol import Request, TellDefaults
from outvote.dialects.torch_export.mutate.arguments import other_values
from outvote.dialects.torch_export.nouns.node import operator_parts, tensors_of
from outvote.dialects.torch_export.nouns.requests import CallsTried, DrawCalls, TryCalls
from outvote.mutate.graft import grafted
from outvote.mutate.registry import Impossible
from outvote.mutate.subject import Spec, Subject
from outvote.mutate.tools import NoTools
from outvote.run.pool import Ask
from outvote.run.settle import settled


@dataclass(kw_only=True)
class TorchTools(NoTools):
    """What rules of PyTorch programs use besides: calls that are drawn and tried by a worker."""

    ask: Ask
    _defaults: dict[str, Mapping[str, Any]] = field(default_factory=dict)  # by kind

    def places(self, subject: Subject) -> list[Ref]:
        """Tensors behind which calls can be put: nothing about their form is open but a batch."""
        return [
            ref
            for ref in subject.float_tensors()
            if (spec := subject.spec(ref)).size and spec.batch in (None, 0)
        ]

    def parameters(self, layer: Layer) -> dict[str, Any]:
        """The plain arguments of which other values are known, as they are or by default."""
        told = {**self._defaults_of(layer), **layer.config}
        return {name: value for name, value in told.items() if other_values(name, value)}

    def others(self, layer: Layer, name: str, value: Any) -> list[Any]:
        return other_values(name, value)

    def tried(self, layer: Layer, given: Sequence[Spec]) -> tuple[Layer, tuple[Spec, ...]] | None:
        """The call as it runs on tensors of these forms, and what it gives; None: it does not."""
        found: CallsTried | None = self._asked(TryCalls(model=_alone(layer, given)))
        if found is None:
            return None
        (ran,) = found.model.layers
        return replace(layer, batch=ran.batch), _specs(ran, found)

    def with_calls(
        self,
        subject: Subject,
        start: Ref,
        rng: np.random.Generator,
        *,
        calls: int,
        keep: bool,
        wanted: Spec | None = None,
    ) -> Subject:
        """New calls behind a tensor that lead to a form, its own unless another is wanted."""
        spec = subject.spec(start)
        aim = wanted or spec
        request = DrawCalls(
            given=Input("x", spec.shape, spec.dtype, spec.batch),
            wanted=(aim.shape, aim.dtype),
            seed=int(rng.integers(1 << 31)),
            calls=calls,
            keep=keep,
        )
        found = self._asked(request)
        if found is None:
            raise Impossible(f"no calls at {spec}")
        self.refused += found.refused
        layers, specs, end = grafted(subject, [start], found.model, found.specs, _stem)
        return subject.inserted(start, layers, specs, end)

    def _defaults_of(self, layer: Layer) -> Mapping[str, Any]:
        if layer.kind not in self._defaults:
            alone = Model("call", (), (replace(layer, kwargs={}, weights=()),),
                          (Ref(layer.name),), "torch_export")  # fmt: skip
            told = self._asked(TellDefaults(model=alone))
            self._defaults[layer.kind] = told.defaults[layer.name] if told is not None else {}
        return self._defaults[layer.kind]

    def _asked(self, request: Request[Any]) -> Any:
        run = settled(self.ask, request, self.ask(request))
        self.refused += not run.ok
        return run.reply if run.ok else None


def _stem(layer: Layer) -> str:
    return operator_parts(layer.kind)[1]


def _alone(layer: Layer, given: Sequence[Spec]) -> Model:
    """A model of this call, whose inputs are what it reads."""
    specs = dict(zip(layer.refs(), given, strict=True))
    names = {ref: f"x{place}" for place, ref in enumerate(specs)}
    inputs = tuple(Input(names[r], s.shape, s.dtype, s.batch) for r, s in specs.items())
    kwargs = with_refs(layer.kwargs, lambda ref: Ref(names[ref]))
    alone = replace(layer, kwargs=kwargs)
    return Model("call", inputs, (alone,), tuple(tensors_of(layer)), "torch_export")


def _specs(layer: Layer, found: CallsTried) -> tuple[Spec, ...]:
    forms: Collection[Any] = found.specs[layer.name]
    return tuple(Spec(s, d, layer.batch_axis(place)) for place, (s, d) in enumerate(forms))
