"""`python -m checks` lists the checks; `python -m checks NAME [options]` runs one; `NAME --help` has its options."""

from __future__ import annotations

import importlib
import os
import sys

CHECKS = {
    "audit": ("checks.audit", "known vulnerabilities of everything that constraints.txt pins"),
    "bench": ("checks.bench.run", "speed beside what a user would use instead"),
    "bounds": ("checks.learning.bounds", "how often the learners' confidence bounds miss"),
    "breakages": ("checks.breakages", "break what each of the paper's claims rests on: does the claim notice?"),
    "checkers": ("checks.checkers", "floats, rationals, cmpg-verify and the page on the same claims and forgeries"),
    "claims": ("checks.claims", "random claims of every form, by every road, before an exact judge"),
    "cover": ("checks.cover", "branch coverage of all tests"),
    "digests": ("checks.digests", "record digests of answers, and compare two records"),
    "energy": ("checks.energy", "does a charging day plan the energy that its file states? four real days"),
    "duality": ("checks.duality", "P*, Nash policies, devices and D*, and how the gap falls with the agents"),
    "evidence": ("checks.evidence", "write docs/evidence.md from what the other checks found last"),
    "findings": ("checks.findings", "what random games show: duality gaps, endings, prices; writes docs/findings.md"),
    "forgeries": ("checks.forgeries", "forged claims, proofs and run folders: each must be refused"),
    "fuzz": ("checks.fuzz", "corrupted input to every parser, and games with extreme numbers"),
    "gallery": ("checks.gallery", "take the pictures of docs/gallery.md again"),
    "judging": ("checks.judging", "how often audits of policies by episodes hold, and whether broken ones are noticed"),
    "learning": ("checks.learning.seeds", "coverage and safety of learning over hundreds of seeds"),
    "learning-samples": ("checks.learning.samples", "samples that learning takes, as medians over seeds"),
    "lowest": ("checks.lowest", "all tests with the lowest versions that pyproject.toml allows"),
    "machines": ("checks.machines", "make test in fresh clones: other Pythons, a busy machine, one core"),
    "mean-field": ("checks.mean_field", "how far mean-field policies are from equilibria of finitely many agents"),
    "mutants": ("checks.mutants", "change one decision of the library at a time: does a test notice?"),
    "operation": ("checks.operation", "recorded days operated event by event: cost, value, CPU per plan"),
    "near-potential": ("checks.near_potential", "how tight the distance from potentials is bounded"),
    "notebooks": ("checks.notebooks", "execute the notebooks in Jupyter kernels, and keep them in build/notebooks"),
    "oracles": ("checks.oracles.run", "answers beside those of Storm, OpenSpiel, Gambit, QuantEcon, Nashpy and cvxpy"),
    "oversized": ("checks.oversized", "requests that are too large, in an address space of 1 GiB"),
    "picture": ("checks.picture", "take the README's picture again"),
    "quality": ("checks.quality", "how good the equilibria of one solve are, over 52 games"),
    "recommendations": ("checks.recommendations", "rotas and correlated devices before a judge of all deviations"),
    "release": ("checks.release", "rehearse a release: build twice, install, solve; publishes nothing"),
    "resilience": ("checks.resilience", "kill sweeps, learners and workers, resume, and compare the results"),
    "risk": ("checks.risk", "budgets on probabilities before an enumeration of all histories"),
    "sample-files": ("checks.sample_files", "write the package's sample files again, byte for byte"),
    "sanitize": ("checks.sanitize", "the tests of the C kernels under AddressSanitizer and UBSan"),
    "screens": ("checks.screens", "pictures of every kind of page, wide and narrow, light and dark, in build/screens"),
    "signals": ("checks.signals", "SIGINT, SIGTERM and SIGHUP at random moments of every long command"),
    "suite": ("checks.suite", "prove the references of the suite again, or write them"),
    "sweep": ("checks.sweep", "random games before an exact judge"),
    "trained": ("checks.trained", "Q-learning, PPO and heuristics judged exactly and by episodes, side by side"),
}
"""Module and one line of each check, by name."""


def main(argv: list[str]) -> int:
    """List the checks, or run one."""
    if not argv or argv[0] in ("-h", "--help"):
        width = max(map(len, CHECKS))
        print("python -m checks NAME [options]\n")
        print("\n".join(f"  {name:{width}}  {description}" for name, (_, description) in CHECKS.items()))
        return 0
    if argv[0] not in CHECKS:
        print(f"there is no check {argv[0]!r}; there are {', '.join(CHECKS)}.", file=sys.stderr)
        return 2
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    module = importlib.import_module(CHECKS[argv[0]][0])
    return int(module.main(argv[1:]) or 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
