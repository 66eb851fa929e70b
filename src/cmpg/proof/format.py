"""Proof files: claims in exact numbers, as text, for `cmpg-verify` and for any other program; docs/proof-format.md.

`write` streams, with no more than a line in memory. `read` is its inverse, and refuses what the specification refuses.
A row of floats that does not sum to one exactly stands for the row divided by its sum, here as everywhere in `proof`,
so a file states exactly the game and the policy that the other checks judge; a comment at its end says how many rows
were divided.

An infinite multiplier, a proof by support, is written as a large finite one. In rationals a finite one always exists; a
caller that finds the file refused writes it again with a larger one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import ceil, comb, log2, prod
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from cmpg.proof.claim import AgentTables, Claim, ClaimError, CountingTables, JointTables, LocalTables
from cmpg.proof.infeasible import InfeasibilityClaim, exact_bounds
from cmpg.proof.recommendations import CorrelatedClaim, RotaClaim, judge_recommendation_exactly
from cmpg.proof.rounding import Array, Csr, dense, num_rows
from cmpg.proof.verdict import Feasibility, judge_exactly, nearest

AnyClaim = Claim | RotaClaim | CorrelatedClaim

LARGE = Fraction(10) ** 80
"""What an infinite multiplier is written as."""

MAX_AHEAD = 100_000
"""A discounted game that needs more steps ahead than this has no proof file."""

DISCOUNTED_PRECISION = 256
"""Bits after the point for discounted games: exact numbers grow with every step ahead."""

MAX_DIGITS = 9
"""The digits of a whole number in a proof file."""

MAX_RATIONAL_DIGITS = 4300
"""The digits above and below the line of a rational in a proof file: what Python reads by itself."""

MAX_ENTRIES = 50_000_000
"""A table with more entries than this is not made, whatever the sizes at the top of a file say."""


@dataclass(frozen=True, eq=False)
class ProofFile:
    """What a proof file says: a claim in rationals, and the ε that is claimed, zero of one of infeasibility."""

    claim: AnyClaim | InfeasibilityClaim
    epsilon: Fraction
    precision: int | None = None  # bits after the point that a checker may round to; None: exact
    ahead: int | None = None  # of a discounted game: the steps that a checker looks ahead


def write(
    target: str | Path | TextIO,
    claim: AnyClaim | InfeasibilityClaim,
    epsilon: Any = 0,
    *,
    precision: int | None = None,
    large: Fraction = LARGE,
) -> int:
    """Write a claim as a proof file, and return how many rows of probabilities were divided by their sums.

    Parameters
    ----------
    target
        A path, which is replaced, or an open text file.
    claim
        A game, a policy or a device, and multipliers, in floats or rationals; of discounted games, a joint one. Or that
        no policy of a game is feasible.
    epsilon
        The claimed bound on every gain; a float is read exactly. Nothing is said of it where no policy is feasible.
    precision
        Let the checker round intermediate results to this many bits after the point; if omitted, exact, or for
        discounted games 256 bits.
    large
        The finite number that is written for an infinite multiplier.
    """
    if isinstance(target, (str, Path)):
        with open(target, "w", encoding="ascii", newline="\n") as file:
            return write(file, claim, epsilon, precision=precision, large=large)
    rows = _Rows()
    for line in _lines(claim, Fraction(epsilon), rows, precision=precision, large=large):
        target.write(line + "\n")
    return rows.divided


def _kind(claim: AnyClaim | InfeasibilityClaim) -> str:
    if isinstance(claim, InfeasibilityClaim):
        return "infeasible"
    if isinstance(claim, CorrelatedClaim):
        return "coarse" if claim.coarse else "correlated"
    return "rota" if isinstance(claim, RotaClaim) else "nash"


def _game_of(claim: AnyClaim | InfeasibilityClaim) -> Claim | CorrelatedClaim | InfeasibilityClaim:
    """Return a claim that has the tables of the game, and the multipliers."""
    return claim.modes[0] if isinstance(claim, RotaClaim) else claim


def _infeasible_facts(claim: InfeasibilityClaim) -> Iterator[str]:
    """Yield thresholds, multipliers and prices."""
    for j, (limit, multiplier) in enumerate(zip(claim.thresholds.tolist(), claim.multipliers.tolist(), strict=True)):
        yield f"threshold {j} {_text(limit)}"
        yield f"multiplier {j} {_text(multiplier)}"
    for (h, e), price in np.ndenumerate(np.zeros((0, 0)) if claim.prices is None else claim.prices):
        if price:
            yield f"price {h} {e} {_text(price)}"


class _Rows:
    """Rows of probabilities as rationals that sum to one, and how many had to be divided for that."""

    def __init__(self) -> None:
        self.divided = 0

    def exact(self, row: Iterable[Any]) -> list[Fraction]:
        """Return a row divided by its sum."""
        found = [Fraction(each) for each in row]
        total = sum(found, Fraction(0))
        if total == 1:
            return found
        self.divided += 1
        return [each / total for each in found]


def _lines(
    claim: AnyClaim | InfeasibilityClaim, epsilon: Fraction, rows: _Rows, *, precision: int | None, large: Fraction
) -> Iterator[str]:
    """Yield the lines of a file: the game, and the facts that prove the claim."""
    modes = [f"modes {len(claim.modes)}"] if isinstance(claim, RotaClaim) else []
    game = _game_of(claim)
    tables = game.tables
    if game.horizon is None:
        if not isinstance(tables, JointTables):
            raise ClaimError("the proof format has discounted games in joint form only; convert the game (`to_joint`).")
        precision = DISCOUNTED_PRECISION if precision is None else precision
    if isinstance(tables, JointTables):
        form, sizes, facts = "joint", _joint_sizes(game, tables, epsilon), _joint_facts(tables, rows)
    elif isinstance(tables, LocalTables):
        kinds = _Kinds(tables)
        form, sizes, facts = "local", _local_sizes(game, tables, kinds), _local_facts(tables, kinds, rows)
    else:
        form, sizes, facts = "counting", _counting_sizes(game, tables), _counting_facts(tables, rows)
    yield from ("cmpg-proof 1", f"form {form}", f"claim {_kind(claim)}", *sizes, *modes)
    if precision is not None:
        yield f"precision {precision}"
    yield from facts
    if isinstance(claim, InfeasibilityClaim):
        yield from _infeasible_facts(claim)
    else:
        yield from _claim_facts(claim, epsilon, rows, large)
    if rows.divided:
        yield f"# divided {rows.divided} rows of probabilities by their sums"
    yield "end"


def _claim_facts(claim: AnyClaim, epsilon: Fraction, rows: _Rows, large: Fraction) -> Iterator[str]:
    """Yield thresholds, binds, what is played, multipliers and ε."""
    game = _game_of(claim)
    assert not isinstance(game, InfeasibilityClaim)
    for j, limit in enumerate(game.thresholds.tolist()):
        yield f"threshold {j} {_text(limit)}"
        if not game.binds[:, j].all():
            yield f"binds {j} {_joined(np.flatnonzero(game.binds[:, j]))}"
    if isinstance(claim, RotaClaim):
        for m, (mode, weight) in enumerate(zip(claim.modes, rows.exact(claim.weights.tolist()), strict=True)):
            yield f"weight {m} {_text(weight)}"
            yield from _policy_facts(mode.policy, rows, f"{m} ")
    elif isinstance(claim, CorrelatedClaim):
        for h, s in np.ndindex(claim.policy.shape[:2]):
            for where, q in zip(np.ndindex(claim.policy.shape[2:]), rows.exact(claim.policy[h, s].flat), strict=True):
                if q:
                    yield f"recommend {h} {s} {_joined(where)} {_text(q)}"
    else:
        yield from _policy_facts(claim.policy, rows)
    for (i, j), multiplier in np.ndenumerate(game.multipliers):
        if multiplier:
            yield f"multiplier {i} {j} {_text(large if multiplier == np.inf else multiplier)}"
    yield f"epsilon {_text(epsilon)}"


def _policy_facts(policy: Sequence[Array], rows: _Rows, mode: str = "") -> Iterator[str]:
    """Yield one policy per agent."""
    for i, table in enumerate(policy):
        for h, step in enumerate(table):
            pure = np.count_nonzero(step, axis=1) == 1
            actions = (step != 0).argmax(axis=1)
            words = " ".join(str(a) if one else "-" for a, one in zip(actions, pure, strict=True))
            yield f"play {mode}{i} {h} {words}"
            for s in np.flatnonzero(~pure).tolist():
                yield f"policy {mode}{i} {h} {s} {_joined(map(_text, rows.exact(step[s])))}"


def _joint_sizes(
    claim: Claim | CorrelatedClaim | InfeasibilityClaim, tables: JointTables, epsilon: Fraction
) -> Iterator[str]:
    yield f"actions {_joined(tables.rewards.shape[3:])}"
    yield f"states {len(tables.initial)}"
    if not isinstance(claim, InfeasibilityClaim) and claim.horizon is None:
        yield f"discount {_text(claim.discount)} {steps_ahead(claim, epsilon)}"
    else:
        yield f"horizon {claim.horizon}"
    yield f"constraints {len(claim.thresholds)}"


def _joint_facts(tables: JointTables, rows: _Rows) -> Iterator[str]:
    actions = tables.rewards.shape[3:]
    yield from _initial("initial", tables.initial, rows)
    yield from _transitions("transition", tables.transition, actions, rows)
    for i, table in enumerate(tables.rewards):
        yield from _entries(f"reward {i}", table)
    for j, table in enumerate(tables.costs):
        yield from _entries(f"cost {j}", table)


def steps_ahead(claim: Claim | CorrelatedClaim, epsilon: Fraction) -> int:
    """Return so many steps that what comes after them is worth less than 2^−40·ε; at ε = 0, than 2^−200."""
    if not claim.discount:
        return 1
    tables = claim.tables
    assert isinstance(tables, JointTables)
    largest = [Fraction(np.abs(table).max(initial=0)) for table in (tables.rewards, tables.costs)]
    prices = np.where(claim.multipliers == np.inf, 0, claim.multipliers)
    scale = largest[0] + largest[1] * (1 + sum(map(Fraction, prices.ravel().tolist())))
    tail = max(scale / (1 - Fraction(claim.discount)), Fraction(1))
    wanted = epsilon / 2**40 if epsilon else Fraction(1, 2**200)
    # In bits, rounded away from zero: a step more than is needed does no harm.
    bits = tail.numerator.bit_length() + 1 - tail.denominator.bit_length()
    bits += wanted.denominator.bit_length() + 1 - wanted.numerator.bit_length()
    each = -log2(claim.discount)
    steps = ceil(max(bits, 1) / each) if each > 0 else MAX_AHEAD + 1
    if steps > MAX_AHEAD:
        raise ClaimError(f"discount {claim.discount} is so close to 1 that a proof would look {steps} steps ahead.")
    return steps


class _Kinds:
    """Which agents of a local game have the same dynamics and the same payoffs; and the distinct curves of the load."""

    def __init__(self, tables: LocalTables) -> None:
        dynamics: dict[Any, int] = {}
        payoffs: dict[Any, int] = {}
        self.dynamics: list[AgentTables] = []  # a member of each
        self.payoffs: list[AgentTables] = []
        self.dynamics_of, self.payoffs_of = [], []
        for agent in tables.agents:
            moves = (id(agent.transition), id(agent.uses))
            wants = (*moves, id(agent.reward), id(agent.costs))
            for key, known, members in ((moves, dynamics, self.dynamics), (wants, payoffs, self.payoffs)):
                if key not in known:
                    known[key] = len(known)
                    members.append(agent)
            self.dynamics_of.append(dynamics[moves])
            self.payoffs_of.append(payoffs[wants])
        self.curves: dict[tuple[Any, ...], int] = {}
        for table in (tables.delay, *tables.load_costs):
            for curve in map(tuple, table.reshape(-1, table.shape[-1]).tolist()):
                if any(curve):
                    self.curves.setdefault(curve, len(self.curves))


def _local_sizes(claim: Any, tables: LocalTables, kinds: _Kinds) -> Iterator[str]:
    yield f"states {_joined(agent.reward.shape[1] for agent in kinds.dynamics)}"
    yield f"actions {_joined(agent.reward.shape[2] for agent in kinds.dynamics)}"
    yield f"agents {_joined(kinds.dynamics_of)}"
    yield f"payoffs {_joined(kinds.payoffs_of)}"
    yield f"horizon {claim.horizon}"
    yield f"resources {tables.delay.shape[1]}"
    yield f"curves {len(kinds.curves)}"
    yield f"constraints {len(claim.thresholds)}"


def _local_facts(tables: LocalTables, kinds: _Kinds, rows: _Rows) -> Iterator[str]:
    for i, agent in enumerate(tables.agents):
        yield from _initial(f"initial {i}", agent.initial, rows)
    for d, agent in enumerate(kinds.dynamics):
        yield from _transitions(f"transition {d}", agent.transition, agent.reward.shape[2:], rows)
        for step, matrix in _steps(agent.uses):
            for row in np.flatnonzero(np.diff(matrix.indptr)).tolist():
                used = matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]]
                yield f"uses {d} {step} {_joined(divmod(row, agent.reward.shape[2]))} {_joined(used)}"
    for p, agent in enumerate(kinds.payoffs):
        yield from _entries(f"reward {p}", agent.reward)
        for j, table in enumerate(() if agent.costs is None else agent.costs):
            yield from _entries(f"cost {j} {p}", table)
    for curve, c in kinds.curves.items():
        yield f"curve {c} {_joined(map(_text, curve))}"
    for words, table in (
        ("delay", tables.delay),
        *((f"load-cost {j}", table) for j, table in enumerate(tables.load_costs)),
    ):
        for step, cells in _steps(table):
            for e, curve in enumerate(cells.tolist()):
                if any(curve):
                    yield f"{words} {step} {e} {kinds.curves[tuple(curve)]}"


def _counting_sizes(claim: Any, tables: CountingTables) -> Iterator[str]:
    yield f"agents {len(tables.private_rewards)}"
    yield f"actions {tables.rewards.shape[2]}"
    yield f"states {len(tables.initial)}"
    yield f"horizon {claim.horizon}"
    yield "classes every" if tables.boundaries is None else f"classes largest {_joined(tables.boundaries)}".rstrip()
    yield f"constraints {len(claim.thresholds)}"


def _counting_facts(tables: CountingTables, rows: _Rows) -> Iterator[str]:
    classes = tables.class_rewards.shape[3:]
    yield from _initial("initial", tables.initial, rows)
    yield from _transitions("transition", tables.transition, classes, rows)
    for j, table in enumerate(tables.costs):
        yield from _entries(f"cost {j}", table)
    rewards = tables.rewards.copy()
    rewards[..., 0] = 0  # no agent is on an action that no agent plays
    yield from _entries("reward", rewards)
    for i, table in enumerate(tables.private_rewards):
        yield from _entries(f"private {i}", table)
    yield from _entries("class-reward", tables.class_rewards)


def _initial(words: str, row: Array, rows: _Rows) -> Iterator[str]:
    for s, probability in enumerate(rows.exact(row.tolist())):
        if probability:
            yield f"{words} {s} {_text(probability)}"


def _transitions(words: str, matrices: Sequence[Array | Csr], shape: Sequence[int], rows: _Rows) -> Iterator[str]:
    """Yield a line for each row of matrices [S·A…, S]."""
    for step, matrix in _steps(matrices):
        for row, where in enumerate(product(*map(range, (num_rows(matrix) // int(np.prod(shape)), *shape)))):
            if isinstance(matrix, Csr):
                part = slice(matrix.indptr[row], matrix.indptr[row + 1])
                entries = [
                    (t, q) for t, q in zip(matrix.indices[part].tolist(), matrix.data[part].tolist(), strict=True) if q
                ]
            else:
                entries = [(t, matrix[row, t]) for t in np.flatnonzero(matrix[row]).tolist()]
            exact = rows.exact(q for _, q in entries)
            pairs = " ".join(f"{t} {_text(q)}" for (t, _), q in zip(entries, exact, strict=True))
            yield f"{words} {step} {_joined(where)} {pairs}"


def _entries(words: str, table: Array) -> Iterator[str]:
    """Yield a line for each entry of a table [H or 1, …] that is not zero."""
    for step, part in _steps(table):
        for where in np.argwhere(part != 0).tolist():
            yield f"{words} {step} {_joined(where)} {_text(part[tuple(where)])}"


def _steps(tables: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each step and what holds there; `*` where one thing holds at every step."""
    return iter([("*", tables[0])]) if len(tables) == 1 else enumerate(tables)


