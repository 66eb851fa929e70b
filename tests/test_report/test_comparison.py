"""The comparison of methods: true numbers, the same in every form."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from cmpg.cli.main import app
from cmpg.comparison.comparison import QUICK_METHODS, CertifiedAscent, Judged, Refusal, compare
from cmpg.comparison.methods import JointPlanner, NashCA
from cmpg.equilibrium.best_responses import certify_with_best_responses
from cmpg.errors import InfeasibleError
from cmpg.files.games import save_game
from cmpg.report.comparison import comparison_page, comparison_record, comparison_summaries
from cmpg.scenarios import congestion_game, counter_example, grid_world_local, spectrum
from cmpg.summaries import summary_text

COMMAND = "cmpg compare --quick"


@pytest.fixture(scope="module")
def compared():
    builds = {"spectrum": spectrum, "grid-world-local": grid_world_local}
    return {
        name: compare(build(), rng=np.random.default_rng(1), methods=QUICK_METHODS, restarts=3)
        for name, build in builds.items()
    }


def test_ours_is_certified_and_never_infeasible(compared):
    for game in compared.values():
        ours = game.judged[0]
        assert ours.name == "CertifiedAscent"
        assert ours.certificate.proves(1e-6)
        assert ours.found.infeasible_iterates == 0
        assert ours.found.worst_violation == pytest.approx(0.0, abs=1e-12)
        assert game.restarted.certified


def test_every_gap_is_what_the_judge_says(compared):
    game = spectrum()
    for entry in compared["spectrum"].judged:
        proof = certify_with_best_responses(game, entry.found.policy)
        assert entry.gap == (proof.epsilon if proof.meets(1e-9) else np.inf)
        assert entry.welfare == pytest.approx(game.at(entry.found.policy).values.sum())


def test_a_method_that_ignores_the_constraints_is_found_out(compared):
    for game in compared.values():
        free = next(entry for entry in game.judged if entry.name == "NashCA")
        assert free.gap == np.inf
        assert free.found.worst_violation > 0.1


def test_the_joint_planner_does_not_apply_to_local_games(compared):
    refused = [entry for entry in compared["grid-world-local"].entries if isinstance(entry, Refusal)]
    assert [entry.name for entry in refused] == ["JointPlanner"]
    assert "cannot be planned for jointly" in refused[0].reason
    assert all(isinstance(entry, Judged) for entry in compared["spectrum"].entries)


def test_the_page_has_a_row_for_every_method_and_game(compared):
    page = comparison_page(compared, command=COMMAND)
    assert f"`{COMMAND}`" in page
    lines = page.splitlines()
    overview = next(line for line in lines if line.startswith("| spectrum |"))
    assert overview.count("|") == len(QUICK_METHODS) + 2
    assert sum(line.startswith("| CA-CMPG (certified) |") for line in lines) == 2
    assert sum("does not apply |" in line for line in lines) == 1
    assert sum("| infeasible |" in line for line in lines) >= 4
    for line in lines:
        if line.startswith("|"):
            assert line.endswith("|")


def test_the_view_and_the_record_have_the_same_numbers(compared):
    record = json.loads(json.dumps(comparison_record(compared, seed=1)))
    shown = "\n".join(part if isinstance(part, str) else summary_text(part) for part in comparison_summaries(compared))
    for name, game in compared.items():
        rows = record["games"][name]["methods"]
        assert [row["method"] for row in rows] == [entry.name for entry in game.entries]
        for row in rows:
            if row["applies"]:
                assert f"{row['welfare']:.3f}" in shown
                assert (row["gap"] is None) == (not row["feasible"])


def test_a_game_without_a_potential_says_so():
    found = compare(congestion_game(num_agents=3), rng=np.random.default_rng(0), methods=(NashCA(),), restarts=1)
    assert not found.is_potential
    assert np.isnan(found.judged[0].potential_gained)
    assert "| none |" in comparison_page({"congestion": found}, command=COMMAND)


def test_the_same_seed_gives_the_same_answers_whatever_else_is_run():
    game = spectrum()
    alone = compare(game, rng=np.random.default_rng(5), methods=(CertifiedAscent(),), restarts=1)
    among = compare(game, rng=np.random.default_rng(5), methods=(CertifiedAscent(), JointPlanner()), restarts=1)
    assert alone.judged[0].found.policy.fingerprint() == among.judged[0].found.policy.fingerprint()


def test_an_infeasible_game_is_refused():
    with pytest.raises(InfeasibleError, match="no feasible start"):
        compare(counter_example(threshold=-1.0), rng=np.random.default_rng(0))


def test_the_command_writes_the_page_and_the_json(tmp_path):
    target, own = tmp_path / "page.md", tmp_path / "own.json"
    save_game(counter_example(), own)
    words = ["compare", "counter-example", str(own), "--quick", "--seed", "3", "--restarts", "2", "--out", str(target)]
    done = CliRunner().invoke(app, [*words, "--json"])
    assert done.exit_code == 0, done.output
    record = json.loads(done.stdout)
    first, second = record["games"].values()
    assert [row["welfare"] for row in first["methods"]] == [row["welfare"] for row in second["methods"]]
    page = target.read_text("utf-8")
    assert "cmpg compare counter-example" in page
    assert "--seed 3" in page


@pytest.mark.parametrize("target", ["page.html", "missing/page.md"])
def test_a_bad_target_is_refused_before_anything_is_run(tmp_path, target):
    done = CliRunner().invoke(app, ["compare", "counter-example", "--out", str(tmp_path / target)])
    assert done.exit_code != 0
    assert "page" in str(done.exception)
