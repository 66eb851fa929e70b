"""The one part of the build that pyproject.toml cannot describe: optional kernels in C.

Without a compiler the installation succeeds all the same, and the NumPy twins of the kernels run.
"""

import sys
import zlib
from pathlib import Path

from setuptools import Extension, setup

KERNELS = Path("src/cmpg/cmdp/kernels")

# A product and a sum are rounded one after the other, as NumPy does: no fused operations.
FLAGS = (
    ["/O2", "/fp:precise"]
    if sys.platform == "win32"
    else ["-O3", "-g0", "-std=c11", "-pthread", "-ffp-contract=off", "-fno-math-errno"]
)

# An extension that was built for other calls is not used: see choice.py.
INTERFACE = zlib.crc32((KERNELS / "_compiled.pyi").read_bytes())

setup(
    ext_modules=[
        Extension(
            "cmpg.cmdp.kernels._compiled",
            sources=sorted(str(path) for path in KERNELS.glob("*.c")),
            depends=sorted(str(path) for pattern in ("*.h", "*.pyi") for path in KERNELS.glob(pattern)),
            define_macros=[("INTERFACE", f"{INTERFACE}L")],
            extra_compile_args=FLAGS,
            extra_link_args=[] if sys.platform == "win32" else ["-pthread"],
            optional=True,
        )
    ]
)
