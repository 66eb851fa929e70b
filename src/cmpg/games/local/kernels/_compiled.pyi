"""The compiled kernels; each is described beside its twin."""

from typing import Any

from cmpg.arrays import FloatArray

INTERFACE: int  # a digest of this file, as it was when the module was built
HEADERS: int  # and of the headers beside it

Usages = tuple[Any, Any, Any]

def convolve(one: FloatArray, other: FloatArray, width: int, total: FloatArray) -> None: ...
def reach(packed: dict[str, Any], agent: int, order: Any, reach: Any) -> None: ...
def accounts(
    packed: dict[str, Any], agents: tuple[int, ...], policies: tuple[Any, ...], values: FloatArray, costs: FloatArray
) -> tuple[bytes, bytes, bytes]: ...
def totals(packed: dict[str, Any], usages: Usages, totals: FloatArray) -> None: ...
def marginal_costs(
    packed: dict[str, Any],
    usages: Usages,
    agent: int,
    delays: FloatArray,
    marginals: FloatArray,
    totals: FloatArray,
) -> None: ...
def judge(
    packed: dict[str, Any],
    usages: Usages,
    first: int,
    last: int,
    values: FloatArray,
    costs: FloatArray,
    multipliers: FloatArray,
    maxima: FloatArray,
    current: FloatArray,
    sizes: FloatArray,
) -> None: ...
def best_response_dynamics(
    packed: dict[str, Any],
    usages: Usages,
    values: FloatArray,
    costs: FloatArray,
    multipliers: FloatArray,
    weights: FloatArray,
    cheapest: bool,
    seed: int,
    turns: int,
    min_gain: float,
    seconds: float,
    block: int,
    threads: int,
    actions: Any,
    moved: Any,
    waiting: Any,
    actions_of: Any,
) -> tuple[tuple[bytes, bytes, bytes], int]: ...
def respond(
    packed: dict[str, Any],
    prices: FloatArray,
    multipliers: FloatArray,
    maxima: FloatArray,
    costs: FloatArray,
    loads: FloatArray,
) -> None: ...
