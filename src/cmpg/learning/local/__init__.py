"""Learning local games: kernels of agents who meet only at resources."""
