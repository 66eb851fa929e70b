"""Claims by support before the script that a page hands out: random games in which somebody has nothing to spend."""

import re
import sys

import numpy as np
import pytest

import cmpg
from cmpg.cmdp.planning import plan
from cmpg.equilibrium.certificate import certify
from cmpg.report import independent_check

EPSILON = 0.3


def rows(rng, shape):
    """Distributions in eighths, some of them certain."""
    size = shape[-1]
    drawn = rng.multinomial(8, np.ones(size) / size, size=shape[:-1]) / 8
    certain = np.eye(size)[rng.integers(size, size=shape[:-1])]
    return np.where(rng.random((*shape[:-1], 1)) < 0.7, certain, drawn)


def payments(rng, shape, zeros=0.6):
    """Costs in eighths, of both signs, many of them zero."""
    return rng.integers(-2, 5, size=shape) / 8 * (rng.random(shape) >= zeros)


def joint_game(rng):
    """Two or three agents, two constraints, up to three steps."""
    horizon, choices = int(rng.integers(1, 4)), rng.integers(1, 4, size=rng.integers(2, 4)).tolist()
    steps = int(rng.choice([1, horizon]))
    return cmpg.JointGame(
        transition=rows(rng, (steps, 2, *choices, 2)),
        rewards=rng.integers(-4, 5, size=(len(choices), steps, 2, *choices)) / 4,
        costs=payments(rng, (2, steps, 2, *choices), 0.8),
        thresholds=[0.0, 0.0],
        initial=rows(rng, (2,)),
        horizon=horizon,
    )


def local_game(rng):
    """Two or three agents at two resources, with costs of their own and of loads, up to three steps."""
    count, horizon = int(rng.integers(2, 4)), int(rng.integers(1, 4))
    steps = int(rng.choice([1, horizon]))
    agents = tuple(
        cmpg.LocalAgent(
            transition=rows(rng, (steps, 2, 3, 2)),
            reward=rng.integers(-4, 5, size=(steps, 2, 3)) / 4,
            uses=rng.random((steps, 2, 3, 2)) < 0.5,
            initial=rows(rng, (2,)),
            costs=payments(rng, (2, steps, 2, 3), 0.8),
        )
        for _ in range(count)
    )
    return cmpg.LocalGame(
        agents=agents,
        delay=rng.integers(0, 4, size=(steps, 2, count + 1)) / 8,
        load_costs=payments(rng, (2, steps, 2, count + 1), 0.7).cumsum(axis=-1),
        thresholds=[0.0, 0.0],
        horizon=horizon,
    )


def claim(seed):
    """A game in which an agent can do no better than to spend all, its policy, and multipliers that say so."""
    rng = np.random.default_rng(seed)
    game = joint_game(rng) if seed % 2 else local_game(rng)
    policy = cmpg.JointPolicy(tuple(rows(rng, shape) for shape in game.policy_shapes))
    agent, hard = int(rng.integers(game.num_agents)), rng.random(2) < [0.9, 0.3]
    cmdp = game.at(policy).induced_cmdp(agent)
    thrifty = plan(cmdp, hard.astype(float), reward_weight=0.0).policy(cmdp.num_actions)
    spent = game.at(policy.replace(agent, thrifty)).costs
    if rng.random() < 0.8:
        policy = policy.replace(agent, thrifty)
    spare = np.where(hard, rng.choice([0.0, 0.0, 0.0, 0.0, 0.125, -0.125]), rng.choice([0.0, 0.5]))
    multipliers = rng.integers(0, 3, size=(game.num_agents, 2)) / 4
    multipliers[agent][hard] = np.inf
    return game.with_thresholds(spent + spare), policy, multipliers


def script(game, policy, multipliers, folder, monkeypatch, capsys):
    cmpg.save_game(game, folder / "game.npz")
    policy.save(folder / "policy.npz", multipliers=multipliers)
    words = [str(folder / "game.npz"), str(folder / "policy.npz"), str(EPSILON)]
    monkeypatch.setattr(sys, "argv", ["independent_check.py", *words])
    with pytest.raises(SystemExit) as ending:
        independent_check.main()
    return ending.value.code, capsys.readouterr().out


@pytest.mark.parametrize("seeds", [range(first, first + 20) for first in range(0, 120, 20)], ids=lambda seeds: seeds[0])
def test_it_finds_what_certify_finds(seeds, tmp_path, monkeypatch, capsys):
    for seed in seeds:
        game, policy, multipliers = claim(seed)
        certificate = certify(game, policy, multipliers)
        code, printed = script(game, policy, multipliers, tmp_path, monkeypatch, capsys)
        hard = np.isinf(multipliers).any(axis=0)
        if not np.isfinite(certificate.gains).all() or (certificate.excess[hard] > 0).any():
            assert re.match("not proved: (nothing left|others who spend|a policy that keeps)", str(code)), seed
            continue
        gains = [float(gain) for gain in re.findall(r"gains at most (\S+)\n", printed)]
        assert gains == pytest.approx(certificate.bounds - certificate.values, rel=6e-3, abs=1e-9), seed
        costs = [float(cost) for cost in re.findall(r"cost (\S+),", printed)]
        assert costs == pytest.approx(certificate.costs, rel=1e-8), seed
        assert code == (0 if certificate.proves(EPSILON) else 1), seed
