"""The loop from its first question to its ending, on games that are lists of numbers; and what its endings say."""

from dataclasses import replace

import numpy as np
import pytest

from cmpg.equilibrium.certificate import Feasibility, certify
from cmpg.equilibrium.loop import (
    Answer,
    Ending,
    GreatestGain,
    LoopLimit,
    RoundRobin,
    Rules,
    interrupted_at,
    take_turns,
    verdict,
)
from cmpg.equilibrium.result import Status
from cmpg.errors import OutOfTimeError
from cmpg.scenarios import counter_example


class Levels:
    """A place: every agent stands on a level, and wants to be on its own highest one."""

    def __init__(self, levels):
        self.levels = tuple(levels)
        self.costs = [sum(levels)]

    @property
    def policy(self):
        return self

    def __len__(self):
        return len(self.levels)

    def fingerprint(self):
        return bytes(self.levels)

    def replace(self, agent, table):
        return Levels((*self.levels[:agent], table, *self.levels[agent + 1 :]))


def climbing(top, *, by=1, gain=1.0):
    """Answers that go up by one level, and gain as much as is told for each."""

    def answer(position, agent, rng):
        level = position.levels[agent]
        if level >= top[agent]:
            return Answer(level, 0.0, "there")
        return Answer(level + by, gain, "on the way")

    return answer


def test_agents_climb_in_turn_until_nobody_gains():
    told, moved = [], []
    ending = take_turns(
        Levels([0, 0]),
        climbing([2, 1], gain=0.5),
        Rules(enough=0.25),
        on_progress=told.append,
        on_move=lambda place: moved.append(place.levels),
    )
    assert (ending.status, ending.message, ending.position.levels) == (
        Status.CERTIFIED,
        "no agent gains enough.",
        (2, 1),
    )
    assert moved == [(1, 0), (1, 1), (2, 1)]
    assert (ending.moves, [step.mover for step in ending.trace]) == (3, [0, 1, 0, None])
    assert [step.potential for step in ending.trace] == [0.0, 0.5, 1.0, 1.5]
    assert [step.iteration for step in ending.trace] == [1, 2, 3, 4]
    assert [step.costs.tolist() for step in ending.trace] == [[0.0], [1.0], [2.0], [3.0]]
    assert told == list(ending.trace)
    assert {agent: answer.detail for agent, answer in ending.answers.items()} == {0: "on the way", 1: "there"}
    silent = take_turns(Levels([0]), climbing([1]), Rules(), traced=False)
    assert (silent.trace, silent.moves) == ((), 1)


def test_a_rest_elsewhere_asks_everybody_again():
    asked, rests = [], []

    def answer(position, agent, rng):
        asked.append((position.levels, agent))
        return Answer(None, 0.0)

    def at_rest(position, answers):
        rests.append((position.levels, sorted(answers)))
        return position if position.levels == (5, 5) else Levels([5, 5])

    ending = take_turns(Levels([0, 0]), answer, Rules(schedule=GreatestGain()), at_rest=at_rest)
    assert ending.status is Status.CERTIFIED
    assert rests == [((0, 0), [0, 1]), ((5, 5), [0, 1])]
    assert asked == [((0, 0), 0), ((0, 0), 1), ((5, 5), 0), ((5, 5), 1)]
    assert (ending.moves, len(ending.trace)) == (0, 2)


def test_gains_beyond_the_potential_and_policies_seen_before_refute_it():
    for most, status, moves in (
        (2.0, Status.CERTIFIED, 2),
        (1.9, Status.NOT_POTENTIAL, 2),
        (0.9, Status.NOT_POTENTIAL, 1),
    ):
        ending = take_turns(Levels([0, 0]), climbing([1, 1]), Rules(most_gain=most))
        assert (ending.status, ending.moves) == (status, moves)
    assert ending.message == "1 moves gained 1 in all, more than the 0.9 that a potential allows."

    def circling(position, agent, rng):
        return Answer((position.levels[agent] + 1) % 3, 1.0)

    back = take_turns(Levels([0, 0]), circling, Rules(no_return=True, max_moves=9))
    assert (back.status, back.moves, back.position.levels) == (Status.NOT_POTENTIAL, 6, (0, 0))
    assert back.message == "move 6 leads back to a policy seen before, though every move gained."
    allowed = take_turns(Levels([0, 0]), circling, Rules(max_moves=9))
    assert (allowed.status, allowed.moves) == (Status.LIMIT, 9)
    assert allowed.message == "the limit of 9 moves was reached. Allow more, or a larger epsilon."


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (KeyboardInterrupt(), Status.INTERRUPTED, "interrupted by the user."),
        (LoopLimit("spent."), Status.LIMIT, "spent."),
        (OutOfTimeError("late."), Status.LIMIT, "late."),
    ],
)
def test_whatever_ends_the_loop_keeps_where_it_stands(error, status, message):
    climb = climbing([3, 3])

    def answer(position, agent, rng):
        if sum(position.levels) == 2:
            raise error
        return climb(position, agent, rng)

    ending = take_turns(Levels([0, 0]), answer, Rules())
    assert (ending.status, ending.message, ending.moves, ending.position.levels) == (status, message, 2, (1, 1))


