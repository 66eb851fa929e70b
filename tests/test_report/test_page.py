"""The page says what result.json says, and refuses what is not a whole run folder."""

import base64
import csv
import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from run_folders import SOLVED, PageReader, command, solve_into, write_page

import cmpg
from cmpg.equilibrium.result import Result, Status
from cmpg.equilibrium.starts.min_cost import MinCostStart
from cmpg.files.policies import save_policy
from cmpg.files.run_folder import load_run, save_run
from cmpg.games.joint.game import JointGame
from cmpg.games.local.game import LocalAgent, LocalGame
from cmpg.policy import JointPolicy
from cmpg.proof import run_files
from cmpg.proof.script import stand_alone
from cmpg.report import viewer


def read(path):
    return json.loads(path.read_text("utf-8"))


def of_result(tmp_path, game, result):
    """Write a run folder from a result, and its page."""
    save_run(tmp_path / "run", replace(result, game=game))
    write_page(tmp_path / "run", tmp_path / "page.html")
    return (tmp_path / "page.html").read_text("utf-8")


def run_check(folder, *epsilon):
    files = (folder / "game.npz", folder / "policy.npz")
    (folder / "independent_check.py").write_text(stand_alone(), "utf-8")
    words = [sys.executable, "-I", folder / "independent_check.py", *files, *map(str, epsilon)]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def independently(folder, game, claim, *epsilon):
    """Whether the script on the page, run in this process, ends well on arrays that anybody may have changed."""
    np.savez(folder / "game.npz", **game)
    np.savez(folder / "policy.npz", **claim)
    return run_files.main([str(word) for word in (folder / "game.npz", folder / "policy.npz", *epsilon)]) == 0


def forged_claims(claim):
    """Claims that must not pass, by what is wrong with them."""
    multipliers, table = claim["multipliers"], claim["agent_0"]
    yield "negative multipliers", {"multipliers": multipliers - 1}
    yield "multipliers that are no numbers", {"multipliers": multipliers * np.nan}
    yield "infinite multipliers", {"multipliers": multipliers + np.inf}
    yield "multipliers for one agent", {"multipliers": multipliers[:1]}
    yield "other multipliers", {"multipliers": multipliers + 5}
    yield "rows that sum to more", {"agent_0": table * 1.1}
    yield (
        "negative probabilities",
        {
            "agent_0": np.stack(
                [table[..., 0] + 1, *np.moveaxis(table[..., 1:], -1, 0) * 0 - 1 / (table.shape[2] - 1)], -1
            )
        },
    )
    yield "another policy", {"agent_0": np.roll(table, 1, axis=-1)}
    yield "fewer steps", {"agent_0": table[:-1]}
    yield "more steps", {"agent_0": np.concatenate([table, table])}
    yield "another agent", {f"agent_{len(multipliers)}": table}
    yield "another format", {"format": "cmpg-game"}


def forged_compact_claims(claim):
    """The same for version 2 of the file: actions, and rows where agents mix."""
    actions, count = claim["agent_0_actions"], int(claim["num_actions"][0])
    yield "actions that do not exist", {"agent_0_actions": actions * 0 + np.int8(count)}
    yield "actions before the first", {"agent_0_actions": actions * 0 - np.int8(1)}
    yield "actions that are no whole numbers", {"agent_0_actions": actions.astype(float)}
    pure = {"agent_0_mixed": np.zeros((0, 2), np.int32), "agent_0_rows": np.zeros((0, count))}
    yield "other actions", {"agent_0_actions": (actions + 1) % np.int8(count), **pure}
    yield "fewer steps", {"agent_0_actions": actions[:-1]}
    yield "fewer agents", {"num_actions": claim["num_actions"][:-1]}
    row = np.full((1, count), 0.9)
    yield (
        "rows that sum to less",
        {"agent_0_mixed": np.array([[0, 0]], np.int32), "agent_0_rows": row / row.sum() * 0.9},
    )
    yield (
        "rows of states that do not exist",
        {
            "agent_0_mixed": np.array([[0, 10**6]], np.int32),
            "agent_0_rows": row / row.sum(),
        },
    )


