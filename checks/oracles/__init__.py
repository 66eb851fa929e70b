"""Numbers of this library beside those of tools that others wrote: Storm, OpenSpiel, Gambit, QuantEcon, Nashpy, cvxpy.

`python -m checks oracles` asks all of them, and ends with 1 if an answer differs.
"""