def _text(number: Any) -> str:
    return str(Fraction(number))


def _joined(words: Iterable[Any]) -> str:
    return " ".join(map(str, words))


def read(source: str | Path | TextIO) -> ProofFile:
    """Read a proof file.

    Raises
    ------
    ClaimError
        A word, a number or an entry that the specification does not allow, with its line where one is to blame.
    """
    if isinstance(source, (str, Path)):
        with open(source, encoding="ascii", errors="replace", newline="\n") as file:
            return read(file)
    lines = _Lines(source)
    lines.header("cmpg-proof", "1")
    form = lines.header("form", "joint", "local", "counting")
    kind = lines.header("claim", *_CLAIMS)
    sizes: dict[str, Any] = {}
    for name in (*_HEADERS[form], *(["modes"] if kind == "rota" else [])):
        timed = (form, name) == ("joint", "horizon") and kind != "infeasible"
        sizes[name] = lines.length_of_time(sizes) if timed else lines.sizes(name, several=name in _LISTS[form])
    if min((size for name in _POSITIVE & set(sizes) for size in sizes[name]), default=0) < 1:
        raise lines.error("sizes of at least 1 are required")
    facts = _Facts(lines, form, kind, len(sizes["actions"]))
    readers = {"joint": _read_joint, "local": _read_local, "counting": _read_counting}
    steps, constraints = sizes["horizon"][0], sizes["constraints"][0]
    tables, shapes = readers[form](facts, sizes, steps, constraints)
    thresholds = facts.table("threshold", (constraints,), whole=True)
    if kind == "infeasible":
        prices = facts.table("price", (steps, *sizes["resources"])) if form == "local" else None
        nothing = InfeasibilityClaim(tables, steps, thresholds, facts.table("multiplier", (constraints,)), prices)
        facts.nothing_left()
        return ProofFile(nothing, Fraction(0), facts.precision)
    common: dict[str, Any] = {
        "tables": tables,
        "horizon": None if "discount" in sizes else steps,
        "discount": sizes.get("discount"),
        "thresholds": thresholds,
        "binds": facts.binds(len(shapes), constraints),
        "multipliers": facts.table("multiplier", (len(shapes), constraints)),
    }
    claim = _read_played(facts, kind, sizes, [(steps, *shape) for shape in shapes], common)
    epsilon = facts.table("epsilon", (), whole=True)
    facts.nothing_left()
    if epsilon.item() < 0:
        raise ClaimError(f"epsilon is {epsilon}; at least 0 is required.")
    return ProofFile(claim, epsilon.item(), facts.precision, sizes.get("ahead"))


