"""Every certified policy of the scenarios is verified, from the proof file that the library writes."""

from __future__ import annotations

from fractions import Fraction
from io import StringIO

import pytest

from cmpg import scenarios, solve
from cmpg.games.claims import claim_of
from cmpg.proof import format as proof_format
from test_verified.program import Verify

GAMES = {
    "counter-example": (scenarios.counter_example, None),
    "modified counter-example": (scenarios.modified_counter_example, None),
    "grid world": (scenarios.grid_world, None),
    "grid world with a budget of zero": (lambda: scenarios.grid_world(threshold=0.0), None),
    "spectrum": (scenarios.spectrum, None),
    "team": (scenarios.team, None),
    "congestion as a counting game": (scenarios.counting_congestion_game, None),
    "grid world as a local game": (scenarios.grid_world_local, None),
    "charging": (scenarios.charging, 200),
    "routing": (scenarios.routing, 200),
    "robots": (lambda: scenarios.robots(horizon=25), 200),
}


@pytest.mark.parametrize("name", GAMES)
def test_certified_policies_are_verified(verify: Verify, name):
    make, precision = GAMES[name]
    game = make()
    result = solve(game, epsilon=1e-6)
    assert result.status.name == "CERTIFIED"
    out = StringIO()
    proof_format.write(out, claim_of(game, result.policy, result.multipliers), Fraction(1, 10**6), precision=precision)
    answer = verify(out.getvalue())
    assert answer.code == 0, answer.text
