"""What the page shows step by step: what agents do, for the policy viewer, and where the costs arise.

The viewer's script gets plain numbers. Probabilities are given in thousandths, and only what is likely enough to be
seen is kept. On cells and nodes the parts are: where an agent is, with which probability, and what it does there. In a
game on a shared state, "what agent i does on a cell" is the mean over the states in which it stands there.

Spending is V^{c_j} of a joint policy, split over steps and places. In a game on a shared state a place is a state, and
the parts are ρ_h(s) · E[c_{j,h}(s, a)]. Where agents meet at resources, the places are the resources, and the agents
with what they spend by themselves. The parts of a constraint add up to its cost.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.cmdp.evaluation import occupancy
from cmpg.errors import TooLargeError
from cmpg.games.game import Game, Information, Playable, SharedResources
from cmpg.games.players import PolicyTable
from cmpg.policy import JointPolicy
from cmpg.scenarios.drawings import Drawing, GridDrawing, LoadDrawing, NetworkDrawing
from cmpg.sizes import require_picture

MAX_BYTES = 700_000
"""The viewer's share of a page: what does not fit is left out, the least likely first, and the page says so."""

FEW = 2
"""A map with more agents than this opens at its busiest step."""

FLOORS = (5e-4, 5e-3, 2e-2)
"""What is less likely than the first is never shown; where that is too much, the next ones are tried."""

MAX_ENTRIES = 120_000
"""All tables together have at most this many entries, where a game is shown as tables."""

MAX_PANELS = 12

MAX_STEPS = 10_000
"""Steps that a slider can be moved along."""


@dataclass(frozen=True, eq=False)
class View:
    """The viewer's data, in words that JSON knows."""

    kind: str  # "grid", "network", "loads", "tables"
    note: str  # what is left out; empty where nothing is
    fields: dict[str, Any]

    def to_json(self) -> str:
        """Return the data as one JSON object."""
        return json.dumps({"kind": self.kind, "note": self.note, **self.fields}, separators=(",", ":"))


def view_of(game: Game, policy: JointPolicy, drawing: Drawing | None) -> View:
    """Lay out a joint policy for the viewer, by its drawing where there is one.

    Raises
    ------
    TooLargeError
        There is not enough memory for it, or there are more steps than anybody looks at one by one.
    """
    if policy.shapes[0][0] > MAX_STEPS:
        raise TooLargeError(
            f"{policy.shapes[0][0]:,} steps are not drawn one by one, and more than {MAX_STEPS:,} never are. "
            "Use cmpg show --step or cmpg export"
        )
    if isinstance(drawing, GridDrawing):
        return _fitting(lambda floor, agents: _grid_view(game, policy, drawing, floor=floor, agents=agents), game)
    if isinstance(drawing, NetworkDrawing) and isinstance(game, SharedResources):
        return _fitting(lambda floor, agents: _network_view(game, policy, drawing, floor=floor, agents=agents), game)
    if isinstance(drawing, LoadDrawing) and isinstance(game, SharedResources):
        return _load_view(game, policy, drawing)
    return _tables_view(game, policy)


def _fitting(build: Callable[[float, int], View], game: Game) -> View:
    """Raise the floor, and then draw fewer agents, until the view is small enough."""
    agents = game.num_agents
    while True:
        for floor in FLOORS:
            view = build(floor, agents)
            if len(view.to_json()) <= MAX_BYTES:
                return view
        if agents == 1:
            return view
        agents //= 2


def _left_out(game: Game, floor: float, agents: int) -> str:
    parts = []
    if floor > FLOORS[0]:
        parts.append(f"what is less likely than {floor:g} is not drawn")
    if agents < game.num_agents:
        parts.append(f"the first {agents} of {game.num_agents} agents can be chosen; the totals are of all")
    return "; ".join(parts)


