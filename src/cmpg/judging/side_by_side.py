"""Several policies of one game before one judge: a row for each, with the best known value and one bound for all."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from cmpg.errors import CMPGError
from cmpg.games.game import Game, UpperBound
from cmpg.judging.known import JudgedPolicy, judge_known
from cmpg.policy import JointPolicy
from cmpg.summaries import Summary, html, line, text


@dataclass(frozen=True, eq=False)
class SideBySide:
    """Policies of one game, judged alike.

    Examples
    --------
    >>> import cmpg
    >>> game = cmpg.scenarios.counter_example()
    >>> found = judge_side_by_side(game, {"uniform": game.uniform_policy(), "ours": cmpg.solve(game).policy})
    >>> [each.feasible for each in found.judged], found.best_known
    ([True, True], 6.0)
    """

    judged: tuple[JudgedPolicy, ...]  # in the order in which they were given
    epsilon: float  # a policy that no agent gains more than this by deviating from counts as Nash
    allow_rounding: float  # an excess over a threshold of no more than this counts as none

    @property
    def best_known(self) -> float:
        """The largest total value of these policies that meets the thresholds; nan if none does."""
        return max(
            (each.welfare for each in self.judged if each.certificate.meets(self.allow_rounding)), default=math.nan
        )

    @property
    def bound(self) -> UpperBound | None:
        """What no feasible policy exceeds in total value."""
        return self.judged[0].quality.bound

    def summary(self) -> Summary:
        """Return what `print` shows; it formats what is here."""
        from cmpg.report.judging import side_by_side_summary  # a room below: tables are made on demand

        return side_by_side_summary(self)

    __repr__, __str__, _repr_html_ = line, text, html


def judge_side_by_side(
    game: Game,
    policies: Mapping[str, JointPolicy],
    *,
    epsilon: float = 1e-6,
    allow_rounding: float = 0.0,
    exact: bool = False,
    time_limit: float = math.inf,
) -> SideBySide:
    """Judge several policies of a known game; the best that is feasible among them is the best known.

    Parameters
    ----------
    game
        Any game.
    policies
        By name.
    epsilon, allow_rounding
        What counts as Nash, and what excess over a threshold counts as none, in the verdicts.
    exact
        Prove in rationals.
    time_limit
        Seconds for the upper bound over all feasible policies.

    Examples
    --------
    >>> import cmpg
    >>> game = cmpg.scenarios.counter_example()
    >>> policies = {"uniform": game.uniform_policy(), "ours": cmpg.solve(game).policy}
    >>> print(judge_side_by_side(game, policies))
    policy   exploitability      cost  total value  below best known      verdict
    uniform            0.25  0.25/0.5     5.500000               0.5  exploitable
    ours                  0     0/0.5     6.000000                 0         Nash
    no feasible policy is worth more than 6.17158 in total (branch and bound over mixed actions)
    """
    if not isinstance(policies, Mapping):
        raise CMPGError(
            f"policies is a {type(policies).__name__}; names with policies are required, such as "
            "{'mine': policy, 'uniform': game.uniform_policy()}."
        )
    if not policies:
        raise CMPGError("there is no policy to judge; give at least one.")
    found: list[JudgedPolicy] = []
    for name, policy in policies.items():
        # One bound serves all policies: it is about the game.
        left = time_limit if not found else 0.0
        judged = judge_known(game, policy, name=name, exact=exact, time_limit=left)
        if found:
            judged = replace(judged, quality=replace(judged.quality, bound=found[0].quality.bound))
        found.append(judged)
    together = SideBySide(tuple(found), epsilon, allow_rounding)
    best = together.best_known if len(found) > 1 else math.nan
    return replace(together, judged=tuple(replace(each, best_known=best) for each in found))
