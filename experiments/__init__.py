"""What learning from samples must show, over hundreds of seeds: `make experiments`, or `python -m experiments`."""
