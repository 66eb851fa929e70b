"""Nash policies of constrained Markov potential games."""
