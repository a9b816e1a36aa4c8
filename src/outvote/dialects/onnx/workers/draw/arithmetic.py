"""Numbers with numbers: division, powers, matrices, types, choices, losses."""

from __future__ import annotations

from outvote.dialects.onnx.workers.draw.node import (
    NodeDraw,
    Table,
    code,
    codes,
    fit_together,
)
from outvote.dialects.onnx.workers.draw.numbers import Range
from outvote.dialects.onnx.workers.draw.sketch import NewNode, Unfit, Value

_EXPONENTS = (2, 3, 1, 0, 0.5, -1, -2)
_WIDTHS = {"8": ("int8", "uint8"), "16": ("int16", "uint16", "float16"),
           "32": ("int32", "uint32", "float32"), "64": ("int64", "uint64", "float64")}  # fmt: skip


def divide(d: NodeDraw) -> NewNode:
    """Whole numbers are divided by none that is zero: what that gives is nowhere written."""
    x = d.tensor(d.types(0))
    shape = d.broadcast(x)
    settings = {}
    if d.operator.name == "Mod":
        floating = "float" in x.dtype
        settings = {"fmod": 1} if floating or d.chance(0.4) else {}
    if "float" in x.dtype:
        return d.node(x, d.operand(x.dtype, shape), **settings)
    divisors = d.array(x.dtype, shape)
    divisors[divisors == 0] = 3
    return d.node(x, d.constant(divisors, x.dtype), **settings)


def power(d: NodeDraw) -> NewNode:
    x = d.tensor(d.types(0))
    dtype = x.dtype if d.opset < 12 else d.dtype(d.types(1))
    exponents = [n for n in _EXPONENTS if "float" in dtype or (n == int(n) and n >= 0)]
    if "float" not in x.dtype:  # a fraction of whole numbers is nowhere rounded
        exponents = [n for n in exponents if n == int(n) and n >= 0]
    if d.chance(0.7):
        return d.node(x, d.constant(d.one_of(exponents), dtype))
    if "float" not in x.dtype or "float" not in dtype:
        raise Unfit("powers of whole numbers overflow")
    return d.node(x, d.operand(dtype, d.broadcast(x)))


def shift(d: NodeDraw) -> NewNode:
    x = d.tensor([t for t in d.types(0) if t.startswith("uint")])
    amounts = d.array(x.dtype, d.broadcast(x)) % 7
    return d.node(x, d.constant(amounts, x.dtype), direction=d.setting("direction"))


def clip(d: NodeDraw) -> NewNode:
    x = d.tensor([t for t in d.types(0) if t != "bool"])
    low, high = sorted(d.between(0 if x.dtype.startswith("u") else -2, 5) for _ in range(2))
    if d.opset < 11:
        return d.node(x, min=float(low), max=float(high))
    bounds = [d.constant(n, x.dtype) if d.chance(0.7) else "" for n in (low, high)]
    return d.node(x, *(bounds if bounds[1] else bounds[:1] if bounds[0] else ()))


def cast(d: NodeDraw) -> NewNode:
    x = d.tensor([t for t in d.types(0) if t != "string"])
    targets = codes(d)
    if "float" in x.dtype:  # what is negative or too large for an unsigned type is nowhere written
        unsafe = [code(t) for t in ("uint8", "uint16", "uint32", "uint64")]
        targets = [n for n in targets if n not in unsafe]
    return d.node(x, to=d.one_of(targets))


def cast_like(d: NodeDraw) -> NewNode:
    x = d.tensor([t for t in d.types(0) if t != "string"])
    like = d.tensor([t for t in d.types(1) if not (t.startswith("u") and "float" in x.dtype)])
    return d.node(x, like)


def bit_cast(d: NodeDraw) -> NewNode:
    x = d.tensor([t for t in d.types(0) if t not in ("string", "bool")])
    width = next((alike for alike in _WIDTHS.values() if x.dtype in alike), ())
    return d.node(x, to=code(d.one_of(width)))


def concat(d: NodeDraw) -> NewNode:
    first = d.least(1)
    axis = d.axis(first.rank)
    names = [first.name]
    for _ in range(d.between(0 if d.chance(0.1) else 1, 2)):
        shape = list(first.sizes)
        if d.chance(0.4):
            shape[axis] = d.between(1, 3)
        names.append(d.operand(first.dtype, shape))
    d.rng.shuffle(names)
    return d.node(*names, axis=axis)


def where(d: NodeDraw) -> NewNode:
    x = d.tensor(d.types(1))
    condition = d.tensor(
        ("bool",), lambda v: fit_together(v.shape, x.shape), lambda: d.broadcast(x)
    )
    return d.node(condition, x, d.operand(x.dtype, d.broadcast(x)))


