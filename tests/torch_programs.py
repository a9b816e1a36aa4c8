"""Small PyTorch modules, as people write them, the archives of their programs, and faults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from outvote.core.target import Target
from outvote.dialects.torch_export.targets import BUILT_IN

PLANTS = Path(__file__).parent.parent / "benchmarks" / "torch_fault_plants.py"


def planted(fault: str, base: str) -> Target:
    """A target with one of the faults of benchmarks/torch_fault_plants.py, as its own library."""
    env = {"FAULT": fault}
    return replace(BUILT_IN[base], name=fault, library=fault, borrows={}, setup=PLANTS, env=env)


class Block(nn.Module):
    """A residual block whose last function writes over what it reads."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, padding=1)
        self.bn = nn.BatchNorm2d(width)
        self.act = nn.ReLU(inplace=True)

    def forward(self, x: Any) -> Any:
        return self.act(self.bn(self.conv(x)) + x)


class ConvNet(nn.Module):
    """Blocks, a mean, and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3, stride=2)
        self.blocks = nn.Sequential(Block(4), Block(4))
        self.norm = nn.GroupNorm(2, 4)
        self.head = nn.Linear(4, 5)

    def forward(self, x: Any) -> Any:
        h = self.norm(self.blocks(self.stem(x))).mean((2, 3))
        return torch.softmax(self.head(h), -1)


class Nested(nn.Module):
    """Two inputs, one in a dict; nested outputs, a size among them; buffers; a shared parameter."""

    scale: Any
    offset: Any

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(4, 5)
        self.tied = nn.Linear(4, 5)
        self.tied.weight = self.head.weight
        self.register_buffer("scale", torch.tensor(2.0))
        self.register_buffer("offset", torch.ones(4), persistent=False)
        self.steps = torch.arange(4.0)

    def forward(self, x: Any, more: dict[str, Any]) -> Any:
        h = x * self.scale + self.offset + self.steps + more["k"]
        first, _ = torch.split(h, 2, dim=1)
        flat = h.reshape(h.shape[0] * 2, 2)
        return {
            "y": self.head(h),
            "z": (self.tied(h), first.argmax(-1), h.shape[0]),
            "f": flat.sum(),
        }


class Encoder(nn.Module):
    """Ids, attention, a layer of a transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)
        self.norm = nn.LayerNorm(8)

    def forward(self, ids: Any) -> Any:
        return self.norm(self.layer(self.embed(ids)))


def saved(module: Any, inputs: tuple[Any, ...], path: Path, dynamic: Any = None) -> Path:
    """The archive of a module's program."""
    torch.export.save(torch.export.export(module.eval(), inputs, dynamic_shapes=dynamic), path)
    return path


def _conv_net(path: Path) -> Path:
    free = ({0: torch.export.Dim("n")},)
    return saved(ConvNet(), (torch.randn(2, 3, 9, 9),), path, free)


def _nested(path: Path) -> Path:
    n = torch.export.Dim("n")
    given = (torch.randn(2, 4), {"k": torch.randn(2, 4)})
    return saved(Nested(), given, path, ({0: n}, {"k": {0: n}}))


def _encoder(path: Path) -> Path:
    return saved(Encoder(), (torch.randint(0, 11, (1, 6)),), path)


ARCHIVES: dict[str, Callable[[Path], Path]] = {
    "conv": _conv_net,
    "nested": _nested,
    "encoder": _encoder,
}


def archive(name: str, folder: Path) -> Path:
    """The archive of one of the models, with the weights of a fixed seed."""
    torch.manual_seed(7)
    return ARCHIVES[name](folder / f"{name}.pt2")