def _read_played(
    facts: _Facts, kind: str, sizes: dict[str, Any], shapes: list[tuple[int, int, int]], common: dict[str, Any]
) -> AnyClaim:
    """Return the claim about what a file says is played."""
    if kind == "nash":
        return Claim(policy=tuple(facts.policy(i, shape) for i, shape in enumerate(shapes)), **common)
    if kind == "rota":
        (number,) = sizes["modes"]
        if number > len(facts.of("weight")):
            raise ClaimError(f"there are {number} modes, and weights of fewer.")
        weights = facts.table("weight", (number,), whole=True)
        _require_distribution("weight", weights.tolist())
        modes = [tuple(facts.policy(i, shape, (m,)) for i, shape in enumerate(shapes)) for m in range(number)]
        first = Claim(policy=modes[0], **common)
        return RotaClaim((first, *(replace(first, policy=each) for each in modes[1:])), weights)
    steps, states = shapes[0][:2]
    law = facts.table("recommend", (steps, states, *(own for _, _, own in shapes)))
    for row in law.reshape(steps * states, -1):
        _require_distribution("recommend", row.tolist())
    return CorrelatedClaim(policy=law, coarse=kind == "coarse", **common)


@dataclass(frozen=True)
class FileVerdict:
    """What a proof file proves, in rationals."""

    proved: bool
    sentence: str


