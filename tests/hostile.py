"""Hostile model and data files, made without a framework: what outvote must refuse or survive.

`models(folder, canary)` writes them all. Each says what has to become of it: `refused`, with one
sentence that holds the words in `says`, or `checked`. Code that one of them carries would create
the canary.
"""

from __future__ import annotations

import base64
import io
import json
import marshal
import pickle
import struct
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

Json = Any


@dataclass(frozen=True)
class Hostile:
    """One file, and what must become of it."""

    title: str
    path: Path
    refused: bool
    says: str = ""
    weights: Path | None = None


# Text that is something else elsewhere: Python, a shell, a terminal, a template, Markdown, a path.
TEXTS = {
    "code": '"] if __import__("pathlib").Path("CANARY").touch() else np.zeros(1)["',
    "a docstring's end": '"""\n__import__("pathlib").Path("CANARY").touch()\n"""',
    "single quotes": "'''; __import__('pathlib').Path('CANARY').touch(); '''",
    "a comment": "x\n# \nimport os",
    "a bad escape": "\\N{no such}\\x\\u12",
    "a backslash": "\\",
    "a mark of our template": "@BODY@@EXPECTED@@TITLE@",
    "jinja": "{{ ''.__class__.__mro__ }}{% raw %}",
    "a format": "{0.__class__}{x!r:>{width}}%s%n$(touch CANARY)`touch CANARY`",
    "an f-string": "{__import__('pathlib').Path('CANARY').touch()}",
    "the end of a script": "</script><script>document.title='hit'</script>",
    "an image": "<img src=x onerror=\"document.title='hit'\">",
    "an entity": "&lt;b&gt;&#0;&nbsp;",
    "a comment of HTML": "--><!--<![CDATA[",
    "the end of CDATA": "]]>",
    "a table": "| a | b |\n|---|---|",
    "a fence": "```\n# title\n```python",
    "a link": "[here](javascript:alert(1)) ![](http://localhost:9/x.png)",
    "a heading": "# Consistent\n",
    "a colour": "\x1b[31mred\x1b[0m",
    "a title": "\x1b]0;owned\x07",
    "a cleared screen": "\x1b[2J\x1b[H",
    "a carriage return": "layer\rCONSISTENT",
    "backspaces": "bug\b\b\bok",
    "a null": "a\x00b",
    "a bell": "\x07",
    "delete and C1": "\x7f\x9b31m",
    "right to left": "\u202egnp.exe\u202c",
    "no width": "a\u200bb\ufeff",
    "a line separator": "a\u2028b\u2029c\x85d",
    "a tag": "\U000e0041",
    "half a character": "\ud800",
    "the other half": "x\udc00y",
    "emoji": "👩‍👩‍👧‍👦",
    "combined": "e" + "\u0301" * 50,
    "long": "n" * 3000,
    "empty": "",
    "a blank": " ",
    "dots": "..",
    "a parent": "..\\..\\etc\\passwd",
    "a drive": "C:\\x",
    "a percent": "%2e%2e%2f",
    "an option": "--out=/tmp",
    "JSON": '{"$ref": ["x", 0]}',
    "a reference": "$ref",
    "rich markup": "[bold red]x[/bold red][link=http://localhost:9]y[/link]",
    "an error of ours": "outvote: everything is fine",
}
# Names that are something in Python, in NumPy's savez or in our scripts.
WORDS = (
    *("file", "class", "np", "keras", "call", "lambda", "None", "x", "x0", "y", "allow_pickle"),
    *("my-input", "1st", "a b", "self", "__class__", "import", "name", "mask", "training", "args"),
)
TYPES = (
    *("string", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2", "int4", "nonsense"),
    *("object", "datetime64", "void", ""),
)
WRONG: tuple[Json, ...] = (None, [], {}, "text", 7, -1, 1.5, True, [[]], {"class_name": 7})


def keras_object(kind: str, config: Json, module: str = "keras.layers", **more: Json) -> Json:
    return {"module": module, "class_name": kind, "config": config, "registered_name": None, **more}


def sequential(*layers: Json, name: str = "sequential", shape: Json = (None, 4)) -> Json:
    """A Sequential model of these layers; by default of one Dense layer."""
    inner = [input_layer(shape=shape), *(layers or (dense(),))]
    return keras_object("Sequential", {"name": name, "trainable": True, "layers": inner}, "keras")


def input_layer(name: str = "given", shape: Json = (None, 4), dtype: Json = "float32") -> Json:
    config = {"batch_shape": shape, "dtype": dtype, "sparse": False, "name": name}
    return keras_object("InputLayer", config)


def dense(name: str = "dense", units: Json = 3, **more: Json) -> Json:
    config = {"name": name, "units": units, "activation": "linear", "use_bias": True, **more}
    return keras_object("Dense", config)


def named(layer: str, given: str = "given", model: str = "sequential") -> Json:
    """The plain model under other names."""
    config = sequential(dense(layer), name=model)
    config["config"]["layers"][0]["config"]["name"] = given
    return config


def hdf5(write: Callable[[h5py.File], object]) -> bytes:
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        write(file)
    return buffer.getvalue()


def plain_weights(file: h5py.File) -> None:
    """The weights of one Dense layer, from 4 to 3."""
    group = file.create_group("layers/dense/vars")
    group["0"] = np.linspace(-1, 1, 12, dtype="float32").reshape(4, 3)
    group["1"] = np.zeros(3, "float32")
    file.create_group("vars")


def archive(
    config: Json, weights: Callable[[h5py.File], object] = plain_weights, **more: bytes
) -> bytes:
    """A `.keras` file as Keras writes it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("metadata.json", json.dumps({"keras_version": "3.15.1"}))
        file.writestr("config.json", config if isinstance(config, str) else json.dumps(config))
        file.writestr("model.weights.h5", hdf5(weights))
        for name, content in more.items():
            file.writestr(name, content)
    return buffer.getvalue()


def models(folder: Path, canary: Path) -> Iterator[Hostile]:
    """Every hostile model file, written into the folder, one after the other."""
    families = (
        *(names, code, wrong_types, shapes, outputs, archives, containers, architectures),
        legacy,
    )
    for family in families:
        for number, (title, suffix, content, refused, says) in enumerate(family(canary)):
            path = folder / f"{family.__name__}-{number}{suffix}"
            path.write_bytes(content)
            weights = folder / "plain.weights.h5" if suffix == ".json" else None
            if weights is not None and not weights.exists():
                weights.write_bytes(hdf5(plain_weights))
            yield Hostile(f"{family.__name__}: {title}", path, refused, says, weights)
    yield from paths(folder)


Family = Iterator[tuple[str, str, bytes, bool, str]]


def names(canary: Path) -> Family:
    for what, text in TEXTS.items():
        text = text.replace("CANARY", str(canary))
        half = any(0xD800 <= ord(sign) < 0xE000 for sign in text)
        refused = half or "/" in text  # Keras takes no slash
        says = "no encoding can write" if half else ""
        for place, config in (("model", named(text, "x", text)), ("input", named("d", text))):
            yield f"{place}: {what}", ".keras", archive(config), refused, says
    for word in WORDS:
        for place, config in (("model", named(word, "x_", word)), ("input", named("d", word))):
            yield f"{place}: {word}", ".keras", archive(config), False, ""


class _Touch:
    """Unpickled, it creates a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self._path,)


