"""Sizes before they are paid for: what tables, solves and files need, and what this process may still use.

A machine that has no more memory ends a process without a word. So what is about to be made says how large it is
first, and is refused with the number and a way out. What is left is the least of the limit on the address space
(ulimit -v), the limit of the control group (containers), and what the system has to give.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, prod
from pathlib import Path
from typing import Any, Protocol

from cmpg.errors import TooLargeError

MAX_ENTRIES = 100_000_000
"""Entries of policies that one round over all agents may touch without a time limit: seconds to minutes."""

MAX_COMPILED_ENTRIES = 100 * MAX_ENTRIES
"""The limit is higher where compiled kernels plan for agents who keep their policies as actions."""

OBJECT = 600
"""Bytes that Python needs for an agent's table beside its numbers, or for a name: about."""


def memory_left() -> float:
    """Return about how many bytes this process may still use.

    Examples
    --------
    >>> memory_left() > 0
    True
    """
    return min(_address_space_left(), _group_left(), _free())


def require_memory(what: str, num_bytes: float, *, advice: str) -> None:
    """Raise `TooLargeError` if something needs more bytes than are left.

    Parameters
    ----------
    what
        The subject of the sentence: "tables over 10,000,000,000 joint actions".
    num_bytes
        What it needs at least.
    advice
        What to do instead, as a sentence.

    Examples
    --------
    >>> require_memory("a table", 1e18, advice="Take fewer states.")
    Traceback (most recent call last):
    cmpg.errors.TooLargeError: a table would need 1e+06 TB, and ... may be used. Take fewer states.
    """
    left = memory_left()
    if not num_bytes <= left:
        raise TooLargeError(f"{what} would need {bytes_text(num_bytes)}, and {bytes_text(left)} may be used. {advice}")


def bytes_text(num_bytes: float) -> str:
    """Write a number of bytes for people.

    Examples
    --------
    >>> bytes_text(24e9), bytes_text(1_500_000)
    ('24 GB', '1.5 MB')
    """
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if num_bytes >= size:
            return f"{num_bytes / size:.3g} {unit}"
    return f"{num_bytes / 1e3:.3g} kB"


def require_joint_tables(
    num_states: float, num_actions: Iterable[float], *, tables: int, successors: float = 1
) -> None:
    """Refuse tables over all states and joint actions that do not fit.

    Parameters
    ----------
    num_states, num_actions
        S, and A of each agent.
    tables
        How many numbers there are for each state and joint action: a reward for each agent, and a cost each.
    successors
        Next states that are stored for each.
    """
    pairs = float(num_states) * prod(map(float, num_actions))
    what = f"tables over {num_states:,.0f} states and {pairs / num_states:,.3g} joint actions"
    advice = "Use fewer states, agents or actions; or a local game or a counting game, which have no joint tables."
    require_memory(what, pairs * (8 * tables + 12 * successors), advice=advice)


def require_agents(num_agents: float, entries: float) -> None:
    """Refuse more agents than there is memory for their tables, each of this many entries."""
    what = f"the policies of {num_agents:,.0f} agents"
    require_memory(what, num_agents * (OBJECT + 8 * entries), advice="Use fewer agents, or agents that stand for many.")


ROW = 1000
"""Bytes that Python needs for a row of a table with names, before it is written: about."""


def require_rules(shapes: Iterable[tuple[int, int, int]]) -> None:
    """Refuse a table of all rules of policies of these shapes, a row for each agent, step and state at least.

    Examples
    --------
    >>> require_rules([(10**6, 10**9, 2)])
    Traceback (most recent call last):
    cmpg.errors.TooLargeError: a table of 1e+15 rules would need 1e+06 TB, and ... may be used. Export the schedule: ...
    """
    rules = sum(float(steps) * states for steps, states, _ in shapes)
    advice = "Export the schedule: what is likely to happen, and no more."
    require_memory(f"a table of {rules:,.6g} rules", ROW * rules, advice=advice)


def require_picture(shapes: Iterable[tuple[int, ...]]) -> None:
    """Refuse to lay out what agents with policies of these shapes do at every step, where that does not fit."""
    entries = [prod(map(float, shape)) for shape in shapes]
    what = f"a picture of what {len(entries):,} agents do at every step"
    require_memory(
        what, 16 * sum(entries), advice="Use cmpg show or cmpg export, which take one agent after the other."
    )


class Sized(Protocol):
    """What of a game tells how large it is."""

    @property
    def policy_shapes(self) -> tuple[tuple[int, int, int], ...]:
        """The shape [H, S_i, A_i] of each agent's policy."""

    @property
    def horizon(self) -> int | None:
        """H, or None."""

    @property
    def thresholds(self) -> Any:
        """α: [k]."""


def require_solve(game: Sized, time_limit: float) -> None:
    """Refuse a game whose policies and CMDPs do not fit, or that takes hours, unless there is a time limit."""
    entries = [prod(map(float, shape)) for shape in game.policy_shapes]
    steps = sum(entries)
    horizon = 1 if game.horizon is None else game.horizon
    what = f"policies and CMDPs of {len(entries):,} agents over {horizon:,} steps"
    advice = "Use fewer steps, states or agents; or a discount in place of a long horizon."
    # Policies that a solve keeps as actions, and plans by compiled kernels: much less memory, and time.
    lean = bool(getattr(game, "keeps_actions", False))
    # Two policies, and the reward, the costs and the transition of one CMDP: no solve gets by with less.
    policies = 2 * sum(float(steps) * states for steps, states, _ in game.policy_shapes) if lean else 16 * steps
    require_memory(what, policies + 8 * max(entries) * (2 + len(game.thresholds)), advice=advice)
    if steps > (MAX_COMPILED_ENTRIES if lean else MAX_ENTRIES) and time_limit == inf:
        raise TooLargeError(
            f"every round over all agents would touch {steps:,.3g} entries of policies, which takes minutes or hours. "
            f"Set a time limit (time_limit=, --time-limit), and the best policy by then is kept. {advice}"
        )


def _address_space_left() -> float:
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    except (ImportError, OSError, ValueError):  # other systems
        return inf
    if limit == resource.RLIM_INFINITY:
        return inf
    pages = _first_number(Path("/proc/self/statm"))
    return max(limit - pages * resource.getpagesize(), 0.0) if pages < inf else float(limit)


def _group_left() -> float:
    for most, used in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        limit = _first_number(Path("/sys/fs/cgroup") / most)
        if limit < 1e15:  # "max", or a number beyond all memory, is none
            return max(limit - _first_number(Path("/sys/fs/cgroup") / used, unknown=0.0), 0.0)
    return inf


def _free() -> float:
    try:
        for line in Path("/proc/meminfo").read_text("ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return 1024.0 * float(line.split()[1])
    except (OSError, ValueError, IndexError):
        pass
    return inf


def _first_number(path: Path, unknown: float = inf) -> float:
    try:
        return float(path.read_text("ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return unknown
