"""A crowd of vehicles on roads: what is claimed of it is counted again, path by path, by code of its own."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest

import cmpg
from cmpg.equilibrium.crowds import solve as crowds
from cmpg.errors import GameError
from cmpg.games import CrowdGame, CrowdPolicy
from cmpg.report.crowds import crowd_summary, group_rows, load_rows
from cmpg.scenarios import routing
from cmpg.scenarios.readers.tntp import read_network
from cmpg.scenarios.samples import sample_file


def links_by_name() -> dict[str, object]:
    with sample_file("sample_net.tntp") as path:
        return {f"{link.tail}→{link.head}": link for link in read_network(path).links}


def counted_gains(game: CrowdGame, policy: CrowdPolicy, wider: float) -> list[float]:
    """Return what a member of each group saves by its best other path, from names of paths and the file alone."""
    links, plays = links_by_name(), []
    for g, kind in enumerate(policy.kind.tolist()):
        (action,) = np.flatnonzero(policy.plans[g][0, 0])
        plays.append(steps_of(game.action_names[kind][action]))
    loads = dict.fromkeys(links, 0)
    for g, path in enumerate(plays):
        for name in path:
            loads[name] += int(policy.number[g])

    def time(path: list[str], own: list[str]) -> float:
        total = 0.0
        for name in path:
            link = links[name]
            share = (loads[name] + (name not in own)) / (link.capacity * wider)
            total += link.free_flow_time * (1 + link.b * share**link.power) / 100
        return total

    gains = []
    for g, kind in enumerate(policy.kind.tolist()):
        others = [time(steps_of(name), plays[g]) for name in game.action_names[kind]]
        gains.append(time(plays[g], plays[g]) - min(others))
    return gains


def steps_of(path: str) -> list[str]:
    nodes = path.split("→")
    return [f"{tail}→{head}" for tail, head in pairwise(nodes)]


@pytest.mark.parametrize("agents", [1_500, 100_000])
def test_no_drawn_vehicle_saves_time_on_another_path(agents: int) -> None:
    game = routing(mode="static", num_agents=agents, seed=3)
    result = cmpg.solve(game)
    assert result.certified
    assert result.policy.number.sum() == agents
    total = float(sum(row.flow for row in drawn_from()))
    gains = counted_gains(game, result.policy, agents / total)
    assert max(gains) <= 1e-6
    assert result.certificate.gains == pytest.approx(gains, abs=1e-12)


def drawn_from() -> list[object]:
    from cmpg.scenarios.readers.tntp import read_trips

    with sample_file("sample_trips.tntp") as path:
        return [trip for trip in read_trips(path).trips if trip.origin != trip.destination]


@pytest.mark.parametrize("seed", range(4))
def test_a_few_vehicles_end_at_one_of_all_equilibria_whoever_solves(seed: int, monkeypatch) -> None:
    game = small_town(np.random.default_rng(seed))
    stable = equilibria(game)
    assert stable
    alone = cmpg.solve(game)
    assert "agent by agent" in alone.phases
    monkeypatch.setattr(crowds, "FEW_AGENTS", 0)
    grouped = cmpg.solve(game)
    assert "fluid" in grouped.phases
    for result in (alone, grouped):
        assert result.certified
        assert not result.policy.mixes.any()
        assert tuple(counts_of(game, result.policy)) in stable


def small_town(rng: np.random.Generator) -> CrowdGame:
    """Seven vehicles of two kinds on four roads; a path is one or two of them."""
    kinds = [
        cmpg.games.LocalAgent(transition=np.ones((1, 1, 3, 1)), reward=np.zeros((1, 1, 3)), uses=[[paths]], initial=[1])
        for paths in ([[1, 0, 0, 0], [0, 1, 0, 1], [0, 0, 1, 0]], [[0, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 1]])
    ]
    return CrowdGame(
        kinds=kinds,
        numbers=[4, 3],
        curves=[cmpg.games.PowerCurve(float(rng.random()), float(rng.random()) / 9, 4) for _ in range(4)],
        delay=[[0, 1, 2, 3]],
        load_costs=(),
        thresholds=(),
        horizon=1,
    )


def counts_of(game: CrowdGame, policy: CrowdPolicy) -> list[tuple[int, ...]]:
    """Return how many of each kind play each action."""
    found = np.zeros((game.num_kinds, 3), dtype=int)
    for g, kind in enumerate(policy.kind.tolist()):
        found[kind, int(policy.plans[g][0, 0].argmax())] += policy.number[g]
    return [tuple(row) for row in found.tolist()]


def equilibria(game: CrowdGame) -> set[tuple[tuple[int, ...], ...]]:
    """Try all ways to divide kinds among paths, and return those that nobody wants to leave."""
    uses = [kind.uses[0].toarray() for kind in game.kinds]
    ways = [[each for each in product(range(n + 1), repeat=3) if sum(each) == n] for n in game.numbers.tolist()]
    found = set()
    for counts in product(*ways):
        loads = sum(np.array(each) @ table for each, table in zip(counts, uses, strict=True))

        def time(kind: int, path: int, own: int, loads=loads) -> float:
            met = loads + uses[kind][path] - uses[kind][path] * uses[kind][own]
            pairs = zip(game.curves, met.tolist(), strict=True)
            delays = [curve.constant + curve.factor * load**curve.power for curve, load in pairs]
            return float(uses[kind][path] @ delays)

        if all(
            time(kind, own, own) <= min(time(kind, path, own) for path in range(3)) + 1e-12
            for kind, each in enumerate(counts)
            for own in range(3)
            if each[own]
        ):
            found.add(counts)
    return found


def test_a_protected_link_keeps_its_limit_among_drawn_vehicles() -> None:
    free = cmpg.solve(routing(mode="static", num_agents=2_000, seed=1))
    place = free.game.resource_names.index("4→7")
    used = free.certificate.loads[0, place]
    own = float(sum(row.flow for row in drawn_from()))
    limit = 0.97 * used * own / 2_000
    game = routing(mode="static", num_agents=2_000, seed=1, protected="4-7", limit=limit)
    result = cmpg.solve(game)
    assert result.certified
    assert result.certificate.loads[0, place] <= 0.97 * used + 0.5
    assert result.certificate.costs[0] == pytest.approx(0.5, abs=1e-6)  # one vehicle mixes, and uses up what is left


def test_tables_of_roads_name_paths_and_times() -> None:
    result = cmpg.solve(routing(mode="static", num_agents=2_000, seed=2))
    rows = group_rows(result)
    assert all(row["plays"].startswith(row["kind"].split()[0] + "→") for row in rows)
    first = load_rows(result)[0]
    assert first["travel time (min)"] >= first["free flow time (min)"]
    assert first["volume/capacity"] == pytest.approx(first["users"] / first["capacity (vehicles)"])
    words = "\n".join(each for each in crowd_summary(result).parts if isinstance(each, str))
    assert "over all paths of the network, offered or not" in words
    again = routing(mode="static", num_agents=2_000, seed=2)
    assert (again.numbers == result.game.numbers).all()
    assert "in proportion to the traffic (seed 2)" in dict(again.legend.translation)["drawn"]


def test_powers_that_are_not_whole_are_refused_with_the_line(tmp_path) -> None:
    with sample_file("sample_net.tntp") as net, sample_file("sample_trips.tntp") as trips:
        (tmp_path / "trips.tntp").write_text(trips.read_text(encoding="utf-8"), encoding="utf-8")
        text = net.read_text(encoding="utf-8")
    links = [line for line in text.splitlines() if line.rstrip().endswith(";")]
    fields = links[-1].split()
    fields[6] = "1.5"
    (tmp_path / "net.tntp").write_text(text.replace(links[-1], "\t" + "\t".join(fields)), encoding="utf-8")
    files = {"network": tmp_path / "net.tntp", "trips": tmp_path / "trips.tntp"}
    assert routing(mode="static", **files).num_agents > 0
    with pytest.raises(cmpg.errors.FileError, match=r"the power is 1\.5; travel times of a crowd need whole ones"):
        routing(mode="static", num_agents=50, **files)


def test_a_power_curve_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(GameError, match="factor of at least 0"):
        cmpg.games.PowerCurve(1.0, -1.0, 2)
    with pytest.raises(GameError, match="a whole number from 1 to"):
        cmpg.games.PowerCurve(1.0, 1.0, 0)
    steep = cmpg.games.PowerCurve(0.0, 1e300, 20)
    with pytest.raises(GameError, match="not finite at load 7"):
        replace(small_town(np.random.default_rng(0)), curves=(steep,) * 4)
