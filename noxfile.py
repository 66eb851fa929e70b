#!/usr/bin/env -S uv run --script
# /// script
# dependencies = ["nox>=2025.2.9"]
# ///
"""Sessions for those who work with nox: `nox` runs linters and tests, `nox -s docs` builds the site."""

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"

PYTHONS = ["3.11", "3.12", "3.13", "3.14"]


def install(session: nox.Session) -> None:
    """Install the package and everything that its tests need."""
    session.install("-c", "constraints.txt", "-e", ".[dev,docs,plot]")


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Run the tests; arguments go to pytest."""
    install(session)
    session.run("pytest", "-n", "2", "--dist", "worksteal", "-q", *session.posargs, env={"OMP_NUM_THREADS": "1"})


@nox.session
def lint(session: nox.Session) -> None:
    """Run the linters and the type checker."""
    install(session)
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    session.run("mypy")


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """Build the documentation in site/."""
    install(session)
    session.run("mkdocs", "build", "--strict", "--quiet", env={"NO_MKDOCS_2_WARNING": "1"})


@nox.session(default=False)
def checks(session: nox.Session) -> None:
    """Run one of the checks: `nox -s checks -- sweep --games 1000`."""
    install(session)
    session.run("python", "-m", "checks", *session.posargs)


if __name__ == "__main__":
    nox.main()