def test_every_answer_has_a_stream_of_its_own():
    drawn = {}

    def answer(position, agent, rng):
        drawn[agent] = rng.random()
        return Answer(None, 0.0)

    take_turns(Levels([0, 0, 0]), answer, Rules(schedule=GreatestGain()), rng=np.random.default_rng(3))
    expected = [each.random() for each in np.random.default_rng(3).spawn(3)]
    assert [drawn[agent] for agent in range(3)] == expected
    take_turns(Levels([0, 0, 0]), lambda *given: Answer(None, float(given[2] is not None)), Rules())


# --- Rows that nobody visits ------------------------------------------------------------------------------------------


def asked_of(schedule, gains, *, last=0, enough=0.2):
    asked = []

    def answers(agents):
        asked.extend(agents)
        return np.array([gains[agent] for agent in agents])

    return schedule.next_mover(answers, len(gains), last=last, enough=enough), asked


def test_round_robin_asks_everybody_once_beginning_after_the_last_mover():
    assert asked_of(RoundRobin(), [0.9, 0.1, 0.1, 0.5], last=1) == (3, [2, 3])
    assert asked_of(RoundRobin(), [0.9, 0.1, 0.1, 0.2], last=1) == (0, [2, 3, 0])
    assert asked_of(RoundRobin(), [0.1, 0.9, 0.1, 0.1], last=1) == (1, [2, 3, 0, 1])
    assert asked_of(RoundRobin(), [0.2] * 3, last=2) == (None, [0, 1, 2])


def test_the_greatest_gain_moves_if_it_is_more_than_enough():
    assert asked_of(GreatestGain(), [0.1, 0.5, 0.3]) == (1, [0, 1, 2])
    assert asked_of(GreatestGain(), [0.1, 0.2, 0.2]) == (None, [0, 1, 2])


def test_what_was_interrupted_is_judged_and_told():
    game = counter_example()
    stopped = interrupted_at(game, game.uniform_policy(), epsilon=1e-3)
    assert (stopped.status, stopped.interrupted, stopped.message) == (
        Status.INTERRUPTED,
        True,
        "interrupted by the user.",
    )
    good = interrupted_at(game, game.uniform_policy(), epsilon=1.0)
    assert (good.status, good.interrupted) == (Status.CERTIFIED, True)  # what is made of many solves ends all the same
    tight = interrupted_at(counter_example(threshold=0.1), game.uniform_policy(), epsilon=1.0)
    assert tight.status is Status.INTERRUPTED
    assert tight.message.startswith("interrupted by the user. The policy violates a threshold: ")


def told(*, status=Status.CERTIFIED, epsilon=0.25, failed="", **certificate):
    """How a loop is told that ended with a certificate like this."""
    game = counter_example()
    made = replace(certify(game, game.uniform_policy()), **certificate)
    ending = Ending(status, "the loop's words.", None, {}, (), 0)
    return verdict(ending, made, epsilon=epsilon, ranges=np.array([1.0, 2.0]), failed=failed)


def test_the_certificate_decides_and_then_the_loop():
    assert told(epsilon=0.26)[0] is Status.CERTIFIED
    assert told(epsilon=0.26, status=Status.LIMIT)[0] is Status.CERTIFIED
    assert told(epsilon=0.26, status=Status.NOT_POTENTIAL) == (Status.NOT_POTENTIAL, "the loop's words.")
    close = {"feasibility": Feasibility.TO_ROUNDING, "excess": np.array([1e-16])}
    assert told(epsilon=0.26, **close)[0] is Status.TO_ROUNDING
    assert told(epsilon=0.26, status=Status.NOT_POTENTIAL, **close)[0] is Status.NOT_POTENTIAL
    status, message = told(epsilon=0.1, status=Status.LIMIT, **close)
    assert status is Status.LIMIT
    assert message.startswith("the loop's words. The policy meets every threshold up to rounding: ")
    assert told(epsilon=0.1, status=Status.LIMIT) == (Status.LIMIT, "the loop's words.")
