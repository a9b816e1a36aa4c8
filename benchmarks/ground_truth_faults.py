"""The planted faults of benchmarks/ground_truth.py, as data: where each is, and what must be said.

A fault is a setup script in benchmarks/ground_truth/, for one backend. `model` is Python that
builds the smallest case that shows it; weights and inputs are random unless `data` says more. A
fault with a `campaign` is not shown that model: the campaign has to come upon it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SCRIPTS = Path(__file__).parent / "ground_truth"


@dataclass(frozen=True)
class Campaign:
    """How many layers may be tried beside the zoo's tiny seeds, which hold none of the faulty."""

    mutants: int = 2500
    number: int = 1  # seeds the draws


@dataclass(frozen=True)
class Fault:
    """One planted fault. A campaign may show a fault of several kinds of layers by any of them."""

    name: str  # of the script
    family: str
    target: str  # the built-in target that is patched
    layers: tuple[str, ...]  # kinds of which one must be named
    kind: str  # of the finding
    model: str
    data: str = ""  # Python: the inputs
    count: int = 8
    campaign: Campaign | None = None
    holds: str = ""  # what the accused layer's parameters must mention
    verdict: str = "bug"  # "" for a control, which must not be called a bug

    @property
    def script(self) -> Path:
        return SCRIPTS / f"{self.name}.py"

    @property
    def backend(self) -> str:
        return self.target.partition(":")[0]

    @property
    def is_control(self) -> bool:
        return not self.verdict


def _dense(shape: str, guilty: str, before: str = "", after: str = "layers.Dense(5)") -> str:
    """The guilty layer behind a layer that keeps the shape, and a Dense layer at the end."""
    first = before or "layers.Activation('linear', name='before')"
    return f"keras.Sequential([keras.Input({shape}), {first}, {guilty}, layers.Flatten(), {after}])"


_IMAGE, _LINE = "(9, 8, 4)", "(11, 6)"
_CONV = "layers.Conv2D(4, 3, padding='same', name='before')"
_TOKENS = "keras.Input((9,), dtype='int32')"
_MASKED = f"keras.Sequential([{_TOKENS}, layers.Embedding(20, 5, mask_zero=True), %s])"
_MASKED_DATA = "np.where(rng.random((8, 9)) < 0.3, 0, rng.integers(1, 20, (8, 9)))"
_DEEP = (
    "keras.Sequential([keras.Input((16,)), "
    "*(layers.Dense(64, activation='tanh') for _ in range(20))])"
)
_FUSED = (
    "keras.Sequential([keras.Input((10,)), layers.BatchNormalization(), layers.Dense(12), "
    "layers.ReLU(), layers.Dense(5)])"
)
_SKIPPED = (
    "(lambda x: (lambda y: keras.Model(x, layers.Dense(5)(layers.Add()([y, layers.Dense(12)("
    "layers.ReLU()(y))]))))(layers.Dense(12)(x)))(keras.Input((10,)))"
)
_CONVS = (
    *("Conv1D", "Conv2D", "Conv3D", "SeparableConv1D", "SeparableConv2D"),
    *("ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D"),
)
_FORMULA, _GEOMETRY, _STATE, _DTYPE = "formula", "geometry", "state", "dtype"
_CORNER, _SIZE, _COMPILED, _PARAMETER = "corner", "size", "compiled", "parameter"
_MEMORY = "memory"
_TF, _JAX, _TORCH = "tensorflow", "jax", "torch"
_APART = "inconsistency"

