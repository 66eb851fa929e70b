"""The compiled kernels; each is described beside its twin."""

from cmpg.arrays import FloatArray

def convolve(one: FloatArray, other: FloatArray, width: int, total: FloatArray) -> None: ...