def check_file(proof: ProofFile) -> FileVerdict:
    """Check what a proof file claims in rationals, or raise `TooLarge`."""
    if isinstance(proof.claim, InfeasibilityClaim):
        least, limit = exact_bounds(proof.claim)
        spent = f"every policy spends at least {nearest(least):.9g} of a weighted budget of {nearest(limit):.9g}"
        return FileVerdict(least > limit, f"no policy is feasible: {spent}" if least > limit else f"{spent}: no proof")
    known = isinstance(proof.claim, Claim)
    found = judge_exactly(proof.claim) if known else judge_recommendation_exactly(proof.claim)  # type: ignore[arg-type]
    kept = found.feasibility is Feasibility.PROVEN
    gain = float(found.gains.max())
    what = {
        "nash": "the policy",
        "rota": "the rota",
        "coarse": "the coarse device",
        "correlated": "the correlated device",
    }
    met = "meets every threshold" if kept else "violates a threshold"
    # Gains are rounded upwards, so a comparison with ε in rationals is on the safe side.
    proved = kept and gain < np.inf and Fraction(gain) <= proof.epsilon
    return FileVerdict(
        proved,
        f"{what[_kind(proof.claim)]} {met}; no agent gains more than {gain:.3g}; claimed {nearest(proof.epsilon):.3g}",
    )


