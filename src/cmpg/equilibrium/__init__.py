"""Many agents: equilibria, certificates, starts, duality."""