def code(canary: Path) -> Family:
    """Configurations that carry programs, name functions to call, or files to read."""
    touching = compile(f"__import__('pathlib').Path({str(canary)!r}).touch()", "x", "eval")
    program = base64.b64encode(marshal.dumps(touching)).decode()
    pickled = base64.b64encode(pickle.dumps(_Touch(canary))).decode()
    secret = canary.with_name("secret.txt")
    secret.write_text("secret\n")
    lambda_ = {"class_name": "__lambda__", "config": {"value": [program, None, None]}}
    system = {"module": "os", "class_name": "function", "config": "system", "registered_name": None}

    def function(module: str, name: str) -> Json:
        return {"module": module, "class_name": "function", "config": name, "registered_name": name}

    carriers = {
        "Lambda": {"name": "l", "function": lambda_, "arguments": {}},
        "TorchModuleWrapper": {"name": "l", "module": pickled},
        "TFSMLayer": {"name": "l", "filepath": str(canary.parent), "call_endpoint": "serve"},
        "JaxLayer": {"name": "l", "call_fn": lambda_, "init_fn": lambda_},
        "FlaxLayer": {"name": "l", "module": pickled, "method": "eval"},
    }
    for kind, config in carriers.items():
        layer = keras_object(kind, config)
        yield kind, ".keras", archive(sequential(layer)), True, "--allow-code"
        inside = keras_object("TimeDistributed", {"name": "t", "layer": layer})
        yield f"{kind} in a wrapper", ".keras", archive(sequential(inside)), True, "--allow-code"
        model = sequential(layer, name="inner")
        yield f"{kind} in a model", ".keras", archive(sequential(model)), True, "--allow-code"
        compiled = {**sequential(name="inner"), "compile_config": {"loss": layer}}
        text = archive(sequential(compiled))
        yield f"{kind} as a loss of a model inside", ".keras", text, True, "--allow-code"
        old = {"class_name": kind, "config": config}
        yield f"{kind}, the old way", ".keras", archive(sequential(old)), True, "--allow-code"
        own = {**sequential(), "compile_config": {"loss": layer, "optimizer": system}}
        yield f"{kind} as the model's loss, which is not made", ".keras", archive(own), False, ""
    for module, name in (
        *(("os", "system"), ("subprocess", "Popen"), ("builtins", "eval"), ("pathlib", "Path")),
        *(("keras.utils", "get_file"), ("keras.src.utils.file_utils", "get_file")),
        *(("keras.config", "enable_unsafe_deserialization"), ("keras", "name_scope")),
        *(("keras.saving", "load_model"), ("keras.src.saving.saving_lib", "load_model")),
        *(("keras.src.utils.python_utils", "func_load"), ("keras.src.layers.os", "system")),
        *(("outvote.cli", "main"), ("", "eval"), (".os", "system"), ("keras.layers/../os", "x")),
    ):
        as_function = dense(activation=function(module, name))
        yield (
            f"{module}.{name} as an activation",
            ".keras",
            archive(sequential(as_function)),
            True,
            "",
        )
        as_class = keras_object(name, {"name": "x", "args": ["touch", str(canary)]}, module)
        yield f"{module}.{name} as a layer", ".keras", archive(sequential(as_class)), True, ""
    registered = keras_object("Dense", dense()["config"], registered_name="os>system")
    yield "a registered name of the system", ".keras", archive(sequential(registered)), True, ""
    for kind in ("StringLookup", "IntegerLookup", "TextVectorization"):
        for file in (str(secret), "/etc/passwd", "http://localhost:9/x"):
            layer = keras_object(kind, {"name": "v", "vocabulary": file})
            yield f"{kind} of {file}", ".keras", archive(sequential(layer)), True, "names a file"
    initial = keras_object("Constant", {"value": lambda_}, "keras.initializers")
    starts = archive(sequential(dense(kernel_initializer=initial)))
    yield "a program as an initialiser", ".keras", starts, True, "--allow-code"
    spec = {**system, "class_name": "__typespec__", "spec_name": "Popen", "config": [1]}
    yield "a type", ".keras", archive(sequential(dense(dtype=spec))), True, "--allow-code"