_HEADERS = {
    "joint": ("actions", "states", "horizon", "constraints"),
    "local": ("states", "actions", "agents", "payoffs", "horizon", "resources", "curves", "constraints"),
    "counting": ("agents", "actions", "states", "horizon", "classes", "constraints"),
}
_LISTS = {"joint": {"actions"}, "local": {"states", "actions", "agents", "payoffs"}, "counting": set()}
_POSITIVE = {"actions", "states", "horizon", "modes"}

# How many indices a fact has, `*` behind those for which a star may stand, and what follows them.
_EVERYWHERE = {
    "threshold": ("j", "number"),
    "binds": ("j", "list"),
    "multiplier": ("i j", "number"),
    "epsilon": ("", "number"),
}
_RECOMMENDED = {"recommend": ("h* s A", "number")}
_CLAIMS: dict[str, dict[str, tuple[str, str]]] = {
    "nash": {**_EVERYWHERE, "policy": ("i h* s", "list of numbers"), "play": ("i h*", "play")},
    "rota": {
        **_EVERYWHERE,
        "weight": ("m", "number"),
        "policy": ("m i h* s", "list of numbers"),
        "play": ("m i h*", "play"),
    },
    "correlated": _EVERYWHERE | _RECOMMENDED,
    "coarse": _EVERYWHERE | _RECOMMENDED,
    "infeasible": {"threshold": ("j", "number"), "multiplier": ("j", "number"), "price": ("h e", "number")},
}
_WORDS = {
    "joint": {
        "initial": ("s", "number"),
        "transition": ("h* s A", "pairs"),
        "reward": ("i h* s A", "number"),
        "cost": ("j h* s A", "number"),
    },
    "local": {
        "initial": ("i s", "number"),
        "transition": ("d h* s a*", "pairs"),
        "uses": ("d h* s a*", "list"),
        "reward": ("p h* s a*", "number"),
        "cost": ("j p h* s a*", "number"),
        "curve": ("c", "list of numbers"),
        "delay": ("h* e*", "index"),
        "load-cost": ("j h* e*", "index"),
    },
    "counting": {
        "initial": ("s", "number"),
        "transition": ("h* s c*", "pairs"),
        "cost": ("j h* s c*", "number"),
        "reward": ("h* s a* m", "number"),
        "private": ("i h* s a*", "number"),
        "class-reward": ("h* s a* c*", "number"),
    },
}


