"""The proof: what decides whether a claim about a game is true. It imports numpy, and nothing else of the library.

- `claim`: what is claimed, as plain tables.
- `rounding`: numbers with a bound on their error.
- `support`: what no feasible deviation can do, where nothing is left of a budget.
- `check`: the check in floats.
- `exact`: the check in rationals.
- `infeasibility`: the check that no policy meets the thresholds.
"""
