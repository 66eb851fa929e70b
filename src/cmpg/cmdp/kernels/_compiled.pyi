"""The compiled kernels; each is described beside its twin."""

from typing import Any

from cmpg.arrays import FloatArray, IntArray

INTERFACE: int  # a digest of this file, as it was when the module was built
HEADERS: int  # and of the headers beside it

def process(
    sizes: tuple[int, int, int, int, int],
    transition: Any,
    reward: FloatArray,
    costs: FloatArray,
    initial: FloatArray,
) -> Any: ...
def plan(
    process: Any,
    box: tuple[FloatArray, FloatArray, FloatArray] | None,
    weights: FloatArray,
    second: FloatArray,
    tie: float,
    second_tie: float,
    relative_tie: float,
    step: int,
    chosen: IntArray,
    rows: FloatArray | None,
    to_go: FloatArray,
    totals: FloatArray,
    noise: FloatArray | None,
    ask: bool,
) -> int: ...
def bound(process: Any, weights: FloatArray) -> float: ...
def evaluate(process: Any, policy: FloatArray, totals: FloatArray) -> None: ...
def occupancy(process: Any, policy: FloatArray, visits: FloatArray) -> None: ...
def visits(process: Any, actions: IntArray, visits: FloatArray) -> None: ...
def greatest_sum(
    process: Any, box: tuple[FloatArray, FloatArray, FloatArray], stages: FloatArray, policy: FloatArray | None
) -> float: ...
def relative_sweeps(
    flow: tuple[Any, Any, FloatArray],
    rows: IntArray,
    stage: FloatArray,
    discount: float,
    rounding: float,
    aim: float,
    relative: FloatArray,
    middle: FloatArray,
) -> bool: ...
def master(
    room: FloatArray,
    units: FloatArray,
    scale: FloatArray,
    settings: FloatArray,
    pivots: int,
    patience: int,
    no_step: float,
    basis: IntArray,
    weights: FloatArray,
    duals: FloatArray,
) -> int: ...
