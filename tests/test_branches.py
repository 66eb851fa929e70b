"""Sizes around every branch: the same claim just below and just above each threshold that chooses another path.

Every claim hangs on a probability of 1e-17 beside one of 1.0, which a path that takes rows for certain, or drops what
is small, would lose: the true cost is a thousand or more, and so is what agent 0 can gain. A threshold of 1 is
exceeded, one of 1e30 is met. Whatever path is taken, the verdict is the same, and the exact judge agrees with all that
is said.

Paths of the search for policies are not listed: nothing that they find is believed.
"""

import time
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import pytest

from cmpg.deadline import limited
from oracles.claiming import examined
from oracles.judge import judge
from oracles.random_claims import Claim

RARE = 1e-17
COSTLY = 1e20
ROADS = ("kernel", "screen", "numpy")

pytestmark = pytest.mark.filterwarnings(
    "ignore::RuntimeWarning"
)  # products with 1e20 overflow nowhere, sums of 1e30 do


def claim_of(game: dict[str, Any], policy: list[Any], *, large: bool = False) -> Claim:
    """The claim that a policy is feasible and nobody gains, with multipliers of zero."""
    shape = (len(policy), len(game["thresholds"]))
    form = "sparse" if game.get("sparse") else game["form"]
    ones = np.ones(shape, dtype=int)
    return Claim(0, form, "floats", game, policy, np.zeros(shape), ones, np.ones(shape[1]), judge(game), large)


def joint(limit: float, states: int = 2, horizon: int = 2, actions: int = 2, *, sparse: bool = False, steps: int = 1):
    """Two agents in state 0; if the second plays its last action, which it does once in 1e17, state 1 follows."""
    transition = np.zeros((steps, states, 2, actions, states))
    for state in range(states):
        transition[:, state, ..., 0 if state < 2 else state] = 1.0
    transition[:, 0, :, -1, :2] = [0.0, 1.0]
    rewards, costs = np.zeros((2, steps, states, 2, actions)), np.zeros((1, steps, states, 2, actions))
    rewards[0, :, 0, 1, -1] = COSTLY
    costs[0, :, 1] = COSTLY
    initial = np.eye(states)[0]
    game = {"form": "joint", "horizon": horizon, "initial": initial, "transition": transition, "rewards": rewards}
    game |= {"costs": costs, "thresholds": np.array([limit])} | ({"sparse": True} if sparse else {})
    policy = [np.broadcast_to(np.eye(choices)[0], (horizon, states, choices)).copy() for choices in (2, actions)]
    policy[1][:, 0, -1] = RARE
    return claim_of(game, policy)


def alone(limit: float, states: int):
    """One agent, whose own action leads to state 1 once in 1e17."""
    both = joint(limit, states)
    game = both.game | {"transition": both.game["transition"][:, :, 0], "rewards": both.game["rewards"][:1, :, :, 0]}
    return claim_of(game | {"costs": both.game["costs"][:, :, :, 0]}, both.policy[1:])


def counting(limit: float, agents: int, mixing: int, *, alike: bool = True, every: bool = False):
    """Agents of whom some leave the others once in 1e17, which costs the more the more do."""
    classes = agents + 1 if every else 2
    costs = np.zeros((1, 1, 1, classes))
    costs[..., :-1] = COSTLY  # unless all are on the first action, which is the last count vector
    if not every:
        costs = np.array([[[[COSTLY, 0.0]]]])
    rewards = np.zeros((1, 1, 2, agents + 1))
    rewards[0, 0, 1, 2:] = COSTLY
    game = {
        "form": "counting",
        "horizon": 1,
        "initial": np.ones(1),
        "rewards": rewards,
        "boundaries": None if every else np.array([agents - 1]),
        "transition": np.ones((1, 1, classes, 1)),
        "costs": costs,
        "thresholds": np.array([limit]),
    }
    rows = [RARE if alike else RARE * (1 + i / 64) for i in range(mixing)] + [0.0] * (agents - mixing)
    return claim_of(game, [np.array([[[1.0, rare]]]) for rare in rows])


