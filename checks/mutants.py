"""Mutation testing: change one operator, comparison, constant or decision of a file, and see whether its tests notice.

    python -m checks mutants                        a sample of every file, written to build/mutants.md
    python -m checks mutants --sample 0             every mutant there is: hours
    python -m checks mutants --only certificate     one file
    python -m checks mutants --known --sample 0     the table of all that is known, without trying anything
    python -m checks mutants --seed 7               another sample, that no test was written for

A mutant is a file with one change. It is compiled into a fork of this process, so that nothing is written and nothing
but the library is imported again, and the tests that concern the file run until one fails. What is done is kept in
build/mutants, and is done again only after the file or its tests have changed. The NumPy twins are used throughout, so
that the Python code is what runs.
"""

from __future__ import annotations

import argparse
import ast
import copy
import doctest
import hashlib
import importlib
import importlib.abc
import importlib.machinery
import json
import os
import resource
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from checks import BUILD, ROOT, evidence, wilson
from checks.records import Records

SOURCE = ROOT / "src"
JUDGED = Path(__file__).with_name("survivors.json")
"""What was found out about mutants that survived, by file and change."""


CPU_SECONDS = 40
"""A mutant that takes longer than this of a processor's time is noticed: a user would not wait so long."""


@dataclass(frozen=True)
class Target:
    """A file, the tests that concern it, the most telling first, and the least score that is accepted."""

    name: str
    path: str
    tests: tuple[str, ...]
    least: float = 0.85


FORMULAS = "tests/test_learning/test_formulas.py"
LOCAL_CUT = "tests/test_learning/test_local_truncation.py"

TARGETS = (
    Target(
        "certificate",
        "cmpg/equilibrium/certificate.py",
        (
            "tests/test_equilibrium/test_certificate.py",
            "tests/test_equilibrium/test_hard_budgets.py",
            "tests/test_equilibrium/test_proved.py::test_products_too_small_for_floats_count",
        ),
        0.95,
    ),
    Target(
        "infeasibility",
        "cmpg/equilibrium/infeasibility.py",
        (
            "tests/test_equilibrium/test_infeasibility.py",
            "tests/test_equilibrium/test_start.py",
            "tests/test_sweep.py::test_claims_that_were_wrong_once_are_so_no_more",
        ),
        0.95,
    ),
    Target(
        "run files",
        "cmpg/proof/run_files.py",
        ("tests/test_proof/test_script.py",),
        0.95,
    ),
    Target(
        "planning",
        "cmpg/cmdp/planning.py",
        (
            "tests/test_cmdp/test_planning.py",
            "tests/test_cmdp/test_exact.py",
        ),
    ),
    Target(
        "evaluation",
        "cmpg/cmdp/evaluation.py",
        (
            "tests/test_cmdp/test_evaluation.py",
            "tests/test_cmdp/test_model.py",
            "tests/test_cmdp/test_planning.py",
        ),
    ),
    Target(
        "frontier",
        "cmpg/cmdp/frontier.py",
        (
            "tests/test_cmdp/test_frontier.py",
            "tests/test_cmdp/test_exact.py",
            "tests/test_cmdp/test_columns.py",
        ),
    ),
    Target(
        "ascent",
        "cmpg/equilibrium/ascent.py",
        (
            "tests/test_equilibrium/test_loop.py",
            "tests/test_equilibrium/test_ascent.py",
            "tests/test_equilibrium/test_solve.py",
        ),
    ),
    Target(
        "loop",
        "cmpg/equilibrium/loop.py",
        (
            "tests/test_equilibrium/test_loop.py",
            "tests/test_equilibrium/test_ascent.py",
            "tests/test_equilibrium/test_start.py",
        ),
    ),
    Target(
        "loads", "cmpg/games/local/loads.py", ("tests/test_games/test_local_loads.py", "tests/test_games/test_local.py")
    ),
    Target(
        "counts",
        "cmpg/games/counting/counts.py",
        ("tests/test_games/test_counts.py", "tests/test_games/test_counting.py"),
    ),
    Target(
        "confidence",
        "cmpg/learning/confidence.py",
        (
            "tests/test_learning/test_confidence.py",
            "tests/test_learning/test_anytime.py",
        ),
    ),
    Target(
        "generative learner",
        "cmpg/learning/generative.py",
        ("tests/test_learning/test_generative.py",),
    ),
    Target(
        "safe learner",
        "cmpg/learning/safe.py",
        ("tests/test_learning/test_safe.py",),
    ),
    Target(
        "shared learner",
        "cmpg/learning/shared.py",
        ("tests/test_learning/test_shared.py",),
    ),
    Target(
        "learning ascent",
        "cmpg/learning/ascent.py",
        (
            "tests/test_learning/test_learn.py",
            "tests/test_learning/test_learning_start.py",
        ),
    ),
    Target("optimism", "cmpg/learning/optimism.py", (FORMULAS, "tests/test_learning/test_optimism.py")),
    Target(
        "samples",
        "cmpg/learning/samples.py",
        (
            FORMULAS,
            "tests/test_learning/test_simulator.py",
            "tests/test_learning/test_truncation.py",
        ),
    ),
    Target("local model", "cmpg/learning/local/model.py", (FORMULAS, "tests/test_learning/test_local_learning.py")),
    Target(
        "truncation",
        "cmpg/learning/truncation.py",
        (
            FORMULAS,
            "tests/test_learning/test_truncation.py",
            f"{LOCAL_CUT}::test_the_first_steps_and_what_follows_them_are_their_formulas",
            f"{LOCAL_CUT}::test_the_number_of_steps_is_the_least_that_its_shares_allow",
            f"{LOCAL_CUT}::test_the_finite_form_has_the_steps_that_are_not_lost_in_rounding",
            f"{LOCAL_CUT}::test_what_cannot_be_cut_off_is_refused",
        ),
    ),
    Target("a priori bounds", "cmpg/learning/bounds.py", (FORMULAS, "tests/test_learning/test_bounds.py")),
    Target("Algorithm 3", "cmpg/paper/algorithm_3.py", ("tests/test_paper/test_algorithm_3.py",)),
    Target("Algorithm 4", "cmpg/paper/algorithm_4.py", ("tests/test_paper/test_algorithm_4.py",)),
)


