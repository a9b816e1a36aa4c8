"""The table of the zoo: what each model is, without building it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, replace

from outvote.core.errors import UsageError

VERSION = 1  # raised when a model, its weights or its inputs change: caches are keyed by it
_VOCABULARY = 2000
_FEW = 400  # samples, for models that take a second for a few of them


@dataclass(frozen=True)
class ZooEntry:
    """One model. `layers` and `weights` are those of the default size, input included."""

    name: str
    papers: tuple[str, ...]
    family: str  # what builds it: workers/keras3/zoo_models.py, or keras.applications
    data: str  # what it is trained on by default: digits, sine, walk, tokens or sums
    shape: tuple[int, ...]
    layers: int
    weights: int
    smallest: int = 8  # the least --size
    epochs: int = 5
    samples: int = 10_000  # to train and test with, at most
    rate: float = 1e-3
    outputs: int = 10
    vocabulary: int = 0

    @property
    def takes(self) -> str:
        """images, sequences, tokens or arrays (of one shape): the form of its inputs."""
        forms = {"digits": "images", "tokens": "tokens", "sums": "arrays"}
        return forms.get(self.data, "sequences")

    @property
    def is_classifier(self) -> bool:
        return self.takes in ("images", "tokens")

    def sized(self, size: int | None) -> ZooEntry:
        """The same model for images of another side, or sequences of another length."""
        if size is None:
            return self
        if self.takes == "arrays":
            raise UsageError(f"{self.name} has one size; leave out --size {size}")
        if size < self.smallest:
            raise UsageError(f"{self.name} needs --size {self.smallest} or more; received {size}")
        sides = 2 if self.takes == "images" else 1
        return replace(self, shape=(size,) * sides + self.shape[sides:])


_LEMON, _AUDEE = ("LEMON",), ("AUDEE",)
_IMAGE, _SMALL = (64, 64, 3), (32, 32, 3)
# fmt: off
_TABLE = (
    ZooEntry("alexnet", _LEMON, "alexnet", "digits", _SMALL,
          17, 1_245_578, smallest=16, epochs=2),
    ZooEntry("lenet5-fashion", _LEMON, "lenet5_wide", "digits",
          (28, 28, 1), 11, 412_778),
    ZooEntry("lenet5", _LEMON + _AUDEE, "lenet5", "digits", (28, 28, 1),
          13, 61_706, smallest=16),
    ZooEntry("lstm-sine", _LEMON, "lstm_two", "sine", (50, 1),
          6, 70_901, outputs=1),
    ZooEntry("lstm-stock", _LEMON, "lstm_one", "walk", (20, 1),
          4, 26_321, outputs=1),
    ZooEntry("resnet50", _LEMON, "ResNet50", "digits", _IMAGE,
          177, 23_608_202, smallest=32, epochs=3, samples=_FEW),
    ZooEntry("mobilenet", _LEMON, "MobileNet", "digits", _IMAGE,
          91, 3_239_114, smallest=32, epochs=4, samples=_FEW),
    ZooEntry("inceptionv3", _LEMON, "InceptionV3", "digits",
          (75, 75, 3), 313, 21_823_274, smallest=75, epochs=3, samples=_FEW),
    ZooEntry("densenet121", _LEMON, "DenseNet121", "digits", _IMAGE,
          429, 7_047_754, smallest=32, epochs=3, samples=_FEW),
    ZooEntry("vgg16", _LEMON, "VGG16", "digits", _IMAGE,
          23, 39_929_674, smallest=32, epochs=3, rate=1e-4, samples=_FEW),
    ZooEntry("vgg19", _LEMON, "VGG19", "digits", _IMAGE,
          26, 45_239_370, smallest=32, epochs=3, rate=1e-4, samples=_FEW),
    ZooEntry("xception", _LEMON, "Xception", "digits", (71, 71, 3),
          134, 20_881_970, smallest=71, epochs=3, samples=_FEW),
    ZooEntry("resnet20", _AUDEE, "resnet20", "digits", _SMALL, 72, 274_442, epochs=3),
    ZooEntry("vgg16-cifar", _AUDEE, "vgg16_small", "digits", _SMALL,
          56, 14_999_370, smallest=32, epochs=3, samples=_FEW),
    ZooEntry("mobilenetv2-cifar", _AUDEE, "MobileNetV2", "digits", _SMALL,
          156, 2_270_794, smallest=32, samples=_FEW),
    ZooEntry("simple-rnn-imdb", _AUDEE, "simple_rnn", "tokens", (64,),
          5, 70_338, rate=3e-3, outputs=2, vocabulary=_VOCABULARY),
    ZooEntry("lstm-imdb", _AUDEE, "lstm", "tokens", (64,),
          5, 88_962, rate=3e-3, outputs=2, vocabulary=_VOCABULARY),
    ZooEntry("gru-imdb", _AUDEE, "gru", "tokens", (64,),
          5, 82_946, rate=3e-3, outputs=2, vocabulary=_VOCABULARY),
    ZooEntry("transformer", (), "transformer", "tokens", (32,),
          19, 84_258, rate=3e-3, outputs=2, vocabulary=_VOCABULARY),
    ZooEntry("residual-mlp", (), "residual_mlp", "digits", (8, 8, 1), 19, 20_842, smallest=4),
    ZooEntry("tiny-number", (), "tiny", "sums", (1,), 5, 6, outputs=3),
    ZooEntry("tiny-vector", (), "tiny", "sums", (6,), 5, 21, outputs=3),
    ZooEntry("tiny-sequence", (), "tiny", "sums", (7, 4), 5, 87, outputs=3),
    ZooEntry("tiny-image", (), "tiny", "sums", (5, 6, 4), 5, 363, outputs=3),
    ZooEntry("tiny-volume", (), "tiny", "sums", (4, 4, 4, 2), 5, 387, outputs=3),
)
# fmt: on
ENTRIES = {entry.name: entry for entry in _TABLE}
GROUPS = {
    "all": tuple(ENTRIES),
    "lemon": tuple(entry.name for entry in _TABLE if "LEMON" in entry.papers),
    "audee": tuple(entry.name for entry in _TABLE if "AUDEE" in entry.papers),
    "tiny": tuple(entry.name for entry in _TABLE if entry.family == "tiny"),
}


def find_entries(names: Iterable[str]) -> list[ZooEntry]:
    """The models of these names and groups, each once, in the order in which they are named."""
    wanted: dict[str, ZooEntry] = {}
    for name in names:
        for member in members_of(name):
            wanted[member] = find_entry(member)
    return list(wanted.values())


def members_of(name: str) -> tuple[str, ...]:
    """The models of a group; any other name stands for itself."""
    return GROUPS.get(name, (name,))


def find_entry(name: str) -> ZooEntry:
    """The model of that name, or an error that names the nearest one."""
    if name in ENTRIES:
        return ENTRIES[name]
    near = difflib.get_close_matches(name, [*ENTRIES, *GROUPS], n=1)
    hint = f"did you mean {near[0]!r}?" if near else "`outvote zoo list` lists them"
    raise UsageError(f"there is no model {name!r} in the zoo; {hint}")
