"""The suite: frozen games, references that are proved again, submissions that are judged, and forged ones refused."""

import json

import numpy as np
import pytest

from cmpg.errors import FileError, GameError
from cmpg.policy import CompactTable, JointPolicy
from cmpg.scenarios.samples import sample_file
from cmpg.suite import SUITE, VERSION, content_digest, judge_submission, reference, suite_game, suite_games
from cmpg.suite import games as games_room
from cmpg.suite.data_games import RECIPES
from cmpg.suite.references import (
    check_game_is_frozen,
    prove_reference,
    reference_arrays,
    reference_policy,
    reference_rows,
)
from cmpg.suite.submissions import ranked, reference_suite_rows, row_of
from command_line import cmpg as command

SOME = (
    "counter-example",
    "spectrum-0.15",
    "joint-common-03",
    "joint-general-52",
    "local-03",
    "counting-1",
    "aisle-4-0.5",
)


def submit(folder, names=SOME, **manifest):
    for name in names:
        reference_policy(name)[0].save(folder / f"{name}.npz")
    if manifest:
        (folder / "submission.json").write_text(json.dumps(manifest))


def test_there_are_at_least_sixty_games_and_each_is_the_one_that_was_frozen():
    assert len(SUITE) >= 60
    for name in SUITE:
        check_game_is_frozen(name)
    assert len({reference(name).sha256 for name in SUITE}) == len(SUITE)


def test_a_digest_is_of_numbers_and_not_of_names():
    game = suite_game("counter-example")
    assert content_digest(game) == reference("counter-example").sha256
    assert content_digest(game.with_thresholds([0.51])) != content_digest(game)


def test_another_game_under_the_name_is_noticed(monkeypatch):
    changed = {**SUITE, "counter-example": lambda: SUITE["counter-example"]().with_thresholds([0.51])}
    monkeypatch.setattr(games_room, "SUITE", changed)
    with pytest.raises(GameError, match="nothing can be compared"):
        check_game_is_frozen("counter-example")


@pytest.mark.parametrize("name", SOME)
def test_references_are_proved_again(name):
    certificate, known = prove_reference(name), reference(name)
    assert certificate.feasible
    assert certificate.epsilon <= known.exploitability + 1e-9
    assert known.exploitability <= 1e-5
    assert certificate.values.sum() <= known.best_known + 1e-9
    assert known.best_known <= known.bound + 1e-9 * abs(known.bound)


def test_a_submission_of_references_is_nash_everywhere(tmp_path):
    submit(
        tmp_path, name="mine", suite=VERSION, claims={"counter-example": {"exploitability": 0.0, "total_value": 6.0}}
    )
    found = judge_submission(tmp_path)
    assert found.name == "mine"
    assert not found.refused
    assert found.row.nash == found.row.feasible == found.row.entered == len(SOME)
    assert found.row.mean_shortfall >= -1e-9


@pytest.mark.parametrize(
    ("claims", "told"),
    [
        ({"exploitability": 0.0}, "exploitability is claimed to be 0, and is 0.25"),
        ({"total_value": 9.0}, "total_value is claimed to be 9, and is 5.5"),
        *(({"exploitability": claimed}, "a number is required") for claimed in ("none", "0", True)),
    ],
)
def test_a_submission_that_claims_more_than_is_true_is_refused(tmp_path, claims, told):
    suite_game("counter-example").uniform_policy().save(tmp_path / "counter-example.npz")
    (tmp_path / "submission.json").write_text(json.dumps({"claims": {"counter-example": claims}}))
    found = judge_submission(tmp_path)
    assert told in found.refused["counter-example"]
    assert not found.entries
    ran = command("suite", "submit", tmp_path)
    assert ran.code == 1
    assert "REFUSED" in ran.out


def test_forged_files_are_refused(tmp_path):
    submit(tmp_path, ["counter-example"], claims={"grid-world": {"exploitability": 0.0}})
    (tmp_path / "spectrum-0.15.csv").write_text("agent,step,state,action,probability\n0,0,0,0,1\n")
    suite_game("grid-world-local").uniform_policy().save(tmp_path / "aisle-4-0.5.npz")
    found = judge_submission(tmp_path)
    assert set(found.refused) == {"spectrum-0.15", "aisle-4-0.5", "grid-world"}
    assert "has no row for" in found.refused["spectrum-0.15"]
    assert "another game" in found.refused["aisle-4-0.5"]
    assert "there is no policy" in found.refused["grid-world"]
    assert set(found.entries) == {"counter-example"}


def test_folders_that_are_no_submission_are_refused(tmp_path):
    with pytest.raises(FileError, match="no policy file"):
        judge_submission(tmp_path)
    with pytest.raises(FileError, match="no such folder"):
        judge_submission(tmp_path / "nowhere")
    (tmp_path / "submission.json").write_text(json.dumps({"suite": VERSION + 1}))
    with pytest.raises(FileError, match="was made for version"):
        judge_submission(tmp_path)
    (tmp_path / "submission.json").unlink()
    JointPolicy(([[[1.0, 0.0]]],)).save(tmp_path / "chess.npz")
    with pytest.raises(FileError, match=r"chess.npz is named after no game"):
        judge_submission(tmp_path)
    with pytest.raises(GameError, match="has no game 'chess'"):
        reference("chess")