# --- what may be changed -----------------------------------------------------------------------

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
CALLS = {
    "min": "max",
    "max": "min",
    "minimum": "maximum",
    "maximum": "minimum",
    "any": "all",
    "all": "any",
    "argmin": "argmax",
    "argmax": "argmin",
    "floor": "ceil",
    "ceil": "floor",
    "zeros": "ones",
    "ones": "zeros",
}

Change = Callable[[ast.AST], None]


@dataclass(frozen=True)
class Mutant:
    """One change of one file."""

    number: int  # among all of the file
    line: int
    change: str  # before → after
    source: str  # the line, by which a judgement finds the mutant again after others have moved
    copy: int = 0  # how many mutants before it have the same line and the same change

    @property
    def key(self) -> str:
        """What names the change without its place."""
        return f"{self.source} | {self.change}"

    @property
    def mark(self) -> str:
        """A short name, which stays the same wherever the line moves."""
        return hashlib.sha256(f"{self.key} #{self.copy}".encode()).hexdigest()[:12]


def mutants_of(tree: ast.Module) -> Iterator[tuple[ast.AST, str, Callable[[ast.AST], ast.AST]]]:
    """Yield every place that can be changed, what the change is called, and what makes it."""
    for node in _code(tree):
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARISONS:
            yield node, "comparison", lambda old: _with(old, ops=[COMPARISONS[type(old.ops[0])]()])
        elif (isinstance(node, ast.BinOp) and type(node.op) in OPERATORS and not _joins_text(node)) or (
            isinstance(node, ast.AugAssign) and type(node.op) in OPERATORS
        ):
            yield node, "operator", lambda old: _with(old, op=OPERATORS[type(old.op)]())
            if isinstance(node, ast.BinOp):
                yield node, "operand", lambda old: old.left
        elif isinstance(node, ast.BoolOp):
            yield node, "and, or", lambda old: _with(old, op=ast.Or() if isinstance(old.op, ast.And) else ast.And())
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)) and not _is_axis(node):
            yield node, "sign", lambda old: old.operand
        elif isinstance(node, (ast.If, ast.IfExp, ast.While)) and not isinstance(
            node.test, (ast.Compare, ast.Constant)
        ):
            yield node, "decision", lambda old: _with(old, test=ast.UnaryOp(ast.Not(), old.test))
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
            yield node, "constant", lambda old: ast.Constant(old.value + 1)
            yield node, "smaller constant", lambda old: ast.Constant(old.value - 1)
        elif isinstance(node, ast.Constant) and type(node.value) is bool:
            yield node, "constant", lambda old: ast.Constant(not old.value)
        elif isinstance(node, ast.Call) and _called(node) in CALLS:
            yield node, "call", _other_call
        elif isinstance(node, (ast.Break, ast.Continue)):
            yield node, "jump", lambda old: ast.Continue() if isinstance(old, ast.Break) else ast.Break()