def wrong_types(canary: Path) -> Family:
    """JSON of other types than those that anyone expects, in every place."""
    for value in WRONG:
        told = json.dumps(value)
        yield f"{told} for a model", ".keras", archive(json.dumps(value)), True, ""
        for place in ("config", "class_name", "module"):
            config = {**sequential(), place: value}
            yield f"{told} for the model's {place}", ".keras", archive(config), True, ""
        for place in ("units", "activation", "name", "dtype"):
            if (place, value) in (("units", 7), ("units", True), ("activation", None)):
                continue  # sizes that are no lie are another matter
            layer = dense()
            layer["config"][place] = value
            harmless = (place, value) in (("dtype", None), ("name", None), ("name", "text"))
            yield f"{told} for {place}", ".keras", archive(sequential(layer)), not harmless, ""
        config = sequential()
        config["config"]["layers"] = value
        yield f"{told} for the layers", ".keras", archive(config), True, ""
    for number in ("NaN", "Infinity", "-Infinity", "1e999", "-0", "1" * 5000):
        text = json.dumps(sequential()).replace('"units": 3', f'"units": {number}')
        yield f"{number[:9]} units", ".keras", archive(text), True, ""


def shapes(canary: Path) -> Family:
    huge: tuple[Json, ...] = ((None, 10**7, 10**7), (None, 2**31, 4), (None, 2**63), (None, 10**30))
    for shape in huge:
        model = sequential(keras_object("Flatten", {"name": "f"}), shape=shape)
        yield f"an input of {shape}", ".keras", archive(model, lambda file: None), True, ""
    model = sequential(keras_object("ReLU", {"name": "r"}), shape=(None, 5 << 20))
    yield "an input that fits alone", ".keras", archive(model, lambda file: None), True, "--count"
    for units in (10**9, 10**12, 2**63, 10**30):
        text = archive(sequential(dense(units=units)))
        yield f"{units} units in a file of none", ".keras", text, True, ""
    odd: tuple[Json, ...] = ((None,), (), (None, -4), (None, 0), ("a", 4), (4,), (None, 4.5))
    for shape in (*odd, (None, None)):
        yield f"an input of {shape}", ".keras", archive(sequential(shape=shape)), True, ""
    for dtype in TYPES:
        model = sequential(keras_object("Flatten", {"name": "f"}))
        model["config"]["layers"][0] = input_layer(dtype=dtype)
        yield (
            f"an input of {dtype or 'no type'}",
            ".keras",
            archive(model, lambda f: None),
            True,
            "",
        )
    for depth in (60, 2000):
        layer = dense()
        for _ in range(depth):
            layer = keras_object("TimeDistributed", {"name": "t", "layer": layer})
        yield f"{depth} wrappers", ".keras", archive(nested(layer)), True, ""
    deep = json.dumps(sequential()).replace('"linear"', "[" * 100_000 + "]" * 100_000)
    yield "lists in lists in lists", ".keras", archive(deep), True, ""


