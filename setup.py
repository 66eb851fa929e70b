"""The one part of the build that pyproject.toml cannot describe: optional kernels in C.

Without a compiler the installation succeeds, and the NumPy twins of the kernels run: slower, and with the same proofs.
"""

import sys
import zlib
from pathlib import Path

from setuptools import Extension, setup

SOURCES = Path("src")
SHARED = SOURCES / "cmpg/cmdp/kernels"

# A product and a sum are rounded one after the other, as NumPy does: no fused operations.
FLAGS = (
    ["/O2", "/fp:precise"]
    if sys.platform == "win32"
    else ["-O3", "-g0", "-std=c11", "-pthread", "-ffp-contract=off", "-fno-math-errno"]
)


def _digest(*files: Path) -> str:
    return f"{zlib.crc32(b''.join(path.read_bytes() for path in files)) & 0x7FFFFFFF}L"  # fits any C compiler's long


def kernels(package: str, *shared: Path) -> Extension:
    """Return the extension `_compiled` of a package: its own C files, and shared ones."""
    folder = SOURCES / package.replace(".", "/")
    stub, headers = folder / "_compiled.pyi", sorted(folder.glob("*.h"))
    return Extension(
        f"{package}._compiled",
        sources=sorted(str(path) for path in [*folder.glob("*.c"), *shared]),
        depends=sorted(str(path) for path in [*folder.glob("*.h"), *SHARED.glob("*.h"), stub]),
        include_dirs=[str(SHARED)],
        # An extension that was built for other calls is not used: see choice.py.
        define_macros=[("INTERFACE", _digest(stub)), ("HEADERS", _digest(*headers))],
        extra_compile_args=FLAGS,
        extra_link_args=[] if sys.platform == "win32" else ["-pthread"],
        optional=True,
    )


setup(ext_modules=[kernels("cmpg.cmdp.kernels"), kernels("cmpg.games.local.kernels", SHARED / "arrays.c")])
