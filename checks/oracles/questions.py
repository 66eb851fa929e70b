"""The questions to each tool: each function yields tallies of answers that were compared."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

import cmpg
from checks.oracles import gambit, linear_program, nashpy, openspiel, problems, quantecon, storm
from checks.oracles.tally import Kind, Tally

SOLVE = 1e-10
"""The ε of the equilibria that this library finds."""


def best(cmdp: cmpg.CMDP) -> float:
    return float(cmpg.Exact()(cmdp).value)


def constrained_responses() -> Iterator[Tally]:
    tally = Tally(Kind.RESPONSE, "random CMDPs with one to three constraints", linear_program.NAME)
    for seed in range(400):
        cmdp = problems.random_cmdp(seed, discounted=seed % 3 == 0)
        tally.compare(best(cmdp), linear_program.best_value(cmdp), name=f"seed {seed}")
    yield tally
    tally = Tally(Kind.RESPONSE, "random CMDPs with one to three constraints", storm.NAME)
    seeds = range(1000, 1250)
    cmdps = [problems.random_cmdp(seed, discounted=seed % 3 == 0) for seed in seeds]
    for seed, cmdp, answer in zip(seeds, cmdps, storm.best_values(cmdps), strict=True):
        tally.compare(best(cmdp), answer, name=f"seed {seed}")
    yield tally
    faced = list(problems.scenario_cmdps())
    tally = Tally(Kind.RESPONSE, "what agents face in the scenarios of the library", storm.NAME)
    for (name, cmdp), answer in zip(faced, storm.best_values([cmdp for _, cmdp in faced]), strict=True):
        tally.compare(best(cmdp), answer, name=name)
    yield tally


def free_responses() -> Iterator[Tally]:
    tally = Tally(Kind.RESPONSE, "random MDPs without constraints, discounted and not", quantecon.NAME)
    for seed in range(2000, 2300):
        cmdp = problems.random_cmdp(seed, discounted=seed % 2 == 0, constraints=0)
        if len(cmdp.reward) == 1:
            tally.compare(best(cmdp), quantecon.best_value(cmdp), name=f"seed {seed}")
    yield tally
    spiel = Tally(Kind.RESPONSE, "random one-shot games of two and three players, mixed profiles", openspiel.NAME)
    regret = Tally(Kind.RESPONSE, "random one-shot games of two and three players, mixed profiles", gambit.NAME)
    for seed in range(3000, 3150):
        payoffs = problems.random_payoffs(seed, players=2 + seed % 3 // 2, most=4)
        game = problems.one_shot(*payoffs)
        policy = problems.random_policy(game, seed)
        rows = [table[0, 0] for table in policy]
        ours = problems.gains(game, policy)
        spiel_gains = {spiel: openspiel.gains(openspiel.matrix_game(payoffs), rows)} if seed % 2 else {}
        for tally, theirs in {**spiel_gains, regret: gambit.regrets(gambit.to_gambit(game), rows)}.items():
            for player, (one, other) in enumerate(zip(ours, theirs, strict=True)):
                tally.compare(one, other, name=f"seed {seed}, player {player}")
    yield spiel
    yield regret


def equilibria_of_others() -> Iterator[Tally]:
    """What others call an equilibrium must be certified here."""
    whole = Tally(Kind.EQUILIBRIUM, "random games, all equilibria that it enumerates, certified here", gambit.NAME)
    for seed in range(4000, 4080):
        game = problems.one_shot(*problems.random_payoffs(seed, players=2 + seed % 4 // 3))
        for count, rows in enumerate(gambit.equilibria(gambit.to_gambit(game))):
            whole.compare(proved_gain(game, rows), 0.0, name=f"seed {seed}, equilibrium {count}")
    yield whole
    for tool, first in ((nashpy, 5000), (quantecon, 6000)):
        tally = Tally(Kind.EQUILIBRIUM, "random games, all equilibria that it enumerates, certified here", tool.NAME)
        for seed in range(first, first + 60):
            players = 3 if tool is quantecon and seed % 4 == 3 else 2
            payoffs = problems.random_payoffs(2 * seed if players == 2 else seed, players=players)
            game = problems.one_shot(*payoffs)
            for count, rows in enumerate(tool.equilibria(payoffs)):
                tally.compare(proved_gain(game, rows), 0.0, name=f"seed {seed}, equilibrium {count}")
        yield tally


def proved_gain(game: cmpg.JointGame, rows: list[np.ndarray]) -> float:
    """The ε that our certificate proves of a mixed profile."""
    policy = problems.mixed(rows)
    return float(cmpg.certify(game, policy, np.zeros((game.num_agents, 0))).epsilon)


def equilibria_of_ours() -> Iterator[Tally]:
    """What is certified here must be an equilibrium to others: no agent gains more than ε by their best responses."""
    what = "equilibria of random one-shot potential games that were found here"
    tallies = [Tally(Kind.EQUILIBRIUM, what, tool.NAME) for tool in (gambit, quantecon, openspiel)]
    for seed in range(7000, 7100):
        payoffs = one_shot_potential(seed)
        game = problems.one_shot(*payoffs)
        result = cmpg.solve(game, epsilon=SOLVE)
        assert result.certified, (seed, result)
        rows = [table[0, 0] for table in result.policy]
        found = (
            max(gambit.regrets(gambit.to_gambit(game), rows)),
            quantecon.largest_gain(payoffs, rows),
            max(openspiel.gains(openspiel.matrix_game(payoffs), rows)),
        )
        for tally, gain in zip(tallies, found, strict=True):
            tally.compare(gain, 0.0, name=f"seed {seed}")
    yield from tallies
    what = "equilibria of random constrained Markov potential games: no agent's linear program finds more"
    tally = Tally(Kind.EQUILIBRIUM, what, linear_program.NAME)
    for seed in range(8000, 8100):
        game = problems.random_potential_game(seed, constrained=True)
        result = cmpg.solve(game, epsilon=SOLVE)
        assert result.certified, (seed, result)
        position = game.at(result.policy)
        best_values = [linear_program.best_value(position.induced_cmdp(i)) for i in range(game.num_agents)]
        gain = max(there - float(here) for there, here in zip(best_values, result.values, strict=True))
        tally.compare(max(gain, 0.0), 0.0, name=f"seed {seed}")
    yield tally


def one_shot_potential(seed: int) -> list[np.ndarray]:
    """Payoffs Φ(a) + d_i(a_{−i}): what others do may please a player, and changes nothing about what it should do."""
    rng = np.random.default_rng([5, seed])
    sizes = tuple(int(size) for size in rng.integers(2, 5, size=2 + seed % 2))
    potential = rng.normal(size=sizes)
    return [
        potential + rng.normal(size=tuple(1 if i == j else m for j, m in enumerate(sizes))) for i in range(len(sizes))
    ]


def public_games() -> Iterator[Tally]:
    """Games of books and papers in Gambit's catalogue, OpenSpiel's games, and QuantEcon's families."""
    regret = Tally(
        Kind.RESPONSE, "its catalogue of games from books and papers, three mixed profiles each", gambit.NAME
    )
    listed = Tally(Kind.EQUILIBRIUM, "its catalogue, all equilibria that it enumerates, certified here", gambit.NAME)
    for name, theirs in gambit.catalogue():
        game = gambit.from_gambit(theirs)
        flat = gambit.to_gambit(game)  # a tree in strategic form
        for seed in range(3):
            policy = problems.random_policy(game, seed)
            regrets = gambit.regrets(flat, [table[0, 0] for table in policy])
            for ours, answer in zip(problems.gains(game, policy), regrets, strict=True):
                regret.compare(ours, answer, name=name, public=True)
        for rows in gambit.equilibria(flat):
            listed.compare(proved_gain(game, rows), 0.0, name=name, public=True)
    yield regret
    yield listed
    tally = Tally(Kind.RESPONSE, "its matrix games and small simultaneous games", openspiel.NAME)
    for name in openspiel.MATRIX_GAMES:
        theirs = openspiel.load(name)
        payoffs = openspiel.payoffs(theirs)
        game = problems.one_shot(*payoffs)
        for seed in range(3):
            policy = problems.random_policy(game, seed)
            their_gains = openspiel.gains(theirs, [table[0, 0] for table in policy])
            for ours, answer in zip(problems.gains(game, policy), their_gains, strict=True):
                tally.compare(ours, answer, name=name, public=True)
    for name in openspiel.LONGER_GAMES:
        theirs = openspiel.load(name)
        game, places = openspiel.from_openspiel(theirs)
        ours = problems.gains(game, openspiel.uniform_over_legal(theirs, game, places))
        for one, answer in zip(ours, openspiel.uniform_gains(theirs), strict=True):
            tally.compare(one, answer, name=name, public=True)
    yield tally
    tally = Tally(Kind.EQUILIBRIUM, "its families of hard games, equilibria certified here", quantecon.NAME)
    for name, payoffs in quantecon.families():
        game = problems.one_shot(*payoffs)
        for rows in quantecon.equilibria(payoffs):
            tally.compare(proved_gain(game, rows), 0.0, name=name, public=True)
    yield tally


