"""PyTorch models as people write them, small, with random weights; two are trained on digits.

`MODELS` has a function of a seed for each, which gives the module and the inputs of a batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - as everybody calls it

Case = tuple[nn.Module, list[np.ndarray]]


class Bottleneck(nn.Module):
    """ResNet's block of three convolutions."""

    def __init__(self, given: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(given, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.relu = nn.ReLU(inplace=True)
        self.down: nn.Module = nn.Identity()
        if stride != 1 or given != 4 * width:
            self.down = nn.Sequential(
                nn.Conv2d(given, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width)
            )

    def forward(self, x: Any) -> Any:
        h = self.relu(self.bn1(self.conv1(x)))
        h = self.relu(self.bn2(self.conv2(h)))
        return self.relu(self.bn3(self.conv3(h)) + self.down(x))


class ResNet(nn.Module):
    """He and others, 2015; (3, 4, 6, 3) blocks of width 64 make ResNet-50."""

    def __init__(self, blocks: tuple[int, ...], width: int, classes: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 7, 2, 3, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2, 1),
        )
        given, stages = width, []
        for stage, count in enumerate(blocks):
            inner = width * 2**stage
            for place in range(count):
                stages.append(Bottleneck(given, inner, 2 if stage and not place else 1))
                given = 4 * inner
        self.stages = nn.Sequential(*stages)
        self.head = nn.Linear(given, classes)

    def forward(self, x: Any) -> Any:
        h = self.stages(self.stem(x))
        return self.head(F.adaptive_avg_pool2d(h, 1).flatten(1))


class Inverted(nn.Module):
    """MobileNetV2's block: wide inside, one filter for each channel."""

    def __init__(self, given: int, width: int, stride: int) -> None:
        super().__init__()
        inner = 4 * given
        self.body = nn.Sequential(
            nn.Conv2d(given, inner, 1, bias=False),
            nn.BatchNorm2d(inner),
            nn.ReLU6(),
            nn.Conv2d(inner, inner, 3, stride, 1, groups=inner, bias=False),
            nn.BatchNorm2d(inner),
            nn.Hardswish(),
            nn.Conv2d(inner, width, 1, bias=False),
            nn.BatchNorm2d(width),
        )
        self.skips = stride == 1 and given == width

    def forward(self, x: Any) -> Any:
        return x + self.body(x) if self.skips else self.body(x)


class MobileNet(nn.Module):
    """Sandler and others, 2018."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, 2, 1)
        self.blocks = nn.Sequential(Inverted(8, 8, 1), Inverted(8, 16, 2), Inverted(16, 16, 1))
        self.head = nn.Linear(16, 10)

    def forward(self, x: Any) -> Any:
        h = self.blocks(F.hardswish(self.stem(x)))
        return self.head(F.hardswish(h).mean((2, 3)))


class Attention(nn.Module):
    """Several heads at once, with PyTorch's own function."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Any, past: Any = None) -> tuple[Any, Any]:
        n, t, c = x.shape
        parts = self.qkv(x).reshape(n, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = parts[0], parts[1], parts[2]
        if past is not None:
            k, v = torch.cat([past[:, 0], k], 2), torch.cat([past[:, 1], v], 2)
        h = F.scaled_dot_product_attention(q, k, v)
        return self.out(h.transpose(1, 2).reshape(n, t, c)), torch.stack([k, v], 1)


class Block(nn.Module):
    """A layer of a transformer that normalises first."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, x: Any, past: Any = None) -> tuple[Any, Any]:
        h, kept = self.attention(self.norm1(x), past)
        x = x + h
        return x + self.mlp(self.norm2(x)), kept


class VisionTransformer(nn.Module):
    """Dosovitskiy and others, 2020."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 16, 8, 8)
        self.token = nn.Parameter(0.1 * torch.randn(1, 1, 16))
        self.places = nn.Parameter(0.1 * torch.randn(1, 17, 16))
        self.blocks = nn.ModuleList([Block(16, 4), Block(16, 4)])
        self.norm = nn.LayerNorm(16)
        self.head = nn.Linear(16, 10)

    def forward(self, x: Any) -> Any:
        h = self.patches(x).flatten(2).transpose(1, 2)
        h = torch.cat([self.token.expand(len(x), -1, -1), h], 1) + self.places
        for block in self.blocks:
            h, _ = block(h)
        return self.head(self.norm(h)[:, 0])


class UNet(nn.Module):
    """Ronneberger and others, 2015: down, up, and what passes between."""

    def __init__(self) -> None:
        super().__init__()
        self.down1 = self._twice(3, 8)
        self.down2 = self._twice(8, 16)
        self.bottom = self._twice(16, 16)
        self.up2 = nn.ConvTranspose2d(16, 16, 2, 2)
        self.join2 = self._twice(32, 8)
        self.join1 = self._twice(16, 8)
        self.out = nn.Conv2d(8, 2, 1)

    @staticmethod
    def _twice(given: int, width: int) -> nn.Module:
        return nn.Sequential(
            nn.Conv2d(given, width, 3, padding=1),
            nn.GroupNorm(4, width),
            nn.SiLU(),
            nn.Conv2d(width, width, 3, padding=1),
            nn.ReLU(),
        )

    def forward(self, x: Any) -> Any:
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        c = self.bottom(F.avg_pool2d(b, 2))
        h = self.join2(torch.cat([self.up2(c), b], 1))
        h = F.interpolate(h, scale_factor=2.0, mode="bilinear", align_corners=False)
        return self.out(self.join1(torch.cat([h, a], 1)))


class Reader(nn.Module):
    """Ids, two layers of LSTM in both directions, and a score for each class."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 8)
        self.lstm = nn.LSTM(8, 12, 2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(24, 4)

    def forward(self, ids: Any) -> Any:
        h, _ = self.lstm(self.embed(ids))
        return torch.softmax(self.head(h.mean(1)), -1)


class Encoder(nn.Module):
    """Vaswani and others, 2017: PyTorch's own layers on ids, places added."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 16)
        self.register_buffer("places", self._waves(12, 16))
        layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, dropout=0.0)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    @staticmethod
    def _waves(length: int, width: int) -> Any:
        steps = torch.exp(torch.arange(0, width, 2) * (-math.log(10_000.0) / width))
        angles = torch.arange(length)[:, None] * steps
        return torch.stack([angles.sin(), angles.cos()], 2).flatten(1)

    def forward(self, ids: Any) -> Any:
        return self.layers(self.embed(ids) + self.places)


class Decoder(nn.Module):
    """The next word, and the keys and values to go on with: a cache as an input and an output."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 16)
        self.block = Block(16, 4)
        self.norm = nn.LayerNorm(16)

    def forward(self, ids: Any, past: Any) -> tuple[Any, Any]:
        h, kept = self.block(self.embed(ids), past)
        scores = F.log_softmax(self.norm(h) @ self.embed.weight.T, -1)
        return scores[:, -1], kept


class Digits(nn.Module):
    """A small network for pictures of eight by eight."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.bn = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 16, 3)
        self.hidden = nn.Linear(144, 32)
        self.head = nn.Linear(32, 10)

    def forward(self, x: Any) -> Any:
        h = F.relu(self.bn(self.conv1(x)))
        h = F.max_pool2d(F.relu(self.conv2(h)), 2)
        return self.head(torch.tanh(self.hidden(h.flatten(1))))


class Rows(nn.Module):
    """The rows of a picture, one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(8, 24, batch_first=True)
        self.head = nn.Linear(24, 10)

    def forward(self, x: Any) -> Any:
        h, _ = self.gru(x.squeeze(1))
        return torch.softmax(self.head(h[:, -1]), -1)


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Pictures and what they show, by scikit-learn."""
    from sklearn.datasets import load_digits

    found = load_digits()
    return (found.images[:, None] / 16).astype(np.float32), found.target


def trained(module: nn.Module, epochs: int = 8) -> Case:
    """The module after some seconds on all pictures but the last few, which are its inputs."""
    pictures, labels = digits()
    x, y = torch.from_numpy(pictures[:-16]), torch.from_numpy(labels[:-16])
    optimiser = torch.optim.Adam(module.parameters(), 0.01)
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(128):
            optimiser.zero_grad()
            F.cross_entropy(module(x[rows]), y[rows]).backward()
            optimiser.step()
    return module, [pictures[-16:]]


def seeded(make: Callable[[], nn.Module], *inputs: Any) -> Callable[[int], Case]:
    """A model with random weights, made so that its outputs depend on its inputs.

    Its normalisations have the statistics of the batch, and its head has no bias to hide behind.
    """

    def made(seed: int) -> Case:
        torch.manual_seed(seed)
        module = make()
        rng = np.random.default_rng(seed)
        given = [one(rng) for one in inputs]
        for part in module.modules():
            if isinstance(part, nn.BatchNorm2d):
                part.momentum = None  # all that it has seen
        head = getattr(module, "head", None)
        with torch.no_grad():
            module.train()(*map(torch.from_numpy, given))
            if head is not None:
                head.weight *= 4
                head.bias *= 0
        return module.eval(), given

    return made


def images(size: int, count: int = 2) -> Any:
    return lambda rng: rng.normal(size=(count, 3, size, size)).astype(np.float32)


def ids(length: int) -> Any:
    return lambda rng: rng.integers(0, 50, (2, length))


def cache(rng: Any) -> Any:
    return rng.normal(size=(2, 2, 4, 7, 4)).astype(np.float32)


def on_digits(make: Callable[[], nn.Module]) -> Callable[[int], Case]:
    def made(seed: int) -> Case:
        torch.manual_seed(seed)
        return trained(make())

    return made


MODELS: dict[str, Callable[[int], Case]] = {
    "resnet": seeded(lambda: ResNet((1, 1, 1, 1), 8, 10), images(32)),
    "mobilenet": seeded(MobileNet, images(32)),
    "vit": seeded(VisionTransformer, images(32)),
    "unet": seeded(UNet, images(32)),
    "lstm": seeded(Reader, ids(9)),
    "encoder": seeded(Encoder, ids(12)),
    "decoder": seeded(Decoder, ids(1), cache),
    "digits-trained": on_digits(Digits),
    "rows-trained": on_digits(Rows),
}
