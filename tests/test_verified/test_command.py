"""`cmpg certify --verified` and `cmpg export --what proof`: claims of runs, and the checker that is proved."""

import hashlib
import json
from dataclasses import replace

import pytest

from cmpg import certify, solve
from cmpg.files.records import certificate_record
from cmpg.scenarios import grid_world, spectrum
from command_line import cmpg

SCENARIOS = (
    "counter-example",
    "modified-counter-example",
    "grid-world",
    "grid-world-local",
    "charging",
    "routing",
    "robots --agents 3 --horizon 16",
    "spectrum",
)


@pytest.fixture
def command(programs, monkeypatch):
    monkeypatch.setenv("CMPG_VERIFY", str(programs / "fast" / "cmpg-verify"))


@pytest.mark.parametrize("words", SCENARIOS)
@pytest.mark.usefixtures("command")
def test_a_certified_scenario_is_verified(words, tmp_path):
    run = tmp_path / "run"
    assert cmpg("solve", *words.split(), "--out", run).code == 0
    said = cmpg("certify", run / "game.npz", run / "policy.npz", "--verified")
    assert said.code == 0, said.out + said.err
    assert said.out.startswith("VERIFIED: every threshold is met, and no agent gains more than about 1e-06")


@pytest.mark.usefixtures("command")
def test_a_claim_that_is_too_strong_is_not_verified(tmp_path):
    run = tmp_path / "run"
    assert cmpg("solve", "charging", "--out", run).code == 0
    said = cmpg("certify", run / "game.npz", run / "policy.npz", "--verified", "--epsilon", "1e-25", "--json")
    found = json.loads(said.out)
    assert (said.code, found["proved"], found["arithmetic"]) == (1, False, "exact")
    assert "may gain" in found["message"]


def test_a_device_is_not_said_to_be_verified(tmp_path):
    run = tmp_path / "run"
    assert cmpg("solve", "counter-example", "--concept", "correlated", "--out", run).code == 0
    said = cmpg("certify", run / "game.npz", run / "device.npz", "--verified")
    assert (said.code, said.out) == (2, "")
    assert "leave --verified out" in said.err


@pytest.mark.usefixtures("command")
def test_a_certificate_says_that_it_was_verified():
    result = solve(grid_world())
    plain, verified = (
        certify(grid_world(), result.policy, result.multipliers, verified=each) for each in (False, True)
    )
    assert (plain.arithmetic, verified.arithmetic) == ("floating point", "exact, verified")
    assert (verified.judged_by, verified.feasible, verified.excess.tolist()) == ("cmpg-verify", True, [0.0])
    assert verified.epsilon == plain.epsilon
    assert set(verified.gains.tolist()) == {plain.epsilon}
    assert certificate_record(verified)["arithmetic"] == "exact, verified"
    refused = certify(grid_world(threshold=0.05), result.policy, result.multipliers, verified=True)
    assert (refused.arithmetic, refused.feasible) == ("floating point", False)


@pytest.mark.usefixtures("command")
def test_a_discounted_run_is_verified(tmp_path):
    game = replace(spectrum(), horizon=None, discount=0.75)
    result = solve(game)
    assert result.certified, result.message
    result.save(tmp_path / "run")
    said = cmpg("certify", tmp_path / "run" / "game.npz", tmp_path / "run" / "policy.npz", "--verified")
    assert said.code == 0, said.out + said.err


@pytest.mark.usefixtures("command")
def test_a_budget_of_zero_is_verified_with_a_large_multiplier(tmp_path):
    run = tmp_path / "run"
    assert cmpg("solve", "grid-world", "--threshold", "0", "--out", run).code == 0
    assert "support" in cmpg("certify", run / "game.npz", run / "policy.npz").out
    assert cmpg("certify", run / "game.npz", run / "policy.npz", "--verified").code == 0


@pytest.mark.usefixtures("command")
def test_the_exported_proof_is_the_file_that_was_verified(tmp_path):
    run, proof = tmp_path / "run", tmp_path / "claim.proof"
    assert cmpg("solve", "spectrum", "--out", run).code == 0
    assert "cmpg-verify" in cmpg("export", run, "--what", "proof", "--out", proof).out
    said = cmpg("certify", run / "game.npz", run / "policy.npz", "--verified")
    assert hashlib.sha256(proof.read_bytes()).hexdigest() in said.out
    assert cmpg("export", run, "--what", "proof").out == proof.read_text("ascii")
    again = cmpg("export", run, "--what", "proof", "--out", proof)
    assert (again.code, "is there already" in again.err) == (2, True)


def test_without_the_command_there_is_a_way_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv("CMPG_VERIFY", str(tmp_path / "nowhere"))
    run = tmp_path / "run"
    assert cmpg("solve", "counter-example", "--out", run).code == 0
    said = cmpg("certify", run / "game.npz", run / "policy.npz", "--verified")
    assert said.code == 2
    assert "cmpg-verify is not installed" in said.err
    assert "make programs" in said.err
