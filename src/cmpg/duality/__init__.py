"""Why not Lagrange? The dual function, its maximisers, and the best feasible policy with a proof."""
