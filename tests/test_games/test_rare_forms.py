"""Games as they rarely come: masks that are printed and sent away, rewards that all share, policies in rationals."""

import pickle
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

import cmpg
from cmpg.equilibrium.certificate import Feasibility
from cmpg.equilibrium.starts.pairs import PairMoves
from cmpg.errors import GameError
from cmpg.games.game import Objective
from cmpg.learning.slater import slater_constant


def masked():
    return cmpg.games.bind(cmpg.scenarios.counter_example(), [[1], [0]])


def test_a_game_with_a_mask_is_printed_like_any_other():
    assert "2 agents" in str(masked())
    assert repr(masked()).startswith("<JointGame ")
    assert "<table" in masked()._repr_html_()


def test_a_game_with_a_mask_can_be_sent_to_another_process():
    game = masked()
    again = pickle.loads(pickle.dumps(game))
    assert np.array_equal(again.binds, game.binds)
    policy = game.uniform_policy()
    assert again.at(policy).costs == game.at(policy).costs
    assert pickle.loads(pickle.dumps(game.at(policy))).game.binds.tolist() == game.binds.tolist()


def test_a_local_game_with_a_mask_is_certified_exactly():
    local = cmpg.games.bind(cmpg.scenarios.grid_world_local(), [[1], [0]])
    exact, floats = (cmpg.certify(local, local.uniform_policy(), exact=exact) for exact in (True, False))
    assert (exact.arithmetic, floats.arithmetic) == ("exact", "floating point")
    assert exact.gains == pytest.approx(floats.gains, rel=1e-12)


def test_pairs_move_in_a_game_with_a_mask_as_in_one_without():
    game = cmpg.scenarios.charging()
    mask = np.ones((game.num_agents, 1))
    mask[0] = 0
    result = cmpg.solve(cmpg.games.bind(game, mask), improve=PairMoves(trades=5))
    assert result.certified


def shared_reward():
    """Three agents who all get what the largest crowd brings, whatever they play themselves."""
    classes = cmpg.games.LargestCount((2,))
    by_class = np.broadcast_to(np.array([1.0, 0.25]), (1, 1, 2, 2))
    return cmpg.CountingGame(
        rewards=np.zeros((1, 1, 2, 4)),
        class_rewards=by_class.copy(),
        classes=classes,
        transition=np.ones((1, 1, 2, 1)),
        costs=np.array([0.0, 1.0]).reshape(1, 1, 1, 2),
        thresholds=[0.5],
        initial=[1.0],
        horizon=1,
    )


def test_a_reward_that_all_share_is_its_own_potential():
    game = shared_reward()
    bounds = [cmpg.solve(each).quality(Objective.POTENTIAL) for each in (game, game.to_joint())]
    assert bounds[0].bound.value == pytest.approx(bounds[1].bound.value, abs=1e-9)
    assert bounds[0].value == pytest.approx(bounds[1].value, abs=1e-9)
    assert game.planner(Objective.POTENTIAL) is not None


def test_a_policy_in_rationals_is_judged_as_it_was_given():
    """Both play their second action with probability 1/3: a ninth, which is no float."""
    for numerator in (Fraction(1, 9), Fraction(1, 9) + Fraction(1, 10**20), Fraction(1, 9) - Fraction(1, 10**20)):
        game = cmpg.scenarios.counter_example(threshold=float(numerator))
        third = [[[Fraction(2, 3), Fraction(1, 3)]]]
        found = cmpg.certify(game, cmpg.JointPolicy((third, third)))
        kept = Fraction(1, 9) <= Fraction(float(numerator))
        assert (found.feasibility is Feasibility.PROVEN) is kept


@pytest.mark.parametrize(
    ("broken", "parts", "words"),
    [
        ("transition", {"indptr": [0, 2, 1, 3, 4]}, "is not a sparse matrix that can be read"),
        ("transition", {"indices": [0, 7, 1, 1]}, "is not a sparse matrix that can be read"),
        ("uses", {"indices": [0, 7, 1, 1]}, "an entry outside of its 2 columns"),
    ],
)
def test_a_sparse_matrix_that_was_put_together_wrongly_is_refused(broken, parts, words):
    """SciPy does not look at the parts of a matrix, and a kernel would follow them anywhere."""
    matrices = {name: sp.csr_array(np.eye(2)[[0, 0, 1, 1]]) for name in ("transition", "uses")}
    for part, entries in parts.items():
        setattr(matrices[broken], part, np.array(entries, dtype=np.int32))
    own = {"transition": [matrices["transition"]], "uses": matrices["uses"], "reward": np.zeros((1, 2, 2))}
    tables = {"delay": np.zeros((1, 2, 3)), "load_costs": np.zeros((0, 1, 2, 3)), "thresholds": []}

    def solved():
        agent = cmpg.LocalAgent(**own, initial=[1.0, 0.0])
        return cmpg.solve(cmpg.LocalGame(agents=(agent, agent), **tables, horizon=2))

    with pytest.raises(GameError, match=words):
        solved()


def test_slack_is_told_of_finite_games_and_is_endless_without_constraints():
    game = cmpg.scenarios.counter_example()
    free = cmpg.JointGame(
        transition=game.transition, rewards=game.rewards, costs=[], thresholds=[], initial=game.initial, horizon=1
    )
    assert slater_constant(free).value == np.inf
    endless = cmpg.JointGame(
        transition=game.transition,
        rewards=game.rewards,
        costs=game.costs,
        thresholds=[1.0],
        initial=game.initial,
        discount=0.5,
    )
    with pytest.raises(cmpg.errors.SolverError, match="computed for a finite horizon; this game is discounted"):
        slater_constant(endless)
