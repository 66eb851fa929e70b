"""The paper again, in one run: every figure, every number, every claim, with what holds and what does not.

`reproduction.reproduce` computes it, `reproduction.write` leaves figures, tables and one page in a folder.
"""