class _Lines:
    """The lines of a file, as words, without comments."""

    def __init__(self, source: Iterable[str]) -> None:
        self.number, self._source = 0, iter(source)

    def next(self) -> list[str] | None:
        """Return the next line, or None at the end of the file."""
        for line in self._source:
            self.number += 1
            # Lines end with a line feed, words with a space, and nothing else ends either: two readers of one file
            # must not see a fact where the other sees a comment.
            words = [word for word in line.rstrip("\n").split(" ") if word]
            if words and not words[0].startswith("#"):
                return words
        return None

    def error(self, problem: str) -> ClaimError:
        """Return an error about this line."""
        return ClaimError(f"line {self.number}: {problem}.")

    def header(self, word: str, *allowed: str) -> str:
        """Read a line of a word and one of some values."""
        words = self.next()
        if words is None or len(words) != 2 or words[0] != word or words[1] not in allowed:
            raise self.error(f"`{word} {' | '.join(allowed)}` is required")
        return words[1]

    def sizes(self, word: str, *, several: bool) -> list[Any]:
        """Read a line of a word and a whole number, or several; of `classes`, boundaries or None."""
        words = self.next()
        if words is None or len(words) < 2 or words[0] != word:
            raise self.error(f"`{word}` and its numbers are required")
        if word == "classes":
            if words[1] not in ("largest", "every") or (words[1] == "every" and len(words) > 2):
                raise self.error("`classes largest …` or `classes every` is required")
            return [None] if words[1] == "every" else [self.whole(each) for each in words[2:]]
        if len(words) > 2 and not several:
            raise self.error(f"`{word}` and one number are required; there are {len(words) - 1}")
        return [self.whole(each) for each in words[1:]]

    def length_of_time(self, sizes: dict[str, Any]) -> list[int]:
        """Read `horizon H`, or `discount q N`, which is noted; tables then have one step."""
        words = self.next()
        if words is not None and len(words) == 2 and words[0] == "horizon":
            return [self.whole(words[1])]
        if words is None or len(words) != 3 or words[0] != "discount":
            raise self.error("`horizon` with one number, or `discount` with two, is required")
        sizes["discount"], sizes["ahead"] = self.rational(words[1]), self.whole(words[2])
        return [1]

    def whole(self, word: str) -> int:
        """Read a whole number."""
        if not (word.isascii() and word.isdigit() and len(word) <= MAX_DIGITS):
            raise self.error(f"{word[:20]!r} is no whole number of at most {MAX_DIGITS} digits")
        return int(word)

    def rational(self, word: str) -> Fraction:
        """Read p or p/q."""
        above, slash, below = word.removeprefix("-").partition("/")
        digits = (above, below) if slash else (above,)
        if not all(part.isascii() and part.isdigit() for part in digits) or (slash and not below.strip("0")):
            raise self.error(f"{word[:20]!r} is no rational p or p/q")
        if max(map(len, digits)) > MAX_RATIONAL_DIGITS:
            raise self.error(f"{word[:20]}… has more than {MAX_RATIONAL_DIGITS} digits above or below its line")
        return Fraction(word)