def _code(tree: ast.Module) -> Iterator[ast.AST]:
    """Walk through what decides something: no annotations, docstrings, messages or constants of a module."""
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield from _walk(node)


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.ClassDef):
        for child in node.body:
            if isinstance(child, ast.FunctionDef) and child.name not in SHOWN:
                yield from _walk(child)
        return
    if isinstance(node, ast.FunctionDef):
        if node.name in SHOWN:
            return
        for child in node.body:
            yield from _walk(child)
        return
    if isinstance(node, (ast.Raise, ast.Assert, ast.JoinedStr, ast.Import, ast.ImportFrom)):
        return
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    if isinstance(node, ast.AnnAssign):
        yield from _walk(node.value) if node.value is not None else ()
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _walk(child)


SHOWN = {"summary", "tables", "agents_table", "constraints_table", "told", "__repr__", "_repr_html_", "_price"}
"""Methods that only show something; what they print is compared letter by letter by other tests."""


def _with(node: ast.AST, **fields: object) -> ast.AST:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _joins_text(node: ast.BinOp) -> bool:
    return any(
        isinstance(side, (ast.JoinedStr, ast.Constant)) and not _is_number(side) for side in (node.left, node.right)
    )


def _is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float))


def _is_axis(node: ast.UnaryOp) -> bool:
    """−1 as an index or an axis: its mutant +1 is a constant's mutant as well."""
    return isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant) and node.operand.value == 1


def _called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")


def _other_call(node: ast.AST) -> ast.AST:
    assert isinstance(node, ast.Call)
    name = CALLS[_called(node)]
    if isinstance(node.func, ast.Name):
        return _with(node, func=ast.Name(name, ast.Load()))
    return _with(node, func=_with(node.func, attr=name))


class _Replace(ast.NodeTransformer):
    """Puts one node in the place of another."""

    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        """Walk to the node."""
        if node is self.old:
            return ast.copy_location(self.new, node)
        return self.generic_visit(node)


def all_mutants(source: str) -> list[Mutant]:
    """Return every mutant of a file."""
    found, lines, copies = [], source.splitlines(), Counter[str]()
    for number, (node, _, change) in enumerate(mutants_of(ast.parse(source))):
        before, after = (_first_line(ast.unparse(each)) for each in (node, change(node)))
        mutant = Mutant(number, node.lineno, f"{before} → {after}", lines[node.lineno - 1].strip())
        found.append(replace(mutant, copy=copies[mutant.key]))
        copies[mutant.key] += 1
    return found


def _first_line(text: str) -> str:
    return text.splitlines()[0][:90]


def mutated(source: str, number: int) -> ast.Module:
    """Return the tree of a file with one change."""
    tree = ast.parse(source)
    node, _, change = list(mutants_of(tree))[number]
    return ast.fix_missing_locations(_Replace(node, change(node)).visit(tree))


# --- running the tests against one mutant ------------------------------------------------------


class _Loader(importlib.abc.Loader):
    def __init__(self, tree: ast.Module, path: Path) -> None:
        self.tree, self.path = tree, path

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:  # noqa: ARG002
        return None

    def exec_module(self, module: object) -> None:
        exec(compile(self.tree, str(self.path), "exec"), vars(module))


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the mutant where the file is imported."""

    def __init__(self, name: str, tree: ast.Module, path: Path) -> None:
        self.name, self.tree, self.path = name, tree, path

    def find_spec(
        self,
        name: str,
        path: object = None,  # noqa: ARG002
        target: object = None,  # noqa: ARG002
    ) -> importlib.machinery.ModuleSpec | None:
        if name != self.name:
            return None
        return importlib.machinery.ModuleSpec(name, _Loader(self.tree, self.path), origin=str(self.path))


def noticed(target: Target, number: int | None, without: tuple[str, ...] = ()) -> tuple[bool, float]:
    """Run the tests in a fork with one mutant, or with none, and return whether one failed, and the seconds it took."""
    began = resource.getrusage(resource.RUSAGE_CHILDREN)
    child = os.fork()
    if child == 0:
        _run_child(target, number, without)
    _, status = os.waitpid(child, 0)
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime
    return os.waitstatus_to_exitcode(status) != 0, seconds


EXAMPLES = "the examples of the file"


class _Failures:
    """Writes down which tests fail."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def pytest_runtest_logreport(self, report: object) -> None:
        """Keep the name of a test that failed."""
        if report.failed:
            with self.path.open("a") as log:
                log.write(report.nodeid + "\n")


