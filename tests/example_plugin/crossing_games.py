"""A scenario and a solver for cmpg, as another package brings them."""

from dataclasses import dataclass

import cmpg


def crossing(num_agents: int = 2, threshold: float = 0.25, hurry: float = 1.0, marked: bool = False) -> cmpg.JointGame:
    """Cars at a crossing without lights, who go or wait.

    Parameters
    ----------
    hurry
        What a car gains by going.
    """

    def step(state, actions):
        return {0: 1.0}, [hurry * going for going in actions], [float(sum(actions) > 1)]

    named = {"state_names": ["marked"]} if marked else {}
    sizes = [2] * num_agents
    return cmpg.JointGame.from_function(
        step, num_states=1, num_actions=sizes, thresholds=[threshold], initial=[1.0], horizon=1, **named
    )


@dataclass(frozen=True)
class Twice:
    """Ask two solvers, and believe them if they agree."""

    tolerance: float = 1e-9

    def __call__(self, cmdp, *, rng=None):
        first, second = cmpg.Exact()(cmdp, rng=rng), cmpg.LinearProgram()(cmdp, rng=rng)
        if abs(first.value - second.value) > self.tolerance:
            raise cmpg.SolverError(f"the solvers differ: {first.value}, {second.value}")
        return first