def local(
    limit: float,
    states: int = 2,
    actions: int = 2,
    agents: int = 2,
    horizon: int = 2,
    *,
    width: int = 1,
    resources: int = 1,
    constraints: int = 1,
    steps: int = 1,
    falls: bool = False,
):
    """Agents of whom the last uses a resource once in 1e17, which costs, and pays whoever else uses it."""
    transition = np.zeros((steps, states, actions, states))
    for state in range(states):
        transition[:, state, :, state] = 1.0
        others = (state + np.arange(1, width)) % states
        transition[:, state, :, others] = RARE
    uses = np.zeros((steps, states, actions, resources))
    uses[:, :, -1, 0] = 1.0
    member = {"transition": transition, "reward": np.zeros((1, states, actions)), "uses": uses}
    member |= {"initial": np.eye(states)[0], "cost": None}
    delay, load_cost = np.zeros((1, resources, agents + 1)), np.zeros((constraints, 1, resources, agents + 1))
    if falls:  # whoever is alone is paid, and the last agent is nearly always there
        delay[0, 0, 1] = -COSTLY
        load_cost[:, 0, 0, 0] = COSTLY
    else:
        delay[0, 0, 2:] = -COSTLY
        load_cost[:, 0, 0, 1:] = COSTLY
    game = {"form": "local", "horizon": horizon, "agents": [member] * agents, "delay": delay, "load_cost": load_cost}
    game["thresholds"] = np.full(constraints, limit)
    policy = [np.broadcast_to(np.eye(actions)[0], (horizon, states, actions)).copy() for _ in range(agents)]
    policy[-1][..., -1] = RARE
    if falls:
        policy[-1] = policy[-1][..., ::-1].copy()
    return claim_of(game, policy)


class Branch(NamedTuple):
    """A threshold in the code, and a claim by the size that it looks at."""

    name: str
    claim: Callable[[float, int], Claim]
    below: int
    above: int
    exceeded: str = "VIOLATED"  # what is said of a threshold of 1; floats may leave it open


BRANCHES = (
    Branch("joint/averages.BLOCK: averages of 2·S·2·S numbers are made in blocks", joint, 362, 363),
    Branch("joint/averages.BLOCK, one agent", alone, 511, 600),
    Branch("evaluation.BLOCK: steps of 2·S·2 entries that are gathered at once", lambda a, n: joint(a, 512, n), 15, 17),
    Branch("a table for each step: more steps than entries", lambda a, n: joint(a, 2, n, steps=n), 32, 33),
    Branch("a table for each step: more entries than steps", lambda a, n: joint(a, n, 40, steps=40), 16, 17),
    Branch("policy.COMPACT_FROM: a table of 2·S·2 entries is kept as actions", lambda a, n: local(a, n), 1023, 1024),
    Branch("a mask of S·2 entries", lambda a, n: joint(a, n, sparse=True), 499, 501),
    Branch("a transition that is sparse", lambda a, n: joint(a, 40, sparse=bool(n)), 0, 1),
    Branch("local/agent.DENSE_STATES", lambda a, n: local(a, n), 32, 33),
    Branch("local/packed.WIDEST_ROW: entries of a transition", lambda a, n: local(a, 6, width=n), 2, 3),
    Branch("local/packed.STAYS: rows of two entries", lambda a, n: local(a, 3, width=n), 1, 2),
    Branch("local/sparse: a block of isqrt(n) agents", lambda a, n: local(a, agents=n, horizon=1), 24, 25),
    Branch("local.h MAX_MAP_ACTIONS: actions", lambda a, n: local(a, 2, n), 16, 17),
    Branch("local.h MAX_WEIGHTINGS: constraints", lambda a, n: local(a, constraints=n), 2, 4),
    Branch(
        "loads.LoadTables: a delay that falls with the load",
        lambda a, n: local(a, agents=n, falls=True),
        2,
        3,
        "TO_ROUNDING",
    ),
    Branch("counting/classes.MANY: agents who mix alike", lambda a, n: counting(a, 10, n), 9, 10),
    Branch("counting/classes.MANY: agents who mix differently", lambda a, n: counting(a, 10, n, alike=False), 9, 10),
    Branch("counting/counts.CHUNK: terms of a sum", lambda a, n: counting(a, n, 1, every=True), 64, 66),
    Branch("counting: whether anybody mixes", lambda a, n: counting(a, 3, n), 1, 3),
)


@pytest.mark.parametrize("limit", [1.0, 1e30])
@pytest.mark.parametrize("branch", BRANCHES, ids=lambda branch: branch.name)
def test_the_verdict_is_the_same_below_and_above(branch, limit):
    small, large = (examined(branch.claim(limit, size), ROADS) for size in (branch.below, branch.above))
    assert (small.wrong, large.wrong) == ((), ())
    assert small.verdict == large.verdict == (branch.exceeded if limit == 1 else "PROVEN")


