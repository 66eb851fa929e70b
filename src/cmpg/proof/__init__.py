"""The proof: what decides whether a claim about a game is true. It imports numpy, and nothing else of the library.

- `claim`: what is claimed, as plain tables.
- `rounding`: numbers with a bound on their error.
- `support`: what no feasible deviation can do, where nothing is left of a budget.
- `check`: the check in floats.
- `exact`: the check in rationals.
- `infeasible`: the check that no policy is feasible, in floats and in rationals.
- `alternatives`: claims where what is feasible is a union, such as budgets on CVaR.
- `verdict`: what is proved, in floats or in rationals.
- `format`: claims as proof files.
- `run_files`, `script`: claims from a run's files, and the check in floats as one script of numpy alone.
"""