def visits_by_agent(game: Game, policy: JointPolicy, *, places: int) -> list[FloatArray]:
    """Return ρ over own places and actions, for each agent: n arrays [H, places, A_i].

    In a game on a shared state, a state is one place per agent, in agent order.
    """
    require_picture(policy.shapes)
    position = game.at(policy)
    if game.information is Information.OWN_STATE:
        return [occupancy(position.induced_cmdp(i), position.policy[i]) for i in range(game.num_agents)]
    states = occupancy(position.induced_cmdp(0), position.policy[0]).sum(axis=-1)
    result = []
    for agent, table in enumerate(policy):
        both = (states[..., None] * table).reshape(len(states), *(places,) * game.num_agents, table.shape[2])
        others = tuple(1 + other for other in range(game.num_agents) if other != agent)
        result.append(np.asarray(both.sum(axis=others)))
    return result


def _grid_view(game: Game, policy: JointPolicy, drawing: GridDrawing, *, floor: float, agents: int) -> View:
    visits = visits_by_agent(game, policy, places=len(drawing.cells))
    together = np.sum([each.sum(axis=2) for each in visits], axis=0)
    fields = asdict(drawing) | {
        "steps": _step_names(game, len(together)),
        "agents": game.names.all_agents(game.num_agents)[:agents],
        "together": [_sparse(row, floor) for row in together],
        "likely": [each.sum(axis=2).argmax(axis=1).tolist() for each in visits],
        "sample": _drawn_run(game, policy, len(drawing.cells)),
        "goals": _goals(game, drawing),
        "first": _busiest_on_a_map(visits) if game.num_agents > FEW else 0,
        "hot": _hot_spots(visits),
        "frames": [[_frame(step, floor) for step in each] for each in visits[:agents]],
    }
    return View("grid", _left_out(game, floor, agents), fields)


def _busiest_on_a_map(visits: list[FloatArray]) -> int:
    """Return the step at which most pairs of agents are expected together; if none ever is, after which most move."""
    present = np.stack([each.sum(axis=2) for each in visits])  # [n, H, places]
    pairs = (present.sum(axis=0) ** 2 - (present**2).sum(axis=0)).sum(axis=1)
    if pairs.max() > FLOORS[0]:
        return int(np.argmax(pairs))
    moved = np.abs(np.diff(present, axis=1)).sum(axis=(0, 2))
    return int(np.argmax(moved)) if len(moved) else 0


def _drawn_run(game: Game, policy: JointPolicy, places: int) -> list[list[int]]:
    """Return where every agent is at every step of one run, drawn at random; none where the game cannot be played."""
    if not isinstance(game, Playable):
        return []
    stepper, table, rng = game.stepper(), PolicyTable.of(policy.floats()), np.random.default_rng(0)
    states, ways = stepper.begin(1, rng), []
    for h in range(policy.shapes[0][0]):
        ways.append(states[:, 0])
        states = stepper.step(h, states, table.draw(h, states, rng), rng).states
    if game.information is Information.OWN_STATE:
        return [[int(place) for place in way] for way in zip(*ways, strict=True)]
    seen = [np.unravel_index(int(way[0]), (places,) * game.num_agents) for way in ways]
    return [[int(place) for place in way] for way in zip(*seen, strict=True)]


def _goals(game: Game, drawing: GridDrawing) -> list[int | None]:
    """Return the place of each agent's goal, where it has one of its own."""
    if game.names.legend.goals:
        return list(game.names.legend.goals)
    marked = {mark.agent: drawing.cells.index(mark.cell) for mark in drawing.marks if mark.text == "goal"}
    return [marked.get(agent) for agent in range(game.num_agents)]


def _hot_spots(visits: list[FloatArray], most: int = 12) -> list[list[int]]:
    """Return the places where most pairs of agents are expected together, over all steps: [place, thousandths]."""
    present = np.stack([each.sum(axis=2) for each in visits])  # [n, H, places]
    pairs = ((present.sum(axis=0) ** 2 - (present**2).sum(axis=0)) / 2).sum(axis=0)
    hottest = [int(place) for place in np.argsort(-pairs, kind="stable")[:most] if pairs[place] >= FLOORS[0]]
    return [[place, *_thousandths(pairs[place : place + 1])] for place in hottest]


