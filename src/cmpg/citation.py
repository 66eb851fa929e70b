"""How to cite the library, and the paper whose game, theorems and algorithms it implements."""

from __future__ import annotations

_SOFTWARE = """@software{{cmpg,
  author  = {{{{The cmpg developers}}}},
  title   = {{{{cmpg: Nash policies of constrained Markov potential games, with a certificate behind every answer}}}},
  version = {{{version}}},
  license = {{MIT}},
  url     = {{https://github.com/cmpg-developers/cmpg}}
}}
"""

_PAPER = """@article{alatur2023provably,
  author  = {Alatur, Pragnya and Ramponi, Giorgia and He, Niao and Krause, Andreas},
  title   = {Provably Learning {Nash} Policies in Constrained {Markov} Potential Games},
  journal = {arXiv preprint arXiv:2306.07749},
  year    = {2023},
  url     = {https://arxiv.org/abs/2306.07749}
}
"""


def cite() -> str:
    """Return BibTeX entries of this version of the library and of the paper.

    Examples
    --------
    >>> print(cite().splitlines()[0])
    @software{cmpg,
    """
    from cmpg import __version__  # the package names this function itself

    return _SOFTWARE.format(version=__version__) + "\n" + _PAPER
