"""What is written twice about the package must be the same, and what is published must be whole."""

import importlib
import io
import re
import tarfile
import tomllib
from pathlib import Path

import pytest
from checks.__main__ import CHECKS
from checks.release import date_archive

import cmpg

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
MAKE_TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))


def bounds(lines):
    """Return the lower bound of each package: "numpy>=1.26" or "numpy >=1.26"."""
    return dict(re.fullmatch(r"([\w-]+) ?>=([\d.]+)", line).groups() for line in lines)


def test_the_lowest_versions_that_are_tested_are_the_lowest_that_are_allowed():
    extras = PROJECT["optional-dependencies"]
    wanted = [extra for name in ("plot", "pettingzoo", "frames") for extra in extras[name]]
    allowed = bounds([*PROJECT["dependencies"], *wanted])
    pinned = r'^([\w-]+)==([\d.]+)(?:; python_version < "3\.13")?$'
    tested = dict(re.findall(pinned, (ROOT / "checks" / "lowest.txt").read_text(), re.MULTILINE))
    assert {name: tested[name] for name in allowed} == {
        name: ".".join([*version.split("."), "0", "0"][:3]) for name, version in allowed.items()
    }


def test_the_recipe_for_conda_asks_for_what_the_wheel_asks_for():
    recipe = (ROOT / "packaging" / "meta.yaml").read_text()
    needed = re.search(r"^  run:\n((?:    - .*\n)+)", recipe, re.MULTILINE)[1].split("\n")[:-1]
    assert bounds(line.removeprefix("    - ") for line in needed) == {
        **bounds(PROJECT["dependencies"]),
        "python": PROJECT["requires-python"].removeprefix(">="),
    }


def test_the_version_is_written_once():
    assert re.fullmatch(r"\d+\.\d+\.\d+", cmpg.__version__)
    assert PROJECT["dynamic"] == ["version"]
    for name in (
        "pyproject.toml",
        "setup.py",
        "CITATION.cff",
        "packaging/meta.yaml",
        "packaging/Dockerfile",
        "mkdocs.yml",
    ):
        assert cmpg.__version__ not in (ROOT / name).read_text("utf-8"), name


def test_the_changelog_has_a_section_for_this_version():
    sections = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert cmpg.__version__ in sections


def test_the_workflow_and_the_guide_call_make_targets_that_exist():
    for path in (*(ROOT / ".github" / "workflows").glob("*.yml"), ROOT / "CONTRIBUTING.md", ROOT / "README.md"):
        called = set(re.findall(r"(?:^|`|run: )make ([a-z]+)", path.read_text("utf-8"), re.MULTILINE))
        assert called, path
        assert called <= MAKE_TARGETS, path


def test_every_check_that_is_named_exists_and_says_what_it_does():
    pages = [ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    pages += (ROOT / ".github" / "workflows").glob("*.yml")
    named = {name for path in pages for name in re.findall(r"(?:-m checks |NAME=)([a-z-]+)", path.read_text("utf-8"))}
    assert named
    assert named <= set(CHECKS)
    modules = {name for path in pages for name in re.findall(r"python -m ([\w.]+)", path.read_text("utf-8"))}
    assert modules <= {"checks", "cibuildwheel", "cmpg", "http.server", "pip", "pytest", "venv"}
    for module, description in CHECKS.values():
        assert callable(importlib.import_module(module).main), module
        assert description


def test_the_workflow_tests_every_python_that_is_promised():
    yaml = pytest.importorskip("yaml")
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text())
    pythons = workflow["jobs"]["test"]["strategy"]["matrix"]["python"]
    assert pythons[0] == PROJECT["requires-python"].removeprefix(">=")
    listed = [name.rpartition(" ")[2] for name in PROJECT["classifiers"] if "Python :: 3." in name]
    assert pythons == listed


def test_the_hooks_before_a_commit_have_the_versions_of_make_lint():
    yaml = pytest.importorskip("yaml")
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    hooks = {repo["repo"].rpartition("/")[2]: repo.get("rev") for repo in config["repos"]}
    pinned = dict(re.findall(r"^(\w+)==([\d.]+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    assert hooks["ruff-pre-commit"] == f"v{pinned['ruff']}"
    assert hooks["mirrors-mypy"] == f"v{pinned['mypy']}"


def test_actions_of_the_workflows_are_pinned_to_a_commit():
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        actions = re.findall(r"uses: (\S+)", path.read_text("utf-8"))
        assert actions, path
        assert all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action) for action in actions), path


def test_addresses_of_the_project_are_those_of_its_metadata():
    home = PROJECT["urls"]["Repository"]
    pages = [*ROOT.glob("*.md"), ROOT / "mkdocs.yml", ROOT / "CITATION.cff", *(ROOT / ".github").rglob("*.*")]
    text = "\n".join(page.read_text("utf-8") for page in pages)
    assert set(re.findall(r"https://github\.com/cmpg[\w-]*/\w+", text)) <= {home}


def test_the_paper_is_cited_with_all_its_authors():
    yaml = pytest.importorskip("yaml")
    (paper,) = yaml.safe_load((ROOT / "CITATION.cff").read_text())["references"]
    assert paper["title"] == "Provably Learning Nash Policies in Constrained Markov Potential Games"
    assert [author["family-names"] for author in paper["authors"]] == ["Alatur", "Ramponi", "He", "Krause"]
    assert paper["url"] in (ROOT / "README.md").read_text("utf-8")


def test_two_archives_of_the_same_files_are_the_same_bytes_whenever_they_were_packed(tmp_path):
    archives = []
    for number, names in enumerate([("a", "b"), ("b", "a")]):
        folder = tmp_path / str(number)
        folder.mkdir()
        archives.append(folder / "source.tar.gz")
        with tarfile.open(archives[-1], "w:gz") as packed:
            for name in names:
                member = tarfile.TarInfo(name)
                member.size, member.mtime, member.mode, member.uid = 1, 1000 + number, 0o755, number
                packed.addfile(member, io.BytesIO(name.encode()))
        date_archive(archives[-1], 500)
    first, second = (archive.read_bytes() for archive in archives)
    assert first == second
    with tarfile.open(archives[0]) as packed:
        found = {member.name: (packed.extractfile(member).read(), member.mode) for member in packed}
    assert found == {"a": (b"a", 0o755), "b": (b"b", 0o755)}
