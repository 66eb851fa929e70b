"""PRISM models of CMDPs: their text, and what Storm says about them if it is installed."""

import re
from dataclasses import replace

import numpy as np
import pytest

from cmpg.cmdp.exact import Exact
from cmpg.cmdp.model import CMDP
from cmpg.errors import GameError
from cmpg.interop import to_prism
from cmpg.policy import JointPolicy
from cmpg.scenarios import charging, counter_example, grid_world, spectrum


def induced(game, agent=0):
    """What an agent faces whose others play their first action: they idle."""
    tables = [np.eye(actions)[np.zeros((steps, states), dtype=int)] for steps, states, actions in game.policy_shapes]
    return game.at(JointPolicy(tuple(tables))).induced_cmdp(agent)


CMDPS = {
    "one shot": lambda: induced(counter_example(threshold=0.25)),
    "several states": lambda: induced(spectrum()),
    "sparse": lambda: grid_world(horizon=4).joint_cmdp(),
    "negative rewards": lambda: induced(charging(), 3),
    "discounted": lambda: induced(replace(spectrum(), horizon=None, discount=0.8)),
    "negative costs": lambda: replace(induced(spectrum()), costs=induced(spectrum()).costs - 0.5, thresholds=[-0.9]),
    "no constraints": lambda: replace(induced(spectrum()), costs=np.zeros((0, 1, 4, 3)), thresholds=[]),
    "two constraints": lambda: replace(
        induced(spectrum()),
        costs=np.concatenate([induced(spectrum()).costs, np.arange(24.0).reshape(1, 2, 4, 3)]),
        thresholds=[0.1, 22.0],
    ),
}
each_kind = pytest.mark.parametrize("build", CMDPS.values(), ids=CMDPS)


def test_a_model_word_by_word():
    cmdp = CMDP(
        transition=[[[[1, 0], [0.25, 0.75]], [[0, 1], [0, 1]]]],
        reward=[[[0, 1], [-2, 0]]],
        costs=[[[[0, 1], [0, 0]]]],
        thresholds=[0.5],
        initial=[1, 0],
        horizon=2,
    )
    problem = to_prism(cmdp)
    assert problem.reward_offset == 4.0
    assert problem.model.splitlines() == [
        "// the constrained Markov decision process of one agent",
        "// reward: subtract 4.0",
        "mdp",
        "module agent",
        "  h : [-1..2] init -1;",
        "  s : [0..1] init 0;",
        "  [] h=-1 -> 1.0:(h'=0) & (s'=0);",
        "  [a0] h=0 & s=0 -> 1.0:(h'=1) & (s'=0);",
        "  [a1] h=0 & s=0 -> 0.25:(h'=1) & (s'=0) + 0.75:(h'=1) & (s'=1);",
        "  [a0] h=1 & s=0 -> 1.0:(h'=2) & (s'=0);",
        "  [a1] h=1 & s=0 -> 0.25:(h'=2) & (s'=0) + 0.75:(h'=2) & (s'=1);",
        "  [a0] h=1 & s=1 -> 1.0:(h'=2) & (s'=1);",
        "  [a1] h=1 & s=1 -> 1.0:(h'=2) & (s'=1);",
        "  [] h=2 -> true;",
        "endmodule",
        'rewards "reward"',
        "  true : 0;",
        "  [a0] h=0 & s=0 : 2.0;",
        "  [a1] h=0 & s=0 : 3.0;",
        "  [a0] h=1 & s=0 : 2.0;",
        "  [a1] h=1 & s=0 : 3.0;",
        "  [a1] h=1 & s=1 : 2.0;",
        "endrewards",
        'rewards "cost_0"',
        "  true : 0;",
        "  [a1] h=0 & s=0 : 1.0;",
        "  [a1] h=1 & s=0 : 1.0;",
        "endrewards",
    ]
    assert problem.properties.splitlines()[-1] == 'multi(R{"reward"}max=? [ C ], R{"cost_0"}<=0.5 [ C ])'


