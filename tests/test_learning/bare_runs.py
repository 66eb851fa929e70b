"""Runs of which nothing is there but what a test needs, and responses that are written down."""

import numpy as np

from cmpg.learning.outcome import LearnedResponse, Present, ResponseStatus
from cmpg.policy import JointPolicy

UNIFORM = JointPolicy.uniform([(1, 1, 2), (1, 1, 2)])


def bare(kind, **attributes):
    """A run of which nothing is there but what is given."""
    run = object.__new__(kind)
    for name, value in attributes.items():
        setattr(run, name, value)
    return run


def failing(error):
    def fail(_):
        raise error

    return fail


def response(status=ResponseStatus.CERTIFIED, *, floor=2.0, ceiling=2.5, present=None):
    """A response of an agent whose present policy is worth between these."""
    seen = None if present is None else Present(present[0], present[1], np.array([0.0]), np.array([0.5]))
    return LearnedResponse(
        status,
        "told",
        np.array([[[0.0, 1.0]]]),
        floor,
        ceiling,
        np.array([0.5]),
        np.zeros(1),
        0.1,
        0.1,
        0,
        0,
        0,
        (),
        seen,
    )
