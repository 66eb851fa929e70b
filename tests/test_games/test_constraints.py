"""Whose constraint it is, and when: masks, private budgets, and budgets per window, before exact judges."""

import json
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import cmpg
from cmpg.equilibrium.best_responses import certify_with_best_responses
from cmpg.equilibrium.certificate import certify
from cmpg.equilibrium.result import Status
from cmpg.equilibrium.solve import solve
from cmpg.errors import GameError, PolicyError, UnsupportedError
from cmpg.files.games import load_game, save_game
from cmpg.files.run_folder import load_run
from cmpg.games.check import check_game
from cmpg.games.constraints import bind, by_window
from cmpg.games.counting.game import CountingGame
from cmpg.games.game import binds_of, current
from cmpg.games.joint.game import JointGame
from cmpg.games.local.game import LocalGame
from cmpg.games.local.to_joint import to_joint
from cmpg.policy import JointPolicy
from cmpg.proof import run_files
from oracles.judge import judge
from oracles.random_games import draw, suitable_epsilon
from oracles.sweeping import build
from test_equilibrium.small_crowds import crowd


def two_budgets(rng, *, horizon=2, states=1):
    """Two agents, a common reward, two constraints that both can spend."""
    shape = (horizon, states, 2, 3)
    moves = rng.multinomial(16, np.ones(states) / states, size=shape) / 16
    return JointGame(
        transition=moves,
        rewards=np.broadcast_to(rng.integers(-8, 9, size=shape) / 8, (2, *shape)).copy(),
        costs=rng.integers(0, 9, size=(2, *shape)) / 8,
        thresholds=[0.75, 1.0],
        initial=np.ones(states) / states,
        horizon=horizon,
    )


def plain(game):
    names = ("initial", "transition", "rewards", "costs", "thresholds")
    return {"form": "joint", "horizon": game.horizon} | {name: np.asarray(getattr(game, name)) for name in names}


def test_every_constraint_binds_every_agent_unless_a_mask_says_otherwise():
    game = two_budgets(np.random.default_rng(0))
    assert game.binds is None
    assert bind(game, np.ones((2, 2))).binds is None
    assert binds_of(game).tolist() == [[True, True], [True, True]]
    assert replace(game, binds=[[1, 0], [1, 1]]).binds.tolist() == [[True, False], [True, True]]


@pytest.mark.parametrize(
    ("binds", "problem"),
    [([[1, 1]], r"binds has shape \[1, 2\]"), ([[1, 0.5], [1, 1]], "other than 0 and 1"),
     ([[1, 0], [1, 0]], "constraint 1 binds no agent")],
)  # fmt: skip
def test_bad_masks_are_refused(binds, problem):
    with pytest.raises(GameError, match=problem):
        bind(two_budgets(np.random.default_rng(0)), binds)


def test_bounds_are_those_of_deviations_that_mind_only_what_binds_them():
    rng = np.random.default_rng(1)
    for _ in range(25):
        game = two_budgets(rng)
        binds = np.array([[1, 0], [rng.integers(2), 1]])
        policy = JointPolicy(tuple(rng.dirichlet(np.ones(A), size=(2, 1)) for A in (2, 3)))
        game = game.with_thresholds(game.at(policy).costs + rng.random(2) / 2)
        masked = bind(game, binds)
        certificate = certify_with_best_responses(masked, policy)
        judged = judge(plain(game))
        present = judged.values([np.asarray(table) for table in policy])
        for agent in range(2):
            steps, states, actions = game.policy_shapes[agent]
            for choice in product(range(actions), repeat=steps * states):
                moved = [np.asarray(table) for table in policy]
                moved[agent] = np.eye(actions)[np.array(choice).reshape(steps, states)]
                spent = judged.costs(moved)
                if all(c <= a for c, a, b in zip(spent, judged.thresholds, binds[agent], strict=True) if b):
                    gain = judged.values(moved)[agent] - present[agent]
                    assert gain <= Fraction(float(certificate.gains[agent]))


def test_who_is_not_bound_may_deviate_without_regard_to_a_constraint():
    game = cmpg.scenarios.counter_example()
    at_once = JointPolicy(([[[1.0, 0.0]]], [[[0.5, 0.5]]]))
    shared = certify_with_best_responses(game, at_once)
    private = certify_with_best_responses(bind(game, [[0], [1]]), at_once)
    assert private.gains[0] > shared.gains[0] or private.gains[0] == pytest.approx(shared.gains[0])
    assert private.bounds[0] == pytest.approx(3.0)  # ½·2 + ½·4: the second action, whatever it costs
    assert private.bounds[1] == pytest.approx(shared.bounds[1])


def test_multipliers_of_those_who_are_not_bound_are_refused():
    masked = bind(cmpg.scenarios.counter_example(), [[0], [1]])
    policy = JointPolicy(([[[1.0, 0.0]]], [[[1.0, 0.0]]]))
    for price in (0.5, np.inf):
        with pytest.raises(PolicyError, match=r"multipliers\[0, 0\] is not zero; constraint 0 does not bind agent 0"):
            certify(masked, policy, [[price], [0.0]])


