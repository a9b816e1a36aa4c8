"""The plain data: arrays on the wire, blobs on disk, models and their digests."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from outvote.core.arrays import Array, from_bytes, to_bytes
from outvote.core.blackbox import BlackBox, Position
from outvote.core.blobs import BlobStore
from outvote.core.errors import ProtocolError
from outvote.core.model import Input, Layer, Model, Ref, Weight
from outvote.core.wire import Channel, Closed

DTYPES = ["bool", "int8", "uint16", "int32", "int64", "float16", "float32", "float64"]
arrays = hnp.arrays(st.sampled_from(DTYPES), hnp.array_shapes(min_dims=0, max_dims=4, min_side=0))


@given(arrays)
def test_an_array_survives_the_wire_bit_for_bit(array: Array) -> None:
    back = from_bytes(array.dtype.name, array.shape, bytes(to_bytes(array)))
    assert back.dtype == array.dtype
    assert back.shape == array.shape
    assert back.tobytes() == array.tobytes()


@given(array=arrays)
def test_a_blob_is_found_under_the_digest_of_its_content(
    array: Array, tmp_path_factory: pytest.TempPathFactory
) -> None:
    store = BlobStore(tmp_path_factory.getbasetemp() / "blobs")
    digest = store.put(array)
    assert store.put(array.copy()) == digest
    assert store.get(digest).tobytes() == array.tobytes()
    assert store.put(array[None]) != digest


def test_a_blob_name_cannot_leave_the_store(tmp_path: Path) -> None:
    with pytest.raises(ProtocolError, match="64 hexadecimal digits"):
        BlobStore(tmp_path).get("../../etc/passwd")


@pytest.mark.parametrize("dtype", ["uint8", "float32", "bfloat16"])
@pytest.mark.parametrize("count", [0, 1, 16 << 10, 64 << 10])
def test_a_blob_that_is_read_and_one_that_is_mapped_are_the_same(
    tmp_path: Path, count: int, dtype: str
) -> None:
    """Small ones are read, large ones mapped; nobody may write into either."""
    import ml_dtypes

    array = (np.arange(count) % 200).astype(getattr(ml_dtypes, dtype, dtype)).reshape(1, -1)
    store = BlobStore(tmp_path)
    again = store.get(store.put(array))
    np.testing.assert_array_equal(again, array.astype(again.dtype))
    assert again.dtype == ("float32" if dtype == "bfloat16" else dtype)
    assert dtype == "bfloat16" or not count or not again.flags.writeable


def test_bfloat16_arrives_as_the_same_numbers() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = np.array([1.5, -3.0, 1e30], ml_dtypes.bfloat16)
    back = from_bytes("bfloat16", array.shape, to_bytes(array))
    np.testing.assert_array_equal(back, array.astype(np.float32))


def test_objects_do_not_travel() -> None:
    with pytest.raises(ProtocolError, match="dtype object cannot be sent"):
        to_bytes(np.array([{}], dtype=object))


@pytest.fixture
def ends() -> Iterator[tuple[Channel, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Channel(ours), theirs


def test_a_large_message_arrives_whole(ends: tuple[Channel, socket.socket]) -> None:
    channel, raw = ends
    big = np.arange(3_000_000, dtype=np.float32)
    sender = threading.Thread(target=lambda: Channel(raw).send({"op": "x"}, [big, big[:0]]))
    sender.start()
    message, received = channel.receive()
    sender.join()
    assert message == {"op": "x"}
    np.testing.assert_array_equal(received[0], big)
    assert received[1].shape == (0,)


def _frame(header: bytes, body: bytes = b"", magic: bytes = b"OVT1") -> bytes:
    return struct.pack("<4sIQ", magic, len(header), len(body)) + header + body


def _header(arrays: Any) -> bytes:
    return json.dumps({"message": {}, "arrays": arrays}).encode()


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        (b"hello, I am a print statement", "expected a message"),
        (struct.pack("<4sIQ", b"OVT1", 2**32 - 1, 0), "too large"),
        (struct.pack("<4sIQ", b"OVT1", 2, 2**60), "too large"),
        (_frame(b"{not json"), "could not be read"),
        (_frame(b"[" * 100_000), "could not be read"),
        (_frame(b"[]"), "could not be read"),
        (_frame(_header([{"dtype": "object", "shape": [1]}]), b"12345678"), "unknown array dtype"),
        (_frame(_header([{"dtype": "int8", "shape": [-1]}])), "list of sizes"),
        (_frame(_header([{"dtype": "int8", "shape": [2**62, 4]}])), "announced in the header"),
        (_frame(_header([{"shape": [1]}])), "wrong form"),
    ],
)
def test_what_is_not_a_message_is_refused(
    ends: tuple[Channel, socket.socket], frame: bytes, says: str
) -> None:
    channel, raw = ends
    raw.sendall(frame)
    with pytest.raises(ProtocolError, match=says):
        channel.receive()


def test_a_peer_that_hangs_up_is_noticed(ends: tuple[Channel, socket.socket]) -> None:
    channel, raw = ends
    raw.sendall(_frame(_header([]))[:10])
    raw.close()
    with pytest.raises(Closed):
        channel.receive()


def _model(bias: str = "a" * 64) -> Model:
    ref = {"$ref": ["x", 0]}
    return Model(
        "m",
        (Input("x", (None, 4), "float32"),),
        (
            Layer(
                "one",
                "Dense",
                {"units": 2, "name": "one"},
                [ref],
                weights=(Weight("bias", bias, (2,)),),
            ),
            Layer("two", "ReLU", {"name": "two"}, [{"$ref": ["one", 0]}]),
            Layer("side", "ReLU", {"name": "side"}, [ref]),
        ),
        (Ref("two"), Ref("side")),
        "keras",
    )


def test_a_model_survives_json() -> None:
    model = _model()
    assert Model.from_json(json.loads(json.dumps(model.to_json()))).digests() == model.digests()


def test_a_change_of_weights_changes_the_digests_downstream_and_no_other() -> None:
    before, after = _model().digests(), _model("b" * 64).digests()
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"one", "two"}


def test_names_of_layers_do_not_enter_digests() -> None:
    model = _model()
    renamed = replace(
        model,
        layers=(
            *model.layers[:2],
            replace(model.layers[2], name="other", config={"name": "other"}),
        ),
        outputs=(Ref("two"), Ref("other")),
    )
    assert renamed.digests()["other"] == model.digests()["side"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"outputs": ()}, "no output"),
        ({"outputs": (Ref("nowhere"),)}, "no output"),
        ({"layers": (Layer("a", "ReLU", {}, [{"$ref": ["later", 0]}]),)}, "comes later or never"),
        ({"layers": (Layer("x", "ReLU", {}, []),)}, "named twice"),
    ],
)
def test_a_graph_that_cannot_be_computed_is_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(ProtocolError, match=says):
        replace(_model(), **change)


def test_last_use_tells_when_a_tensor_may_be_dropped() -> None:
    assert _model().last_use() == {"x": 2, "one": 1, "two": 3, "side": 3}


def test_the_black_box_shows_the_last_position(tmp_path: Path) -> None:
    writer, reader = BlackBox(tmp_path / "box"), BlackBox(tmp_path / "box")
    writer.note(3, 10, "conv_ä")
    assert reader.read().layer == "conv_ä"
    writer.note(4, 10, "x" * 5000)
    assert (reader.read().done, len(reader.read().layer or "")) == (4, 998)
    writer.live()
    assert reader.read() == Position(4, 10, "x" * 998, signs=1)
    writer.note(5, 10, "relu")
    writer.live()
    assert reader.read() == Position(5, 10, "relu", signs=2)
