"""Is a game a Markov potential game? Proofs, tests and witnesses."""
