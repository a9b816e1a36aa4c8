"""How the classic libraries are installed: what the papers ran, on Python 3.11.

TensorFlow 2.12 is the last release that can be told to behave as TensorFlow 1 and has builds for
NumPy 1.23, the last NumPy that Theano and MXNet get along with.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from outvote.core.errors import UsageError

Stage = tuple[str, ...]  # arguments of one `pip install`

_SHARED = ("setuptools<60", "wheel", "numpy==1.23.5", "scipy<1.11", "six", "h5py", "pyyaml")
_OF_KERAS = ("--no-deps", "keras_applications==1.0.8", "keras_preprocessing==1.1.2")
_VERSION = (3, 11)


def _nothing(packages: Path) -> None:
    pass


def lend_openblas(packages: Path) -> None:
    """Put SciPy's OpenBLAS where MXNet's build for aarch64 looks for Arm's own libraries.

    That build was linked with the Arm Performance Libraries, which are not on the index; every
    function it takes from them is in OpenBLAS and in the C library.
    """
    if platform.machine() != "aarch64":
        return
    (blas,) = (packages / "scipy.libs").glob("libopenblas*.so")
    for name in ("libarmpl_lp64_mp.so", "libamath.so", "libastring.so"):
        (packages / "mxnet" / name).symlink_to(Path("..") / "scipy.libs" / blas.name)


@dataclass(frozen=True)
class ClassicRecipe:
    """Stages of installation, and a last touch to the folder of packages."""

    stages: tuple[Stage, ...]
    finish: Callable[[Path], None] = _nothing

    def interpreter(self, named: Path | None) -> Path:
        """The Python that these old packages have builds for: the user's, ours, or one found."""
        if named is not None:
            return named
        if sys.version_info[:2] == _VERSION:
            return Path(sys.executable)
        wanted = ".".join(map(str, _VERSION))
        found = shutil.which(f"python{wanted}")
        if found is None or not _runs(found):
            raise UsageError(
                f"classic targets need Python {wanted}, and python{wanted} is not on the path; "
                "install it, or name it with `python` in outvote.toml"
            )
        return Path(found)


def _runs(python: str) -> bool:
    return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0


RECIPES = {
    "theano": ClassicRecipe(
        (_SHARED, ("--no-build-isolation", "--no-deps", "Theano==1.0.5"), _OF_KERAS),
    ),
    "tensorflow": ClassicRecipe(
        (
            (
                *_SHARED,
                "tensorflow-cpu==2.12.0; platform_machine == 'x86_64'",
                "tensorflow==2.12.0; platform_machine != 'x86_64'",
            ),
            _OF_KERAS,
        ),
    ),
    "mxnet": ClassicRecipe(
        (
            (*_SHARED, "requests", "graphviz<0.9"),
            ("--no-deps", "mxnet==1.9.1"),
            _OF_KERAS,
        ),
        lend_openblas,
    ),
}
