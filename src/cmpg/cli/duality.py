"""`cmpg duality`: what a price alone can do in a game, and what a public coin adds.

Exit codes: 0 with an answer, 2 if the game has no potential that is known, or no feasible policy.
"""

from __future__ import annotations

from typing import Annotated

from cmpg import files
from cmpg.cli.options import Epsilon, Json, Seed, option
from cmpg.cli.output import ProgressLine, show, show_json
from cmpg.cli.targets import GameArgument


def duality(
    *,
    target: GameArgument,
    epsilon: Epsilon = 1e-6,
    restarts: Annotated[int, option("Runs that look for a good Nash policy.", least=1)] = 10,
    seed: Seed = None,
    as_json: Json = False,
) -> None:
    """Bracket the duality gap: the best policy, rotas, D*.

    P* is the potential of the best feasible policy, D* the least that a price proves; between them is what a public
    coin is worth. For games that are known to have a potential.
    """
    from cmpg.duality.gap import duality_gap

    with ProgressLine("building the game") as progress:
        game = target.build(seed=seed)
        progress.begin("looking for policies, rotas and bounds")
        gap = duality_gap(game, epsilon=epsilon, restarts=restarts, rng=seed or 0)
    if not as_json:
        show(gap.summary())
        return
    words = ("nash", "primal_lower", "primal_upper", "rota", "correlated", "dual_lower", "dual_upper", "multipliers")
    record = {word: getattr(gap, word) for word in words}
    show_json(files.containers.plain_fields({**record, "least_gap": gap.least, "greatest_gap": gap.greatest}))