def forged_games(game):
    """Games for which the claim must not pass."""
    yield "lower thresholds", {"thresholds": game["thresholds"] - 0.5}
    yield "thresholds that are no numbers", {"thresholds": game["thresholds"] * np.nan}
    yield "another horizon", {"horizon": game["horizon"] + 1}
    yield "another format", {"format": "cmpg-policy"}
    yield "another form", {"form": "counting"}
    name = "initial" if "initial" in game else "initial_0"
    yield "initial states that sum to more", {name: game[name] * 2}
    if "rewards" in game:
        yield "rewards that repeat", {"rewards": game["rewards"][..., :1]}
        yield "costs that repeat", {"costs": game["costs"][..., :1]}
        yield "costs that are no numbers", {"costs": game["costs"] * np.nan}
        yield "a transition that leads nowhere", {"transition": game["transition"] * 0}
    else:
        places = game["use_0_indices"]
        yield "a column before the first", {"transition_0_indices": game["transition_0_indices"] - 1}
        yield "a resource before the first", {"use_0_indices": places - 1}
        yield (
            "a resource that is used twice",
            {"use_0_indices": np.repeat(places, 2), "use_0_indptr": 2 * game["use_0_indptr"]},
        )
        yield "probabilities that sum to less", {"transition_0_data": game["transition_0_data"] / 2}


@pytest.mark.parametrize("name", ["counter-example", "grid-world", "charging", "robots", "routing"])
class TestNumbers:
    def test_agents(self, name, runs, pages):
        page, result, proof = (
            pages[name],
            read(runs[name] / "result.json"),
            read(runs[name] / "certificate.json"),
        )
        assert page.column("agents", 1) == result["values"]
        assert page.column("agents", 2) == proof["bounds"]
        assert page.column("agents", 3) == proof["gains"]
        assert page.column("agents", 4) == [prices[0] for prices in result["multipliers"]]

    def test_constraints(self, name, runs, pages):
        page, result = pages[name], read(runs[name] / "result.json")
        assert page.column("constraints", 1) == result["costs"]
        assert page.column("constraints", 2) == result["thresholds"]
        slacks = [limit - cost for limit, cost in zip(result["thresholds"], result["costs"], strict=True)]
        assert page.column("constraints", 3) == slacks

    def test_the_verdict_names_the_certified_gain(self, name, runs, pages):
        page, result = pages[name], read(runs[name] / "result.json")
        verdict = page.text[: page.text.index("by deviating")]
        assert ("Proved" in verdict) == (result["status"] == "CERTIFIED")
        shown = (
            verdict.partition("gains more than ")[2]
            .replace(" × 10", "e")
            .translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"))
        )
        assert result["certified_epsilon"] <= float(shown) <= 1.1 * result["certified_epsilon"]

    def test_the_course_is_there(self, name, runs, pages):
        lines = list(csv.DictReader((runs[name] / "trace.csv").read_text().splitlines()))
        page = pages[name]
        rounds = [line for line in lines if line["multiplier_0"]]
        assert page.column("trace", 3) == [float(line["potential"]) for line in lines if not line["multiplier_0"]]
        if rounds:
            assert page.column("search", 2) == [float(line["cost_0"]) for line in rounds]
            assert page.column("search", 3) == [float(line["multiplier_0"]) for line in rounds]
            assert f"moves in {len(rounds)} rounds" in page.text
        assert bool(rounds) == (name in ("charging", "robots", "routing"))

    def test_the_files_are_inside(self, name, runs, pages):
        links = pages[name].links
        for file in ("certificate.json", "policy.npz", "game.npz"):
            assert base64.b64decode(links[file].partition(",")[2]) == (runs[name] / file).read_bytes()
        assert base64.b64decode(links["independent_check.py"].partition(",")[2]) == stand_alone().encode()

    def test_it_asks_nobody_for_anything(self, name, runs, pages):
        reader = pages[name]
        for tag, given in reader.attributes:
            assert "src" not in given, tag
            assert given.get("href", "data:").startswith("data:"), tag
        assert any(
            "default-src 'none'" in given.get("content", "") for tag, given in reader.attributes if tag == "meta"
        )

    def test_it_is_small_enough(self, name, runs, pages):
        assert len(pages[name].source.encode()) < 6_000_000


def test_episodes_stand_beside_the_claims(runs, pages):
    page = pages["charging"]
    claimed, seen = page.tables["simulated-1"][1][2:4]
    cost = read(runs["charging"] / "result.json")["costs"][0]
    assert claimed == cost != seen
    assert len(page.tables["episode-1"]) == 1 + 24
    assert "What was seen agrees with what is claimed" in page.text


