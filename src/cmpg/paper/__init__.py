"""The paper again, in one run: every figure, every number, every claim, with what holds and what does not."""