def public_processes(madp: Path | None) -> Iterator[Tally]:
    """Gymnasium's tables, and teams of the MADP toolbox who see the state."""
    free = Tally(Kind.RESPONSE, "Gymnasium's toy_text, discounted", quantecon.NAME)
    bound = Tally(Kind.RESPONSE, "Gymnasium's toy_text with a limit on steps in half of the cells", linear_program.NAME)
    for name, _, cmdp in problems.toy_text():
        free.compare(best(cmdp), quantecon.best_value(cmdp), name=name, public=True)
        limited = problems.with_a_limit(cmdp)
        bound.compare(best(limited), linear_program.best_value(limited), name=name, public=True)
    yield free
    yield bound
    team = Tally(Kind.RESPONSE, "MADP files, the whole team as one agent", quantecon.NAME)
    alone = Tally(Kind.RESPONSE, "MADP files, each agent beside partners who play at random", storm.NAME)
    responses = []
    for path in sorted(madp.glob("*.dpomdp")) if madp else [None]:
        name = "the library's own sample" if path is None else path.stem
        game = cmpg.scenarios.team(file=path, horizon=5)
        free_team = game.joint_cmdp()
        team.compare(best(free_team), quantecon.best_value(free_team), name=name, public=path is not None)
        position = game.at(problems.random_policy(game, 0))
        responses += [(name, position.induced_cmdp(agent)) for agent in range(game.num_agents)]
    small = [(name, cmdp) for name, cmdp in responses if cmdp.num_states <= 100]
    for (name, cmdp), answer in zip(small, storm.best_values([cmdp for _, cmdp in small]), strict=True):
        alone.compare(best(cmdp), answer, name=name, public=madp is not None)
    yield team
    yield alone
