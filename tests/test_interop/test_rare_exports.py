"""Exports at their edges: endless problems, packages that are not there, and what is shown of an answer."""

import builtins
import importlib
import re
import sys

import numpy as np
import pytest

import cmpg
from cmpg.cmdp.model import CMDP
from cmpg.interop.play import Episodes
from cmpg.interop.prism import to_prism
from cmpg.interop.watching import result_metrics


def endless():
    """From state 0 one comes to 1 and then to 2, and nobody ever comes to 3."""
    transition = np.zeros((1, 4, 1, 4))
    for s, following in enumerate((1, 2, 0, 3)):
        transition[0, s, 0, following] = 1.0
    return CMDP(
        transition=transition,
        reward=np.ones((1, 4, 1)),
        costs=np.zeros((0, 1, 4, 1)),
        thresholds=[],
        initial=[1.0, 0, 0, 0],
        discount=0.5,
    )


def test_an_endless_problem_has_a_command_for_every_state_that_is_ever_reached_and_no_other():
    problem = to_prism(endless())
    assert re.findall(r"\[a0\] h=0 & s=(\d) ->", problem.model) == ["0", "1", "2"]
    assert "0.5:(h'=0) & (s'=1) + 0.5:(h'=1);" in problem.model
    assert repr(problem) == f"<PrismProblem of {problem.model.count(chr(10))} lines, reward offset 0>"


def test_episodes_are_shown_by_their_means():
    episodes = Episodes(np.array([[1.0, 2.0], [3.0, 2.0]]), np.zeros((2, 0)))
    assert repr(episodes) == "<Episodes 2, mean returns 2, 2, mean costs none>"


def test_a_result_without_a_policy_has_few_numbers_to_watch():
    result = cmpg.solve(cmpg.scenarios.counter_example(threshold=-1.0))
    assert result_metrics(result) == {"certified": 0.0, "moves": 0.0}


def test_environments_of_gymnasium_say_what_to_install(monkeypatch):
    name = "cmpg.interop.gymnasium"
    monkeypatch.delitem(sys.modules, name, raising=False)
    real = builtins.__import__

    def without(wanted, *rest):
        if wanted.partition(".")[0] == "gymnasium":
            raise ModuleNotFoundError("No module named 'gymnasium'", name="gymnasium")
        return real(wanted, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ModuleNotFoundError, match=r"gymnasium is not installed; .* pip install 'cmpg\[pettingzoo\]'"):
        importlib.import_module(name)