def outputs(canary: Path) -> Family:
    """Models that give, or compute inside, what no array of ours can hold."""
    for dtype in TYPES:
        for end in (True, False):
            cast = _call(keras_object("Cast", {"name": "c", "dtype": dtype}, "keras.src.ops.core"))
            layers = [_call(input_layer()), cast]
            cast["inbound_nodes"] = [_read("given")]
            if not end:
                back = {"name": "back", "dtype": "float32"}
                layers.append(_call(keras_object("Cast", back, "keras.src.ops.core")))
                layers[-1]["inbound_nodes"] = [_read("c", dtype)]
            ends = {"input_layers": ["given", 0, 0], "output_layers": [layers[-1]["name"], 0, 0]}
            config = {"name": "f", "trainable": True, "layers": layers, **ends}
            model = keras_object("Functional", config, "keras.src.models.functional")
            where = "given" if end else "inside"
            known = dtype.startswith(("complex", "float8"))
            says = "could" if known and end else ""
            refused = end or not known
            yield f"{dtype or 'no type'} {where}", ".keras", archive(model), refused, says


def _call(layer: Json) -> Json:
    return {**layer, "name": layer["config"]["name"], "inbound_nodes": []}


def _read(name: str, dtype: str = "float32") -> Json:
    config = {"shape": [None, 4], "dtype": dtype, "keras_history": [name, 0, 0]}
    return {"args": [{"class_name": "__keras_tensor__", "config": config}], "kwargs": {}}


def nested(layer: Json) -> str:
    """As text: Python's own writer gives up on deep structures."""
    parts: list[str] = []
    tail: list[str] = []
    while layer["class_name"] == "TimeDistributed":
        outer = json.dumps({**layer, "config": {"name": "t", "layer": "INNER"}})
        head, end = outer.split('"INNER"')
        parts.append(head)
        tail.append(end)
        layer = layer["config"]["layer"]
    text = "".join(parts) + json.dumps(layer) + "".join(reversed(tail))
    return json.dumps(sequential("LAYER")).replace('"LAYER"', text)


