"""Policies of other libraries as functions of (agent, observation, step), recognised by what they can do.

| what is given | what is called |
|---|---|
| a function | `function(agent, observation, step)`: an action or probabilities |
| an object with `policy.get_distribution` and `policy.obs_to_tensor` (Stable-Baselines3) | its probabilities |
| an object with `predict` (Stable-Baselines3, and others after it) | `predict(observation, deterministic=True)[0]` |
| a torch module | `module(observation)`: logits, one per action |
| a mapping | one of these for each agent, by its name or number |
| a JointPolicy | its tables, where the observation is the number of a state |

Probabilities are kept where a policy has them; `predict` alone returns one action, and the policy that is judged is the
deterministic one. A recurrent policy answers by what it saw before: `predict` returns a state beside the action. It is
no table, and is refused here; `remembers` says so, and in a simulator it can be judged by episodes.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.errors import PolicyError
from cmpg.policy import JointPolicy, check_is_policy

PolicyFunction = Callable[[Any, Any, int], Any]
"""Called as function(agent, observation, step); returns the number of an action, or the probability of each."""


def policy_function(policy: Any, agent_names: tuple[Any, ...] = ()) -> PolicyFunction:
    """Return any policy as a function of (number of the agent, observation, step).

    Parameters
    ----------
    policy
        See the table in the module's text.
    agent_names
        By which a mapping may name the agents.

    Examples
    --------
    >>> class Trained:
    ...     def predict(self, observation, deterministic=False):
    ...         return np.int64(observation > 0.5), None
    >>> policy_function({0: Trained(), 1: lambda agent, observation, step: [0.5, 0.5]})(0, 0.7, 0)
    array(1)
    """
    if isinstance(policy, Mapping):
        return _by_agent(policy, agent_names)
    if isinstance(policy, JointPolicy):
        return lambda agent, state, step: policy.row(agent, step, int(state))
    return single_function(policy)


def _by_agent(policies: Mapping[Any, Any], agent_names: tuple[Any, ...]) -> PolicyFunction:
    functions = {name: single_function(each) for name, each in policies.items()}

    def choose(agent: Any, observation: Any, step: int) -> Any:
        names = [agent, *([agent_names[agent], str(agent_names[agent])] if agent < len(agent_names) else [])]
        known = next((name for name in names if name in functions), None)
        if known is None:
            there = ", ".join(map(repr, functions)) or "no agent"
            raise PolicyError(f"there is no policy for agent {names[-1]!r}; there are policies for {there}.")
        return functions[known](agent, observation, step)

    return choose


def single_function(policy: Any) -> PolicyFunction:
    """Return one object, function or module as a function of (agent, observation, step)."""
    inner = getattr(policy, "policy", None)
    if hasattr(inner, "get_distribution") and hasattr(inner, "obs_to_tensor"):
        return lambda _agent, observation, _step: _distribution(inner, observation)
    if hasattr(policy, "predict"):
        return lambda _agent, observation, _step: _predicted(policy, observation)
    if hasattr(policy, "parameters") and hasattr(policy, "forward"):
        return lambda _agent, observation, _step: _softmax(policy, observation)
    if callable(policy):
        _check_arguments(policy)
        function: PolicyFunction = policy
        return function
    if isinstance(inner, JointPolicy) or isinstance(policy, (str, Path, list, tuple)):
        check_is_policy(policy)
    raise PolicyError(
        f"the policy is a {type(policy).__name__}; a JointPolicy, a function of (agent, observation, step), an object "
        "with `predict`, a torch module that returns logits, or a mapping from agents to these is required."
    )


def _check_arguments(function: Callable[..., Any]) -> None:
    """Raise unless a function can be called as function(agent, observation, step)."""
    try:
        inspect.signature(function).bind(0, None, 0)
    except TypeError as problem:
        raise PolicyError(
            f"the policy {getattr(function, '__name__', type(function).__name__)} cannot be called as "
            f"function(agent, observation, step): {problem}."
        ) from None
    except ValueError:  # some compiled functions have no signature: the call will tell
        return


def _distribution(inner: Any, observation: Any) -> FloatArray:
    """Return the probabilities of a Stable-Baselines3 policy with discrete actions."""
    tensor, _ = inner.obs_to_tensor(observation if isinstance(observation, Mapping) else np.asarray(observation))
    found = getattr(inner.get_distribution(tensor).distribution, "probs", None)
    if found is None:
        raise PolicyError("the policy's distribution has no probabilities; one with discrete actions is required.")
    row = np.asarray(found.detach().cpu().numpy(), dtype=np.float64).reshape(-1)
    return np.asarray(row / row.sum())


def _predicted(policy: Any, observation: Any) -> Any:
    """Return the action that `predict` chooses; refuse a policy that remembers."""
    answer = policy.predict(observation, deterministic=True)
    action, state = answer if isinstance(answer, tuple) and len(answer) == 2 else (answer, None)
    if state is not None:
        raise RecurrentPolicyError(
            f"{type(policy).__name__}.predict returned a state beside its action: it is recurrent, and what it does "
            "depends on more than the observation, so that no table can hold it. Judge it in a simulator, by episodes: "
            "memory=True."
        )
    return np.asarray(action)


class RecurrentPolicyError(PolicyError):
    """A policy remembers what it saw, and something was requested that only a policy without memory has.

    Examples
    --------
    >>> class Remembers:
    ...     def predict(self, observation, deterministic=False):
    ...         return 0, "hidden state"
    >>> try:
    ...     policy_function(Remembers())(0, 0.5, 0)
    ... except RecurrentPolicyError as error:
    ...     print(str(error).partition(":")[0])
    Remembers.predict returned a state beside its action
    """


def _softmax(module: Any, observation: Any) -> FloatArray:
    """Return the probabilities behind the logits of a torch module."""
    torch = sys.modules["torch"]  # the module is one of its own, so that it is there
    with torch.no_grad():
        first = next(iter(module.parameters()), None)
        kind = torch.float32 if first is None else first.dtype
        logits = module(torch.as_tensor(np.asarray(observation), dtype=kind))
    if isinstance(logits, tuple):
        raise RecurrentPolicyError(
            f"{type(module).__name__} returned {len(logits)} things; logits alone are required. A recurrent module has "
            "memory: judge it in a simulator, by episodes, with a function of your own and memory=True."
        )
    row = np.asarray(logits.detach().cpu().numpy(), dtype=np.float64).reshape(-1)
    weights = np.exp(row - row.max())
    return np.asarray(weights / weights.sum())
