"""A shared state, and tables over how many agents choose what."""