def masked_draws(seeds):
    """Random games of every form with random masks."""
    for seed in seeds:
        drawn = draw(seed)
        constraints = len(drawn.game["thresholds"])
        if not constraints:
            continue
        game = build(drawn.game)
        rng = np.random.default_rng(seed)
        binds = rng.integers(2, size=(game.num_agents, constraints))
        binds[rng.integers(game.num_agents), :] = 1
        yield drawn, bind(game, binds), binds


def test_random_games_with_random_masks_are_certified_only_where_the_judge_agrees():
    certified = 0
    for drawn, game, binds in masked_draws(range(150)):
        result = solve(game, epsilon=suitable_epsilon(drawn.game), time_limit=20)
        if result.incumbent is None or not result.certified:
            continue
        certified += 1
        judged, policy = judge(drawn.game), [np.asarray(table) for table in result.policy]
        assert all(cost <= limit for cost, limit in zip(judged.costs(policy), judged.thresholds, strict=True))
        assert not result.multipliers[binds == 0].any()
        gains = judged.gains(policy, result.multipliers)
        assert all(gain <= Fraction(float(most)) for gain, most in zip(gains, result.certificate.gains, strict=True))
    assert certified > 60


def test_private_budgets_of_a_crowd_are_solved_for_and_written(tmp_path):
    game = crowd(np.random.default_rng(3), agents=3, horizon=3, constraints=2)
    masked = bind(game, [[1, 0], [1, 1], [0, 1]])
    result = solve(masked, epsilon=1e-6)
    assert result.status in (Status.CERTIFIED, Status.LIMIT)
    save_game(masked, tmp_path / "game.json")
    again = load_game(tmp_path / "game.json")
    assert again.binds.tolist() == [[True, False], [True, True], [False, True]]
    assert certify(again, result.policy, result.multipliers).gains == pytest.approx(result.certificate.gains)


def test_a_run_folder_of_a_masked_game_is_read_and_checked(tmp_path):
    game = two_budgets(np.random.default_rng(5))
    own = replace(game, costs=np.stack([np.broadcast_to([[1.0], [0.0]], (2, 1, 2, 3)), game.costs[1]]))
    masked = bind(own, [[1, 1], [0, 1]])
    result = solve(masked, epsilon=1e-6)
    assert result.certified, result.message
    result.save(tmp_path / "run")
    assert load_run(tmp_path / "run").result.certified
    result.report(tmp_path / "page.html")
    assert "binds: agent 0" in (tmp_path / "page.html").read_text("utf-8")
    assert "not bound" in str(result)
    assert script(tmp_path / "run") == 0
    # A price for somebody whom the constraint does not bind proves nothing.
    result.policy.save(tmp_path / "run" / "policy.npz", multipliers=[[0.0, 0.0], [1.0, 0.0]])
    assert script(tmp_path / "run") == 1


def script(run):
    return run_files.main([str(run / "game.npz"), str(run / "policy.npz")])


def test_a_mask_in_a_file_is_checked(tmp_path):
    save_game(bind(two_budgets(np.random.default_rng(0)), [[1, 0], [1, 1]]), tmp_path / "game.json")
    fields = json.loads((tmp_path / "game.json").read_text("utf-8"))
    assert fields["binds"] == [[1, 0], [1, 1]]
    fields["binds"] = [[1, 0], [1, 2]]
    (tmp_path / "game.json").write_text(json.dumps(fields))
    with pytest.raises(GameError, match=r"game\.json: binds has an entry other than 0 and 1"):
        load_game(tmp_path / "game.json")


def test_exact_mode_keeps_the_mask():
    masked = bind(two_budgets(np.random.default_rng(7)), [[1, 0], [1, 1]])
    result = solve(masked.exact(), epsilon=1e-6)
    assert result.game.binds.tolist() == [[True, False], [True, True]]
    if result.incumbent is not None:
        assert result.certificate.arithmetic == "exact"


def forms():
    """One small game of every form with two constraints, at most one of which binds agent 0."""
    rng = np.random.default_rng(4)
    for game in (
        two_budgets(rng, horizon=3, states=2),
        crowd(rng, agents=2, horizon=3, constraints=2),
        by_window(by_counting(rng), [(0, 2), (1, 3)], 0.5),
    ):
        mask = np.ones((game.num_agents, len(game.thresholds)), dtype=int)
        mask[0, 0] = 0
        yield bind(game, mask)


def test_every_way_to_write_a_game_keeps_its_mask(tmp_path):
    for game in forms():
        mask = game.binds.tolist()
        joint = to_joint(game) if isinstance(game, LocalGame) else game
        joint = joint.to_joint() if isinstance(joint, CountingGame) else joint
        assert joint.binds.tolist() == mask
        assert game.with_thresholds(game.thresholds + 1).binds.tolist() == mask
        save_game(game, tmp_path / "game.npz")
        assert load_game(tmp_path / "game.npz").binds.tolist() == mask
        if not isinstance(game, LocalGame):
            assert game.exact().binds.tolist() == mask
        split = by_window(game, 1, 0.5, constraint=0)
        assert not split.binds[0, -3:].any()  # what did not bind agent 0 does not in any of its windows
        assert split.binds[1:].all()


