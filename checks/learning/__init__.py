"""What learning from samples must show, over hundreds of seeds: `python -m checks learning`."""
