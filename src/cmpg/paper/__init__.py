"""The paper again, "Provably Learning Nash Policies in Constrained Markov Potential Games": a table of claims.

>>> from cmpg import paper
>>> claim = next(each for each in paper.CLAIMS if each.key == "dual-value")
>>> claim.where, claim.statement, claim.check(paper.Evidence()).finding.ours
('Section 4, Proposition 3', 'D* and λ*', '3.5 at λ = 1')

`reproduce` computes all claims, `write` leaves them as a folder with a page. To read the room: `claims` says what a row
of the table is and what it is computed from; then one file per part of the paper (`counter_examples`, `theory`,
`grid_world`, `congestion`, `learning`, `literal`, `lemmas`); `runs` are its experiments, `algorithm_2` to
`algorithm_4` those algorithms to the letter; `figures` draws, `reproduction` makes the page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cmpg.lazy import lazy_exports

if TYPE_CHECKING:
    from cmpg.paper.algorithm_2 import algorithm_2 as algorithm_2
    from cmpg.paper.algorithm_3 import Algorithm3 as Algorithm3
    from cmpg.paper.algorithm_3 import AveragedPrimalDual as AveragedPrimalDual
    from cmpg.paper.algorithm_3 import UniformFill as UniformFill
    from cmpg.paper.algorithm_3 import primal_dual as primal_dual
    from cmpg.paper.algorithm_4 import Algorithm4 as Algorithm4
    from cmpg.paper.algorithm_4 import OnlineToBatch as OnlineToBatch
    from cmpg.paper.claims import FULL as FULL
    from cmpg.paper.claims import QUICK as QUICK
    from cmpg.paper.claims import CheckedClaim as CheckedClaim
    from cmpg.paper.claims import Effort as Effort
    from cmpg.paper.claims import Evidence as Evidence
    from cmpg.paper.claims import PaperClaim as PaperClaim
    from cmpg.paper.reproduction import CLAIMS as CLAIMS
    from cmpg.paper.reproduction import SECTIONS as SECTIONS
    from cmpg.paper.reproduction import Reproduction as Reproduction
    from cmpg.paper.reproduction import reproduce as reproduce
    from cmpg.paper.reproduction import write as write

__all__, __getattr__, __dir__ = lazy_exports(__name__)
