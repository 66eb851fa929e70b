"""The pages: links lead somewhere, commands do what the page shows, and the stand-alone check agrees with ours.

The Python examples of the pages are run by pytest itself, as doctests.
"""

import doctest
import importlib
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cmpg import scenarios
from cmpg.cli.main import HOMES
from cmpg.cmdp.kernels.choice import compiled
from cmpg.equilibrium.solve import solve
from cmpg.files.games import save_game
from cmpg.files.policies import load_policy
from cmpg.policy import JointPolicy
from cmpg.proof.script import stand_alone
from cmpg.scenarios import SCENARIOS, congestion_game, counter_example, grid_world, spectrum
from command_line import cmpg

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
WITH_COMMANDS = ("tutorial.md", "certificates.md")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
WITH_EXAMPLES = [path for path in sorted((ROOT / "src" / "cmpg").rglob("*.py")) if ">>> " in path.read_text("utf-8")]


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", (DOCS / page).read_text("utf-8"), re.MULTILINE | re.DOTALL)


def stand_alone_check():
    """The script that pages hand out, and certificates.md describes."""
    return stand_alone()


def commands(page):
    """Every command of a page, with what the page shows of its output."""
    for block in blocks(page, "console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, shown = part.partition("\n")
            yield line, shown


def test_the_gallery_shows_every_scenario_by_commands_that_there_are():
    page = (DOCS / "gallery.md").read_text("utf-8")
    pictures = re.findall(r"\(gallery/([\w-]+)\.png\)", page)
    assert set(SCENARIOS) < set(pictures)
    assert {f"{name}.png" for name in pictures} == {path.name for path in (DOCS / "gallery").iterdir()}
    assert all((DOCS / "gallery" / f"{name}.png").stat().st_size < 30_000 for name in pictures)
    assert set(re.findall(r"`cmpg (\w+) ", page)) <= set(HOMES)


@pytest.mark.parametrize(
    "page", [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))], ids=lambda page: str(page.relative_to(ROOT))
)
def test_links_lead_to_files(page):
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page} links to {target}"


def test_the_index_leads_to_every_page():
    linked = {
        (DOCS / target).resolve() for target in re.findall(r"\]\(([^)#]+)\)", (DOCS / "index.md").read_text("utf-8"))
    }
    assert not [page for page in DOCS.rglob("*.md") if page.name != "index.md" and page.resolve() not in linked]


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: str(path.relative_to(ROOT / "src" / "cmpg")))
def test_the_examples_in_docstrings_run(path):
    words = path.relative_to(ROOT / "src").with_suffix("").parts
    module = importlib.import_module(".".join(words).removesuffix(".__init__"))
    outcome = doctest.testmod(module, optionflags=FLAGS)
    assert outcome.attempted
    assert not outcome.failed


def test_the_map_of_the_code_names_files_that_are_there():
    named = re.findall(r"`([\w/]+(?:\.py|/))`", (DOCS / "architecture.md").read_text("utf-8"))
    assert len(named) > 30
    assert not [path for path in named if not any((home / path).exists() for home in (ROOT / "src" / "cmpg", ROOT))]


def test_the_letters_of_the_paper_have_names_that_the_code_uses():
    table = re.findall(r"^\|(?:[^|]|\\\|)+\|([^|]+)\|", (DOCS / "glossary.md").read_text("utf-8"), re.MULTILINE)
    names = {name for row in table for name in re.findall(r"`(?:policy\.|position\.)?(\w+)", row)}
    code = "\n".join(path.read_text("utf-8") for path in (ROOT / "src").rglob("*.py"))
    assert len(names) > 25
    assert not [name for name in names if not re.search(rf"\b{name}\b", code)]


def test_a_form_of_ones_own_takes_at_most_forty_lines():
    (block,) = [block for block in blocks("own-game.md", "python") if "class Radios" in block]
    written = block.partition(">>> @dataclass")[2].splitlines()
    assert 20 < len(written) <= 40