def archives(canary: Path) -> Family:
    """Archives that are broken, or would unpack to more than they are."""
    whole = archive(sequential())
    for part in (0, 1, 21, 22, 100, len(whole) // 2, len(whole) - 1):
        yield f"{part} bytes", ".keras", whole[:part], True, "whole"
    for place in range(30, len(whole), len(whole) // 12):
        flipped = bytearray(whole)
        flipped[place] ^= 0xFF
        yield f"byte {place} turned", ".keras", bytes(flipped), True, ""
    yield "something in front", ".keras", b"#!/bin/sh\n" + whole, False, ""
    yield "not an archive", ".keras", b"hello", True, "whole"
    yield "HDF5 under a wrong name", ".keras", hdf5(plain_weights), True, "whole"
    directory = whole.rfind(b"PK\x05\x06")
    for size, says in ((0xFFFFFFF0, "whole"), (0, "config.json")):
        lying = whole[: directory + 12] + struct.pack("<L", size) + whole[directory + 16 :]
        yield f"a table of {size} bytes", ".keras", lying, True, says
    yield "encrypted", ".keras", _flagged(whole, 1), True, "encrypted"
    for method in (1, 6, 9, 12, 14, 93, 99):
        yield f"compression {method}", ".keras", _method(whole, method), True, f"method {method}"
    for method, name in ((zipfile.ZIP_BZIP2, "bzip2"), (zipfile.ZIP_LZMA, "LZMA")):
        yield name, ".keras", _with(whole, {}, method), True, "method"
    for member in ("../evil", "/etc/evil", "a/../../b", "C:\\evil", "..\\evil", "assets/../../x"):
        text = _with(whole, {member: b"x"})
        yield f"a member {member}", ".keras", text, True, "points outside"
    zeros = _with(whole, {"assets/zeros": bytes(50_000_000)}, zipfile.ZIP_DEFLATED)
    yield "a bomb", ".keras", zeros, True, "would unpack"
    inside = _with(whole, {"model.weights.h5": bytes(80_000_000)}, zipfile.ZIP_DEFLATED)
    yield "a bomb for weights", ".keras", inside, True, "would unpack"
    yield "an overlapping bomb", ".keras", _overlapping(), True, ""
    yield "a lie about sizes", ".keras", _sizes(whole, 1 << 40), True, "would unpack"
    yield "a long configuration", ".keras", archive("[" + "0," * (9 << 20) + "0]"), True, "takes"
    twice = io.BytesIO(whole)
    with zipfile.ZipFile(twice, "a") as file, _no_warning():
        file.writestr("config.json", json.dumps(sequential(keras_object("Lambda", {}))))
    yield "two configurations", ".keras", twice.getvalue(), True, "2 members"
    for left in ("config.json", "model.weights.h5"):
        yield f"no {left}", ".keras", _with(whole, {}, without=left), True, left
    many = {f"assets/{i}": b"" for i in range(30_000)}
    yield "a crowd", ".keras", _with(whole, many), True, "table of contents"
    yield "metadata of another kind", ".keras", _with(whole, {"metadata.json": b"[]"}), False, ""
    yield "an asset", ".keras", _with(whole, {"assets/layers/dense/x.txt": b"x"}), False, ""


def containers(canary: Path) -> Family:
    """HDF5 that points elsewhere, goes in circles, or announces what it has not."""
    other = canary.with_name("other.h5")
    with h5py.File(other, "w") as file:
        plain_weights(file)
    raw = canary.with_name("raw.bin")
    np.linspace(0, 1, 12, dtype="float32").tofile(raw)

    def link(place: str, to: Any) -> Callable[[h5py.File], None]:
        def write(file: h5py.File) -> None:
            plain_weights(file)
            parent, _, name = place.rpartition("/")
            group = file[parent] if parent else file
            if name in group:
                del group[name]
            group[name] = to

        return write

    elsewhere = h5py.ExternalLink(str(other), "/layers/dense")
    softly = h5py.SoftLink("/layers/dense/vars")

    def circle(file: h5py.File) -> None:
        plain_weights(file)
        file["layers/dense/again"] = file["layers"]

    def foreign(file: h5py.File) -> None:
        plain_weights(file)
        del file["layers/dense/vars/0"]
        file["layers/dense/vars"].create_dataset(
            "0", (4, 3), "float32", external=[(str(raw), 0, 48)]
        )

    def virtual(file: h5py.File) -> None:
        plain_weights(file)
        del file["layers/dense/vars/0"]
        layout = h5py.VirtualLayout((4, 3), "float32")
        layout[:] = h5py.VirtualSource(str(other), "layers/dense/vars/0", (4, 3))
        file["layers/dense/vars"].create_virtual_dataset("0", layout)

    def bomb(file: h5py.File) -> None:
        plain_weights(file)
        del file["layers/dense/vars/0"]
        shape = (1 << 20, 1 << 20)
        file["layers/dense/vars"].create_dataset(
            "0", shape, "float32", chunks=(64, 64), compression="gzip"
        )

    def of(array: Any) -> Callable[[h5py.File], None]:
        def write(file: h5py.File) -> None:
            plain_weights(file)
            del file["layers/dense/vars/0"]
            file["layers/dense/vars/0"] = array

        return write

    def deep(file: h5py.File) -> None:
        plain_weights(file)
        file.create_group("/".join(["g"] * 200))

    cases: dict[str, tuple[Callable[[h5py.File], object], bool, str]] = {
        "a link to another file": (link("layers/dense", elsewhere), True, "is a link"),
        "a dataset of another file": (link("layers/dense/vars/0", elsewhere), True, "is a link"),
        "a link to the system": (link("x", h5py.ExternalLink("/etc/passwd", "/")), True, "a link"),
        "a soft link": (link("layers/dense/vars", softly), True, "is a link"),
        "a soft link to nothing": (link("x", h5py.SoftLink("/nowhere")), True, "is a link"),
        "a circle": (circle, False, ""),
        "numbers in another file": (foreign, True, "in other files"),
        "a virtual dataset": (virtual, True, "in other files"),
        "a bomb": (bomb, True, "announces"),
        "deep groups": (deep, True, "deep"),
        "words for weights": (of("text"), True, ""),
        "other shapes": (of(np.zeros((3, 4), "float32")), True, ""),
        "complex weights": (of(np.zeros((4, 3), "complex64")), False, ""),
        "NaN for weights": (of(np.full((4, 3), np.nan, "float32")), False, ""),
        "infinite weights": (of(np.full((4, 3), np.inf, "float64")), False, ""),
        "no weights": (lambda file: None, True, ""),
    }
    for title, (write, refused, says) in cases.items():
        yield title, ".keras", archive(sequential(), write), refused, says
    cut = hdf5(plain_weights)
    for size in (0, 8, 100, len(cut) // 2):
        text = _with(archive(sequential()), {"model.weights.h5": cut[:size]})
        yield f"{size} bytes of HDF5", ".keras", text, True, ""


def architectures(canary: Path) -> Family:
    """Architectures in JSON; the weights beside them are plain."""
    plain = sequential()
    half = json.dumps(named("\ud800")).encode()
    cases: dict[str, tuple[bytes, bool, str]] = {
        "a plain one": (json.dumps(plain).encode(), False, ""),
        "nothing": (b"", True, "JSON"),
        "no JSON": (b"{'a': 1}", True, "JSON"),
        "no text": (b"\xff\xfe\x00", True, "JSON"),
        "a mark in front": (b"\xef\xbb\xbf" + json.dumps(plain).encode(), True, "JSON"),
        "a list": (b"[]", True, "no class_name"),
        "a number": (b"1", True, "no class_name"),
        "half a character": (half, True, "no encoding"),
        "deep lists": (b"[" * 200_000, True, "JSON"),
        "deep objects": (b'{"class_name":' * 50_000, True, "JSON"),
        "a long one": (b'{"class_name": "' + b"x" * (17 << 20) + b'"}', True, "takes"),
        "a long number": (b'{"class_name": ' + b"1" * 6000 + b"}", True, ""),
        "only a class": (b'{"class_name": "Sequential"}', True, ""),
        "a class of the system": (b'{"class_name": "Popen", "config": {}}', True, ""),
        "the same key twice": (json.dumps(plain).encode()[:-1] + b', "class_name": 7}', True, ""),
    }
    for title, (content, refused, says) in cases.items():
        yield title, ".json", content, refused, says


def legacy(canary: Path) -> Family:
    """HDF5 models of the old form."""
    plain = {"name": "d", "units": 3, "activation": "linear"}
    layer: Json = {"class_name": "Dense", "config": plain}
    first = {"class_name": "InputLayer", "config": {"batch_input_shape": [None, 4], "name": "i"}}

    def model(*layers: Json) -> Json:
        return {"class_name": "Sequential", "config": {"name": "s", "layers": [first, *layers]}}

    def old(config: Json, change: Callable[[h5py.File], object] = lambda file: None) -> bytes:
        def write(file: h5py.File) -> None:
            file.attrs["model_config"] = config if isinstance(config, str) else json.dumps(config)
            file.attrs["keras_version"] = "2.2.4"
            group = file.create_group("model_weights")
            group.attrs["layer_names"] = [b"d"]
            inner = group.create_group("d")
            inner.attrs["weight_names"] = [b"d/kernel:0", b"d/bias:0"]
            inner["d/kernel:0"] = np.linspace(0, 1, 12, dtype="float32").reshape(4, 3)
            inner["d/bias:0"] = np.zeros(3, "float32")
            change(file)

        return hdf5(write)

    other = canary.with_name("old.h5")
    other.write_bytes(old(model(layer)))

    def moved(file: h5py.File) -> None:
        del file["model_weights"]
        file["model_weights"] = h5py.ExternalLink(str(other), "/model_weights")

    def softly(file: h5py.File) -> None:
        file["copy"] = file["model_weights"]
        del file["model_weights"]
        file["model_weights"] = h5py.SoftLink("/copy")

    def gone(file: h5py.File) -> None:
        del file["model_weights"]

    program = compile(f"__import__('pathlib').Path({str(canary)!r}).touch()", "x", "eval")
    text = base64.b64encode(marshal.dumps(program)).decode()
    marshalled = {"name": "l", "function": [text, None, None], "function_type": "lambda"}
    cases: dict[str, tuple[bytes, bool, str]] = {
        "a plain one": (old(model(layer)), False, ""),
        "an external link": (old(model(layer), moved), True, "is a link"),
        "a soft link": (old(model(layer), softly), True, "is a link"),
        "no weights": (old(model(layer), gone), True, "no weights"),
        "marshalled code": (
            old(model({"class_name": "Lambda", "config": marshalled})),
            True,
            "--allow-code",
        ),
        "no JSON": (old("{'a'"), True, ""),
        "a list": (old([]), True, ""),
        "deep lists": (old("[" * 100_000), True, ""),
        "an unknown class": (old(model({"class_name": "Popen", "config": {}})), True, ""),
        "no architecture": (hdf5(plain_weights), True, "no architecture"),
        "not HDF5": (b"hello", True, "not an HDF5 file"),
        "only the mark": (b"\x89HDF\r\n\x1a\n", True, ""),
        "cut": (old(model(layer))[:3000], True, ""),
        "half a character": (
            old(json.dumps(model({**layer, "config": {**layer["config"], "name": "\ud800"}}))),
            True,
            "no encoding",
        ),
        "wrong types": (old(model({"class_name": ["Dense"], "config": None})), True, ""),
    }
    for title, (content, refused, says) in cases.items():
        yield title, ".h5", content, refused, says


def paths(folder: Path) -> Iterator[Hostile]:
    """Files whose own names are hostile; what is inside is plain."""
    content = archive(sequential())
    for number, text in enumerate(
        (
            *("a\nb", "'\"`$(touch x)", "<script>alert(1)</script>".replace("/", ""), "\x1b[31m"),
            *("@TITLE@", "{{x}}", "x" * 200, "| a |", "\u202ex", "\udcff\udcfe"),
        )
    ):  # fmt: skip
        path = folder / f"path-{number}-{text}.keras"
        path.write_bytes(content)
        yield Hostile(f"paths: {text!r}", path, refused=False)
    for suffix in (".KERAS", ".keras.exe", "", ".pkl", ".pt", ".py"):
        path = folder / f"suffix{suffix}"
        path.write_bytes(content)
        yield Hostile(f"paths: the ending {suffix!r}", path, True, "not a model file by its ending")
    yield Hostile("paths: a folder", folder, True, "not a file")
    yield Hostile("paths: nothing", folder / "none.keras", True, "does not exist")
    loop = folder / "loop.keras"
    loop.symlink_to(loop)
    yield Hostile("paths: a link to itself", loop, True)


def data_files(folder: Path) -> Iterator[Hostile]:
    """Hostile `.npz` files for a model that takes (any, 4)."""
    good = np.zeros((2, 4), "float32")
    buffer = io.BytesIO()
    np.savez(buffer, x=good)
    whole = buffer.getvalue()

    def npy(header: str, body: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
        text = header.encode("latin1").ljust(117) + b"\n"
        return b"\x93NUMPY" + version + struct.pack("<H", len(text)) + text + body

    def told(descr: str, shape: str) -> str:
        return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"

    def of(member: bytes, name: str = "x.npy") -> bytes:
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w") as file:
            file.writestr(name, member)
        return made.getvalue()

    cases: dict[str, tuple[bytes, str]] = {
        "nothing": (b"", "whole"),
        "text": (b"hello", "whole"),
        "cut": (whole[: len(whole) // 2], "whole"),
        "turned": (whole[:200] + bytes([whole[200] ^ 255]) + whole[201:], ""),
        "encrypted": (_flagged(whole, 1), "encrypted"),
        "compression 99": (_method(whole, 99), "method 99"),
        "a bomb": (_with(whole, {"z.npy": bytes(60_000_000)}, zipfile.ZIP_DEFLATED), "unpack"),
        "a shape that is a lie": (of(npy(told("'<f4'", "(99999, 99999)"), bytes(32))), "announces"),
        "a negative shape": (of(npy(told("'<f4'", "(-1, 4)"), bytes(32))), ""),
        "a long shape": (of(npy(told("'<f4'", "(10" + "0" * 60 + ",)"))), ""),
        "objects": (of(npy(told("'|O'", "(1,)"), pickle.dumps(0))), "objects"),
        "code for a header": (of(npy("__import__('os').system('x')")), ""),
        "no header": (of(b"\x93NUMPY\x01\x00"), ""),
        "a later format": (of(npy(told("'<f4'", "(2, 4)"), bytes(32), b"\x09\x00")), ""),
        "another member": (of(b"hello", "x.txt"), ""),
        "a single array": (npy(told("'<f4'", "(2, 4)"), bytes(32)), "single array"),
        "text for numbers": (of(npy(told("'<U3'", "(2, 4)"), bytes(96))), "numbers"),
        "complex numbers": (of(npy(told("'<c8'", "(2, 4)"), bytes(64))), "numbers"),
        "records": (of(npy(told("[('a', '<f4'), ('b', '<f4')]", "(2, 4)"), bytes(64))), "numbers"),
        "times": (of(npy(told("'<M8[s]'", "(2, 4)"), bytes(64))), "numbers"),
        "a name like a path": (of(npy(told("'<f4'", "(2, 4)"), bytes(32)), "../x.npy"), "outside"),
        "another name": (of(npy(told("'<f4'", "(2, 4)"), bytes(32)), "\x1b[1mz.npy"), "must hold"),
    }  # fmt: skip
    for number, (title, (content, says)) in enumerate(cases.items()):
        path = folder / f"data-{number}.npz"
        path.write_bytes(content)
        yield Hostile(title, path, True, says)


# Archives changed by hand.


def _with(
    whole: bytes,
    members: dict[str, bytes],
    method: int = zipfile.ZIP_STORED,
    without: str = "",
) -> bytes:
    changed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(whole)) as old, zipfile.ZipFile(changed, "w", method) as new:
        kept = {name: old.read(name) for name in old.namelist() if name != without}
        for name, content in {**kept, **members}.items():
            new.writestr(name, content)
    return changed.getvalue()


def _entries(whole: bytes) -> Iterator[int]:
    """Where the entries of the table of contents begin."""
    place = whole.find(b"PK\x01\x02")
    while place >= 0:
        yield place
        place = whole.find(b"PK\x01\x02", place + 4)


def _changed(whole: bytes, offset: int, format_: str, value: int) -> bytes:
    """Every entry of the table of contents with one field changed."""
    data = bytearray(whole)
    for place in _entries(whole):
        struct.pack_into(format_, data, place + offset, value)
    return bytes(data)


def _flagged(whole: bytes, flags: int) -> bytes:
    return _changed(whole, 8, "<H", flags)


def _method(whole: bytes, method: int) -> bytes:
    return _changed(whole, 10, "<H", method)


def _sizes(whole: bytes, size: int) -> bytes:
    return _changed(whole, 24, "<L", min(size, 0xFFFFFFF0))


def _overlapping() -> bytes:
    """Many entries of one member: the table counts it a thousand times."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("config.json", json.dumps(sequential()))
        file.writestr("model.weights.h5", hdf5(plain_weights))
        file.writestr("assets/kernel", np.random.default_rng(0).bytes(1 << 20))
    whole = made.getvalue()
    *_, last = _entries(whole)
    end = whole.rfind(b"PK\x05\x06")
    entry = whole[last:end]
    copies = b"".join(
        entry.replace(b"assets/kernel", f"assets/k{i:05d}".encode()) for i in range(2000)
    )
    table = whole[:last] + copies
    start = table.find(b"PK\x01\x02")
    tail = bytearray(whole[end:])
    struct.pack_into("<HHLL", tail, 8, 2002, 2002, len(table) - start, start)
    return table + bytes(tail)


class _no_warning:  # noqa: N801 - reads as the statement that it is
    """Python warns of a name that is written twice."""

    def __enter__(self) -> None:
        import warnings

        self._caught = warnings.catch_warnings()
        self._caught.__enter__()
        warnings.simplefilter("ignore")

    def __exit__(self, *error: object) -> None:
        self._caught.__exit__(*error)  # type: ignore[arg-type]
