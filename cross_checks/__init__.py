"""Numbers of this library beside those of tools that others wrote: Storm, OpenSpiel, Gambit, QuantEcon, Nashpy, cvxpy.

`python -m cross_checks --page docs/cross-checks.md` asks all of them, and ends with 1 if an answer differs.
"""
