"""Teams: agents with one reward, from a `.dpomdp` file, all of whom see the state.

The benchmarks of decentralised planning hide the state; here all agents see it, so that it is a joint game with a
common reward (class C1), and what a central planner would do is a Nash policy. The package's own sample is two rescue
robots: each searches the left or the right ward, or carries; who is found is carried out by both together.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cmpg.errors import GameError
from cmpg.games.joint.game import JointGame
from cmpg.games.names import Legend
from cmpg.scenarios.readers.dpomdp import TeamProblem, read_dpomdp
from cmpg.scenarios.readers.text import FilePath, blaming
from cmpg.scenarios.samples import sample_file
from cmpg.summaries import counted


def team(*, file: FilePath | None = None, horizon: int | None = 4) -> JointGame:
    """Return the game of a team.

    Parameters
    ----------
    file
        A `.dpomdp` file; the package's own sample if it is left out.
    horizon
        Steps, whose rewards are added up; None for the discount that the file gives.

    Examples
    --------
    >>> game = team()
    >>> game.num_agents, game.num_constraints
    (2, 0)
    """
    if file is None:
        with sample_file("sample.dpomdp") as sample:
            problem = replace(read_dpomdp(sample), source="the bundled problem")
    else:
        problem = read_dpomdp(file)
    if horizon is None and not 0 < problem.discount < 1:
        raise GameError(
            f"{problem.source} has the discount {problem.discount:g}, by which a sum without end is not finite. "
            "Pass a horizon."
        )
    with blaming(problem.source):
        return team_game(problem, horizon=horizon)


def team_game(problem: TeamProblem, *, horizon: int | None) -> JointGame:
    """Return the game of a problem that is known already."""
    agents = len(problem.agent_names)
    return JointGame(
        transition=problem.transition[None],
        rewards=np.broadcast_to(problem.reward, (agents, 1, *problem.reward.shape)),
        costs=np.zeros((0, 1, *problem.reward.shape)),
        thresholds=[],
        initial=problem.initial,
        horizon=horizon,
        discount=problem.discount if horizon is None else None,
        agent_names=problem.agent_names,
        state_names=problem.state_names,
        action_names=problem.action_names,
        legend=Legend(translation=_translation(problem, horizon)),
    )


def _translation(problem: TeamProblem, horizon: int | None) -> tuple[tuple[str, str], ...]:
    """Return what was read, dropped and assumed."""
    sizes = f"{counted(len(problem.agent_names), 'agent')}, {counted(len(problem.state_names), 'state')}"
    observed = problem.num_observations
    rows = [
        ("read", f"{sizes}, {counted(observed, 'joint observation')}, {problem.source}"),
        (
            "dropped",
            "the observations: all agents see the state, so the value is at least what a team gets that does not",
        ),
    ]
    if problem.averaged:
        rows.append(("averaged", "rewards that depend on observations, over what is observed"))
    if horizon is None:
        rows.append(("time", f"without end, discount {problem.discount:g} as in the file"))
    else:
        unused = "" if problem.discount == 1 else f"; the discount of the file, {problem.discount:g}, is not used"
        rows.append(("time", f"{counted(horizon, 'step')}, whose rewards are added up{unused}"))
    return (*rows, ("assumed", "no constraints"))