def test_an_agent_faces_only_what_binds_it_and_a_position_counts_everything():
    for game in forms():
        plain = replace(game, binds=None)
        policy = JointPolicy.random(game.policy_shapes, rng=np.random.default_rng(8))
        here, there = game.at(policy), plain.at(policy)
        assert here.costs.tolist() == there.costs.tolist()
        assert here.values.tolist() == there.values.tolist()
        assert here.cost_rounding.tolist() == there.cost_rounding.tolist()
        mine, all_of_it = here.induced_cmdp(0), there.induced_cmdp(0)
        assert not mine.costs[0].any()
        assert mine.thresholds[0] == 1
        assert mine.costs[1:].tolist() == all_of_it.costs[1:].tolist()
        assert current(here, 0).costs[0] == 0
        assert here.forbidden(0, 0) is None
        assert check_game(game).passed, str(check_game(game))


def test_a_mask_takes_nothing_from_what_a_game_can_do():
    """The wrapped games of old lost their planner, their bounds and their dynamics on Python 3.12."""
    grid = cmpg.scenarios.grid_world()
    solved = solve(bind(grid, [[1], [0]]))
    assert solved.values.sum() == pytest.approx(46.2, abs=0.05)
    assert solve(bind(cmpg.scenarios.counter_example(threshold=-0.1), [[1], [0]])).status is Status.INFEASIBLE
    assert cmpg.simulate(solved.game, solved.policy, 10, rng=np.random.default_rng(0)).episodes == 10


@pytest.mark.parametrize("shares", [(1e-200, 1e-200), (1e-160, 1e-170)])
def test_products_too_small_for_floats_count_under_a_mask(shares):
    game = JointGame.from_matrices(np.zeros((2, 2)), cost=[[0, 0], [0, 1]], threshold=0.0)
    policy = JointPolicy(tuple([[[1.0, share]]] for share in shares))
    assert not certify(bind(game, [[1], [0]]), policy).feasible


def test_a_class_without_a_mask_says_what_it_needs():
    with pytest.raises(UnsupportedError, match="has no `with_binds`"):
        bind(object(), [[1]])


# --- Windows ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("windows", [1, 2, [(0, 2), (1, 3)]])
def test_windows_add_up_what_is_spent_within_them(windows):
    rng = np.random.default_rng(2)
    for game in (
        two_budgets(rng, horizon=3, states=2),
        crowd(rng, agents=3, horizon=3, constraints=2),
        by_counting(rng),
    ):
        pairs = [(h, min(h + windows, 3)) for h in range(0, 3, windows)] if isinstance(windows, int) else windows
        split = by_window(game, windows, 0.5, constraint=0)
        kept = len(game.thresholds) - 1
        assert split.thresholds.tolist() == [*game.thresholds[1:], *[0.5] * len(pairs)]
        policy = JointPolicy.random(game.policy_shapes, rng=rng)
        per_step = by_window(game, 1, 0.0, constraint=0).at(policy).costs[kept:]
        spent = split.at(policy).costs
        assert spent[:kept] == pytest.approx(game.at(policy).costs[1:])
        assert spent[kept:] == pytest.approx([per_step[first:end].sum() for first, end in pairs])
        assert per_step.sum() == pytest.approx(game.at(policy).costs[0])


def by_counting(rng):
    game = cmpg.scenarios.counting_congestion_game(num_agents=3)
    return replace(
        game,
        constraint_names=None,
        horizon=3,
        costs=np.concatenate([game.costs, game.costs * rng.random()]),
        thresholds=[0.5, 1.0],
    )


def test_a_budget_for_every_hour_is_kept_in_every_hour():
    game = by_window(cmpg.scenarios.charging(), 1, 0.1)
    assert len(game.thresholds) == 24
    result = solve(game, epsilon=1e-3)
    assert result.certified, result.message
    assert (result.costs <= 0.1 + 1e-12).all()


@pytest.mark.parametrize(
    ("windows", "options", "problem"),
    [(0, {}, "at least one step"), ([], {}, "no window"), ([(0, 9)], {}, "not within the 2 steps"),
     ([(1, 1)], {}, "0 ≤ first < end"), (1, {"constraint": 2}, "the game has 2")],
)  # fmt: skip
def test_bad_windows_are_refused(windows, options, problem):
    with pytest.raises(GameError, match=problem):
        by_window(two_budgets(np.random.default_rng(0)), windows, 0.5, **options)


def test_a_game_without_a_last_step_has_no_windows():
    game = replace(two_budgets(np.random.default_rng(0), horizon=1), horizon=None, discount=0.5)
    with pytest.raises(GameError, match="no last step"):
        by_window(game, 1, 0.5)
    with pytest.raises(UnsupportedError, match="cannot be split by windows"):
        by_window(object(), 1, 0.5)
