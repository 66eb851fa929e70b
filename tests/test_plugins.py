"""Scenarios and solvers of other packages: found, listed, built, and named where they are broken.

The example package is installed as an installer does it: its module, and beside it a dist-info folder with the entry
points of its pyproject.toml, on the path of the interpreter.
"""

import os
import sys
import tomllib
from pathlib import Path

import pytest

import cmpg
import command_line
from cmpg import plugins
from cmpg.errors import CMPGError, GameError, PluginError
from cmpg.scenarios import scenario, scenario_names

EXAMPLE = Path(__file__).parent / "example_plugin"


def install(folder, project, modules):
    """Put modules and a dist-info folder where the interpreter looks."""
    info = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir(parents=True)
    info.joinpath("METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    lines = []
    for group, entries in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {home}" for name, home in entries.items())]
    info.joinpath("entry_points.txt").write_text("\n".join(lines) + "\n")
    for name, text in modules.items():
        folder.joinpath(name).write_text(text)


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder for packages on the path, where the example package is installed."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    install(tmp_path, project, {"crossing_games.py": (EXAMPLE / "crossing_games.py").read_text()})
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in ("crossing_games", "broken_games"):
        sys.modules.pop(name, None)


def broken(site, text, home="broken_games:bad", group="cmpg.scenarios", name="bad", package="broken-games"):
    install(site, {"name": package, "version": "0.3", "entry-points": {group: {name: home}}}, {"broken_games.py": text})
    plugins._announced.cache_clear()


def test_a_scenario_of_another_package_is_listed_and_takes_options(site):
    assert scenario_names()[-1] == "crossing"
    assert scenario("crossing").build(num_agents=3).num_agents == 3
    with pytest.raises(GameError, match="crossing has no option 'hury'; did you mean 'hurry'"):
        scenario("crossing").build(hury=2.0)
    with pytest.raises(GameError, match="there is no scenario 'crosing'; did you mean 'crossing'"):
        scenario("crosing")
    listed = command_line.cmpg("scenarios")
    assert listed.code == 0
    assert listed.err == ""
    line = next(line for line in listed.out.splitlines() if line.split()[:1] == ["crossing"])
    assert line.split(None, 1)[1] == "Cars at a crossing without lights, who go or wait (crossing-games 1.0)"
    assert "Solvers of other packages: twice (crossing-games 1.0)." in listed.out
    named = command_line.cmpg("scenarios", "crossing").out
    assert "--hurry" in named
    assert "What a car gains by going.  [default: 1.0]" in named


def test_the_command_solves_it_with_the_solver_of_another_package(site, tmp_path):
    words = ("solve", "crossing", "--hurry", "2", "--agents", "3", "--threshold", "0", "--marked", "true")
    ran = command_line.cmpg(*words, "--solver", "twice:tolerance=1e-7", "--json")
    assert ran.code == 0, ran.err
    assert '"status": "CERTIFIED"' in ran.out
    assert "Twice(tolerance=1e-07)" in ran.out
    assert "--hurry" in command_line.cmpg("solve", "crossing", "--help").out
    for word, problem in {
        "twice:tolerance=soon": "--solver twice: tolerance is 'soon'; a number is required",
        "twice:rounds=3": "--solver twice is 'rounds'; one of tolerance is required",
        "thrice": "--solver is 'thrice'; one of exact, lp, primal-dual, twice is required",
        "lp:tolerance=1": "lp takes no options here",
    }.items():
        failed = command_line.cmpg("solve", "crossing", "--solver", word)
        assert failed.code == 2
        assert problem in failed.err
    failed = command_line.cmpg("solve", "crossing", "--marked", "perhaps")
    assert "--marked is 'perhaps'; one of true, false is required" in failed.err


def test_a_run_folder_of_a_plugin_is_read_without_the_plugin(site, tmp_path, monkeypatch):
    ran = command_line.cmpg("solve", "crossing", "--out", tmp_path / "run")
    assert ran.code == 0, ran.err
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry != str(site)])
    assert "crossing" not in scenario_names()
    assert cmpg.load_run(tmp_path / "run").result.certified


def test_it_runs_as_a_program(site):
    where = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    ran = command_line.program("solve", "crossing", PYTHONPATH=where)
    assert (ran.code, ran.out.split()[0]) == (0, "CERTIFIED:"), ran.err


