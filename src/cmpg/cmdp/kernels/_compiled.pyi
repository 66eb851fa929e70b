"""The compiled kernels; each is described beside its twin."""

from typing import Any

from cmpg.arrays import FloatArray, IntArray

INTERFACE: int  # a digest of this file, as it was when the module was built

Usages = tuple[Any, Any, Any]

def convolve(one: FloatArray, other: FloatArray, width: int, total: FloatArray) -> None: ...
def reach(packed: tuple[Any, ...], agent: int, order: Any, reach: Any) -> None: ...
def accounts(
    packed: tuple[Any, ...], agents: tuple[int, ...], policies: tuple[Any, ...], values: FloatArray, costs: FloatArray
) -> tuple[bytes, bytes, bytes]: ...
def totals(packed: tuple[Any, ...], usages: Usages, totals: FloatArray) -> None: ...
def outside(packed: tuple[Any, ...], usages: Usages, agent: int, size: int) -> tuple[Any, int, int]: ...
def burden(
    packed: tuple[Any, ...],
    usages: Usages,
    outside: Any,
    agent: int,
    delays: FloatArray,
    burdens: FloatArray,
    totals: FloatArray,
) -> None: ...
def judge(
    packed: tuple[Any, ...],
    usages: Usages,
    outside: Any,
    first: int,
    last: int,
    values: FloatArray,
    costs: FloatArray,
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
    seed: int,
    turns: int,
    worth: float,
    seconds: float,
    block: int,
    threads: int,
    actions: Any,
    moved: Any,
    waiting: Any,
    actions_of: Any,
) -> tuple[tuple[bytes, bytes, bytes], int]: ...
def process(
    sizes: tuple[int, int, int, int, int],
    transition: Any,
    reward: FloatArray,
    costs: FloatArray,
    initial: FloatArray,
) -> Any: ...
def plan(
    process: Any,
    weights: FloatArray,
    second: FloatArray,
    tie: float,
    second_tie: float,
    relative_tie: float,
    step: int,
    chosen: IntArray,
    to_go: FloatArray,
    totals: FloatArray,
    noise: FloatArray | None,
    ask: bool,
) -> int: ...
def bound(process: Any, weights: FloatArray) -> float: ...
def evaluate(process: Any, policy: FloatArray, totals: FloatArray) -> None: ...
def occupancy(process: Any, policy: FloatArray, visits: FloatArray) -> None: ...
def mixture(process: Any, plans: IntArray, weights: FloatArray, policy: FloatArray) -> None: ...
def optimistic_plan(
    process: Any,
    box: tuple[FloatArray, FloatArray, FloatArray],
    weights: FloatArray,
    second: FloatArray,
    tie: float,
    second_tie: float,
    relative_tie: float,
    step: int,
    chosen: IntArray,
    rows: FloatArray,
    to_go: FloatArray,
    totals: FloatArray,
    noise: FloatArray | None,
    ask: bool,
) -> int: ...
def greatest_sum(
    process: Any, box: tuple[FloatArray, FloatArray, FloatArray], stages: FloatArray, policy: FloatArray | None
) -> float: ...
def optimistic_mixture(
    process: Any,
    box: tuple[FloatArray, FloatArray, FloatArray],
    plans: IntArray,
    rows: FloatArray,
    weights: FloatArray,
    policy: FloatArray,
    kernel: FloatArray,
) -> None: ...
def walker(packed: tuple[Any, ...], agent: int, burden: FloatArray) -> Any | None: ...
def walker_plan(
    walker: Any, price: float, tie: float, second_tie: float, chosen: IntArray, totals: FloatArray
) -> None: ...
def walker_bound(walker: Any, price: float) -> float: ...
