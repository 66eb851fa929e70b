"""`result.save`, `load_run` and `result.report`: a result goes to a folder and comes back, and becomes a page."""

import json
import os
import re
import threading
from dataclasses import replace

import numpy as np
import pytest
from run_folders import PageReader

import cmpg
from cmpg.errors import CMPGError, FileError
from cmpg.files.containers import new_folder
from cmpg.games.check import GAME
from cmpg.games.joint.game import JointGame


class OwnGame:
    """A class of a user's own: it has the contract, and nothing else."""

    def __init__(self, game):
        self._game = game


for _name in GAME:
    setattr(OwnGame, _name, property(lambda self, name=_name: getattr(self._game, name)))


@pytest.mark.parametrize("name", ["counter-example", "charging", "congestion-counting"])
def test_a_result_comes_back_with_its_multipliers(name, tmp_path):
    options = {"num_agents": 3} if name.startswith("congestion") else {}
    result = cmpg.solve(cmpg.scenarios.SCENARIOS[name].build(**options))
    result.save(tmp_path / "run")
    run = cmpg.load_run(tmp_path / "run")
    assert run.result.status is result.status
    assert run.result.policy.fingerprint() == result.policy.fingerprint()
    assert np.array_equal(run.result.multipliers, result.multipliers)
    assert np.array_equal(run.result.certificate.gains, result.certificate.gains)
    assert run.game.names.agents == result.game.names.agents
    assert [step.moves for step in run.result.trace] == [step.moves for step in result.trace]
    assert [step.multipliers is None for step in run.result.trace] == [
        step.multipliers is None for step in result.trace
    ]
    # And it can be gone on with.
    assert cmpg.solve(run.game, start=run.result.policy).certified
    assert repr(run).startswith(f"<FinishedRun {result.status.name}: ")


def test_restarts_come_back(tmp_path):
    result = cmpg.solve(cmpg.scenarios.counter_example(), restarts=cmpg.Restarts(10), rng=1)
    result.save(tmp_path / "run")
    again = cmpg.load_run(tmp_path / "run").result
    assert len(again.equilibria) == len(result.equilibria) > 1
    for one, other in zip(again.equilibria, result.equilibria, strict=True):
        assert one.policy.fingerprint() == other.policy.fingerprint()
        assert one.certified


def test_a_result_in_exact_numbers_is_judged_in_exact_numbers_again(tmp_path):
    result = cmpg.solve(cmpg.scenarios.counter_example().exact())
    result.save(tmp_path / "run")
    run = cmpg.load_run(tmp_path / "run")
    assert run.result.certificate.arithmetic == "exact"
    assert run.game.rationals is not None


def test_a_game_without_a_solution_comes_back_with_its_proof(tmp_path):
    cmpg.solve(cmpg.scenarios.counter_example(threshold=-1.0)).save(tmp_path / "run")
    result = cmpg.load_run(tmp_path / "run").result
    assert result.status.name == "INFEASIBLE"
    assert result.proof.holds


def test_a_result_writes_its_page(tmp_path):
    result = cmpg.solve(cmpg.scenarios.grid_world())
    result.report(tmp_path / "page.html")
    page = PageReader((tmp_path / "page.html").read_text("utf-8"))
    assert page.column("agents", 1) == result.values.tolist()
    assert "cmpg certify run/game.npz run/policy.npz --epsilon 1e-06" in page.text
    assert "independent_check.py" in page.links
    assert [each.name for each in tmp_path.iterdir()] == ["page.html"]


def test_a_class_of_the_user_s_has_a_page_and_no_file(tmp_path):
    result = cmpg.solve(OwnGame(cmpg.scenarios.grid_world()))
    assert result.certified
    result.report(tmp_path / "page.html")
    page = PageReader((tmp_path / "page.html").read_text("utf-8"))
    assert page.column("agents", 1) == result.values.tolist()
    assert not page.links
    with pytest.raises(FileError, match="a OwnGame has no file form"):
        result.save(tmp_path / "run")


def test_a_result_without_its_game_says_so(tmp_path):
    result = replace(cmpg.solve(cmpg.scenarios.counter_example()), game=None)
    for act in (result.save, result.report):
        with pytest.raises(CMPGError, match="does not know its game"):
            act(tmp_path / "there")


def test_a_folder_is_never_written_over_or_through_a_link(tmp_path):
    result = cmpg.solve(cmpg.scenarios.counter_example())
    result.save(tmp_path / "run")
    with pytest.raises(FileError, match="is not empty"):
        result.save(tmp_path / "run")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileError, match="is a link"):
        result.save(tmp_path / "link")
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize("exists", [False, True])
def test_of_writers_at_the_same_time_one_has_the_folder(tmp_path, exists):
    folder, gate, won, lost = tmp_path / "run", threading.Barrier(8), [], []
    if exists:
        folder.mkdir()

    def write(number):
        gate.wait()
        try:
            with new_folder(folder):
                (folder / f"first_{number}").touch()
            won.append(number)
        except FileError:
            lost.append(number)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(won), len(lost)) == (1, 7)
    assert os.listdir(folder) == [f"first_{won[0]}"]


EVIL = "</script><script>alert(1)</script>\x1b[31m\u202e<a href='https://example.org'>=1+1\"' onload='x"


def test_names_are_only_words_wherever_a_page_shows_them(tmp_path):
    rewards = np.array([[[[[1.0, 0.0], [0.0, 2.0]]]]] * 2)
    game = JointGame(
        transition=np.ones((1, 1, 2, 2, 1)),
        rewards=rewards,
        costs=rewards[:1],
        thresholds=[1.0],
        initial=[1.0],
        horizon=1,
        agent_names=(EVIL, "b"),
        state_names=(EVIL,),
        action_names=((EVIL, "y"), (EVIL, "y")),
        constraint_names=(EVIL,),
    )
    cmpg.solve(game, start=cmpg.MinCostStart(), restarts=cmpg.Restarts(5), rng=1).report(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text("utf-8")
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)
    page = PageReader(text)
    assert not [given for tag, given in page.attributes if tag == "a" and "download" not in given]
    assert not [given for _, given in page.attributes if any(name.startswith("on") for name in given)]
    assert len([tag for tag, _ in page.attributes if tag == "script"]) == 5
    figures = json.loads(re.search(r'id="figures">(.*?)</script>', text)[1])
    told = json.dumps(figures)
    assert "<a " not in told
    assert "&lt;a " in told