CONSTANTS = (
    ("cmpg.games.joint.averages", "BLOCK", 8, 8, lambda limit: joint(limit, 5, 3)),
    ("cmpg.games.joint.position", "BLOCK", 8, 8, lambda limit: joint(limit, 5, 3)),
    ("cmpg.games.joint.position", "LARGE", 8, 8, lambda limit: joint(limit, 5, 3)),
    ("cmpg.cmdp.evaluation", "BLOCK", 1, 30, lambda limit: joint(limit, 5, 4)),
    ("cmpg.cmdp.kernels.choice", "LARGEST_INDEX", 3, 6, lambda limit: joint(limit, 5, 3)),
    ("cmpg.cmdp.kernels.choice", "LARGEST_INDEX", 3, 6, lambda limit: joint(limit, 5, 3, sparse=True)),
    ("cmpg.games.local.packed", "LARGEST_INDEX", 3, 6, lambda limit: local(limit, 5)),
    ("cmpg.policy", "COMPACT_FROM", 1, 8, lambda limit: local(limit, 5, 8)),
    ("cmpg.policy", "COMPACT_FROM", 1, 8, lambda limit: joint(limit, 9, 2, 8)),
    ("cmpg.games.counting.classes", "MANY", 0, 2, lambda limit: counting(limit, 4, 3)),
    ("cmpg.games.counting.classes", "FEW_ENTRIES", 0, 2, lambda limit: counting(limit, 4, 3, alike=False)),
    ("cmpg.games.counting.classes", "FEW_ENTRIES", 0, 2, lambda limit: counting(limit, 4, 3)),
    ("cmpg.games.counting.counts", "CHUNK", 2, 3, lambda limit: counting(limit, 5, 2, every=True)),
)
"""Where the real size would take seconds, or is reached only together with others: module, constant, small values."""


@pytest.mark.parametrize("limit", [1.0, 1e30])
@pytest.mark.parametrize("case", CONSTANTS, ids=lambda case: f"{case[0]}.{case[1]}")
def test_the_verdict_does_not_depend_on_a_constant_that_chooses_a_path(case, limit, monkeypatch):
    module, name, least, more, claim = case
    before = examined(claim(limit), ROADS)
    found = [before]
    for value in (least, more):
        monkeypatch.setattr(import_module(module), name, value)
        found.append(examined(claim(limit), ROADS))
    assert [each.wrong for each in found] == [()] * 3
    assert {each.verdict for each in found} == {"VIOLATED" if limit == 1 else "PROVEN"}


@pytest.mark.parametrize("limit", [1.0, 1e30])
def test_the_verdict_does_not_depend_on_whether_a_long_kernel_may_be_stopped(limit, monkeypatch):
    verdicts = {examined(joint(limit, 5, 3), ROADS)}
    with limited(time.monotonic() + 1e6):
        verdicts.add(examined(joint(limit, 5, 3), ROADS))
        monkeypatch.setattr("cmpg.cmdp.kernels.choice.LONG", 1)
        verdicts.add(examined(joint(limit, 5, 3), ROADS))
    assert {each.verdict for each in verdicts} == {"VIOLATED" if limit == 1 else "PROVEN"}
    assert {each.wrong for each in verdicts} == {()}


EXACT_WORK = ("verdict.MAX_DECIDING_WORK", "exact.MAX_BITS", "exact.MAX_LINEAR_STATES")


@pytest.mark.parametrize("name", EXACT_WORK)
@pytest.mark.parametrize("above", [True, False])
def test_less_exact_work_leaves_a_threshold_on_the_last_bit_open_and_never_turns_the_verdict(name, above, monkeypatch):
    thirds = np.array([[[1 / 3, 2 / 3]]])
    game = {
        "form": "joint",
        "initial": np.ones(1),
        "transition": np.ones((1, 1, 2, 2, 1)),
        "rewards": np.zeros((2, 1, 1, 2, 2)),
        "costs": np.array([[[[[1.0, 1 / 3], [0.7, 0.1]]]]]),
        "thresholds": np.zeros(1),
    }
    game |= {"discount": 0.75} if name == "exact.MAX_LINEAR_STATES" else {"horizon": 1}
    cost = judge(game).costs([thirds, thirds])[0]
    nearest = float(cost)
    is_above = nearest >= cost
    limit = nearest if is_above is above else np.nextafter(nearest, np.inf if above else -np.inf)
    claim = claim_of(game | {"thresholds": np.array([limit])}, [thirds, thirds])
    decided = examined(claim)
    assert (decided.verdict, decided.wrong) == ("PROVEN" if above else "TO_ROUNDING", ())
    monkeypatch.setattr(f"cmpg.proof.{name}", 0)
    short = examined(claim)
    assert short.wrong == ()
    assert short.verdict in ("TO_ROUNDING", decided.verdict)
