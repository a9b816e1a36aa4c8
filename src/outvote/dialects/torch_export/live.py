"""A module that lives in the user's process, exported there, or why it cannot be.

It is exported as it answers, in `eval` mode; the first dimension of its inputs is left free where
the module allows that.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from outvote.core.arrays import Array
from outvote.core.errors import UsageError
from outvote.core.target import Target
from outvote.dialects.torch_export.nouns.module import ANSWERS, MODULE, SUFFIX, ModuleAnswers

# What PyTorch says where it cannot export, and what that means.
_REASONS = (
    (
        r"[Dd]ata.dependent|GuardOnDataDependent|Could not guard on|item\(\)|\.tolist\(",
        "its path depends on values of tensors (an `if` or a size made of them); "
        "use torch.where or torch.cond there",
    ),
    (
        r"print|logging|builtin.*open",
        "it does something besides computing, such as printing",
    ),
    (
        r"Unsupported|graph break|torch\._dynamo",
        "it uses Python that cannot be traced",
    ),
)


def saved_call(live: Any, inputs: Sequence[Array], path: Path) -> Path | None:
    """The program of a module, saved; None for what is no module of PyTorch."""
    torch = sys.modules.get("torch")  # who has a module has imported it
    if torch is None or not isinstance(live, torch.nn.Module) or _is_of_keras(live):
        return None
    if not inputs:
        raise UsageError(
            f"{type(live).__name__} is exported with its inputs: outvote.check(module, x), "
            "several as a list in the order of its forward"
        )
    _require_processor(live)
    was_training = live.training
    live.eval()
    try:
        program = _program(torch, live, inputs)
        answers = _answers(torch, live, inputs)
    finally:
        live.train(was_training)
    file = path.with_suffix(".pt2")
    torch.export.save(program, file)
    answers.write(file.with_suffix(SUFFIX))
    return file


def itself(path: Path) -> Target | None:
    """The module that this program was exported from, as a target; None where it is not known."""
    answers = path.with_suffix(SUFFIX)
    if not answers.exists():
        return None
    return Target(
        MODULE,
        dialect="torch_export",
        worker="module",
        library="torch",
        packages=("torch",),
        package="torch",
        env={ANSWERS: str(answers)},
        uncut="what torch.export wrote down is not what the module does",
    )


def _require_processor(module: Any) -> None:
    """Workers have their own tensors, and targets on a GPU bring them there themselves."""
    tensors = (*module.parameters(), *module.buffers())
    others = [str(t.device) for t in tensors if t.device.type != "cpu"]
    if others:
        raise UsageError(
            f"{type(module).__name__} has tensors on {others[0]}, and is exported on the "
            "processor; give module.cpu(). The targets torch:eager:cuda and torch:inductor:cuda "
            "run it on a GPU"
        )


def _answers(torch: Any, module: Any, inputs: Sequence[Array]) -> ModuleAnswers:
    """What the module gives, tensors alone, on tensors of its own: it may write over them."""
    torch.manual_seed(0)  # as workers do
    try:
        with torch.no_grad():
            given = module(*(torch.tensor(array) for array in inputs))
    except Exception as error:
        raise UsageError(
            f"{type(module).__name__} itself fails on these inputs: "
            f"{type(error).__name__}: {_first(error)}"
        ) from error
    found = [leaf for leaf in torch.utils._pytree.tree_leaves(given) if torch.is_tensor(leaf)]
    types = [str(tensor.dtype).removeprefix("torch.") for tensor in found]
    plain = [t.float() if t.dtype == torch.bfloat16 else t for t in found]
    return ModuleAnswers(inputs, [tensor.detach().cpu().numpy() for tensor in plain], types)


def _is_of_keras(live: Any) -> bool:
    """Keras' models are modules too on its backend torch; its own wing saves them."""
    return any(kind.__module__.split(".")[0] == "keras" for kind in type(live).__mro__)


def _program(torch: Any, module: Any, inputs: Sequence[Array]) -> Any:
    given = tuple(torch.as_tensor(array) for array in inputs)
    counts = {len(tensor) for tensor in given if tensor.ndim}
    if len(counts) == 1 and counts != {0}:
        # Sizes of 0 and 1 are always taken as fixed: the example has two instances.
        rows = torch.arange(2) % counts.pop()
        example = tuple(tensor[rows] if tensor.ndim else tensor for tensor in given)
        free = tuple({0: torch.export.Dim.AUTO} if tensor.ndim else None for tensor in given)
        with suppress(Exception):  # whatever it is shows again with fixed sizes, or is gone
            return _exported(torch, module, example, dynamic_shapes=free)
    try:
        return _exported(torch, module, given)
    except Exception as error:
        _answers(torch, module, inputs)  # what it cannot do itself is said first
        raise UsageError(
            f"{type(module).__name__} cannot be exported by torch.export: {_reason(error)}"
        ) from error


def _exported(torch: Any, module: Any, given: tuple[Any, ...], **more: Any) -> Any:
    with warnings.catch_warnings():
        # Of every nn.LSTM, which does so, and is exported as it should.
        warnings.filterwarnings("ignore", ".*assigned during export")
        return torch.export.export(module, given, **more)


def _reason(error: Exception) -> str:
    told = f"{type(error).__name__}: {error}"
    meant = next((meaning for pattern, meaning in _REASONS if re.search(pattern, told)), None)
    return f"{meant} ({_first(error)})" if meant else _first(error)


def _first(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