def matmul(d: NodeDraw) -> NewNode:
    a = d.least(1)
    inner = a.size(-1)
    shape: tuple[int, ...] = (inner, d.between(1, 5))
    if a.rank > 2 and d.chance(0.3):
        shape = (*(n if isinstance(n, int) else 1 for n in a.shape[:-2]), *shape)
    if d.chance(0.15):
        shape = (inner,)
    if d.operator.name == "MatMulInteger":
        dtype = d.dtype(d.types(1))
        points = [d.constant(d.between(0, 5), t) if d.chance() else "" for t in (a.dtype, dtype)]
        return d.node(a, d.weights(dtype, shape), *(points if points[1] else points[:1]))
    return d.node(a, d.weights(a.dtype, shape))


def gemm(d: NodeDraw) -> NewNode:
    a = d.ranked(2)
    trans_a, trans_b = d.between(0, 1), d.between(0, 1)
    inner, width = a.size(0 if trans_a else 1), d.between(1, 5)
    height = a.shape[1 if trans_a else 0]
    b = d.weights(a.dtype, (width, inner) if trans_b else (inner, width))
    inputs: list[str | Value] = [a, b]
    if d.opset < 11 or d.chance(0.7):
        shapes = [(width,), (1, width), (), (1,)]
        if isinstance(height, int):
            shapes += [(height, width), (height, 1)]
        inputs.append(d.operand(a.dtype, d.one_of(shapes)))
    return d.node(*inputs, transA=trans_a, transB=trans_b, **d.settings("alpha", "beta"))


def einsum(d: NodeDraw) -> NewNode:
    x = d.least(1)
    letters = "abcdef"[: x.rank]
    last = x.shape[-1]
    ways: list[tuple[str, tuple[int, ...] | None]] = [
        (f"{letters}->{letters[::-1]}", None),
        (f"{letters}->", None),
        (f"{letters}->{letters[:1]}", None),
        (f"...{letters[-1]}->{letters[-1]}...", None),
    ]
    if isinstance(last, int):
        ways += [
            (f"{letters},{letters[-1]}z->{letters[:-1]}z", (last, d.between(1, 4))),
            (f"...{letters[-1]},{letters[-1]}->...", (last,)),
            (f"{letters},{letters[-1]}->{letters}", (last,)),
        ]
    equation, shape = d.one_of(ways)
    others = [] if shape is None else [d.weights(x.dtype, shape)]
    return d.node(x, *others, equation=equation)


def loss(d: NodeDraw) -> NewNode:
    """Labels stay within the classes, or are those that are to be ignored."""
    scores = d.least(2)
    classes = scores.size(1)
    if not classes:
        raise Unfit("there are no classes")
    shape = [n for axis, n in enumerate(scores.sizes) if axis != 1]
    labels = d.sketch.numbers.integers(0, classes, shape)
    settings = d.settings("reduction")
    ignored = {}
    if d.chance(0.3):
        ignored = {"ignore_index": d.between(0, classes - 1)}
    inputs: list[str | Value] = [scores, d.constant(labels, d.one_of(("int64", "int32")))]
    if d.chance(0.4):
        inputs.append(d.constant(d.array(scores.dtype, (classes,), Range.INNER), scores.dtype))
    outputs = 2 if d.operator.name.startswith("Softmax") and d.chance(0.3) else 1
    return d.node(*inputs, outputs=outputs, **settings, **ignored)


def determinant(d: NodeDraw) -> NewNode:
    def square(value: Value) -> bool:
        return value.rank > 1 and value.shape[-1] == value.shape[-2]

    def shape() -> tuple[int, ...]:
        side = d.between(1, 4)
        return (*d.shape_of(d.between(0, 2)), side, side)

    return d.node(d.tensor(d.types(0), square, shape))


def eye_like(d: NodeDraw) -> NewNode:
    x = d.ranked(2)
    dtype = {} if d.chance() else {"dtype": d.one_of(codes(d))}
    return d.node(x, **dtype, **d.settings("k"))


def dropout(d: NodeDraw) -> NewNode:
    """As in inference: it passes on what it is given."""
    x = d.tensor(d.types(0))
    inputs = [d.constant(0.5, d.dtype(d.types(1)))] if d.opset >= 12 and d.chance() else []
    return d.node(x, *inputs, outputs=d.between(1, 2) if d.opset >= 10 else 1)


TABLE: Table = {
    **dict.fromkeys(("Div", "Mod"), divide),
    "Pow": power,
    "BitShift": shift,
    "Clip": clip,
    "Cast": cast,
    "CastLike": cast_like,
    "BitCast": bit_cast,
    "Concat": concat,
    "Where": where,
    **dict.fromkeys(("MatMul", "MatMulInteger"), matmul),
    "Gemm": gemm,
    "Einsum": einsum,
    **dict.fromkeys(("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"), loss),
    "Det": determinant,
    "EyeLike": eye_like,
    "Dropout": dropout,
}
