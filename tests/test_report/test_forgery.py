"""A page proves what it prints: forged and broken folders are refused, with an error that names them."""

import json
import shutil

import numpy as np
import pytest
from run_folders import PageReader, solve_into, write_page

import cmpg
from bad_files import WRONG_VALUES, mutated, refused
from cmpg.equilibrium.best_responses import certify_with_best_responses
from cmpg.errors import FileError
from cmpg.files.learning_folder import load_learning_run
from cmpg.files.records import certificate_record
from cmpg.files.run_folder import load_run


def read(path):
    return json.loads(path.read_text("utf-8"))


@pytest.fixture(scope="module")
def limited(tmp_path_factory):
    """A run that ended without a proof."""
    folder = tmp_path_factory.mktemp("limited") / "run"
    cmpg.solve(cmpg.scenarios.grid_world(), start=cmpg.MinCostStart(), method=cmpg.Ascent(max_iterations=0)).save(
        folder
    )
    return folder


@pytest.fixture(scope="module")
def restarted(tmp_path_factory):
    """A certified run with several equilibria."""
    return solve_into(tmp_path_factory.mktemp("restarted") / "run", "counter-example")


class TestForgedLearning:
    """A learned policy is judged again: records that say otherwise are refused."""

    @pytest.fixture
    def folder(self, learned, tmp_path):
        return shutil.copytree(learned, tmp_path / "run")

    @staticmethod
    def change(folder, **fields):
        lines = [json.loads(line) for line in (folder / "seeds.jsonl").read_text().splitlines()]
        lines[1] |= fields
        (folder / "seeds.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    @pytest.mark.parametrize(
        "fields",
        [
            {"true_gap": 0.0},
            {"true_costs": [0.0]},
            {"true_costs": []},
            {"feasible": False},
            {"right": False},
            {"seed": 0},
            {"seed": "../0"},
            {"seed": -1},
            {"seed": 10**400},
            {"epsilon": "x"},
            {"epsilon": None},
            {"epsilon": -1},
            {"delta": [0.1]},
            {"samples": 3},
            {"samples": {"values": "many"}},
            {"samples": {"values": -5}},
            {"status": "EXCELLENT"},
            {"status": ["LIMIT"]},
            {"certified": "yes"},
            {"unsafe_policies": 1.5},
            {"settings": [1]},
            {"true_gap": {}},
        ],
    )
    def test_a_record_that_is_not_true_or_not_whole(self, folder, fields):
        self.change(folder, **fields)
        with pytest.raises(FileError) as problem:
            load_learning_run(folder)
        assert str(folder) in str(problem.value)

    def test_another_policy(self, folder):
        game = cmpg.load_game(folder / "game.npz")
        game.uniform_policy().save(folder / "policy_1.npz")
        with pytest.raises(FileError, match=r"not what policy_1\.npz is worth"):
            load_learning_run(folder)

    def test_a_claim_that_is_wrong_is_counted(self, folder, tmp_path):
        game = cmpg.load_game(folder / "game.npz")
        policy = game.uniform_policy()
        judged = certify_with_best_responses(game, policy)
        policy.save(folder / "policy_1.npz", multipliers=judged.multipliers)
        facts = {"true_gap": judged.epsilon, "true_costs": judged.costs.tolist(), "feasible": judged.feasible}
        self.change(folder, **facts, right=False, certified=True)
        write_page(folder, tmp_path / "page.html")
        assert "1 of these claims are wrong" in PageReader((tmp_path / "page.html").read_text("utf-8")).text

    def test_mutated_records_raise_nothing_else(self, folder):
        rng, path = np.random.default_rng(5), folder / "seeds.jsonl"
        whole = path.read_bytes()
        for _ in range(200):
            path.write_bytes(mutated(whole, rng))
            refused(lambda: load_learning_run(folder), folder)