class _Facts:
    """All facts of a file by their words, until tables are made of them."""

    def __init__(self, lines: _Lines, form: str, kind: str, num_actions: int) -> None:
        words_of = _CLAIMS[kind] | _WORDS[form]
        self._kept: dict[str, list[tuple[tuple[int | None, ...], Any]]] = {word: [] for word in words_of}
        self.precision: int | None = None
        words, first = lines.next(), True
        while words is not None and words != ["end"]:
            if first and words[0] == "precision" and len(words) == 2:
                self.precision = lines.whole(words[1])
            elif words[0] in words_of:
                indices, tail = words_of[words[0]]
                kinds = " ".join(indices.replace("A", " ".join(["a*"] * num_actions)).split()).split()
                if len(words) <= len(kinds):
                    raise lines.error(f"{words[0]} has {len(kinds)} indices and something after them")
                found = tuple(
                    None if word == "*" and kind.endswith("*") else lines.whole(word)
                    for word, kind in zip(words[1:], kinds, strict=False)
                )
                self._kept[words[0]].append((found, _tail(lines, tail, words[1 + len(kinds) :])))
            else:
                raise lines.error(f"{words[0][:20]!r} is no word of this form")
            words, first = lines.next(), False
        if words is None:
            raise lines.error("the file ends without `end`")
        if lines.next() is not None:
            raise lines.error("nothing but comments may follow `end`")

    def take(self, word: str, prefix: tuple[int, ...] = ()) -> list[tuple[tuple[int | None, ...], Any]]:
        """Return the facts of a word whose indices begin so, without these; each is taken once."""
        length = len(prefix)
        found = [(where[length:], what) for where, what in self._kept[word] if where[:length] == prefix]
        self._kept[word] = [fact for fact in self._kept[word] if fact[0][:length] != prefix]
        return found

    def of(self, word: str) -> list[tuple[tuple[int | None, ...], Any]]:
        """Return the facts of a word, and leave them there."""
        return self._kept[word]

    def nothing_left(self) -> None:
        """Raise if a fact is about something that does not exist."""
        for word, facts in self._kept.items():
            if facts:
                raise ClaimError(f"{word} {facts[0][0]} is about something that this game does not have.")

    def table(self, word: str, shape: tuple[int, ...], prefix: tuple[int, ...] = (), *, whole: bool = False) -> Array:
        """Return the numbers of a word, zero where none is given; with `whole`, none may be missing."""
        _require_size(word, shape)
        found, given = np.full(shape, Fraction(0), dtype=object), np.zeros(shape, dtype=bool)
        for where, what in self.take(word, prefix):
            self._set(found, given, word, where, what)
        if whole and not given.all():
            raise ClaimError(f"{word} {_joined(np.argwhere(~given)[0])} is missing.")
        return found

    def _set(self, found: Array, given: Array, word: str, where: tuple[int | None, ...], what: Any) -> None:
        if any(index is not None and index >= size for index, size in zip(where, given.shape, strict=False)):
            raise ClaimError(f"{word} {where} is out of range.")
        index = tuple(slice(None) if each is None else each for each in where)
        if given[index].any():
            raise ClaimError(f"{word} {where} is given twice.")
        found[index], given[index] = what, True

    def matrices(
        self, word: str, shape: tuple[int, ...], columns: int, prefix: tuple[int, ...] = ()
    ) -> tuple[Csr, ...]:
        """Return rows of probabilities, or of resources that are used, as a matrix [S·A…, columns] for each step."""
        _require_size(word, shape)
        kept: list[Any] = [None]  # the rows themselves; the table has their numbers, and 0 where there is none
        numbers, given = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=bool)
        for where, what in self.take(word, prefix):
            self._set(numbers, given, word, where, len(kept))
            kept.append(what)
        if word == "transition" and not given.all():
            raise ClaimError(f"{word} {_joined([*prefix, *np.argwhere(~given)[0]])} is missing.")
        return tuple(_matrix([kept[row] for row in step.ravel().tolist()], columns, word) for step in numbers)

    def initial(self, states: int, prefix: tuple[int, ...] = ()) -> Array:
        """Return the law of the first state."""
        row = self.table("initial", (states,), prefix)
        _require_distribution("initial", row.tolist())
        return row

    def policy(self, agent: int, shape: tuple[int, int, int], mode: tuple[int, ...] = ()) -> Array:
        """Return one agent's policy, of a mode if there are several."""
        _require_size("policy", shape)
        found, given = np.full(shape, Fraction(0), dtype=object), np.zeros(shape[:2], dtype=bool)
        for where, row in self.take("policy", (*mode, agent)):
            _require_distribution("policy", row)
            if len(row) != shape[2]:
                raise ClaimError(f"policy {agent} {where} has {len(row)} numbers; {shape[2]} are required.")
            self._set(found, given, "policy", where, row)
        for where, actions in self.take("play", (*mode, agent)):
            if len(actions) != shape[1]:
                raise ClaimError(f"play {agent} {where} has {len(actions)} actions; {shape[1]} are required.")
            for s, action in enumerate(actions):
                if action is not None:
                    if action >= shape[2]:
                        raise ClaimError(f"play {agent} {where} has action {action}; there are {shape[2]}.")
                    row = [Fraction(int(a == action)) for a in range(shape[2])]
                    self._set(found, given, "play", (*where, s), row)
        if not given.all():
            raise ClaimError(f"the policy of agent {agent} at {_joined(np.argwhere(~given)[0])} is missing.")
        return found

    def binds(self, agents: int, constraints: int) -> Array:
        """Return which constraint binds which agent."""
        found, given = np.ones((agents, constraints), dtype=bool), np.zeros(constraints, dtype=bool)
        for (j,), bound in self.take("binds"):
            if (
                j is None
                or j >= constraints
                or given[j]
                or any(i >= agents for i in bound)
                or len(set(bound)) < len(bound)
            ):
                raise ClaimError(f"binds {j} is given twice, or out of range.")
            found[:, j], given[j] = np.isin(np.arange(agents), bound), True
        return found


def _tail(lines: _Lines, kind: str, words: list[str]) -> Any:
    """Read what follows the indices of a fact."""
    if kind in ("number", "index") and len(words) != 1:
        raise lines.error(f"one number is required after the indices; there are {len(words)}")
    if kind == "number":
        return lines.rational(words[0])
    if kind == "index":
        return lines.whole(words[0])
    if kind == "list":
        return [lines.whole(word) for word in words]
    if kind == "list of numbers":
        return [lines.rational(word) for word in words]
    if kind == "play":
        return [None if word == "-" else lines.whole(word) for word in words]
    if len(words) % 2:
        raise lines.error("pairs of a next state and its probability are required")
    pairs = {lines.whole(t): lines.rational(q) for t, q in zip(words[::2], words[1::2], strict=True)}
    if len(pairs) * 2 < len(words):
        raise lines.error("a next state is given twice")
    _require_distribution("transition", list(pairs.values()))
    return pairs


def _require_size(word: str, shape: tuple[int, ...]) -> None:
    if prod(shape) > MAX_ENTRIES:
        raise ClaimError(f"{word} would have {prod(shape):,} entries, by the sizes; {MAX_ENTRIES:,} are allowed.")


def _require_distribution(word: str, row: list[Fraction]) -> None:
    if min(row) < 0 or sum(row) != 1:
        total = nearest(sum(row, Fraction(0)))
        raise ClaimError(f"{word} has a row that is no probability distribution: it sums to {total!r}.")


