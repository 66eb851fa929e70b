"""Ctrl-C ends whatever solves many games or takes many turns: no answer is made of an interrupted part."""

from unittest.mock import patch

import numpy as np
import pytest

import cmpg as library
from cmpg.comparison import COMPARATORS
from cmpg.duality import primal_value
from cmpg.equilibrium.sensitivity import sensitivity
from cmpg.games.joint.position import JointPosition

GAME = library.scenarios.counter_example()
RESULT = library.solve(GAME)


def compared():
    start = library.JointPolicy.uniform(GAME.policy_shapes)
    for method in (COMPARATORS[0], COMPARATORS[-1]):
        method(GAME, start, rng=np.random.default_rng(1))


def resolved():
    sensitivity(RESULT)


def bounded():
    primal_value(GAME, rng=np.random.default_rng(1))


@pytest.mark.parametrize("part", [compared, resolved, bounded])
@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7, 0.9])
def test_an_interrupt_ends_it_wherever_it_comes(part, share):
    calls, last, induced = [0], [np.inf], JointPosition.induced_cmdp

    def counted(self, agent):
        calls[0] += 1
        if calls[0] == last[0]:
            raise KeyboardInterrupt
        return induced(self, agent)

    with patch.object(JointPosition, "induced_cmdp", counted):
        part()
        calls[0], last[0] = 0, int(share * calls[0])
        with pytest.raises(KeyboardInterrupt):
            part()
