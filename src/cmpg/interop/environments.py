"""An environment that a function makes, named on the command line as `module:factory`, as a simulator for learners.

`factory()` returns the environment and what is known of it, a `cmpg.learning.ProblemSpec`: a pair, or a triple with a
function that turns observations into the number of a state. The environment has `reset(rng)` and `step(actions)`, with
`place(h, s)` if it can be drawn from (`cmpg.learning.Environment`); or PettingZoo's parallel API, recognised by its
`possible_agents`. There a state is what the first agent observes, if that is a whole number, unless the function says
otherwise.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.errors import CMPGError
from cmpg.interop.play import LearnableEnv
from cmpg.judging.environments import EnvironmentWorld
from cmpg.learning.environment import EnvironmentSimulator
from cmpg.learning.samples import ProblemSpec


@dataclass(frozen=True)
class HiddenEnvironment:
    """Makes a new environment, and a simulator that steps it, for every seed; its game is unknown."""

    words: str  # module:factory
    budget: int | None = None

    @property
    def game(self) -> None:
        """The true game is unknown."""

    def simulator(self, rng: np.random.Generator) -> EnvironmentSimulator:
        """Return a simulator that draws with this generator."""
        made = _factory(self.words)()
        if not _is_declared(made):
            raise CMPGError(
                f"{self.words}() returned {type(made).__name__}; (environment, known) is required, known a "
                "cmpg.learning.ProblemSpec, perhaps with a function that turns observations into the number of a state."
            )
        environment, known = _learnable(*made)
        return EnvironmentSimulator(environment, known=known, rng=rng, budget=self.budget)


def _is_declared(made: Any) -> bool:
    """Whether this is an environment with what is known of it."""
    return isinstance(made, tuple) and len(made) in (2, 3) and isinstance(made[1], ProblemSpec)


def _learnable(environment: Any, known: ProblemSpec, state: Any = None) -> tuple[Any, ProblemSpec]:
    """Return an environment as learners take it."""
    if hasattr(environment, "possible_agents"):
        environment = LearnableEnv(environment, state=first_observation if state is None else state)
    return environment, known


def hidden_environment(words: str, *, budget: int | None = None) -> HiddenEnvironment:
    """Return what makes simulators of an environment named `module:factory`, after making one to check it.

    Examples
    --------
    >>> hidden_environment("nowhere")
    Traceback (most recent call last):
    cmpg.errors.CMPGError: the environment is 'nowhere'; module:factory is required, such as my_envs:make_well.
    """
    hidden = HiddenEnvironment(words, budget)
    hidden.simulator(np.random.default_rng(0))
    return hidden


def environment_world(words: str) -> EnvironmentWorld:
    """Return the world that `factory()` makes, to judge policies in: an `EnvironmentWorld`, or what a learner takes."""
    made = _factory(words)()
    if isinstance(made, EnvironmentWorld):
        return made
    if _is_declared(made):
        environment, known = _learnable(*made)
        return EnvironmentWorld(
            environment,
            horizon=known.horizon,
            reward_range=_widest(known.reward_bounds),
            thresholds=known.thresholds,
            cost_range=_widest(known.cost_bounds) if known.num_constraints else (0.0, 1.0),
            num_actions=known.num_actions,
        )
    advice = ""
    if hasattr(made, "step"):
        factory = words.partition(":")[2]
        advice = (
            " No number of episodes proves how long it can last and how large a reward can be, so declare both: let "
            f"{factory}() return cmpg.judging.EnvironmentWorld(env, horizon=100, reward_range=(-1, 1)), "
            "with your numbers, and with thresholds=[…] if its infos report costs."
        )
    raise CMPGError(
        f"{words}() returned {type(made).__name__}; a cmpg.judging.EnvironmentWorld is required, or (environment, "
        f"known) with a cmpg.learning.ProblemSpec.{advice}"
    )


def _widest(bounds: FloatArray) -> FloatArray:
    """Return the widest range over the steps of bounds [m, H or 1, 2]: [m, 2]."""
    return np.stack([bounds[..., 0].min(axis=1), bounds[..., 1].max(axis=1)], axis=1)


def named_policy(words: str) -> Any:
    """Return the policy that `module:name` stands for: a function of (agent, observation, step), or an object."""
    module, colon, name = words.partition(":")
    if not colon or not module or not name:
        raise CMPGError(f"the policy is {words!r}; module:name is required, such as my_policies:trained.")
    return _named(words)


def _factory(words: str) -> Callable[[], Any]:
    module, colon, name = words.partition(":")
    if not colon or not module or not name:
        raise CMPGError(f"the environment is {words!r}; module:factory is required, such as my_envs:make_well.")
    found = _named(words)
    if not callable(found):
        raise CMPGError(f"{words!r} is a {type(found).__name__}; a function that makes an environment is required.")
    made: Callable[[], Any] = found
    return made


def _named(words: str) -> Any:
    """Import what `module:name` stands for; a module beside the user is found, as `python -m` finds it."""
    module, _, name = words.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as problem:
        raise CMPGError(f"{words!r} cannot be found: {problem}.") from None


def first_observation(observations: Mapping[Any, Any]) -> int:
    """Return what the first agent observes, a whole number that is the state; 0 where all is over.

    Examples
    --------
    >>> first_observation({"a": np.array([3]), "b": np.array([3])})
    3
    """
    return int(np.asarray(next(iter(observations.values()), 0)).reshape(-1)[-1])