def _matrix(rows: list[Any], columns: int, word: str) -> Csr:
    """Return a matrix of rows that are dicts, lists of columns with an entry of one, or None."""
    held = [dict.fromkeys(row, Fraction(1)) if isinstance(row, list) else row or {} for row in rows]
    doubled = any(isinstance(row, list) and len(row) != len(kept) for row, kept in zip(rows, held, strict=True))
    if doubled or any(column >= columns for row in held for column in row):
        raise ClaimError(f"{word} has an entry beyond its {columns} columns, or twice in one row.")
    starts = np.concatenate([[0], np.cumsum([len(row) for row in held])])
    indices = np.array([column for row in held for column in row], dtype=np.int64)
    data = np.array([entry for row in held for entry in row.values()], dtype=object)
    return Csr(starts, indices, data, columns)


def _read_joint(facts: _Facts, sizes: dict[str, Any], steps: int, constraints: int) -> Any:
    (states,), actions = sizes["states"], tuple(sizes["actions"])
    tables = JointTables(
        initial=facts.initial(states),
        transition=facts.matrices("transition", (steps, states, *actions), states),
        rewards=facts.table("reward", (len(actions), steps, states, *actions)),
        costs=facts.table("cost", (constraints, steps, states, *actions)),
    )
    return tables, [(states, own) for own in actions]


def _read_local(facts: _Facts, sizes: dict[str, Any], steps: int, constraints: int) -> Any:
    (resources,), (num_curves,), agents = sizes["resources"], sizes["curves"], len(sizes["agents"])
    shapes = list(zip(sizes["states"], sizes["actions"], strict=False))
    kinds = dict(zip(sizes["payoffs"], sizes["agents"], strict=False))
    pairs = set(zip(sizes["payoffs"], sizes["agents"], strict=False))
    fits = len(sizes["actions"]) == len(shapes) == len(sizes["states"]) and len(sizes["payoffs"]) == agents
    if (
        not fits
        or len(pairs) != len(kinds)
        or set(kinds) != set(range(len(kinds)))
        or max(kinds.values()) >= len(shapes)
    ):
        raise ClaimError(
            "the header of a local game needs states and actions of each dynamics, and for each agent a "
            "dynamics and payoffs that go with it, numbered without gaps."
        )
    curves = []
    for c in range(num_curves):
        found = facts.take("curve", (c,))
        if len(found) != 1 or len(found[0][1]) != agents + 1:
            raise ClaimError(f"curve {c} needs one line with {agents + 1} numbers.")
        curves.append(found[0][1])
    curves.append([Fraction(0)] * (agents + 1))  # where nothing is said

    def curved(word: str, shape: tuple[int, ...]) -> Array:
        _require_size(word, (*shape, agents + 1))
        chosen, given = np.full(shape, num_curves), np.zeros(shape, dtype=bool)
        for where, curve in facts.take(word):
            if curve >= num_curves:
                raise ClaimError(f"{word} {where} has curve {curve}; there are {num_curves}.")
            facts._set(chosen, given, word, where, curve)
        found: Array = np.array(curves, dtype=object)[chosen]
        return found

    moves = [facts.matrices("transition", (steps, *shape), shape[0], (d,)) for d, shape in enumerate(shapes)]
    uses = [facts.matrices("uses", (steps, *shape), resources, (d,)) for d, shape in enumerate(shapes)]
    rewards = {p: facts.table("reward", (steps, *shapes[d]), (p,)) for p, d in kinds.items()}
    costs = {
        p: np.stack([facts.table("cost", (steps, *shapes[d]), (j, p)) for j in range(constraints)])
        if constraints
        else None
        for p, d in kinds.items()
    }
    members = tuple(
        AgentTables(facts.initial(shapes[d][0], (i,)), moves[d], uses[d], rewards[p], costs[p])
        for i, (d, p) in enumerate(zip(sizes["agents"], sizes["payoffs"], strict=True))
    )
    tables = LocalTables(
        agents=members,
        delay=curved("delay", (steps, resources)),
        load_costs=curved("load-cost", (constraints, steps, resources)),
    )
    return tables, [shapes[d] for d in sizes["agents"]]


def _read_counting(facts: _Facts, sizes: dict[str, Any], steps: int, constraints: int) -> Any:
    (agents,), (actions,), (states,) = sizes["agents"], sizes["actions"], sizes["states"]
    boundaries = None if sizes["classes"] == [None] else tuple(sizes["classes"])
    if boundaries is not None and list(boundaries) != sorted(boundaries):
        raise ClaimError("the boundaries of classes must not descend.")
    _require_size("reward", (steps, states, actions, agents + 1))
    classes = comb(agents + actions - 1, agents) if boundaries is None else len(boundaries) + 1
    tables = CountingTables(
        initial=facts.initial(states),
        transition=tuple(map(dense, facts.matrices("transition", (steps, states, classes), states))),
        rewards=facts.table("reward", (steps, states, actions, agents + 1)),
        private_rewards=facts.table("private", (agents, steps, states, actions)),
        class_rewards=facts.table("class-reward", (steps, states, actions, classes)),
        costs=facts.table("cost", (constraints, steps, states, classes)),
        boundaries=boundaries,
    )
    return tables, [(states, actions)] * agents