def test_restarts_are_listed(runs, pages):
    page, result = pages["counter-example"], read(runs["counter-example"] / "result.json")
    assert len(result["equilibria"]) > 1
    # The page judges every equilibrium again, by the kernel; the solver's own sums differ in their last bits.
    listed = [each["values"][0] for each in result["equilibria"]]
    assert page.column("equilibria", 2) == pytest.approx(listed, rel=1e-12)
    assert page.column("equilibria", 4) == [each["costs"][0] for each in result["equilibria"]]


def test_provenance(runs, pages):
    result, text = read(runs["counter-example"] / "result.json"), pages["counter-example"].text
    for part in (result["game_sha256"], "Seed 1", result["versions"]["numpy"], "solver = Exact()", "cmpg certify"):
        assert part in text


def test_a_page_is_the_same_twice(runs, tmp_path):
    for name in ("one", "two"):
        write_page(runs["counter-example"], tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


class TestWithoutThisLibrary:
    @pytest.mark.parametrize("name", ["counter-example", "grid-world", "charging", "robots", "routing"])
    def test_the_script_on_the_page_finds_the_same(self, name, runs):
        run = runs[name]
        proof = read(run / "certificate.json")
        done = run_check(run, proof["epsilon"] + 1e-9)
        assert done.returncode == 0, done.stderr
        found = re.findall(r"agent \d+: value (\S+), gains at most (\S+)", done.stdout)
        assert [float(value) for value, _ in found] == pytest.approx(proof["values"], rel=1e-8, abs=1e-8)
        # The certificate adds an allowance for rounding, which this script does not bound.
        for (_, gain), proved, rounding in zip(found, proof["gains"], proof["rounding"], strict=True):
            assert float(gain) <= proved + rounding + 1e-10
        costs = [float(cost) for cost in re.findall(r"cost (\S+),", done.stdout)]
        assert costs == pytest.approx(proof["costs"], abs=1e-8)

    def test_private_costs_and_stationary_uses(self, tmp_path):
        rng = np.random.default_rng(3)
        agents = tuple(
            LocalAgent(
                transition=rng.dirichlet(np.ones(3), size=(2, 3, 2)),
                reward=rng.normal(size=(1, 3, 2)),
                uses=rng.integers(2, size=(1, 3, 2, 2)).astype(float),
                initial=[1.0, 0.0, 0.0],
                costs=rng.random((1, 2, 3, 2)),
            )
            for _ in range(3)
        )
        delay, load_costs = rng.random((2, 2, 4)), rng.random((1, 1, 2, 4))
        game = LocalGame(agents=agents, delay=delay, load_costs=load_costs, thresholds=[99.0], horizon=2)
        game = replace(game, thresholds=game.at(game.uniform_policy()).costs)
        result = cmpg.solve(game)
        page = PageReader(of_result(tmp_path, game, result))
        assert page.column("agents", 1) == result.values.tolist()
        done = run_check(tmp_path / "run")
        assert done.returncode == 0
        gains = [float(gain) for gain in re.findall(r"at most (\S+)", done.stdout)]
        assert gains == pytest.approx(result.certificate.gains.tolist(), abs=1e-9)
        assert float(re.search(r"cost (\S+),", done.stdout)[1]) == pytest.approx(float(result.costs[0]), abs=1e-8)

    @pytest.mark.parametrize("name", ["counter-example", "charging"])
    def test_a_forged_claim_is_not_proved(self, name, runs, tmp_path, monkeypatch):
        policy, multipliers = cmpg.load_policy(runs[name] / "policy.npz")
        game, claims = dict(np.load(runs[name] / "game.npz")), {}
        for version in (1, 2):
            save_policy(tmp_path / f"{version}.npz", policy, multipliers=multipliers, version=version)
            claims[version] = dict(np.load(tmp_path / f"{version}.npz"))
            assert independently(tmp_path, game, claims[version])
        claim = claims[1]
        for what, forged in forged_claims(claim):
            assert not independently(tmp_path, game, claim | forged), what
        for what, forged in forged_compact_claims(claims[2]):
            assert not independently(tmp_path, game, claims[2] | forged), what
        for what, forged in forged_games(game):
            assert not independently(tmp_path, game | forged, claim), what

    def test_an_epsilon_can_be_asked_for(self, runs, tmp_path, monkeypatch):
        game, claim = (dict(np.load(runs["counter-example"] / file)) for file in ("game.npz", "policy.npz"))
        claim["multipliers"] = claim["multipliers"] + 0.01
        gain = cmpg.certify(
            cmpg.load_game(runs["counter-example"] / "game.npz"),
            JointPolicy((claim["agent_0"], claim["agent_1"])),
            claim["multipliers"],
        ).epsilon
        assert gain > 1e-3
        assert independently(tmp_path, game, claim, gain + 1e-9)
        assert not independently(tmp_path, game, claim, gain / 2)

    @pytest.mark.parametrize(("more", "code"), [(0.0, 0), (1.0, 1)])
    def test_what_floats_leave_open_is_decided_in_rationals(self, tmp_path, more, code):
        costs = np.array([1e15 + more, -1e15]).reshape(1, 1, 1, 2)
        game = JointGame(
            transition=np.ones((1, 1, 2, 1)),
            rewards=np.zeros((1, 1, 1, 2)),
            costs=costs,
            thresholds=[0.0],
            initial=[1.0],
            horizon=1,
        )
        cmpg.save_game(game, tmp_path / "game.npz")
        game.uniform_policy().save(tmp_path / "policy.npz")
        assert run_check(tmp_path).returncode == code


class TestVerdicts:
    def test_a_limit(self, tmp_path):
        code = command("solve", "grid-world", "--start", "min-cost", "--max-iterations", "0", "--out", tmp_path / "run")
        assert code == 1
        assert command("report", tmp_path / "run") == 0
        text = PageReader((tmp_path / "run" / "report.html").read_text("utf-8")).text
        assert "Not proved: these policies meet every threshold, and an agent may still gain up to" in text

    def test_an_infeasible_game(self, tmp_path):
        assert command("solve", "counter-example", "--threshold", "-0.25", "--out", tmp_path / "run") == 1
        assert command("report", tmp_path / "run") == 0
        page = PageReader((tmp_path / "run" / "report.html").read_text("utf-8"))
        assert "Proved impossible: no joint policy meets the thresholds." in page.text
        assert "allow −0.25" in page.text
        assert "agents" not in page.tables

    def test_an_undecided_one(self, tmp_path):
        game = cmpg.scenarios.counter_example()
        result = Result(Status.FEASIBILITY_UNKNOWN, "nothing was found.", 1e-6, None)
        assert "Undecided" in PageReader(of_result(tmp_path, game, result)).text

    @pytest.mark.parametrize(
        ("status", "words"), [("INTERRUPTED", "Interrupted"), ("NOT_POTENTIAL", "Perhaps not a potential game")]
    )
    def test_others(self, tmp_path, status, words):
        game = cmpg.scenarios.grid_world()
        result = replace(
            cmpg.solve(game, start=MinCostStart(), method=cmpg.Ascent(max_iterations=0)),
            status=Status[status],
            message="so it ended.",
        )
        assert f"{words}: these policies meet every threshold" in PageReader(of_result(tmp_path, game, result)).text

    def test_a_witness_makes_it_certain(self, tmp_path):
        game = cmpg.scenarios.congestion_game(num_agents=3)
        witness = cmpg.check_potential(game, rng=np.random.default_rng(0)).witness
        result = replace(
            cmpg.solve(game, start=MinCostStart(), method=cmpg.Ascent(max_iterations=0)),
            status=Status.NOT_POTENTIAL,
            witness=witness,
        )
        page = PageReader(of_result(tmp_path, game, result))
        assert "Not a potential game: " in page.text
        assert load_run(tmp_path / "run").result.witness.residual == witness.residual


class TestForms:
    def test_no_constraints(self, tmp_path):
        rewards = np.array([[[[[1.0, 0.0], [0.0, 2.0]]]]] * 2)
        game = JointGame(
            transition=np.ones((1, 1, 2, 2, 1)), rewards=rewards, costs=(), thresholds=(), initial=[1.0], horizon=1
        )
        page = PageReader(of_result(tmp_path, game, cmpg.solve(game)))
        assert "This game has no constraints." in page.text
        assert len(page.tables["agents"][0]) == 4

    def test_discounted(self, tmp_path):
        game = replace(cmpg.scenarios.spectrum(num_agents=2), horizon=None, discount=0.5)
        result = cmpg.solve(game)
        page = PageReader(of_result(tmp_path, game, result))
        assert page.column("agents", 1) == result.values.tolist()
        assert "discount 0.5" in page.text

    def test_counting(self, tmp_path):
        from cmpg.scenarios.paper import counting_congestion_game

        game = counting_congestion_game(num_agents=6)
        result = cmpg.solve(game)
        assert PageReader(of_result(tmp_path, game, result)).column("agents", 1) == result.values.tolist()

    def test_several_constraints(self, tmp_path):
        base = cmpg.scenarios.spectrum(num_agents=2, horizon=1)
        game = replace(base, costs=np.concatenate([base.costs] * 6), thresholds=np.full(6, 0.15), constraint_names=None)
        result = cmpg.solve(game)
        page = PageReader(of_result(tmp_path, game, result))
        assert [row[0] for row in page.tables["constraints"][1:]] == [f"constraint {j}" for j in range(6)]
        assert "The 4 constraints with the highest prices are drawn." in page.text

    def test_names_are_only_words(self, tmp_path):
        nasty = "</script><script>alert(1)</script>"
        game = replace(
            cmpg.scenarios.counter_example(), agent_names=(nasty, "b"), state_names=(nasty,), constraint_names=(nasty,)
        )
        text = of_result(tmp_path, game, cmpg.solve(game))
        assert nasty not in text
        assert PageReader(text).column("agents", 0)[0] == nasty

    def test_a_folder_without_a_scenario_file_shows_tables(self, runs, tmp_path):
        folder = tmp_path / "run"
        shutil.copytree(runs["grid-world"], folder)
        (folder / "scenario.json").unlink()
        write_page(folder, tmp_path / "page.html")
        assert '"kind":"tables"' in (tmp_path / "page.html").read_text("utf-8")


def test_what_is_too_much_is_left_out_and_said(runs, monkeypatch):
    run = load_run(runs["robots"])
    whole = viewer.view_of(run.game, run.result.policy, run.drawing)
    assert whole.note == ""
    monkeypatch.setattr(viewer, "MAX_BYTES", len(whole.to_json()) * 2 // 3)
    smaller = viewer.view_of(run.game, run.result.policy, run.drawing)
    assert len(smaller.to_json()) <= len(whole.to_json()) * 2 // 3
    assert "the first 1 of 3 agents can be chosen; the totals are of all" in smaller.note


def test_every_scenario_has_its_kind_of_view(tmp_path):
    kinds = {
        "grid-world": "grid",
        "grid-world-local": "grid",
        "robots": "grid",
        "charging": "loads",
        "routing": "network",
    }
    for name in ("grid-world", "grid-world-local", "spectrum", "congestion"):
        run = load_run(solve_into(tmp_path / name, name))
        assert viewer.view_of(run.game, run.result.policy, run.drawing).kind == kinds.get(name, "tables")
    assert set(kinds) < set(SOLVED)


class TestBadInput:
    """One sentence, exit code 2, and no page."""

    @pytest.fixture
    def folder(self, runs, tmp_path):
        shutil.copytree(runs["counter-example"], tmp_path / "run")
        return tmp_path / "run"

    @staticmethod
    def refused(folder, capsys, *expected, out=None):
        target = folder.parent / "page.html" if out is None else out
        capsys.readouterr()  # what was said when the folders of other tests were made on demand
        assert command("report", folder, "-o", target) == 2
        message = capsys.readouterr().err
        assert message.startswith("error: ")
        assert message.count("\n") == 1
        assert "Traceback" not in message
        for words in expected:
            assert words in message
        assert not target.is_file()
        assert not list(target.parent.glob(".*"))

    def test_no_folder(self, tmp_path, capsys):
        self.refused(tmp_path / "nowhere", capsys, "there is no such folder")

    def test_another_folder(self, tmp_path, capsys):
        (tmp_path / "run").mkdir()
        self.refused(tmp_path / "run", capsys, "has no result.json")

    @pytest.mark.parametrize("name", ["game.npz", "policy.npz", "certificate.json", "trace.csv", "result.json"])
    def test_a_file_is_missing(self, folder, capsys, name):
        (folder / name).unlink()
        self.refused(folder, capsys, name)

    @pytest.mark.parametrize(
        "name", ["game.npz", "policy.npz", "certificate.json", "trace.csv", "result.json", "scenario.json"]
    )
    def test_a_file_is_cut_short(self, folder, capsys, name):
        whole = (folder / name).read_bytes()
        (folder / name).write_bytes(whole[: len(whole) * 2 // 3])
        self.refused(folder, capsys, name)

    @pytest.mark.parametrize("name", ["result.json", "certificate.json", "scenario.json"])
    def test_another_version(self, folder, capsys, name):
        self.change(folder / name, version=2)
        self.refused(folder, capsys, name, "version")

    def test_another_kind(self, folder, capsys):
        self.change(folder / "result.json", format="cmpg-learning-result")
        self.refused(folder, capsys, "'cmpg-result' is required")

    @pytest.mark.parametrize("name", ["status", "values", "equilibria", "game_sha256", "moves"])
    def test_a_field_is_missing(self, folder, capsys, name):
        record = read(folder / "result.json")
        del record[name]
        (folder / "result.json").write_text(json.dumps(record))
        self.refused(folder, capsys, name)

    def test_a_field_is_nonsense(self, folder, capsys):
        self.change(folder / "result.json", moves="many")
        self.refused(folder, capsys, "result.json")

    def test_a_policy_of_another_game(self, folder, runs, capsys):
        shutil.copy(runs["grid-world"] / "policy.npz", folder)
        self.refused(folder, capsys, "does not fit game.npz")

    def test_another_policy_of_this_game(self, folder, capsys):
        game = cmpg.load_game(folder / "game.npz")
        game.uniform_policy().save(folder / "policy.npz", multipliers=np.zeros((2, 1)))
        self.refused(folder, capsys, "are not those of policy.npz")

    def test_another_game(self, folder, capsys):
        cmpg.save_game(cmpg.scenarios.counter_example(threshold=0.6), folder / "game.npz")
        self.refused(folder, capsys, "hashes differ")

    def test_a_certificate_that_claims_more(self, folder, capsys):
        record = read(folder / "certificate.json")
        self.change(folder / "certificate.json", gains=[gain - 1e-3 for gain in record["gains"]])
        self.refused(folder, capsys, "its gains are not those of policy.npz")

    def test_a_result_that_claims_more(self, folder, capsys):
        record = read(folder / "result.json")
        self.change(folder / "result.json", values=[value + 1 for value in record["values"]])
        self.refused(folder, capsys, "different values")

    def test_a_drawing_of_another_game(self, folder, runs, capsys):
        shutil.copy(runs["grid-world"] / "scenario.json", folder)
        self.refused(folder, capsys, "its drawing is of another game")

    def test_a_page_that_cannot_be_written(self, folder, capsys):
        self.refused(folder, capsys, "is a folder", out=folder)
        assert command("report", folder, "-o", folder / "none" / "page.html") == 2

    @staticmethod
    def change(path, **fields):
        path.write_text(json.dumps(read(path) | fields))


def test_notebooks_show_a_result():
    result = cmpg.solve(cmpg.scenarios.grid_world())
    reader = PageReader(result._repr_html_())
    assert "CERTIFIED" in reader.text
    assert "23.100000" in reader.text
    nothing = replace(result, incumbent=None, message="<b>")
    assert "&lt;b&gt;" in nothing._repr_html_()
    assert "table" not in nothing._repr_html_()


def test_a_learning_run_has_a_page_with_every_seed(learned, tmp_path):
    size = write_page(learned, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert size < 6_000_000
    for line in (learned / "seeds.jsonl").read_text().splitlines():
        record = json.loads(line)
        assert f'value="{record["true_gap"]!r}"' in page
        assert f"{sum(record['samples'].values()):,}" in page


def test_a_record_that_was_torn_off_is_left_out_and_told(learned, tmp_path):
    cut = shutil.copytree(learned, tmp_path / "cut")
    (cut / "seeds.jsonl").write_text((learned / "seeds.jsonl").read_text()[:-40])
    write_page(cut, tmp_path / "page.html")
    page = PageReader((tmp_path / "page.html").read_text("utf-8"))
    assert len(page.tables["seeds"]) == 2
    assert "The last record was torn off" in page.text


def test_a_chart_that_fails_does_not_take_the_page_down(monkeypatch, tmp_path, caplog):
    def broken(*_, **__):
        raise ZeroDivisionError("no chart today")

    for name in ("potential_chart", "gains_chart", "cost_charts", "spending_charts", "where_spent", "threshold_chart"):
        monkeypatch.setattr(f"cmpg.report.page.{name}", broken)
    cmpg.solve(cmpg.scenarios.counter_example()).report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "gains at most" in page
    assert "no chart today" in caplog.text
    assert "no chart today" not in page
