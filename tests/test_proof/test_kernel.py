"""The kernel against an exact judge, and the claims that were once proved and false."""

import ast
import contextlib
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import cmpg.proof
from cmpg.games import JointGame, LocalAgent, LocalGame
from cmpg.policy import JointPolicy
from cmpg.proof.check import check
from cmpg.proof.claim import AgentTables, Claim, ClaimError, Csr, LocalTables
from cmpg.proof.exact import check_exactly
from cmpg.scenarios import counter_example, grid_world


def claimed(game, policy, multipliers, binds=None):
    shape = (game.num_agents, len(game.thresholds))
    mask = np.ones(shape, dtype=bool) if binds is None else np.asarray(binds, dtype=bool)
    tables = JointPolicy(tuple(policy)).tables
    return Claim(
        game.claim_tables(), game.horizon, game.discount, game.thresholds, mask, tables, np.asarray(multipliers)
    )


def within(ball, i, exact):
    return Fraction(float(ball.lower[i])) <= exact <= Fraction(float(ball.upper[i]))


def test_the_kernel_imports_nothing_of_the_library_and_nothing_but_numpy_besides():
    for path in Path(cmpg.proof.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                top = name.split(".")[0]
                assert name.startswith("cmpg.proof") or top == "numpy" or top in sys.stdlib_module_names, (path, name)


def test_bounds_are_tight_on_the_grid_world():
    game = grid_world()
    claim = claimed(game, game.uniform_policy(), np.ones((2, 1)))
    said = check(claim)
    assert (said.costs.rad < 1e-12).all()
    assert (said.values.rad < 1e-11).all()
    # The same bound from another evaluation, which has a rounding of its own.
    cmdp = game.at(game.uniform_policy()).induced_cmdp(0)
    from cmpg.cmdp.planning import dual_bound

    assert said.bounds[0] == pytest.approx(dual_bound(cmdp, np.ones(1)), rel=1e-12)


def test_a_deviation_that_is_worth_more_is_seen():
    game = counter_example()
    said = check(claimed(game, game.uniform_policy(), np.zeros((2, 1))))
    assert said.gains == pytest.approx([0.25, 0.25])


def nearly_certain(states):
    """Agent 1 plays [1, 1e-17] in state 0, and thereby leads to a state of cost 1e20; all other states are idle."""
    transition, costs = np.zeros((1, states, 1, 2, states)), np.zeros((1, 1, states, 1, 2))
    transition[0, :, :, :, 0] = 1
    transition[0, 0, 0, 1] = np.eye(states)[1]
    costs[0, 0, 1] = 1e20
    initial = np.eye(states)[0]
    rewards = np.zeros((2, 1, states, 1, 2))
    game = JointGame(transition=transition, rewards=rewards, costs=costs, thresholds=[1.0], initial=initial, horizon=2)
    own = np.broadcast_to([1.0, 1e-17], (2, states, 2))
    return game, (np.ones((2, states, 1)), own)


@pytest.mark.parametrize("states", [2, 600])
def test_a_row_that_is_nearly_certain_costs_what_it_may_lead_to(states):
    game, policy = nearly_certain(states)
    said = check(claimed(game, policy, np.zeros((2, 1))))
    assert said.costs.lower[0] > 999


def test_with_discount_zero_only_the_first_step_is_forbidden_anything():
    transition, costs = np.zeros((1, 2, 2, 2)), np.zeros((1, 1, 2, 2))
    transition[0, 0, 0, 1] = transition[0, 0, 1, 0] = 1
    transition[0, 1, :, 1] = 1
    costs[0, 0, 1] = 1
    rewards = np.zeros((1, 1, 2, 2))
    rewards[0, 0, 0, 0] = 1
    game = JointGame(
        transition=transition, rewards=rewards, costs=costs, thresholds=[0.0], initial=[1.0, 0.0], discount=0.0
    )
    said = check(claimed(game, ([[[0.0, 1.0], [0.0, 1.0]]],), [[np.inf]]))
    assert said.gains[0] >= 1
    assert said.kept == (True,)


def test_a_system_that_is_singular_in_floats_proves_nothing_and_does_not_end_the_check():
    """1/3 + 2/3 as rows of floats with a discount next to one leave nothing of I − γP."""
    third = np.array([1 / 3, 2 / 3])
    for rows in (np.array([third, third]), np.array([[0.5, 0.5], [1.0, 0.0]]), np.eye(2)):
        for discount in (1 - 2.0**-53, 1 - 2.0**-52):
            game = JointGame(
                transition=rows[None, :, None],
                rewards=[[[[1.0], [0.0]]]],
                costs=np.zeros((0, 1, 2, 1)),
                thresholds=[],
                initial=[0.5, 0.5],
                discount=discount,
            )
            found = check(claimed(game, game.uniform_policy(), np.zeros((1, 0))))
            assert not found.gains[0] < 0
    with monkeypatched_solve():
        found = check(claimed(game, game.uniform_policy(), np.zeros((1, 0))))
    # The values are 2^52 and 0, and what is said of them holds both.
    assert found.values.lower[0] <= 2.0**51 <= found.values.upper[0]


def patient(discount, bonus=0.0):
    """Two agents with a common reward between 1000 and 1001 in two states that mix; action 0 is best for both."""
    transition = np.zeros((1, 2, 2, 2, 2))
    transition[..., 0] = 0.7
    transition[0, 1, ..., 0] = 0.4
    transition[..., 1] = 1 - transition[..., 0]
    common = 1000 + np.array([[[0.9, 0.1], [0.1, 0.3]], [[0.6, 0.2], [0.3, 0.1]]])
    rewards = np.stack([common, common])[:, None]
    rewards[0, 0, 0, 1, 0] += bonus
    costs = np.ones((1, 1, 2, 2, 2)) / 3
    return JointGame(
        transition=transition, rewards=rewards, costs=costs, thresholds=[1e6], initial=[0.5, 0.5], discount=discount
    )


def test_what_rounding_costs_grows_as_the_time_that_discounted_sums_look_ahead():
    """At discount 0.9999, with values of 10^7, residuals of the values themselves would cost some 10^-4."""
    first = np.broadcast_to([1.0, 0.0], (1, 2, 2))
    claim = claimed(patient(0.9999), (first, first), np.zeros((2, 1)))
    exact, said = check_exactly(claim), check(claim)
    assert exact.gains == [0, 0]
    assert said.gains.max() < 1e-6
    assert all(within(said.values, i, exact.values[i]) for i in range(2))
    assert within(said.costs, 0, exact.costs[0])


def test_a_gain_for_ever_is_seen_next_to_rounding():
    """Agent 0 gets 10^-5 more for action 1 in state 0, in the mean of every other step."""
    first = np.broadcast_to([1.0, 0.0], (1, 2, 2))
    claim = claimed(patient(0.9999, bonus=0.8 + 1e-5), (first, first), np.zeros((2, 1)))
    exact, said = check_exactly(claim).gains[0], check(claim).gains[0]
    assert exact > 0.01
    assert exact <= Fraction(float(said)) < exact + Fraction(1, 10**6)


@pytest.mark.parametrize("seed", range(8))
def test_discounted_bounds_are_proved_by_an_inequality_and_not_by_the_sweeps_that_found_them(seed, monkeypatch):
    """Values of one policy alone, values that are not converged, or any numbers: bounds become wide, and none false."""
    rng, game = np.random.default_rng(seed), patient(0.99, bonus=1.5)
    policy = tuple(rng.dirichlet(np.ones(2), size=(1, 2)) for _ in range(2))
    claim = claimed(game, policy, np.zeros((2, 1)))
    truth = check_exactly(claim).gains
    assert max(truth) > 0.1
    followed = np.array([float(each) for each in check_exactly(claim).values[:1] * 2])
    tables = [followed, np.zeros(2), 1e5 + rng.normal(size=2), -1e5 * rng.random(2)]
    for table in tables:
        monkeypatch.setattr("cmpg.proof.check._policy_iteration", lambda *_, table=table: (table, table))
        said = check(claim).gains
        assert all(Fraction(float(mine)) >= gain for mine, gain in zip(said, truth, strict=True))


@contextlib.contextmanager
def monkeypatched_solve():
    """Let no linear system have a solution."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np.linalg, "solve", singular)
        yield


def singular(*_):
    raise np.linalg.LinAlgError


def test_a_delay_that_falls_with_the_load_is_met_with_the_probability_that_others_are_idle():
    own = {"transition": np.ones((1, 1, 2, 1)), "reward": np.zeros((1, 1, 2)), "initial": [1.0]}
    first = LocalAgent(uses=np.array([[[[1.0], [0.0]]]]), **own)
    second = LocalAgent(uses=np.array([[[[0.0], [1.0]]]]), **own)
    delay = np.array([[[0.0, -1e20, 0.0]]])
    game = LocalGame(agents=(first, second), delay=delay, load_costs=np.zeros((0, 1, 1, 3)), thresholds=[], horizon=1)
    said = check(claimed(game, ([[[1.0, 1e-17]]], [[[1.0, 0.0]]]), np.zeros((2, 0))))
    assert said.gains[1] >= 1000


def test_an_agent_may_ignore_what_does_not_bind_it():
    game = counter_example()
    game = game.with_thresholds([0.0])
    policy = ([[[1.0, 0.0]]], [[[1.0, 0.0]]])
    assert check(claimed(game, policy, [[0.0], [np.inf]], [[0], [1]])).gains[1] == 0
    with pytest.raises(ClaimError, match="does not bind"):
        claimed(game, policy, [[1.0], [0.0]], [[0], [1]])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"multipliers": np.array([[-1.0], [0.0]])}, "negative"),
        ({"multipliers": np.array([[np.nan], [0.0]])}, "not a finite number"),
        ({"thresholds": np.zeros(2)}, "shape"),
        ({"horizon": None}, "exactly one"),
        ({"policy": (np.array([[[0.5, 0.6]]]), np.array([[[1.0, 0.0]]]))}, "no probability distribution"),
        ({"policy": (np.array([[[1.5, -0.5]]]), np.array([[[1.0, 0.0]]]))}, "no probability distribution"),
        ({"policy": (np.array([[[1.0, 0.0]]]),)}, "shape"),
        # What is divided or added in single precision has errors that no bound of the kernel counts.
        ({"policy": (np.array([[[0.5, 0.5]]], dtype=np.float32), np.array([[[1.0, 0.0]]]))}, "holds float32 entries"),
        ({"thresholds": np.array([2**60 + 1])}, "holds int64 entries"),
        ({"multipliers": np.zeros((2, 1), dtype=np.longdouble)}, "entries; floats"),
        ({"binds": np.ones((2, 1))}, "no table of truth values"),
    ],
)
def test_tables_that_do_not_fit_are_refused(change, message):
    game = counter_example()
    claim = claimed(game, game.uniform_policy(), np.zeros((2, 1)))
    with pytest.raises(ClaimError, match=message):
        Claim(**{**vars(claim), **change})


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("transition", {"data": np.array([1.5, -0.5, 1.0])}, "a row that is no probability distribution"),
        ("transition", {"data": np.array([0.5, 0.4, 1.0])}, "a row that is no probability distribution"),
        ("transition", {"data": np.array([np.nan, 0.5, 1.0])}, "an entry that is not a finite number"),
        ("transition", {"indices": np.array([1, 1, 0])}, "an entry outside of its 2 columns, or twice in one place"),
        ("transition", {"indices": np.array([0, 2, 0])}, "an entry outside of its 2 columns, or twice in one place"),
        ("transition", {"indices": np.array([0, -1, 0])}, "an entry outside of its 2 columns, or twice in one place"),
        ("transition", {"indptr": np.array([0, 3, 2])}, "no sparse matrix"),
        ("transition", {"indptr": np.array([0, 4, 3])}, "no sparse matrix"),
        ("uses", {"data": np.array([0.5])}, "an entry other than 0 and 1"),
    ],
)
def test_a_sparse_table_that_says_nothing_is_refused_with_the_agent_whose_it_is(name, change, message):
    agents = [
        AgentTables(
            initial=np.array([1.0, 0.0]),
            transition=(Csr(np.array([0, 2, 3]), np.array([0, 1, 0]), np.array([0.5, 0.5, 1.0]), 2),),
            uses=(Csr(np.array([0, 1, 1]), np.array([0]), np.ones(1), 1),),
            reward=np.zeros((1, 2, 1)),
            costs=None,
        )
        for _ in range(2)
    ]
    claim = local_claim(agents)
    assert check(claim).gains.tolist() == [0, 0]
    wrong = getattr(agents[1], name)[0]._replace(**change)
    with pytest.raises(ClaimError, match=f"{name} of agent 1 (has|is) {message}"):
        local_claim([agents[0], replace(agents[1], **{name: (wrong,)})])


def test_a_table_that_two_agents_share_has_to_fit_both():
    share = Csr(np.arange(5), np.zeros(4, dtype=np.int64), np.ones(4), 2)
    none = Csr(np.zeros(5, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0), 1)
    two = AgentTables(np.array([1.0, 0.0]), (share,), (none,), np.zeros((1, 2, 2)), None)
    with pytest.raises(ClaimError, match="transition of agent 1"):
        local_claim([two, replace(two, initial=np.ones(1), reward=np.zeros((1, 1, 4)))])


def local_claim(agents) -> Claim:
    """Agents of one step who meet at one resource that delays nobody, and take each action as often."""
    policy = [np.full(each.reward.shape, 1 / each.reward.shape[2]) for each in agents]
    count = len(agents)
    return Claim(
        tables=LocalTables(tuple(agents), np.zeros((1, 1, count + 1)), np.zeros((0, 1, 1, count + 1))),
        horizon=1,
        discount=None,
        thresholds=np.zeros(0),
        binds=np.ones((count, 0), dtype=bool),
        policy=tuple(policy),
        multipliers=np.zeros((count, 0)),
    )
