"""Modules as people write them, from `outvote.check(module, x)` to a verdict, on chosen targets.

python benchmarks/torch_models.py --targets torch:eager,torch:inductor,openvino:torch
python benchmarks/torch_models.py --only resnet,lstm --seconds

Prints a row per module: calls, verdict, seconds, gaps and bugs; with `--seconds` also what
the check takes beside export and one bare forward per target.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

import outvote


class Residual(nn.Module):
    """ResNet's basic block; the first one of a stage halves the picture."""

    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.short = (
            nn.Conv2d(before, width, 1, stride, bias=False) if stride > 1 else nn.Identity()
        )

    def forward(self, x: Any) -> Any:
        h = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(h + self.short(x))


class Inverted(nn.Module):
    """MobileNet's inverted residual."""

    def __init__(self, width: int, times: int) -> None:
        super().__init__()
        inner = width * times
        self.body = nn.Sequential(
            *(nn.Conv2d(width, inner, 1, bias=False), nn.BatchNorm2d(inner), nn.Hardswish()),
            *(nn.Conv2d(inner, inner, 3, 1, 1, groups=inner), nn.BatchNorm2d(inner), nn.ReLU6()),
            *(nn.Conv2d(inner, width, 1, bias=False), nn.BatchNorm2d(width)),
        )

    def forward(self, x: Any) -> Any:
        return x + self.body(x)


class Vision(nn.Module):
    """A vision transformer: patches, a class token, positions."""

    def __init__(self, width: int = 32, depth: int = 2) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, width, 8, 8)
        self.token = nn.Parameter(torch.randn(1, 1, width))
        self.place = nn.Parameter(torch.randn(1, 17, width))
        layer = nn.TransformerEncoderLayer(
            width, 4, 2 * width, activation="gelu", batch_first=True, norm_first=True
        )
        self.body = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Linear(width, 10)

    def forward(self, x: Any) -> Any:
        h = self.patch(x).flatten(2).transpose(1, 2)
        h = torch.cat([self.token.expand(len(x), -1, -1), h], 1) + self.place
        return self.head(self.body(h)[:, 0])


class UNet(nn.Module):
    """Down, across, up."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.down = nn.Conv2d(3, width, 3, padding=1)
        self.deep = nn.Conv2d(width, 2 * width, 3, padding=1)
        self.up = nn.ConvTranspose2d(2 * width, width, 2, 2)
        self.across = nn.Conv2d(2 * width, 4, 3, padding=1)

    def forward(self, x: Any) -> Any:
        first = torch.relu(self.down(x))
        second = torch.relu(self.deep(nn.functional.max_pool2d(first, 2)))
        wide = nn.functional.interpolate(second, scale_factor=2, mode="bilinear")[:, :8]
        return self.across(torch.cat([first + wide, self.up(second)], 1))


class Tagger(nn.Module):
    """Words through an LSTM in both directions."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 16)
        self.lstm = nn.LSTM(16, 12, 2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(24, 7)

    def forward(self, ids: Any) -> Any:
        return self.head(self.lstm(self.embed(ids))[0]).log_softmax(-1)


class Decoder(nn.Module):
    """One step of a decoder with a cache of keys and values, which it gives back longer."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Any, keys: Any, values: Any) -> Any:
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        keys, values = torch.cat([keys, k], 1), torch.cat([values, v], 1)
        h = nn.functional.scaled_dot_product_attention(q, keys, values)
        return x + self.out(h), keys, values


def resnet() -> nn.Module:
    blocks = [Residual(8, 8, 1), Residual(8, 16, 2), Residual(16, 32, 2)]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10)]
    return nn.Sequential(nn.Conv2d(3, 8, 7, 2, 3), nn.MaxPool2d(3, 2, 1), *blocks, *head)


def mobilenet() -> nn.Module:
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(), nn.Linear(8, 10)]
    return nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), Inverted(8, 4), Inverted(8, 4), *head)


def encoder() -> nn.Module:
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


def pictures() -> list[Any]:
    return [torch.randn(4, 3, 32, 32)]


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], list[Any]]]] = {
    "resnet": (resnet, pictures),
    "mobilenet": (mobilenet, pictures),
    "vit": (Vision, pictures),
    "unet": (UNet, pictures),
    "lstm": (Tagger, lambda: [torch.randint(0, 50, (4, 9))]),
    "encoder": (encoder, lambda: [torch.randn(4, 6, 16)]),
    "decoder": (Decoder, lambda: [torch.randn(4, n, 16) for n in (1, 5, 5)]),
}


def large(name: str) -> tuple[nn.Module, list[Any]]:
    """A model of torchvision, with random weights."""
    import torchvision

    return getattr(torchvision.models, name)(), [torch.randn(4, 3, 224, 224)]


def bare(module: nn.Module, inputs: list[Any]) -> tuple[float, float]:
    """Seconds of an export and of one forward."""
    began = time.perf_counter()
    torch.export.export(module.eval(), tuple(inputs))
    between = time.perf_counter()
    with torch.no_grad():
        module(*inputs)
    return between - began, time.perf_counter() - between


def row(name: str, targets: list[str], every_layer: bool, seconds: bool) -> bool:
    torch.manual_seed(0)
    module, inputs = (MODELS[name][0](), MODELS[name][1]()) if name in MODELS else large(name)
    module.eval()
    given = inputs if len(inputs) > 1 else inputs[0]
    began = time.perf_counter()
    result = outvote.check(module, given, targets=targets, every_layer=every_layer)
    took = time.perf_counter() - began
    data = result.data
    gaps = [t["name"] for t in data["targets"] if t.get("outcome") != "ok"]
    bugs = [f["title"] for f in data["findings"] if f["triage"] == "bug"]
    told = f"{name:14} {data['model']['layers']:5} calls  {data['verdict']:12} {took:6.1f} s"
    if seconds:
        export, forward = bare(module, inputs)
        told += f"  export {export:.1f} s, forward {forward:.2f} s"
    print(told, *(f"gap: {gap}" for gap in gaps), *bugs, flush=True)
    return not bugs


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--targets", default="torch:eager,torch:decomposed,openvino:torch")
    parser.add_argument("--only", default=",".join(MODELS))
    parser.add_argument("--every-layer", action="store_true")
    parser.add_argument("--seconds", action="store_true")
    args = parser.parse_args()
    clean = [
        row(name, args.targets.split(","), args.every_layer, args.seconds)
        for name in args.only.split(",")
    ]
    print(f"{sum(clean)} of {len(clean)} without a bug")


if __name__ == "__main__":
    main()