def _frame(occupied: FloatArray, floor: float) -> list[list[int]]:
    """Return [place, probability, action, probability, …] for every place that is likely enough."""
    present = occupied.sum(axis=1)
    frame = []
    for place in np.flatnonzero(present >= floor):
        row = _thousandths(occupied[place] / present[place])
        acts = [number for action, share in enumerate(row) if share for number in (action, share)]
        frame.append([int(place), *_thousandths(present[place : place + 1]), *acts])
    return frame


def _network_view(
    game: SharedResources, policy: JointPolicy, drawing: NetworkDrawing, *, floor: float, agents: int
) -> View:
    position = game.at(policy)
    used = [position.usage(agent) for agent in range(game.num_agents)]
    visits = visits_by_agent(game, policy, places=len(drawing.nodes))
    fields = asdict(drawing) | {
        "steps": _step_names(game, len(used[0])),
        "agents": game.names.all_agents(game.num_agents)[:agents],
        "words": {"agent": game.names.legend.agent},
        "loads": [_sparse(row, floor) for row in np.sum(used, axis=0)],
        "first": int(np.argmax((np.sum(used, axis=0) ** 2).sum(axis=1))),
        "uses": [[_sparse(row, floor) for row in each] for each in used[:agents]],
        "visits": [
            # A game with one state has no agent at any node.
            [_sparse(row, floor) if len(row) == len(drawing.nodes) else [] for row in visits[agent].sum(axis=2)]
            for agent in range(agents)
        ],
    }
    return View("network", _left_out(game, floor, agents), fields)


def _load_view(game: SharedResources, policy: JointPolicy, drawing: LoadDrawing) -> View:
    position, resources, legend = game.at(policy), game.all_resource_names, game.names.legend
    used, likely = [position.usage(agent) for agent in range(game.num_agents)], position.load_probabilities()
    loads = np.sum(used, axis=0)  # [H, E]
    seen = 1 + int(np.max(np.flatnonzero((likely >= FLOORS[0]).any(axis=(1, 2))), initial=0))
    fields = asdict(drawing) | {
        "agents": game.names.all_agents(game.num_agents),
        "resources": resources,
        "loads": [_thousandths(load) for load in loads.T],
        "likely": [[_thousandths(row) for row in likely[:seen, :, e].T] for e in range(len(resources))],
        "uses": [[_sparse(row, FLOORS[0]) for row in each] for each in used],
        "first": int(np.argmax((loads / np.maximum(np.array(drawing.capacities).T, 1e-9)).max(axis=1))),
        "words": {"agent": legend.agent, "step": legend.step, "unit": legend.load.unit},
        "each": legend.load.each,
    }
    return View("loads", "", fields)


def _tables_view(game: Game, policy: JointPolicy) -> View:
    names = game.names.actions
    alike = len({shape[2] for shape in policy.shapes}) == 1 and (names is None or len(set(names)) == 1)
    if game.information is Information.JOINT_STATE and alike:
        return _state_tables(game, policy, game.names.all_actions(0, policy.shapes[0][2]))
    return _agent_tables(game, policy)