class TestForgery:
    """A page proves what it prints: whatever a folder says, only what its policy proves is believed."""

    @staticmethod
    def change(path, **fields):
        path.write_text(json.dumps(read(path) | fields))

    def refused(self, folder, words):
        with pytest.raises(FileError, match=words) as problem:
            load_run(folder)
        assert str(folder) in str(problem.value)

    def test_a_status_that_its_policy_does_not_prove(self, limited, tmp_path):
        folder = shutil.copytree(limited, tmp_path / "run")
        self.change(folder / "result.json", status="CERTIFIED")
        self.refused(folder, "says CERTIFIED, which its policy does not prove")

    def test_a_larger_epsilon_proves_no_more_than_it_says(self, limited, tmp_path):
        folder = shutil.copytree(limited, tmp_path / "run")
        self.change(folder / "result.json", status="CERTIFIED", epsilon=1e6)
        write_page(folder, tmp_path / "page.html")
        gain = load_run(limited).result.certificate.epsilon
        assert gain > 0.01
        text = PageReader((tmp_path / "page.html").read_text("utf-8")).text
        shown = float(text.partition("no agent gains more than ")[2].partition(" by deviating")[0])
        assert gain <= shown <= 1.1 * gain

    def test_a_claim_to_be_feasible(self, limited, tmp_path):
        folder = shutil.copytree(limited, tmp_path / "run")
        game = cmpg.load_game(folder / "game.npz")
        policy = game.uniform_policy()
        proof = cmpg.certify(game, policy)
        assert not proof.feasible
        record = certificate_record(proof)
        policy.save(folder / "policy.npz", multipliers=proof.multipliers)
        (folder / "certificate.json").write_text(json.dumps(record | {"feasible": True, "feasibility": "PROVEN"}))
        listed = {name: record[name] for name in ("values", "costs", "multipliers")}
        self.change(folder / "result.json", **listed, epsilon=1e6, status="CERTIFIED")
        self.refused(folder, "says feasible: True, PROVEN, and the policy violates a threshold")

    def test_words_of_the_run_are_no_verdict(self, limited, tmp_path):
        folder = shutil.copytree(limited, tmp_path / "run")
        self.change(folder / "result.json", message="Proved: nobody gains anything.")
        write_page(folder, tmp_path / "page.html")
        text = PageReader((tmp_path / "page.html").read_text("utf-8")).text
        assert text.count("Proved: nobody gains anything.") == 1
        assert "What the run said Proved: nobody" in text
        assert "Not proved: these policies" in text

    @pytest.mark.parametrize("weight", [1.0, -1.0, 0.0])
    def test_an_infeasible_game_that_is_none(self, limited, tmp_path, weight):
        folder = shutil.copytree(limited, tmp_path / "run")
        (folder / "policy.npz").unlink()
        proof = {"multipliers": [weight], "least_cost": 5.0, "limit": 0.1}
        self.change(folder / "result.json", status="INFEASIBLE", multipliers=None, proof=proof)
        self.refused(folder, "does not prove|at least zero")

    @pytest.mark.parametrize("status", ["CERTIFIED", "LIMIT", "INTERRUPTED", "NOT_POTENTIAL"])
    def test_an_ending_without_its_policy(self, limited, tmp_path, status):
        folder = shutil.copytree(limited, tmp_path / "run")
        (folder / "policy.npz").unlink()
        self.change(folder / "result.json", status=status, multipliers=None)
        self.refused(folder, "does not prove|there is no policy")

    def test_an_ending_that_has_no_policy_with_one(self, limited, tmp_path):
        folder = shutil.copytree(limited, tmp_path / "run")
        self.change(folder / "result.json", status="INFEASIBLE")
        self.refused(folder, "says INFEASIBLE and there is a policy")

    @pytest.mark.parametrize("agents", [[0, 1], [0, 0], [0, 7], [0]])
    def test_a_witness_against_a_potential_game(self, limited, tmp_path, agents):
        folder = shutil.copytree(limited, tmp_path / "run")
        uniform = [table.tolist() for table in cmpg.load_game(folder / "game.npz").uniform_policy()]
        witness = {"agents": agents, "residual": 9.0, "rounding": 0.0, "policy": uniform, "deviations": uniform}
        self.change(folder / "result.json", status="NOT_POTENTIAL", witness=witness)
        self.refused(folder, "does not refute a potential|not of two agents")

    def test_equilibria_that_are_none(self, restarted, tmp_path):
        folder = shutil.copytree(restarted, tmp_path / "values")
        listed = read(folder / "result.json")["equilibria"]
        self.change(folder / "result.json", equilibria=[listed[0], listed[1] | {"values": [9.0, 9.0]}])
        self.refused(folder, "values of equilibrium 2 are not those of its policy")
        folder = shutil.copytree(restarted, tmp_path / "missing")
        (folder / "policy_2.npz").unlink()
        self.refused(folder, r"policy_2\.npz: there is no such file")
        folder = shutil.copytree(restarted, tmp_path / "another")
        game = cmpg.load_game(folder / "game.npz")
        game.uniform_policy().save(folder / "policy_2.npz")
        self.refused(folder, "is no equilibrium")

    def test_multipliers_below_zero(self, restarted, tmp_path):
        folder = shutil.copytree(restarted, tmp_path / "run")
        policy, multipliers = cmpg.load_policy(folder / "policy.npz")
        policy.save(folder / "policy.npz", multipliers=multipliers - 3)
        self.refused(folder, "negative entry")

    def test_another_exact_game(self, tmp_path):
        game = cmpg.scenarios.counter_example().exact()
        cmpg.solve(game).save(tmp_path / "run")
        assert load_run(tmp_path / "run").result.certificate.arithmetic == "exact"
        cmpg.save_game(game.with_thresholds([9]), tmp_path / "run" / "game.json")
        self.refused(tmp_path / "run", "different games")

    @pytest.mark.parametrize("name", ["result.json", "certificate.json", "trace.csv", "scenario.json", "policy.npz"])
    def test_mutated_files_raise_nothing_else(self, restarted, tmp_path, name):
        folder = shutil.copytree(restarted, tmp_path / "run")
        rng, whole = np.random.default_rng(6), (folder / name).read_bytes()
        for _ in range(100):
            (folder / name).write_bytes(mutated(whole, rng))
            refused(lambda: load_run(folder), folder)

    @pytest.mark.parametrize("name", ["result.json", "certificate.json", "scenario.json"])
    def test_any_field_may_hold_anything(self, restarted, tmp_path, name):
        folder = shutil.copytree(restarted, tmp_path / "run")
        whole = read(folder / name)
        for place, field in enumerate(whole):
            for value in WRONG_VALUES[place % 3 :: 3]:  # each field has a third of them, and each of them many fields
                (folder / name).write_text(json.dumps(whole | {field: value}))
                refused(lambda: load_run(folder), folder)