def failing(target: Target, folder: Path) -> tuple[str, ...]:
    """Return which tests fail without any mutant, with the NumPy twins and in one process; they are left out."""
    path = folder / f"failing-{os.getpid()}.txt"
    path.unlink(missing_ok=True)
    _, seconds = noticed(target, None, (str(path),))
    found = tuple(sorted(set(path.read_text().splitlines()))) if path.exists() else ()
    print(
        f"{target.name}: {seconds:.0f} s without a mutant{', left out: ' if found else ''}{', '.join(found)}",
        flush=True,
    )
    return found


def _run_child(target: Target, number: int | None, without: tuple[str, ...]) -> None:
    code = 99
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (6 * 2**30, 6 * 2**30))
        signal.alarm(20 * CPU_SECONDS)
        silent = os.open(os.environ.get("MUTANT_LOG", os.devnull), os.O_WRONLY | os.O_CREAT)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        path, name = SOURCE / target.path, target.path.removesuffix(".py").replace("/", ".")
        if number is not None:
            sys.meta_path.insert(0, _Finder(name, mutated(path.read_text("utf-8"), number), path))
            os.environ["CMPG_MUTANT"] = f"{name}:{number}"
        import pytest

        options = [
            "-x",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
            "--hypothesis-profile=mutants",
            "-W",
            "ignore::pytest.PytestAssertRewriteWarning",
            "-o",
            "addopts=",
        ]
        if number is None:
            options.remove("-x")
            code = int(pytest.main([*options, *target.tests], plugins=[_Failures(Path(without[0]))]))
            if _examples_fail(name):
                with Path(without[0]).open("a") as log:
                    log.write(EXAMPLES + "\n")
        else:
            left_out = [word for each in without for word in ("--deselect", each)]
            code = int(pytest.main([*options, *left_out, *target.tests]))
            if code == 0 and EXAMPLES not in without and _examples_fail(name):
                code = 97
    except BaseException:
        traceback.print_exc()
        code = 98
    finally:
        os._exit(code)


def _examples_fail(name: str) -> bool:
    # Not by pytest, which would read the file itself and never meet the mutant.
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    return doctest.testmod(importlib.import_module(name), optionflags=flags).failed > 0


