"""Budgets on risk, as `solve` and `certify` take them: `--chance` and `--cvar`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import cmpg
from cmpg import files, games
from cmpg.cli.options import further
from cmpg.cli.output import remark, show, show_json
from cmpg.errors import CMPGError, UnsupportedError

if TYPE_CHECKING:
    from cmpg.cli.solve import Delivery
    from cmpg.equilibrium.result import Result
    from cmpg.games.game import Game
    from cmpg.games.local.game import LocalGame
    from cmpg.games.risk import CostLaw, CVaRGame


@dataclass(frozen=True)
class RiskBudgets:
    """Budgets on risk, in the words of the command line."""

    HEADING: ClassVar = "Constraints"
    chance: Annotated[
        list[str] | None,
        further(
            "Budget on a probability: 'collisions>0:0.02' is P(collisions > 0) ≤ 0.02. May be repeated.",
            metavar="<cost>limit:p>",
        ),
    ] = None
    cvar: Annotated[
        list[str] | None,
        further(
            "Budget on the worst episodes: 'collisions:0.9:0.5' is CVaR 0.9 of collisions ≤ 0.5. May be repeated.",
            metavar="<cost:level:limit>",
        ),
    ] = None
    chances_only: Annotated[
        bool,
        further("Drop the threshold on the expected cost where there is a --chance or a --cvar.", "--chances-only"),
    ] = False

    @property
    def words(self) -> list[str]:
        """All budgets."""
        return [*(self.chance or []), *(self.cvar or [])]


def with_budgets(game: Game, budgets: RiskBudgets) -> Game | CVaRGame:
    """Return the augmented game, if there are budgets on risk, and say how large it is."""
    chances, cvars, only = budgets.chance or [], budgets.cvar or [], budgets.chances_only
    if not chances and not cvars:
        if only:
            raise CMPGError("--chances-only means something with --chance or --cvar alone.")
        return game

    if isinstance(game, cmpg.LocalGame):
        return _in_local_game(game, chances, cvars, only=only)
    from cmpg.cli.targets import joint_form

    limits = [games.Chance.of(each) for each in chances]
    all_limits: list[games.Chance | games.CVaR] = [*limits, *(games.CVaR.of(each) for each in cvars)]
    joint = joint_form(game, wanted="has no budgets on risk")
    states, entries = games.augmented_sizes(joint, *all_limits)
    remark(
        f"what was spent so far is part of the state: {joint.num_states:,} states become {states:,} "
        f"({entries:,} entries)"
    )
    worst = games.with_cvar(joint, *all_limits, keep_expected=not only) if cvars else None
    augmented = games.with_chances(joint, *limits, keep_expected=not only) if worst is None else worst.base
    if joint.potential_proof() is not None and augmented.potential_proof() is None:
        remark("the game has a potential; with what was spent in the state it is not known to have one any more")
    return augmented if worst is None else worst


def _in_local_game(game: LocalGame, chances: Sequence[str], cvars: Sequence[str], *, only: bool) -> Game:
    """Return a local game with budgets on probabilities, and say what is constrained."""
    from cmpg.games.local.risk import is_sum

    if cvars:
        raise UnsupportedError("LocalGame", "has no budgets on CVaR", "Use --chance, or a joint game.")
    limits = [games.Chance.of(each) for each in chances]
    found = games.with_chances(game, *limits, keep_expected=not only)
    for budget in limits:
        if is_sum(game, budget):
            remark(
                f"P({budget.cost} > 0 at any step) is at most the sum over steps of P({budget.cost} > 0); "
                "it is this sum that is constrained and certified: a stronger limit, and another constraint"
            )
        else:
            remark(f"what was spent of {budget.cost} is part of that agent's own state")
    return found


def laws_of(game: Game | games.CVaRGame, result: Result) -> tuple[CostLaw, ...]:
    """Return the law of every cost, if there is a policy."""
    from cmpg.games.joint.game import as_joint

    if result.incumbent is None:
        return ()
    if isinstance(game, cmpg.LocalGame):
        try:
            return games.cost_law(game, result.policy)
        except UnsupportedError:  # costs of resources have no law here
            return ()
    if isinstance(game, games.CVaRGame):
        return game.laws(result.policy)
    return games.cost_law(as_joint(game, wanted="has no law of costs"), result.policy)


def law_record(law: CostLaw) -> dict[str, Any]:
    """Return the law of a cost as plain numbers."""
    return {"cost": law.name, "mean": law.mean, "sums": law.sums.tolist(), "probabilities": law.probabilities.tolist()}


def deliver_cvar(
    game: CVaRGame,
    delivery: Delivery,
    budgets: RiskBudgets,
    *,
    output: Path | None,
    as_json: bool,
) -> None:
    """Show a result with budgets on CVaR, and keep game, policy and certificate in a folder if one is named."""
    result, chances, cvars = delivery.result, budgets.chance or [], budgets.cvar or []
    # What is printed of costs and limits is in the user's words, not in those of the games that were solved.
    words = {"constraint_names": list(game.constraint_names), "thresholds": files.containers.plain(game.thresholds)}
    record = {**files.records.result_record(result, delivery.game, quality=delivery.gaps), **words}
    record |= {"budgets": {"chance": list(chances), "cvar": list(cvars), "expected": not budgets.chances_only}}
    record |= {"laws": [law_record(law) for law in delivery.laws]}
    if output is not None:
        with files.containers.new_folder(output):
            files.games.save_game(game.original, output / "game.npz")
            if result.incumbent is not None:
                result.policy.save(output / "policy.npz")
                files.containers.write_text(
                    output / "certificate.json",
                    files.containers.json_text(files.records.certificate_record(result.certificate)),
                )
            files.containers.write_text(output / "result.json", files.containers.json_text(record))
    if as_json:
        show_json(record)
        return
    delivery.show()
    if output is not None:
        options = [word for each in chances for word in ("--chance", each)]
        options += [word for each in cvars for word in ("--cvar", each)] + ["--chances-only"] * budgets.chances_only
        show(f"written to {output}/" + ("" if result.incumbent is None else delivery.check(output, *options)))
