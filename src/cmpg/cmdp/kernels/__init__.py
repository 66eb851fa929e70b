"""Compiled inner loops, and the choice between them and their plain NumPy twins."""