def test_of_two_policies_of_one_game_none_is_chosen(tmp_path):
    submit(tmp_path, ["counter-example"])
    (tmp_path / "counter-example.csv").write_text("agent,step,state,action,probability\n")
    with pytest.raises(FileError, match="there are 2 policies of counter-example"):
        judge_submission(tmp_path)


def test_seven_methods_have_rows_and_rows_are_ranked():
    rows = ranked(reference_suite_rows())
    assert len(rows) == len(reference_rows()) == 7
    assert rows[0].name == "CA-CMPG (certified)"
    assert rows[0].nash == max(row.nash for row in rows)
    assert all(row.feasible >= row.nash for row in rows)
    assert np.isnan(row_of("nothing", {}).mean_gain)


def test_the_command_lists_ranks_and_writes_a_page(tmp_path):
    listed = command("suite", "list")
    assert listed.code == 0
    assert "joint-common-03" in listed.out
    assert "CA-CMPG (certified)" in command("suite", "rank", "--out", tmp_path / "page.html").out
    assert "<table" in (tmp_path / "page.html").read_text()
    submit(tmp_path, ["counter-example"])
    (tmp_path / "page.html").unlink()
    ran = command("suite", "submit", tmp_path, "--json")
    assert ran.code == 0
    assert json.loads(ran.out)["row"]["nash"] == 1
    for words, told in ((("suite", "submit"), "needs a folder"), (("suite", "sing"), "one of list, games")):
        ended = command(*words)
        assert ended.code == 2
        assert told in ended.err


def test_games_from_data_have_references_and_say_what_they_need(tmp_path):
    assert len(RECIPES) >= 20
    for name in RECIPES:
        known = reference(name)
        assert known.exploitability <= 1e-5
        assert known.bound is None or known.best_known <= known.bound + 1e-9 * max(abs(known.bound), 1.0)
        assert all(name in rows for rows in reference_rows().values())
    assert set(SUITE) <= set(suite_games(tmp_path)) <= set(SUITE) | set(RECIPES)
    with pytest.raises(GameError, match=r"built from dectiger.dpomdp: say in which folder"):
        suite_game("madp-dectiger")
    with pytest.raises(GameError, match=r"dectiger.dpomdp not found in .* or one level below it"):
        suite_game("madp-dectiger", tmp_path)
    with pytest.raises(FileError, match="no such folder"):
        suite_games(tmp_path / "nowhere")
    listed = command("suite", "list", "--data", tmp_path)
    assert "not built: map-8x8: 8x8.map not found" in listed.out


def test_another_file_under_the_name_is_noticed(tmp_path):
    """A data file is known by the digest of its game, and not by its name."""
    (tmp_path / "madp").mkdir()
    with sample_file("sample.dpomdp") as sample:
        (tmp_path / "madp" / "dectiger.dpomdp").write_text(sample.read_text())
    assert "madp-dectiger" in suite_games(tmp_path)
    with pytest.raises(GameError, match=r"from dectiger.dpomdp, and .* nothing can be compared"):
        check_game_is_frozen("madp-dectiger", tmp_path)


def test_games_of_an_environment_count_with_data(tmp_path):
    pytest.importorskip("pettingzoo")
    name = "pettingzoo-rps-3-2"
    assert prove_reference(name, tmp_path).proves(1e-9)
    game = suite_game(name, tmp_path)
    path = tmp_path / f"{name}.npz"
    game.uniform_policy().save(path)
    found = judge_submission(path, data=tmp_path)
    assert (found.row.entered, found.row.nash) == (1, 1)
    assert found.row.games == len(suite_games(tmp_path)) > len(SUITE)
    ran = command("suite", "submit", path, "--data", tmp_path, "--out", tmp_path / "page.html")
    assert ran.code == 0
    assert name in (tmp_path / "page.html").read_text()
    assert judge_submission(tmp_path / f"{name}.npz", data=tmp_path).entries[name].exploitability < 1e-9
    # Without the data the game does not count, and cannot be judged.
    assert command("suite", "submit", path).code == 2


def test_large_reference_policies_are_kept_as_actions_and_mixed_rows():
    rng = np.random.default_rng(1)
    table = np.eye(5)[rng.integers(5, size=(40, 1_000))]
    table[3, 7] = [0.5, 0.25, 0.25, 0.0, 0.0]
    arrays = reference_arrays("large", JointPolicy((table, [[[1.0, 0.0]]])), np.zeros((2, 1)))
    assert set(arrays) == {"large/0/actions", "large/0/mixed", "large/0/rows", "large/1", "large/multipliers"}
    parts = (arrays[f"large/0/{part}"] for part in ("actions", "mixed", "rows"))
    actions, mixed, rows = parts
    assert (CompactTable(actions, 5, mixed, rows).table == table).all()
