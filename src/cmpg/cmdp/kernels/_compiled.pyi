"""The compiled kernels; each is described beside its twin."""

from typing import Any

from cmpg.arrays import FloatArray

Usages = tuple[Any, Any, Any]

def convolve(one: FloatArray, other: FloatArray, width: int, total: FloatArray) -> None: ...
def reach(packed: tuple[Any, ...], agent: int, order: Any, reach: Any) -> None: ...
def accounts(
    packed: tuple[Any, ...], agents: tuple[int, ...], policies: tuple[Any, ...], values: FloatArray, costs: FloatArray
) -> tuple[bytes, bytes, bytes]: ...
def totals(packed: tuple[Any, ...], usages: Usages, totals: FloatArray) -> None: ...
def burden(
    packed: tuple[Any, ...], usages: Usages, agent: int, delays: FloatArray, burdens: FloatArray, totals: FloatArray
) -> None: ...
def judge(
    packed: tuple[Any, ...],
    usages: Usages,
    first: int,
    last: int,
    policies: tuple[Any, ...],
    multipliers: FloatArray,
    maxima: FloatArray,
    present: FloatArray,
    sizes: FloatArray,
) -> None: ...
def settle(
    packed: tuple[Any, ...],
    usages: Usages,
    values: FloatArray,
    costs: FloatArray,
    multipliers: FloatArray,
    weights: FloatArray,
    cheapest: bool,
    turns: int,
    worth: float,
    seed: int,
    seconds: float,
    actions: Any,
    moved: Any,
    actions_of: Any,
) -> tuple[tuple[bytes, bytes, bytes], int]: ...
