"""Hand a claim to `cmpg-verify`, the checker whose soundness is proved in Coq (docs/verified.md).

What it says does not depend on this library: it reads a proof file, in exact rational numbers, and knows nothing of how
the claim was found. That the file states the user's own game is the part of this library, so the file can be kept and
read, and its SHA-256 is reported.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cmpg.errors import CMPGError
from cmpg.games.claims import claim_of
from cmpg.games.game import Game
from cmpg.policy import JointPolicy
from cmpg.proof.claim import Claim, ClaimError, LocalTables
from cmpg.proof.format import LARGE, write

COMMAND = "cmpg-verify"
VARIABLE = "CMPG_VERIFY"
"""The environment variable that names the command if it is not on the path."""

PRECISION = 256
"""Bits after the point to which the checker may round, against the claim, where exact numbers would become long."""

MAX_EXACT = 1000
"""Claims about local games with more agents times steps are rounded first: exact numbers grow with both."""

MAX_SQUARINGS = 3
"""How often the number that stands for an infinite multiplier is squared if a claim is refused."""


@dataclass(frozen=True)
class Verification:
    """What `cmpg-verify` said of a claim."""

    proved: bool
    message: str  # its own words
    sha256: str  # of the proof file
    divided: int  # rows of probabilities that were divided by their sums, which were not exactly one


def verify(
    game: Game, policy: JointPolicy, multipliers: Any, epsilon: float, *, proof_file: Path | None = None
) -> Verification:
    """Have a Nash claim checked by `cmpg-verify`.

    Parameters
    ----------
    game
        A joint, local or counting game; of discounted games, a joint one.
    policy
        One table per agent.
    multipliers : [n, k]
        λ; infinite where the proof is by support.
    epsilon
        The claimed bound on every gain.
    proof_file
        Where to keep the proof file; nowhere if omitted.

    Raises
    ------
    CMPGError
        The command is not installed, or cannot read the claim.
    """
    command = os.environ.get(VARIABLE) or shutil.which(COMMAND)
    if command is None or not Path(command).is_file():
        raise CMPGError(
            f"{COMMAND} is not installed: it is neither on the path, nor named by {VARIABLE}. Build it from the folder "
            "verified/ of the source with `make programs`, which needs OCaml (on Debian: ocaml, ocaml-findlib, "
            "libzarith-ocaml-dev), and put verified/build on the path."
        )
    claim = claim_of(game, policy, multipliers)
    try:
        return _verify(command, claim, epsilon, proof_file)
    except ClaimError as problem:
        raise CMPGError(f"the claim has no proof file: {problem}") from None


def _verify(command: str, claim: Claim, epsilon: float, proof_file: Path | None) -> Verification:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "claim.proof" if proof_file is None else proof_file
        for precision, large in _attempts(claim):
            divided = write(path, claim, epsilon, precision=precision, large=large)
            done = subprocess.run([command, str(path)], capture_output=True, text=True, check=False)
            if done.returncode not in (0, 1):
                raise CMPGError(f"{COMMAND} cannot check this claim: {(done.stderr or done.stdout).strip()}")
            if done.returncode == 0:
                break
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return Verification(done.returncode == 0, done.stdout.strip(), digest, divided)


def _attempts(claim: Claim) -> list[tuple[int | None, Any]]:
    """Return how to write a claim, in the order to try: rounding and large multipliers may refuse what is true."""
    long = isinstance(claim.tables, LocalTables) and len(claim.policy) * claim.steps > MAX_EXACT
    precisions: list[int | None] = [PRECISION, 4 * PRECISION] if long else [None]
    larges = [LARGE ** (2**t) for t in range(MAX_SQUARINGS)] if np.any(claim.multipliers == np.inf) else [LARGE]
    return [(precision, large) for large in larges for precision in precisions]
