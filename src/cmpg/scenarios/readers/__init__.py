"""Files of other people: charging sessions, maps, road networks, problems of teams.

>>> from cmpg.scenarios.readers import read_map
>>> from cmpg.scenarios.samples import sample_file
>>> with sample_file("sample.map") as path:
...     read_map(path).height
12
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cmpg.lazy import lazy_exports

if TYPE_CHECKING:
    from cmpg.scenarios.readers.acn import Session as Session
    from cmpg.scenarios.readers.acn import read_sessions as read_sessions
    from cmpg.scenarios.readers.dpomdp import TeamProblem as TeamProblem
    from cmpg.scenarios.readers.dpomdp import read_dpomdp as read_dpomdp
    from cmpg.scenarios.readers.movingai import GridMap as GridMap
    from cmpg.scenarios.readers.movingai import Journey as Journey
    from cmpg.scenarios.readers.movingai import read_map as read_map
    from cmpg.scenarios.readers.movingai import read_scen as read_scen
    from cmpg.scenarios.readers.tntp import Network as Network
    from cmpg.scenarios.readers.tntp import TripTable as TripTable
    from cmpg.scenarios.readers.tntp import read_network as read_network
    from cmpg.scenarios.readers.tntp import read_nodes as read_nodes
    from cmpg.scenarios.readers.tntp import read_trips as read_trips

__all__, __getattr__, __dir__ = lazy_exports(__name__)
