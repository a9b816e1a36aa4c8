"""What Keras 2 expects of Python and of its libraries, and no longer finds: put back in place.

Nothing here touches what is computed. Each shim names what was taken away, and by whom.
"""

from __future__ import annotations

import collections
import collections.abc
import importlib
import inspect
import os
import shutil
import sys
import types
from pathlib import Path
from typing import Any

_ArgSpec = collections.namedtuple("_ArgSpec", "args varargs keywords defaults")


def before_import(backend: str) -> None:
    """Everything that has to be in place before `import keras`."""
    _python()
    _submodules()
    {"theano": _theano, "tensorflow": _tensorflow, "mxnet": _nothing}[backend]()


def after_import() -> None:
    """NumPy no longer takes a list of slices as an index, with which Keras turns kernels."""
    from keras.utils import conv_utils

    def convert_kernel(kernel: Any) -> Any:
        turned = tuple(slice(None, None, -1) for _ in range(kernel.ndim - 2))
        return kernel[turned].copy()

    conv_utils.convert_kernel = convert_kernel


def _python() -> None:
    """Python 3.10 moved the ABCs out of `collections`; 3.11 dropped `inspect.getargspec`."""
    for name in collections.abc.__all__:
        if not hasattr(collections, name):
            setattr(collections, name, getattr(collections.abc, name))
    if not hasattr(inspect, "getargspec"):
        inspect.getargspec = _getargspec  # type: ignore[attr-defined]


def _getargspec(function: Any) -> Any:
    found = inspect.getfullargspec(function)
    return _ArgSpec(found.args, found.varargs, found.varkw, found.defaults)


def _submodules() -> None:
    """Keras 2.2.0 to 2.2.2 call a function of their helper packages that later ones dropped."""
    for name in ("keras_applications", "keras_preprocessing"):
        module = importlib.import_module(name)
        if not hasattr(module, "set_keras_submodules"):
            module.set_keras_submodules = lambda **modules: None  # type: ignore[attr-defined]


def _nothing() -> None:
    pass


def _theano() -> None:
    """Theano writes C and compiles it: without a compiler it computes in Python, slowly."""
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    flags = {
        "cxx": shutil.which("g++") or "",
        "blas.ldflags": "",
        "floatX": "float32",
        "base_compiledir": str(root / "outvote" / "theano"),
    }
    own = os.environ.get("THEANO_FLAGS", "")
    told = [f"{key}={value}" for key, value in flags.items() if f"{key}=" not in own]
    os.environ["THEANO_FLAGS"] = ",".join([*filter(None, [own]), *told])


def _tensorflow() -> None:
    """TensorFlow 2 as TensorFlow 1: no eager mode, the old names on the module."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
    import tensorflow as tf

    old = tf.compat.v1
    old.disable_v2_behavior()
    # Keras 2.3 asks for the version to choose its mode; ours is TensorFlow 1's.
    tf.__version__ = "1.15.0"
    # Its own Keras would be looked for in ours: Keras 2.3 is given the copy inside TensorFlow.
    tf.keras = importlib.import_module("tensorflow.python.keras")
    for name in dir(old):
        if not name.startswith("_") and name not in ("keras", "estimator"):
            setattr(tf, name, getattr(old, name))
    _tensor_like(tf)
    _contrib(tf)
    # TensorFlow tries Keras as it is imported, before all this was in place: once more, later.
    for name in [name for name in sys.modules if name.partition(".")[0] == "keras"]:
        del sys.modules[name]


def _tensor_like(tf: Any) -> None:
    """Keras 2.2.4 and later ask an internal module what a tensor is."""
    from tensorflow.python.framework import ops

    if not hasattr(ops, "_TensorLike"):
        ops._TensorLike = (tf.Tensor, tf.Variable, tf.SparseTensor)
    if not hasattr(ops, "is_dense_tensor_like"):
        ops.is_dense_tensor_like = lambda value: isinstance(value, tf.Tensor | tf.Variable)


def _contrib(tf: Any) -> None:
    """Keras before 2.1 imports a projector for TensorBoard, which is never used here."""
    name = "tensorflow.contrib.tensorboard.plugins"
    parts = name.split(".")
    for length in range(2, len(parts) + 1):
        part = ".".join(parts[:length])
        sys.modules.setdefault(part, types.ModuleType(part))
    sys.modules[name].projector = None  # type: ignore[attr-defined]
    tf.contrib = sys.modules["tensorflow.contrib"]
