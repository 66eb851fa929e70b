"""What is done with a device: files, folders, simulation, pages, and the command line."""

import json
from pathlib import Path

import numpy as np
import pytest

import cmpg
from cmpg.errors import FileError, InfeasibleError, PolicyError, UnsupportedError
from cmpg.games.devices import device_values
from cmpg.games.game import Objective
from cmpg.scenarios import counter_example, grid_world_local, spectrum
from command_line import cmpg as run


@pytest.mark.parametrize("concept", [cmpg.Concept.ROTA, cmpg.Concept.CORRELATED, cmpg.Concept.COARSE])
@pytest.mark.parametrize("ending", ["npz", "json"])
def test_a_device_is_read_back_as_it_was(tmp_path, concept, ending):
    found = cmpg.recommend(spectrum(), concept)
    path = tmp_path / f"device.{ending}"
    found.device.save(path, multipliers=found.multipliers, concept=concept)
    device, multipliers, claimed = cmpg.load_device(path)
    assert claimed is concept
    assert np.array_equal(multipliers, found.multipliers)
    again = cmpg.certify(found.game, device, multipliers, concept=claimed)
    assert np.array_equal(again.gains, found.certificate.gains)


def test_rows_of_a_transition_that_are_divided_are_counted_of_devices_as_of_policies():
    sixths = np.full((1, 6, 2, 6), 1 / 6)  # their exact sum is not one
    game = cmpg.JointGame(
        transition=sixths, rewards=np.ones((1, 1, 6, 2)), costs=np.zeros((0, 1, 6, 2)), thresholds=[],
        initial=np.eye(6)[0], horizon=2,
    )  # fmt: skip
    law = np.broadcast_to([1.0, 0.0], (2, 6, 2))
    policy = cmpg.certify(game, cmpg.JointPolicy((law,)), exact=True)
    device = cmpg.certify(game, cmpg.CorrelatedPolicy(law), exact=True)
    assert device.rescaled == policy.rescaled == 12


def test_a_folder_is_proved_again_and_one_that_contradicts_itself_is_refused(tmp_path):
    found = cmpg.recommend(counter_example())
    found.save(tmp_path / "run")
    assert cmpg.load_recommendation(tmp_path / "run").certified
    modes = found.device.modes
    cmpg.Rota(modes, [0.4, 0.6]).save(tmp_path / "forged.npz", multipliers=found.multipliers)  # costs 0.6 of 0.5
    (tmp_path / "forged.npz").replace(tmp_path / "run" / "device.npz")
    with pytest.raises(FileError, match="violates"):
        cmpg.load_recommendation(tmp_path / "run")


def test_a_device_file_that_is_not_whole_is_refused(tmp_path):
    path = tmp_path / "device.json"
    path.write_text(json.dumps({"format": "cmpg-device", "version": 1, "concept": "rota", "multipliers": [[0.0]]}))
    with pytest.raises(FileError, match="weights"):
        cmpg.load_device(path)


@pytest.mark.parametrize("concept", [cmpg.Concept.ROTA, cmpg.Concept.CORRELATED])
def test_episodes_with_a_device_agree_with_what_is_claimed(concept):
    found = cmpg.recommend(spectrum(), concept)
    seen = cmpg.simulate(found.game, found.device, 4000, rng=np.random.default_rng(1))
    assert seen.agrees
    assert np.abs(seen.costs.seen - found.costs).max() < 0.05
    other = cmpg.simulate(found.game, found.device, 4000, rng=np.random.default_rng(1))
    assert np.array_equal(seen.realised, other.realised)


def test_a_rota_plays_one_mode_in_each_episode():
    found = cmpg.recommend(counter_example())
    seen = cmpg.simulate(found.game, found.device, 2000, rng=np.random.default_rng(2))
    assert set(seen.welfare.tolist()) == {6.0, 8.0}  # never one agent in one mode and one in the other


def test_values_of_a_device_are_those_of_its_certificate():
    for concept in (cmpg.Concept.ROTA, cmpg.Concept.CORRELATED):
        found = cmpg.recommend(spectrum(), concept)
        values, costs = device_values(found.game, found.device)
        assert values == pytest.approx(found.values)
        assert costs == pytest.approx(found.costs)


def test_weights_and_tables_are_checked():
    policy = counter_example().uniform_policy()
    for weights in ([0.5, 0.5], [0.9], [[1.0]]):
        with pytest.raises(PolicyError):
            cmpg.Rota([policy], weights)
    with pytest.raises(PolicyError):
        cmpg.Rota([policy, policy], [1.0, 0.0])
    with pytest.raises(PolicyError):
        cmpg.CorrelatedPolicy([[[[0.5, 0.1], [0.1, 0.1]]]])
    with pytest.raises(UnsupportedError):
        device_values(grid_world_local(), cmpg.CorrelatedPolicy([[[[1.0]]]]))


def test_an_infeasible_game_has_no_device():
    found = cmpg.recommend(counter_example(threshold=-1.0))
    assert found.status is cmpg.Status.INFEASIBLE
    from cmpg.equilibrium.recommendations.recommend import device_of

    with pytest.raises(InfeasibleError):
        device_of(found)


def test_quality_of_a_device_is_against_a_bound_over_all_devices():
    for concept in (cmpg.Concept.ROTA, cmpg.Concept.CORRELATED):
        found = cmpg.recommend(counter_example(), concept)
        assert found.quality().optimal
        gap = found.quality(Objective.POTENTIAL)
        assert gap.value == pytest.approx(3.5 - 3.0)  # 3 is the potential if both agents play action 0
        assert gap.optimal


def test_the_command_finds_checks_plays_and_shows_a_rota(tmp_path):
    folder = tmp_path / "run"
    done = run("solve", "counter-example", "--concept", "rota", "--out", str(folder))
    assert done.code == 0
    assert "on average over days" in done.out
    assert run("certify", str(folder / "game.npz"), str(folder / "device.npz"), "--exact").code == 0
    assert run("simulate", str(folder), "--episodes", "2000").code == 0
    assert "mode 2" in run("show", str(folder)).out
    assert run("export", str(folder)).out.startswith("mode,share of days,agent")
    assert run("report", str(folder)).code == 0
    page = Path(folder / "report.html").read_text("utf-8")
    assert "What each agent is recommended, with which probability" in page
    record = json.loads(run("solve", "counter-example", "--concept", "correlated", "--json").out)
    assert record["status"] == "CERTIFIED"
    assert record["covers"]


def test_the_command_refuses_what_does_not_apply():
    assert "--restarts" in run("solve", "counter-example", "--concept", "rota", "--restarts", "2").err
    assert "own state" in run("solve", "robots", "--concept", "correlated").err
    assert run("solve", "congestion", "--concept", "rota").code == 2


@pytest.mark.parametrize("concept", [cmpg.Concept.ROTA, cmpg.Concept.CORRELATED])
def test_a_device_plays_in_an_environment(concept):
    pytest.importorskip("pettingzoo")
    from cmpg.interop import PolicyRunner, to_parallel_env

    found = cmpg.recommend(counter_example(), concept)
    played = PolicyRunner(found.device).play(to_parallel_env(found.game), episodes=400, rng=np.random.default_rng(1))
    low, high = played.cost_intervals(0.999)[0]
    assert low <= found.costs[0] <= high
    assert set(played.costs[:, 0].tolist()) == {0.0, 1.0}
    assert set(played.returns[:, 0].tolist()) == {3.0, 4.0}  # both obey the same draw