FAULTS = (
    # TensorFlow
    Fault("gelu_always_approximate", _FORMULA, _TF, ("Activation",), _APART,
          _dense("(12,)", "layers.Activation('gelu')", "layers.Dense(9)")),
    Fault("unit_normalization_l1", _FORMULA, _TF, ("UnitNormalization",), _APART,
          _dense(_LINE, "layers.UnitNormalization()"), campaign=Campaign()),
    Fault("dilation_ignored", _GEOMETRY, _TF, ("Conv2D",), _APART,
          _dense(_IMAGE, "layers.Conv2D(3, 3, dilation_rate=2, padding='same')", _CONV)),
    Fault("group_order_reversed", _GEOMETRY, _TF, ("Conv2D",), _APART,
          _dense(_IMAGE, "layers.Conv2D(6, 3, groups=2)", _CONV)),
    Fault("max_pool_pads_zeros", _GEOMETRY, _TF, ("MaxPooling2D",), _APART,
          _dense(_IMAGE, "layers.MaxPooling2D(3, strides=2, padding='same')", _CONV)),
    Fault("lstm_gate_order", _STATE, _TF, ("LSTM",), _APART,
          _dense(_LINE, "layers.LSTM(5)", "layers.Dense(6)")),
    Fault("bidirectional_not_turned", _STATE, _TF, ("Bidirectional",), _APART,
          _dense(_LINE, "layers.Bidirectional(layers.GRU(3, return_sequences=True))"),
          campaign=Campaign()),
    Fault("masking_of_any", _STATE, _TF, ("Masking",), _APART,
          _dense(_LINE, "layers.Masking()", "layers.ReLU()", "layers.Dense(5)")),
    Fault("embedding_index_uint8", _DTYPE, _TF, ("Embedding",), _APART,
          "keras.Sequential([keras.Input((9,), dtype='int32'), layers.Embedding(300, 5), "
          "layers.Flatten(), layers.Dense(4)])",
          data="rng.integers(0, 300, (8, 9))"),
    Fault("abort_on_pool_of_five", _CORNER, _TF, ("MaxPooling1D",), "crash",
          _dense(_LINE, "layers.MaxPooling1D(5)", "layers.Dense(6)")),
    Fault("nan_on_constant_rows", _CORNER, _TF, ("LayerNormalization",), "nan",
          _dense(_LINE, "layers.LayerNormalization()"),
          data="np.where(np.arange(11)[None, :, None] == 4, 1.5, rng.normal(size=(8, 11, 6)))"),
    Fault("softmax_in_large_batches", _SIZE, _TF, ("Softmax",), _APART,
          _dense("(12,)", "layers.Softmax()", "layers.Dense(9)"), count=16),
    Fault("graph_elu", _COMPILED, "tensorflow:graph", ("ELU",), _APART,
          _dense("(12,)", "layers.ELU()", "layers.Dense(9)")),
    Fault("xla_silu", _COMPILED, "tensorflow:xla", ("Activation",), _APART,
          _dense("(12,)", "layers.Activation('silu')", "layers.Dense(9)")),
    Fault("leaky_slope_of_a_tenth", _PARAMETER, _TF, ("LeakyReLU",), _APART,
          _dense("(12,)", "layers.LeakyReLU(negative_slope=0.1)"), campaign=Campaign()),
    # JAX
    Fault("batchnorm_epsilon", _FORMULA, _JAX, ("BatchNormalization",), _APART,
          _dense(_IMAGE, "layers.BatchNormalization()", _CONV)),
    Fault("hard_sigmoid_of_keras_2", _FORMULA, _JAX, (), _APART,
          _dense("(12,)", "layers.Activation('hard_sigmoid')"), campaign=Campaign(),
          holds="hard_sigmoid"),
    Fault("average_pool_counts_padding", _GEOMETRY, _JAX, ("AveragePooling2D",), _APART,
          _dense(_IMAGE, "layers.AveragePooling2D(3, strides=1, padding='same')", _CONV)),
    Fault("stride_starts_late", _GEOMETRY, _JAX, ("Conv1D",), _APART,
          _dense(_LINE, "layers.Conv1D(4, 3, strides=2)", "layers.Dense(6)")),
    Fault("cropping_at_the_wrong_end", _GEOMETRY, _JAX, ("Cropping1D",), _APART,
          _dense(_LINE, "layers.Cropping1D((1, 3))"), campaign=Campaign()),
    Fault("rnn_mask_ignored", _STATE, _JAX, ("LSTM",), _APART,
          _MASKED % "layers.LSTM(4), layers.Dense(3)", data=_MASKED_DATA),
    Fault("gru_reset_always_after", _STATE, _JAX, ("GRU",), _APART,
          _dense(_LINE, "layers.GRU(5, reset_after=False)", "layers.Dense(6)")),
    Fault("matmul_in_half", _DTYPE, _JAX, ("Dense",), _APART,
          _dense(_IMAGE, "layers.ReLU()", _CONV)),
    Fault("hang_on_single_channel", _CORNER, _JAX, ("GlobalAveragePooling1D",), "hang",
          _dense("(11, 1)", "layers.GlobalAveragePooling1D()", "layers.Dense(1)")),
    Fault("error_on_three_repeats", _CORNER, _JAX, ("RepeatVector",), "crash",
          _dense("(12,)", "layers.RepeatVector(3)"), campaign=Campaign()),
    Fault("conv_drops_channels_above_16", _SIZE, _JAX, ("Conv2D",), _APART,
          _dense(_IMAGE, "layers.Conv2D(6, 3)", "layers.Conv2D(24, 3)")),
    Fault("jit_tanh", _COMPILED, "jax:jit", ("Activation",), _APART,
          _dense("(12,)", "layers.Activation('tanh')", "layers.Dense(9)")),
    Fault("jit_fuses_dense_and_relu", _COMPILED, "jax:jit", ("ReLU",), _APART, _FUSED),
    Fault("bilinear_is_nearest", _PARAMETER, _JAX, ("UpSampling2D",), _APART,
          _dense(_IMAGE, "layers.UpSampling2D(2, interpolation='bilinear')", _CONV)),
    Fault("causal_pads_both_sides", _PARAMETER, _JAX, ("Conv1D",), _APART,
          _dense(_LINE, "layers.Conv1D(4, 3, padding='causal')"), campaign=Campaign(),
          holds="causal"),
    # PyTorch
    Fault("layernorm_unbiased", _FORMULA, _TORCH, ("LayerNormalization",), _APART,
          _dense(_LINE, "layers.LayerNormalization()", "layers.Dense(6)")),
    Fault("selu_rounded_constants", _FORMULA, _TORCH, ("Dense",), _APART,
          _dense("(12,)", "layers.Dense(7, activation='selu')", "layers.ReLU()")),
    Fault("softmax_without_maximum", _FORMULA, _TORCH, ("Softmax",), "nan",
          _dense("(12,)", "layers.Softmax()", "layers.Rescaling(200.0)")),
    Fault("same_padding_wrong_side", _GEOMETRY, _TORCH, ("Conv2D",), _APART,
          _dense(_IMAGE, "layers.Conv2D(5, 3, strides=2, padding='same')", _CONV)),
    Fault("depthwise_channel_order", _GEOMETRY, _TORCH, ("DepthwiseConv2D",), _APART,
          _dense(_IMAGE, "layers.DepthwiseConv2D(3, depth_multiplier=2)", _CONV)),
    Fault("zero_padding_swapped", _GEOMETRY, _TORCH, ("ZeroPadding2D",), _APART,
          _dense(_IMAGE, "layers.ZeroPadding2D(((2, 0), (1, 1)))"), campaign=Campaign()),
    Fault("transposed_conv_shifted", _GEOMETRY, _TORCH, ("Conv2DTranspose",), _APART,
          _dense(_IMAGE, "layers.Conv2DTranspose(3, 3, strides=2, padding='same')", _CONV)),
    Fault("go_backwards_turned_again", _STATE, _TORCH, ("SimpleRNN",), _APART,
          _dense(_LINE, "layers.SimpleRNN(4, go_backwards=True, return_sequences=True)",
                 "layers.Dense(6)")),
    Fault("rescaling_in_int8", _DTYPE, _TORCH, ("Rescaling",), _APART,
          "keras.Sequential([keras.Input((6, 6, 3), dtype='int32'), layers.Rescaling(1 / 255), "
          "layers.Flatten(), layers.Dense(4)])",
          data="rng.integers(0, 256, (8, 6, 6, 3))"),
    Fault("attention_in_half", _DTYPE, _TORCH, ("MultiHeadAttention",), _APART,
          "(lambda x: (lambda y: keras.Model(x, layers.Dense(3)(layers.MultiHeadAttention(2, 4)"
          "(y, y))))(layers.Dense(6)(x)))(keras.Input((11, 6)))"),
    Fault("softplus_overflows", _CORNER, _TORCH, ("Activation",), _APART,
          _dense("(12,)", "layers.Activation('softplus')", "layers.Rescaling(100.0)")),
    Fault("dense_drops_tail_above_256", _SIZE, _TORCH, ("Dense",), _APART,
          _dense(_IMAGE, "layers.Flatten()", _CONV)),
    Fault("relu_in_place", _MEMORY, _TORCH, ("ReLU", "Add"), _APART, _SKIPPED),
    Fault("conv_reads_raw_memory", _MEMORY, _TORCH, ("Conv1D",), _APART,
          _dense(_LINE, "layers.Conv1D(4, 3)", "layers.Permute((2, 1))")),
    Fault("conv_races", _MEMORY, _TORCH, ("Conv2D",), _APART,
          _dense(_IMAGE, "layers.Conv2D(6, 3)", "layers.ReLU()")),
    Fault("einsum_in_few_bits", _DTYPE, _TORCH, ("EinsumDense",), _APART,
          _dense("(9, 12)", "layers.EinsumDense('abc,cd->abd', (9, 8))", "layers.ReLU()")),
    Fault("elu_alpha_ignored", _PARAMETER, _TORCH, ("ELU",), _APART,
          _dense("(12,)", "layers.ELU(alpha=2.0)"), campaign=Campaign()),
    Fault("kernel_of_four_turned", _PARAMETER, _TORCH, _CONVS, _APART,
          _dense(_IMAGE, "layers.Conv2D(3, (4, 2))"), campaign=Campaign()),
    # Controls: other than the released library, and right
    Fault("control_matmul_in_double", "control", _TF, ("Dense",), "", _DEEP, verdict=""),
    Fault("control_other_order", "control", _JAX, ("Dense",), "", _DEEP, verdict=""),
    Fault("control_clean_refusal", "control", _TORCH, ("Conv3D",), "",
          "keras.Sequential([keras.Input((5, 5, 5, 2)), layers.Conv3D(3, 2), layers.Flatten(), "
          "layers.Dense(3)])", verdict=""),
)  # fmt: skip