def _state_tables(game: Game, policy: JointPolicy, actions: tuple[str, ...]) -> View:
    """One table per state: agents × actions."""
    visits = occupancy(game.at(policy).induced_cmdp(0), policy[0]).sum(axis=-1)
    steps, states = visits.shape
    agents = min(game.num_agents, 60)
    shown = max(1, min(states, MAX_PANELS, MAX_ENTRIES // (steps * agents * len(actions))))
    order = [np.argsort(-np.round(row, 6), kind="stable")[:shown] for row in visits]
    names = game.names.all_states(0, states)
    panels = [
        [
            [names[s], *_thousandths(visits[h, s : s + 1]), [_thousandths(policy[i][h, s]) for i in range(agents)]]
            for s in chosen
        ]
        for h, chosen in enumerate(order)
    ]
    note = "" if shown == states else f"the {shown} most likely of {states} states are shown at each step"
    note += "" if agents == game.num_agents else f"; the first {agents} of {game.num_agents} agents are shown"
    fields = {
        "steps": _step_names(game, steps),
        "columns": actions,
        "rows": game.names.all_agents(game.num_agents)[:agents],
        "panels": panels,
    }
    return View("tables", note.removeprefix("; "), fields)


def _agent_tables(game: Game, policy: JointPolicy) -> View:
    """One table per agent: its most likely states × its actions."""
    if game.information is Information.OWN_STATE:
        visits = [each.sum(axis=2) for each in visits_by_agent(game, policy, places=0)]
    else:
        visits = [occupancy(game.at(policy).induced_cmdp(0), policy[0]).sum(axis=-1)] * game.num_agents
    steps, agents = len(visits[0]), min(game.num_agents, MAX_PANELS)
    widest = max(shape[2] for shape in policy.shapes)
    rows = max(1, min(MAX_PANELS, MAX_ENTRIES // (steps * agents * widest)))
    names = game.names.all_agents(game.num_agents)
    panels: list[list[list[Any]]] = []
    for h in range(steps):
        panels.append([])
        for i in range(agents):
            chosen = np.argsort(-np.round(visits[i][h], 6), kind="stable")[:rows]
            states = game.names.all_states(i, visits[i].shape[1])
            labels = [f"{states[s]} ({visits[i][h, s]:.3g})" for s in chosen]
            cells = [_thousandths(policy[i][h, s]) for s in chosen]
            panels[h].append([names[i], None, cells, labels, game.names.all_actions(i, policy.shapes[i][2])])
    note = f"the {rows} most likely states of each agent are shown, with their probabilities"
    note += "" if agents == game.num_agents else f"; the first {agents} of {game.num_agents} agents are shown"
    return View("tables", note, {"steps": _step_names(game, steps), "columns": [], "rows": [], "panels": panels})


def _step_names(game: Game, steps: int) -> list[str]:
    return [game.names.step(h) for h in range(steps)]


def _sparse(row: FloatArray, floor: float) -> list[list[int]]:
    """Return [place, thousandths] of what is at least `floor`."""
    places = np.flatnonzero(row >= floor)
    return [[int(place), share] for place, share in zip(places, _thousandths(row[places]), strict=True)]


def _thousandths(row: FloatArray) -> list[int]:
    return [int(number) for number in np.rint(np.asarray(row) * 1000)]


@dataclass(frozen=True, eq=False)
class Spending:
    """The parts of every cost."""

    parts: FloatArray  # [k, H, places]
    places: tuple[str, ...]
    kind: str  # what a place is: "state", "resource"


def where_spent(game: Game, policy: JointPolicy) -> Spending:
    """Split the costs of a joint policy; agents who see their own states, and name no resources, have no place to show.

    Examples
    --------
    >>> from cmpg.scenarios import grid_world
    >>> game = grid_world(horizon=3)
    >>> spent = where_spent(game, game.uniform_policy())
    >>> bool(np.isclose(spent.parts.sum(), game.at(game.uniform_policy()).costs[0]))
    True
    """
    if isinstance(game, SharedResources):
        position = game.at(policy)
        own = position.agent_costs()
        spenders = np.flatnonzero(own.any(axis=(0, 1)))
        places = (*game.all_resource_names, *(f"{game.names.agent(int(i))}, private" for i in spenders))
        return Spending(np.concatenate([position.resource_costs(), own[:, :, spenders]], axis=2), places, "resource")
    if game.information is Information.OWN_STATE:
        return Spending(np.zeros((len(game.thresholds), policy.shapes[0][0], 0)), (), "state")
    cmdp = game.at(policy).induced_cmdp(0)
    visits = occupancy(cmdp, policy[0])
    parts = np.einsum("hsa,khsa->khs", visits, np.broadcast_to(cmdp.costs, (len(cmdp.costs), *visits.shape)))
    return Spending(parts, game.names.all_states(0, visits.shape[1]), "state")