def interpreted(model):
    """Read a model of ours again, as PRISM would: one state for each pair of h and s that it names."""
    pairs = {(-1, 0): 0}
    moves, gains = {}, {}
    kind = ""
    for line in model.splitlines():
        if found := re.match(r'rewards "(\w+)"', line):
            kind = found[1]
        if found := re.match(r"  \[(\w*)\] h=(-?\d+)(?: & s=(\d+))? -> (.*);", line):
            here = (int(found[2]), int(found[3] or 0))
            parts = re.findall(r"([\d.e-]+):\(h'=(-?\d+)\)(?: & \(s'=(\d+)\))?", found[4])
            moves[here, found[1]] = [(float(p), (int(h), int(s or 0))) for p, h, s in parts]
            for _, there in moves[here, found[1]]:
                pairs.setdefault(there, len(pairs))
        if found := re.match(r"  \[(\w+)\] h=(-?\d+) & s=(\d+) : (.*);", line):
            gains[kind, (int(found[2]), int(found[3])), found[1]] = float(found[4])
    return pairs, moves, gains


@each_kind
def test_the_model_says_what_the_cmdp_says(build):
    """Values of a policy by backward induction over the text of the model are those of the CMDP."""
    from cmpg.cmdp.evaluation import evaluate

    cmdp = build()
    problem = to_prism(cmdp)
    _, moves, gains = interpreted(problem.model)
    rng = np.random.default_rng(0)
    steps = 1 if cmdp.horizon is None else cmdp.horizon
    table = rng.dirichlet(np.ones(cmdp.num_actions), size=(steps, cmdp.num_states))
    kinds = ["reward", *(f"cost_{j}" for j in range(cmdp.num_constraints))]
    here = {(-1, 0): 1.0}
    total = dict.fromkeys(kinds, 0.0)
    for _ in range(300 if cmdp.horizon is None else steps + 1):
        ahead = {}
        for pair, mass in here.items():
            if (pair, "") in moves:
                choices = [("", 1.0)]
            elif pair[0] >= steps:
                continue
            else:
                choices = [(f"a{a}", table[pair[0], pair[1], a]) for a in range(cmdp.num_actions)]
            for action, weight in choices:
                for kind in kinds:
                    total[kind] += mass * weight * gains.get((kind, pair, action), 0.0)
                for p, there in moves[pair, action]:
                    ahead[there] = ahead.get(there, 0.0) + mass * weight * p
        here = ahead
    truth = evaluate(cmdp, table)
    assert total["reward"] - problem.reward_offset == pytest.approx(float(truth.value), abs=1e-9)
    for j, cost in enumerate(truth.costs):
        assert total[f"cost_{j}"] - problem.cost_offsets[j] == pytest.approx(float(cost), abs=1e-9)


def test_a_model_that_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr("cmpg.interop.prism.MAX_COMMANDS", 100)
    cmdp = CMDP(
        transition=np.ones((1, 1, 2, 1)),
        reward=[[[0, 1]]],
        costs=np.zeros((0, 1, 1, 2)),
        thresholds=[],
        initial=[1.0],
        horizon=51,
    )
    assert to_prism(replace(cmdp, horizon=50)).model
    with pytest.raises(GameError, match="more than 100 commands"):
        to_prism(cmdp)


@each_kind
def test_storm_finds_the_same_best_response(build, tmp_path):
    storm = pytest.importorskip("stormpy", reason="NOT TESTED AGAINST STORM: stormpy is not installed")
    cmdp = build()
    problem = to_prism(cmdp)
    (tmp_path / "model.prism").write_text(problem.model)
    program = storm.parse_prism_program(str(tmp_path / "model.prism"))
    question = problem.properties.splitlines()[-1]
    asked = storm.parse_properties(question, program)
    model = storm.build_model(program, asked)
    environment = storm.Environment()
    environment.modelchecker().multi().precision = storm.Rational("1/10000000000")
    found = storm.model_checking(model, asked[0], environment=environment)
    answer = found.get_value(model.initial_states[0]) - problem.reward_offset
    assert answer == pytest.approx(float(Exact()(cmdp).value), abs=1e-9)