@pytest.mark.parametrize(
    ("text", "home", "problem"),
    [
        ("import nothing_of_the_kind", "broken_games:bad", "cannot be loaded: ModuleNotFoundError: No module named"),
        ("def good(): ...", "broken_games:bad", "cannot be loaded: AttributeError"),
        ("raise SystemExit(3)", "broken_games:bad", "cannot be loaded: SystemExit: 3"),
        ("bad = 7", "broken_games:bad", "is a int; a function is required"),
        ("def bad(size): ...", "broken_games:bad", "has options without a default: size"),
    ],
)
def test_a_broken_plugin_is_named_and_takes_nothing_else_down(site, text, home, problem):
    broken(site, text, home)
    listed = command_line.cmpg("scenarios")
    assert listed.code == 0
    for name in ("grid-world", "crossing"):
        assert f"\n{name} " in listed.out
    assert f"error: the plugin 'bad' of the package broken-games 0.3 ({home}) {problem}" in listed.err
    failed = command_line.cmpg("solve", "bad")
    assert (failed.code, failed.out) == (2, "")
    assert problem in failed.err
    assert "Repair or uninstall that package; everything else works without it." in failed.err
    assert command_line.cmpg("solve", "crossing").code == 0


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("def bad(size: int = 2): return 1 / (size - 2)", "cannot be built: ZeroDivisionError: division by zero"),
        ("def bad(): return 3", "returned a int, which is not a game"),
    ],
)
def test_a_plugin_that_cannot_build_is_named(site, text, problem):
    broken(site, text)
    with pytest.raises(PluginError, match=problem):
        scenario("bad").build()


def test_what_a_plugin_raises_on_purpose_stays_as_it_is(site):
    broken(site, "import cmpg\ndef bad(): raise cmpg.GameError('no such day.')")
    with pytest.raises(GameError, match=r"^no such day\.$"):
        scenario("bad").build()


def test_names_of_the_library_stay_its_own_and_two_packages_cannot_share_one(site):
    broken(site, "def bad(): ...", name="grid-world")
    assert scenario("grid-world").plugin is None
    listed = command_line.cmpg("scenarios")
    assert listed.out.count("grid-world ") == 1
    assert "'grid-world' of the package broken-games 0.3" in listed.err
    assert "has the name of a scenario of the library, which keeps it" in listed.err
    broken(site, "def bad(): ...", name="crossing", package="other-games")
    with pytest.raises(PluginError, match=r"crossing-games 1\.0 and other-games 0\.3 both bring a plugin 'crossing'"):
        scenario("crossing")


def test_a_solver_that_is_none_is_named(site):
    broken(site, "def bad(): return 3", group="cmpg.solvers")
    with pytest.raises(PluginError, match="makes a int; a solver is called with a CMDP"):
        plugins.plugin_solver("bad")
    solver = plugins.plugin_solver("twice", tolerance=1e-8)
    assert cmpg.solve(scenario("crossing").build(), method=cmpg.Ascent(solver=solver)).certified
    with pytest.raises(CMPGError, match=r"no installed package brings a solver 'thrice'\. There are: bad, twice"):
        plugins.plugin_solver("thrice")


def test_other_packages_are_not_looked_through_for_what_the_library_has():
    code = (
        "import sys; sys.argv = ['cmpg', 'solve', 'counter-example', '--solver', 'lp'];"
        "from cmpg.cli.main import main\n"
        "try: main()\nexcept SystemExit as ending: assert ending.code == 0\n"
        "assert 'cmpg.plugins' not in sys.modules"
    )
    ran = command_line.subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_documented_options_are_read_from_a_docstring():
    def function():
        """Do.

        Parameters
        ----------
        first, second
            Two of
            them.
        third : int
            One.

        Returns
        -------
        nothing
            At all.
        """

    told = plugins.documented_options(function)
    assert told == {"first": "Two of them.", "second": "Two of them.", "third": "One."}


def test_the_page_prints_the_example_as_it_is():
    page = (EXAMPLE.parents[1] / "docs" / "plugins.md").read_text("utf-8")
    assert (EXAMPLE / "crossing_games.py").read_text() in page
    announced = (EXAMPLE / "pyproject.toml").read_text()
    assert announced[announced.index("[project.entry-points") : announced.index("\n[tool")] in page


def test_the_example_fits_on_a_page():
    lines = [line for line in (EXAMPLE / "crossing_games.py").read_text().splitlines() if line.strip()]
    assert len(lines) <= 30