def test_the_site_builds_without_a_warning(tmp_path):
    pytest.importorskip("mkdocs")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path]
    done = subprocess.run(
        words, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    fetched = re.findall(
        r'<(?:script|img|link(?! rel="canonical"))[^>]+(?:src|href)="(https?:[^"]+)',
        (tmp_path / "index.html").read_text(),
    )
    assert not fetched
    broken = [page.name for page in tmp_path.rglob("*.html") if "```" in page.read_text("utf-8")]
    assert not broken, "a fenced block that the site does not take for one"
    reference = "".join(page.read_text() for page in (tmp_path / "reference").iterdir())
    public = [f"cmpg.scenarios.{each}" for each in scenarios.__all__ if each[0].islower()]
    assert not [name for name in ("cmpg.solve", "cmpg.suite.suite_game", *public) if f'id="{name}"' not in reference]


def test_the_python_of_a_newcomer_passes_mypy_strict(tmp_path):
    """Of README, tutorial and own-game, read as three programs; results must not be Optional where they are used."""
    pytest.importorskip("mypy")
    programs = []
    for page in (ROOT / "README.md", DOCS / "tutorial.md", DOCS / "own-game.md"):
        examples = doctest.DocTestParser().get_examples(page.read_text("utf-8"))
        assert len(examples) > 5
        programs.append(tmp_path / f"{page.stem.replace('-', '_')}.py")
        programs[-1].write_text("".join(example.source for example in examples), "utf-8")
    done = subprocess.run([sys.executable, "-m", "mypy", *programs], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("page", WITH_COMMANDS)
def test_commands_print_what_the_page_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "independent_check.py").write_text(stand_alone_check())
    for line, shown in commands(page):
        program, *words = shlex.split(line)
        if program == "cmpg":
            ran = cmpg(*words)
            code, printed = ran.code, ran.out
        else:
            assert program == "python"
            done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
            code, printed = done.returncode, done.stdout
        assert code == 0, f"{line}: {printed}"
        assert doctest.OutputChecker().check_output(shown, printed, FLAGS), f"{line}\n{printed}"


def run_check(folder):
    files = (folder / "game.npz", folder / "policy.npz")
    done = subprocess.run(
        [sys.executable, folder / "independent_check.py", *files], capture_output=True, text=True, check=False
    )
    assert not done.stderr or done.stderr.startswith("not proved: "), done.stderr
    return done


def write_claim(folder, game, policy, multipliers):
    (folder / "independent_check.py").write_text(stand_alone_check())
    save_game(game, folder / "game.npz")
    policy.save(folder / "policy.npz", multipliers=multipliers)


@pytest.mark.parametrize("build", [counter_example, spectrum, grid_world, lambda: congestion_game(num_agents=4)])
def test_the_stand_alone_check_agrees_with_ours(build, tmp_path):
    game = build()
    result = solve(game)
    write_claim(tmp_path, game, result.policy, result.multipliers)
    done = run_check(tmp_path)
    assert done.returncode == 0, done.stdout
    gains = [float(gain) for gain in re.findall(r"gains at most (\S+)", done.stdout)]
    assert gains == pytest.approx(result.certificate.gains, abs=1e-9)
    costs = [float(cost) for cost in re.findall(r"cost (\S+),", done.stdout)]
    assert costs == pytest.approx(result.costs, abs=2e-9)


def test_the_stand_alone_check_gives_the_same_loose_bounds(tmp_path):
    """Far from an equilibrium, and with prices from nowhere, the numbers must still be the same."""
    from cmpg.equilibrium.certificate import certify

    game = spectrum()
    policy = game.random_policy(rng=np.random.default_rng(4))
    prices = np.random.default_rng(5).random((3, 1))
    ours = certify(game, policy, prices)
    write_claim(tmp_path, game, policy, prices)
    done = run_check(tmp_path)
    assert done.returncode == 1
    gains = [float(gain) for gain in re.findall(r"gains at most (\S+)", done.stdout)]
    assert gains == pytest.approx(ours.gains, rel=0.06)


def tampered_policy(policy, multipliers):
    tables = [np.array(table) for table in policy]
    tables[0][0] = np.roll(tables[0][0], 1, axis=-1)
    return JointPolicy(tuple(tables)), multipliers


def cheaper_prices(policy, multipliers):
    return policy, multipliers / 2


@pytest.mark.parametrize("tamper", [tampered_policy, cheaper_prices])
def test_the_stand_alone_check_does_not_believe_a_changed_claim(tamper, tmp_path):
    game = spectrum()
    result = solve(game)
    write_claim(tmp_path, game, *tamper(result.policy, result.multipliers))
    assert run_check(tmp_path).returncode == 1


def test_the_stand_alone_check_refuses_negative_prices_and_rows_that_are_no_probabilities(tmp_path):
    game = spectrum()
    result = solve(game)
    write_claim(tmp_path, game, result.policy, -np.ones((3, 1)))
    assert "multipliers has a negative entry" in run_check(tmp_path).stderr
    result.policy.save(tmp_path / "policy.npz", multipliers=result.multipliers)
    fields = dict(np.load(tmp_path / "policy.npz"))
    fields["agent_0"] = fields["agent_0"] * 1.1
    np.savez(tmp_path / "policy.npz", **fields)
    assert "policy[0] has a row that is no probability distribution" in run_check(tmp_path).stderr


def test_a_run_folder_is_checked_as_its_certificate_says(tmp_path):
    ran = cmpg("solve", "spectrum", "--out", tmp_path / "run")
    assert ran.code == 0
    (tmp_path / "run" / "independent_check.py").write_text(stand_alone_check())
    done = run_check(tmp_path / "run")
    record = json.loads((tmp_path / "run" / "certificate.json").read_text())
    gains = [float(gain) for gain in re.findall(r"gains at most (\S+)", done.stdout)]
    assert gains == pytest.approx(record["gains"], abs=1e-9)
    assert load_policy(tmp_path / "run" / "policy.npz")[1] is not None


@pytest.mark.skipif(compiled() is None, reason="the NumPy twins end at other equilibria than those on the pages")
def test_the_guides_of_an_operator_are_what_their_script_writes(tmp_path):
    """Where another machine adds in another order, last digits differ, and so may which of two equal ways is taken."""
    script = DOCS / "guide" / "write_guides.py"
    subprocess.run([sys.executable, str(script), str(tmp_path)], capture_output=True, text=True, check=True)
    pages = sorted(path.name for path in tmp_path.glob("*.md"))
    assert pages == ["capacity.md", "paths.md", "schedule.md", "simulate.md", "site.md"]
    for name in pages:
        texts = ((folder / name).read_text("utf-8") for folder in (tmp_path, DOCS / "guide"))
        written, kept = (re.sub(r"\d+(→\d+)+", "a way", text) for text in texts)
        number = r"-?\d+(?:\.\d+)?(?:e-?\d+)?"
        assert re.sub(number, "#", written) == re.sub(number, "#", kept), name
        pairs = zip(re.findall(number, written), re.findall(number, kept), strict=True)
        assert all(float(one) == pytest.approx(float(other), rel=1e-6, abs=1e-9) for one, other in pairs), name
        assert (tmp_path / name).with_suffix(".svg").is_file()


def test_the_guides_quote_what_their_script_prints():
    script = DOCS / "guide" / "with_and_without.py"
    printed = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True).stdout
    scenarios = re.split(r"\n\n(?=\S)", printed.strip())
    assert len(scenarios) == 4
    for block in scenarios:
        page = (DOCS / "guide" / f"{block.partition(':')[0]}.md").read_text("utf-8")
        numbers = re.findall(r"-?\d+\.\d{3}\b", block)
        assert len(numbers) == 6
        assert "certified: True" in block
        if compiled() is not None:  # the NumPy twins end at other equilibria than those on the page
            assert not [number for number in numbers if number.replace("-", "−") not in page], block


def test_asterisks_of_the_mathematics_are_shown():
    """P* and D* in one paragraph are no emphasis, and words between asterisks are."""
    markdown = pytest.importorskip("markdown")
    pytest.importorskip("pymdownx")
    config = (ROOT / "mkdocs.yml").read_text("utf-8")
    (smart,) = re.findall(r"^  - pymdownx\.betterem: \{smart_enable: (\w+)\}$", config, flags=re.MULTILINE)
    terms = {"extensions": ["pymdownx.betterem"], "extension_configs": {"pymdownx.betterem": {"smart_enable": smart}}}
    assert markdown.markdown("P*, D* and λ*·(α − c)*", **terms) == "<p>P*, D* and λ*·(α − c)*</p>"
    assert markdown.markdown("*even if* it is", **terms) == "<p><em>even if</em> it is</p>"
