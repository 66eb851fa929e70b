"""Ways to begin: every start is a value that finds a feasible policy, or a proof that there is none."""