def prepare() -> None:
    """Import what every child needs, once; the library itself stays out, so that a child meets its mutant."""
    os.environ.update(CMPG_KERNELS="numpy", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    os.chdir(ROOT)
    sys.path[:0] = [str(SOURCE), str(ROOT / "tests")]
    import highspy  # noqa: F401
    import hypothesis
    import numpy  # noqa: F401
    import pytest  # noqa: F401
    import scipy.optimize
    import scipy.sparse.csgraph
    import scipy.special
    import scipy.stats  # noqa: F401

    # A failure is enough; the smallest is not needed.
    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    hypothesis.settings.register_profile("mutants", phases=phases, derandomize=True, database=None, deadline=None)
    assert not [name for name in sys.modules if name.split(".")[0] == "cmpg"]


# --- what is kept, and the page ----------------------------------------------------------------


def fingerprint(target: Target) -> str:
    """Return what identifies a file and its tests."""
    digest = hashlib.sha256((SOURCE / target.path).read_bytes())
    for name in target.tests:
        digest.update((ROOT / name.partition("::")[0]).read_bytes() + name.encode())
    return digest.hexdigest()[:16]


def sampled(mutants: list[Mutant], size: int, seed: int = 0) -> list[Mutant]:
    """Return a sample, in which a mutant stays while its line does: all where the size is 0."""
    # By hashes, which are as good as random; a larger sample has the smaller ones in it, so that more can be tried.
    drawn = sorted(mutants, key=lambda each: _rank(each.mark, seed))[: size or len(mutants)]
    return sorted(drawn, key=lambda each: each.number)


def _rank(mark: str, seed: int) -> str:
    return hashlib.sha256(f"{seed} {mark}".encode()).hexdigest() if seed else mark


def _is_same(reasons: dict[str, str], key: str) -> bool:
    return reasons.get(key, "").startswith("same program")


@dataclass(frozen=True)
class Score:
    """How many mutants were tried, how many survived, and how many of those are the same program."""

    tried: int = 0
    survived: int = 0
    same: int = 0

    def __add__(self, other: Score) -> Score:
        return Score(self.tried + other.tried, self.survived + other.survived, self.same + other.same)

    @property
    def noticed(self) -> int:
        """Those that some test noticed."""
        return self.tried - self.survived

    @property
    def share(self) -> float:
        """Which part of those that are another program was noticed."""
        return self.noticed / (self.tried - self.same) if self.tried > self.same else 1.0

    def cells(self) -> str:
        """Four cells of a table."""
        return f"{self.tried} | {self.noticed} | {self.same} | {f'{self.share:.1%}' if self.tried else ''}"


def test_target(target: Target, size: int, seed: int, folder: Path, *, known_only: bool) -> dict:
    """Try a sample of mutants of one file, and return the record."""
    path = folder / f"{target.name.replace(' ', '_')}-{fingerprint(target)}.jsonl"
    records = Records(path, lambda record: str(record["mark"]))
    known = records.known
    mutants = all_mutants((SOURCE / target.path).read_text("utf-8"))
    # Where more is wanted, more has to be seen.
    chosen = sampled(mutants, size if target.least < 0.9 else 5 * size, seed)
    if known_only:
        chosen = [mutant for mutant in chosen if mutant.mark in known]
    without = failing(target, folder) if any(mutant.mark not in known for mutant in chosen) else ()
    for mutant in chosen:
        if mutant.mark not in known:
            killed, seconds = noticed(target, mutant.number, without)
            records.keep({"mark": mutant.mark, "killed": killed, "seconds": seconds})
            if not killed:
                print(f"  survives: line {mutant.line}: {mutant.change} ({seconds:.0f} s)", flush=True)
    tried = [(mutant, known[mutant.mark]["killed"]) for mutant in chosen]
    return {"target": target, "total": len(mutants), "tried": tried}


INTRODUCTION = """# Mutants

Written by `python -m checks mutants`. One operator, operand, comparison, constant, decision, call or jump of a file is
changed, and the tests that concern the file are run: if none fails, the mutant survives. The score is the share of the
mutants that some test noticed; mutants that are the same program are left out, and a judgement below says why they
cannot be told apart from outside. Annotations, messages of errors, docstrings, what only shows something, and constants
of a module (named, and tuned) are not changed. The NumPy twins are used, so that the Python code is what runs.
The interval has the score over all mutants in it with 95 % confidence.

| what | file | mutants | tried | noticed | same program | score | interval | wanted |
|---|---|---:|---:|---:|---:|---:|---:|---:|"""


def page(records: list[dict]) -> tuple[str, Score, bool]:
    """Return the page, the score over all files, and whether that of every file is high enough."""
    judged = json.loads(JUDGED.read_text("utf-8"))
    rows, survivors, good, everything = [], [], True, Score()
    for record in records:
        target, tried = record["target"], record["tried"]
        reasons = judged.get(target.name, {})
        alive = [mutant for mutant, killed in tried if not killed]
        score = Score(len(tried), len(alive), sum(_is_same(reasons, mutant.key) for mutant in alive))
        low, high = wilson(score.noticed, score.tried - score.same)
        enough = bool(tried) and score.share >= target.least
        everything, good = everything + score, good and enough
        rows.append(
            f"| {target.name} | `{target.path}` | {record['total']} | {score.cells()}"
            f"{'' if enough else ' **too low**'} | {low:.0%} to {high:.0%} | {target.least:.0%} |"
        )
        survivors += [f"\n### {target.name}\n"] if alive else []
        survivors += [f"- line {m.line}: `{m.change}`: {reasons.get(m.key, '**not judged yet**')}" for m in alive]
    rows.append(f"| all | | | {everything.cells()} | | |")
    listed = ["\n## Survivors", *survivors] if survivors else ["\nNone survived."]
    return "\n".join([INTRODUCTION, *rows, *listed, ""]).replace("\n\n\n", "\n\n"), everything, good


def main(argv: list[str]) -> int:
    """Try mutants, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--sample",
        type=int,
        default=24,
        help="mutants of each file, and five times as many of the strictest; 0 for all",
    )
    parser.add_argument("--seed", type=int, default=0, help="which sample; 0 stays the same from run to run")
    parser.add_argument("--only", nargs="*", help="some files, by their names in the table")
    parser.add_argument("--known", action="store_true", help="try nothing: write the page of what is known")
    chosen = parser.parse_args(argv)
    prepare()
    folder = BUILD / "mutants"
    folder.mkdir(parents=True, exist_ok=True)
    targets = [target for target in TARGETS if chosen.only is None or target.name in chosen.only]
    records = [test_target(target, chosen.sample, chosen.seed, folder, known_only=chosen.known) for target in targets]
    text, score, good = page(records)
    (BUILD / "mutants.md").write_text(text, "utf-8")
    print(text)
    if chosen.only is None:
        evidence.record(
            "mutants",
            f"{score.noticed:,} of {score.tried - score.same:,} changes of one decision were noticed by a test "
            f"({score.share:.0%}), in {len(records)} files",
        )
    return 0 if good else 1
