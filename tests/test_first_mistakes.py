"""What newcomers pass by mistake is answered with a sentence: what was found, what is required, what to do."""

import numpy as np
import pytest

import cmpg
from cmpg import duality, equilibrium, games, scenarios, sweeps
from cmpg.errors import CMPGError

GAME = scenarios.counter_example()
POLICY = GAME.uniform_policy()
TABLES = [[[[1, 0]]], [[[1, 0]]]]
RESULT = cmpg.solve(GAME)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: cmpg.solve(GAME, epsilon="1e-6"), "epsilon is '1e-6'; a number is required"),
        (lambda: cmpg.solve(GAME, epsilon=None), "epsilon is None; a number is required"),
        (lambda: cmpg.solve(GAME, epsilon=float("nan")), "epsilon is nan; it must be positive"),
        (lambda: cmpg.solve(GAME, method="lp"), r"method is 'lp'; an Ascent is required, such as Ascent\(\)"),
        (lambda: cmpg.solve(GAME, method=cmpg.Exact()), r"such as Ascent\(solver=Exact\("),
        (lambda: cmpg.solve(GAME, time_limit="3"), "time_limit is '3'; a number is required"),
        (lambda: cmpg.solve(GAME, on_progress=True), "on_progress is True; a function"),
        (lambda: cmpg.solve(GAME, improve="none"), r"improve is 'none'; PairMoves\(\) or None"),
        (lambda: cmpg.quality(GAME), "the result is a JointGame; what `cmpg.solve` returns"),
        (lambda: cmpg.quality(RESULT, "total"), "objective is 'total'; Objective.WELFARE or"),
        (lambda: cmpg.recommend(GAME, "rotaa"), "concept is 'rotaa'; one of .*Concept.ROTA"),
        (lambda: cmpg.recommend("game.json"), r"read the file first: cmpg.load_game\('game.json'\)"),
        (lambda: cmpg.feasible_start(POLICY), "a JointPolicy is not a game"),
        (
            lambda: cmpg.coordinate_ascent(GAME, None, epsilon=0.1),
            "the policy is a NoneType; a JointPolicy is required",
        ),
        (lambda: GAME.at(TABLES), r"the policy is a list; .*JointPolicy\(tables\)"),
        (lambda: scenarios.spectrum().at("p.npz"), r"cmpg.read_policy\('p.npz', game\)"),
        (lambda: scenarios.charging().at(None), "the policy is a NoneType"),
        (lambda: scenarios.counting_congestion_game().at(None), "the policy is a NoneType"),
        (lambda: games.cost_law(GAME, TABLES), "the policy is a list"),
        (lambda: games.with_chances(GAME, "cost>0:0.1"), r"a Chance is required: Chance.of\('cost>0:0.1'\)"),
        (lambda: cmpg.simulate(GAME, TABLES, 10, rng=np.random.default_rng(1)), "the policy is a list"),
        (lambda: cmpg.JointPolicy(3), r"one table \[H, S, A_i\] for each agent, .*; 3 is given"),
        (lambda: cmpg.JointPolicy.uniform(GAME), "shapes is a JointGame; .*game.policy_shapes"),
        (lambda: cmpg.JointPolicy.from_callable(GAME, lambda *_: 0), "shapes is a JointGame; .*game.policy_shapes"),
        (lambda: cmpg.JointPolicy.from_callable(GAME.policy_shapes, 3), "a function of .agent, observation, step."),
        (lambda: POLICY.replace(7, TABLES[0]), "there is no agent 7; the 2 agents count from 0"),
        (lambda: POLICY.replace("Ada", TABLES[0]), "there is no agent 'Ada'"),
        (lambda: cmpg.judge_side_by_side(GAME, [POLICY]), "policies is a list; names with policies"),
        (lambda: cmpg.load_game({}), "a path is required, .*; a dict is given"),
        (lambda: cmpg.load_policy(None), "a path is required"),
        (lambda: cmpg.read_policy(GAME, "p.csv"), "a path is required, .*; a JointGame is given"),
        (lambda: cmpg.load_run(None), "a path is required"),
        (lambda: cmpg.load_device(3), "a path is required"),
        (lambda: cmpg.load_recommendation(3), "a path is required"),
        (lambda: RESULT.save(3), "a path is required"),
        (lambda: RESULT.report(3), "a path is required"),
        (lambda: POLICY.save(3), "a path is required"),
        (lambda: sweeps.load_sweep(3), "a path is required"),
        (lambda: sweeps.sweep("charging", None), "the grid is a NoneType; options by name"),
        (lambda: sweeps.sweep(GAME, {"capacity": [1]}), "the builder is a JointGame; the name of a scenario"),
        (lambda: scenarios.scenario(None), "a scenario is named by a word, such as 'charging'; None"),
        (lambda: equilibrium.theorem_1_bound(GAME, 0), "epsilon is 0; it must be positive"),
    ],
)
def test_a_mistake_is_answered_with_a_sentence(call, words):
    with pytest.raises(CMPGError, match=words):
        call()


def test_a_function_keeps_its_name_where_a_file_has_the_same():
    import cmpg.duality.dual_function
    import cmpg.equilibrium.solve
    from cmpg.duality import dual_function

    assert callable(duality.dual_function)
    assert duality.dual_function is dual_function
    assert callable(equilibrium.solve)
    assert equilibrium.solve is cmpg.solve
