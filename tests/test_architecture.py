"""The house rules that a machine can check."""

import ast
import doctest
import importlib
import inspect
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "cmpg"
ROOMS = [
    "errors",
    "deadline",
    "sizes",
    "runs",
    "arrays",
    "cells",
    "summaries",
    "policy",
    "proof",
    "cmdp",
    "games",
    "simulation",
    "equilibrium",
    "duality",
    "learning",
    "judging",
    "comparison",
    "operation",
    "plugins",
    "scenarios",
    "interop",
    "files",
    "sweeps",
    "suite",
    "report",
    "paper",
    "cli",
]
"""Top to bottom."""

ON_DEMAND = {
    ("policy.py", "cmpg.files.policies"),
    ("duality/analysis.py", "cmpg.report.display"),
    ("equilibrium/quality.py", "cmpg.report.display"),
    ("equilibrium/certificate.py", "cmpg.report.certificates"),
    ("equilibrium/crowds/certificate.py", "cmpg.report.crowds"),
    ("equilibrium/crowds/solve.py", "cmpg.report.crowds"),
    ("equilibrium/crowds/solve.py", "cmpg.files.crowds"),
    ("files/crowds.py", "cmpg.report.crowds"),
    ("equilibrium/recommendations/recommend.py", "cmpg.files.devices"),
    ("equilibrium/recommendations/recommend.py", "cmpg.report.recommendations"),
    ("equilibrium/result.py", "cmpg.files.containers"),
    ("equilibrium/result.py", "cmpg.files.run_folder"),
    ("equilibrium/result.py", "cmpg.operation.plans"),
    ("equilibrium/result.py", "cmpg.report.display"),
    ("equilibrium/result.py", "cmpg.report.page"),
    ("equilibrium/result.py", "cmpg.report.plots"),
    ("equilibrium/result.py", "cmpg.report.tables"),
    ("games/devices.py", "cmpg.files.devices"),
    ("learning/outcome.py", "cmpg.report.display"),
    ("judging/audits.py", "cmpg.report.judging"),
    ("judging/known.py", "cmpg.report.judging"),
    ("judging/side_by_side.py", "cmpg.report.judging"),
    ("operation/plans.py", "cmpg.report.operation"),
    ("operation/day.py", "cmpg.report.operation"),
}
"""Imports of a room below, inside a method that hands its object over: `policy.save(…)`, `result.report(…)`."""


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def imported_modules(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_file_imports_only_from_rooms_above_its_own(path):
    room = room_of(path)
    if room not in ROOMS:
        pytest.skip("the package itself may import everything")
    for name in imported_modules(path):
        parts = name.split(".")
        if (str(path.relative_to(SOURCE)), name) in ON_DEMAND:
            continue
        if parts[0] == "cmpg" and len(parts) > 1 and parts[1] in ROOMS:
            assert ROOMS.index(parts[1]) <= ROOMS.index(room), f"{path} imports {name}, a room below it"


NEVER_CALLED = {"eval", "exec", "compile", "__import__", "system", "popen", "load_module", "allow_pickle"}
NEVER_IMPORTED = {"pickle", "cloudpickle", "dill", "marshal", "shelve", "yaml", "subprocess", "ctypes", "runpy", "code"}
IMPORT_BY_NAME = {
    "lazy.py",  # the names of a package, from the imports that it shows to type checkers
    "scenarios/__init__.py",  # scenarios, from a table
    "cli/main.py",  # commands, from a table
    "cmdp/kernels/choice.py",  # the extension, which may not be there
    "games/local/packed.py",  # the same
    "interop/watching.py",  # trackers, from a table
    "interop/environments.py",  # what the user names with --env, and nothing that a file says
}
"""Files that import by a name which is not written in an import statement; the names are all in the source."""


def called_names(tree: ast.AST) -> set[str]:
    """The last part of whatever is called, and the names of keyword arguments."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    # `re.compile` compiles a pattern.
    names = {getattr(call.func, "id", getattr(call.func, "attr", "")) for call in calls if not is_pattern(call)}
    return names | {keyword.arg for call in calls for keyword in call.keywords if keyword.arg}


def is_pattern(call: ast.Call) -> bool:
    return getattr(call.func, "attr", "") == "compile" and ast.unparse(call.func) == "re.compile"


@pytest.mark.parametrize(
    ("code", "seen"),
    [
        ("eval('1')", {"eval"}),
        ("np.load(path, allow_pickle=True)", {"load", "allow_pickle"}),
        ("re.compile('a')", set()),
        ("re.compile('a'); compile('a', '', 'exec')", {"compile"}),
        ("importlib.import_module(name)", {"import_module"}),
    ],
)
def test_calls_are_seen(code, seen):
    assert called_names(ast.parse(code)) == seen


def test_no_file_can_make_the_library_run_anything():
    for path in SOURCE.rglob("*.py"):
        called, name = called_names(parsed(path)), str(path.relative_to(SOURCE))
        assert not called & NEVER_CALLED, path
        # The verified checker is a program of its own, which the user installs and names; files cannot.
        allowed = {"subprocess"} if name == "equilibrium/verified.py" else set()
        assert not {module.split(".")[0] for module in imported_modules(path)} & NEVER_IMPORTED - allowed, path
        assert "import_module" not in called or name in IMPORT_BY_NAME, path
        # What is loaded by entry points is installed; no reader of files is near it.
        assert "EntryPoint" not in called or name == "plugins.py", path


def test_certificates_need_no_solver():
    code = (
        "import sys, cmpg.equilibrium.certificate;"
        "bad = [name for name in sys.modules if name.startswith('cmpg.cmdp.') and name.split('.')[2] in "
        "('exact', 'columns', 'frontier', 'linear_program', 'primal_dual')];"
        "assert not bad, bad; assert 'highspy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


SOLVERS = {
    *("cmpg.cmdp.box", "cmpg.cmdp.columns", "cmpg.cmdp.exact", "cmpg.cmdp.frontier", "cmpg.cmdp.highs"),
    *(
        "cmpg.cmdp.linear_program",
        "cmpg.cmdp.primal_dual",
        "cmpg.equilibrium.ascent",
        "cmpg.equilibrium.starts.common_price",
    ),
    *("cmpg.equilibrium.loop", "cmpg.equilibrium.solve"),
}


def test_a_page_solves_nothing():
    for path in (SOURCE / "report").glob("*.py"):
        assert not imported_modules(path) & SOLVERS, path
    code = f"import sys, cmpg.report.page; bad = {SOLVERS!r} & set(sys.modules); assert not bad, bad"
    subprocess.run([sys.executable, "-c", code], check=True)


FORMS = {"JointGame", "LocalGame", "CountingGame", "JointPosition", "LocalPosition", "CountingPosition"}


@pytest.mark.parametrize("room", ["files", "report"])
def test_files_and_pages_know_no_form_of_game(room):
    """One file writes and reads the forms; everything else asks the contract, without probing."""
    for path in (SOURCE / room).glob("*.py"):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr":
                assert len(node.args) == 2, f"{path}, line {node.lineno}: a probe"
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
                asked = {name.id for name in ast.walk(node.args[1]) if isinstance(name, ast.Name)}
                assert not asked & FORMS, f"{path}, line {node.lineno}: asks for a form"


def test_importing_the_package_loads_nothing_heavy():
    heavy = "('highspy', 'joblib', 'matplotlib', 'plotly', 'jinja2', 'rich', 'typer', 'cvxpy')"
    code = f"import sys, cmpg; assert not [name for name in {heavy} if name in sys.modules]"
    subprocess.run([sys.executable, "-c", code], check=True)


def classes_with_a_typed_constructor():
    """Dataclasses that take lists of numbers where their fields are arrays, and say so to type checkers only."""
    for path in sorted(SOURCE.rglob("*.py")):
        if not re.search(r"^    if TYPE_CHECKING:", path.read_text("utf-8"), re.MULTILINE):
            continue  # every worker collects the tests, and to parse all files takes seconds
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef):
                hidden = [each for each in node.body if isinstance(each, ast.If) and each.test.id == "TYPE_CHECKING"]
                for init in [each for block in hidden for each in block.body if each.name == "__init__"]:
                    module = ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts)
                    yield pytest.param(module, node.name, init, id=node.name)


@pytest.mark.parametrize(("module", "name", "init"), [*classes_with_a_typed_constructor()])
def test_a_constructor_takes_the_fields_of_its_class(module, name, init):
    real = list(inspect.signature(getattr(importlib.import_module(module), name)).parameters.values())
    told = [argument.arg for argument in (*init.args.args[1:], *init.args.kwonlyargs)]
    assert told == [parameter.name for parameter in real]
    defaults = [*init.args.defaults, *(each for each in init.args.kw_defaults if each is not None)]
    assert [ast.literal_eval(each) for each in defaults] == [
        parameter.default for parameter in real if parameter.default is not inspect.Parameter.empty
    ]


def public_names(package):
    module = importlib.import_module(package)
    return {name: getattr(module, name) for name in module.__all__}


PACKAGES = [".".join(path.parent.relative_to(SOURCE.parent).parts) for path in sorted(SOURCE.rglob("__init__.py"))]


WITH_EXPORTS = [each for each in PACKAGES if hasattr(importlib.import_module(each), "__all__")]


@pytest.mark.parametrize("package", WITH_EXPORTS)
def test_every_exported_name_is_loaded_from_the_module_that_a_type_checker_reads(package):
    path = SOURCE.parent / package.replace(".", "/") / "__init__.py"
    blocks = [each for each in parsed(path).body if isinstance(each, ast.If)]
    lines = [each for block in blocks if ast.unparse(block.test) == "TYPE_CHECKING" for each in block.body]
    shown = {alias.asname: each.module for each in lines for alias in each.names if alias.asname}
    defined_here = {
        name for name, each in public_names(package).items() if getattr(each, "__module__", package) == package
    }
    assert set(public_names(package)) - defined_here <= set(shown)
    for name, home in shown.items():
        loaded = importlib.import_module(f"{home}.{name}") if home == package else None
        wanted = loaded or getattr(importlib.import_module(home), name)
        found = getattr(importlib.import_module(package), name)
        assert found is wanted or inspect.unwrap(found) is inspect.unwrap(wanted), name


def test_the_glossary_has_every_public_noun():
    glossary = (SOURCE.parents[1] / "docs" / "glossary.md").read_text("utf-8")
    nouns = [name for name, thing in public_names("cmpg").items() if inspect.isclass(thing)]
    assert len(nouns) > 15
    assert not [noun for noun in nouns if f"`{noun}`" not in glossary]


def is_protocol(kind):
    return getattr(kind, "_is_protocol", False)


NEED_ANOTHER_PACKAGE = {"mlflow_watcher", "tensorboard_watcher"}
"""Their examples are skipped: what they write to is not installed with the tests."""


@pytest.mark.parametrize("package", WITH_EXPORTS)
def test_every_public_function_and_class_shows_an_example_that_runs(package):
    """tests/test_docs.py runs them."""
    for name, thing in public_names(package).items():
        if inspect.isclass(thing) or inspect.isfunction(thing):
            examples = doctest.DocTestParser().get_examples(thing.__doc__ or "")
            assert examples, f"{package}.{name} shows no example"
            runs = any(not each.options.get(doctest.SKIP) for each in examples if "import" not in each.source)
            assert runs or name in NEED_ANOTHER_PACKAGE, f"the example of {package}.{name} does not run"


def test_no_two_public_classes_share_a_name():
    homes: dict[str, list[str]] = {}
    for path in SOURCE.rglob("*.py"):
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(str(path.relative_to(SOURCE)))
    assert not {name: where for name, where in homes.items() if len(where) > 1}


def test_no_game_is_copied_by_its_fields():
    """What changes in a copy is a method of the game: `with_thresholds`, and others where a form has them.

    Only the room of the forms knows their fields.
    """
    for path in SOURCE.rglob("*.py"):
        assert room_of(path) == "games" or not re.search(
            r"\breplace\(\s*(?:self\.|model\.)?game\b", path.read_text("utf-8")
        ), path


def test_no_two_files_of_tests_share_a_name():
    """Pytest imports them by their names alone."""
    names = [path.name for path in Path(__file__).parent.rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))
