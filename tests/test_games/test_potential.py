"""The potential check: proofs against 4-cycles, witnesses against exact arithmetic, the modular test against loops."""

from dataclasses import replace
from fractions import Fraction
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from cmpg.errors import GameError
from cmpg.games.claims import claim_of
from cmpg.games.game import Names, PotentialKind, PotentialProof
from cmpg.games.joint.game import JointGame
from cmpg.games.potential.check import FourCycle, Verdict, check_potential, recheck
from cmpg.games.potential.modular import loop_test
from cmpg.games.potential.structure import prove_potential
from cmpg.games.rationals import as_given
from cmpg.policy import JointPolicy
from cmpg.proof.exact import exact_values
from cmpg.scenarios import congestion_game, congestion_game_common_reward, congestion_game_exogenous, spectrum
from strategies import policies, samples

SMALL = {"max_agents": 3, "max_states": 4, "max_actions": 3, "max_horizon": 3}


def rng(seed=0):
    return np.random.default_rng(seed)


def four_cycle(game, policy, deviations, agents):
    """Return the sum of the movers' gains, straight from the definition."""
    (i, j), (new_i, new_j) = agents, deviations
    at = {
        (x, y): exact_values(
            claim_of(
                game,
                JointPolicy(
                    tuple(
                        new_i if (agent == i and x) else new_j if (agent == j and y) else table
                        for agent, table in enumerate(policy)
                    )
                ),
                np.zeros((game.num_agents, len(game.thresholds))),
            ),
            max_work=10**8,
        )
        for x, y in product((0, 1), repeat=2)
    }
    return (
        (at[1, 0][i] - at[0, 0][i])
        + (at[1, 1][j] - at[1, 0][j])
        + (at[0, 1][i] - at[1, 1][i])
        + (at[0, 0][j] - at[0, 1][j])
    )


def with_rewards(game, rewards):
    return replace(game, rewards=rewards)


def two_step_game(*, seed=0, shared_later=True):
    """A game in no class: at step 0 each reward has a term that only the other agent moves, and actions move the state.

    The rewards of step 1 are common, or private, by which the game stops being a potential game.
    """
    random = rng(seed)
    tenths = np.empty((2, 2, 2, 2, 3), dtype=int)
    tenths[:] = random.integers(-8, 9, size=(2, 2, 2, 3))
    tenths[0, 0] += random.integers(-8, 9, size=(2, 1, 3))
    tenths[1, 0] += random.integers(-8, 9, size=(2, 2, 1))
    if not shared_later:
        tenths[0, 1] += random.integers(1, 9, size=(2, 2, 3))
    move = random.integers(1, 10, size=(1, 2, 2, 3)) / 10
    return JointGame(
        transition=np.stack([move, 1 - move], axis=-1),
        rewards=tenths / 10,
        costs=[],
        thresholds=[],
        initial=[0.3, 0.7],
        horizon=2,
    )


# What is proven


@settings(deadline=None, max_examples=30)
@given(samples(**SMALL), st.data())
def test_potential_games_are_proven_and_no_four_cycle_exceeds_the_stated_residual(sample, data):
    game = sample.game
    check = check_potential(game, rng=rng())
    assert check.verdict is Verdict.PROVEN
    assert check.reason.startswith("C2:" if sample.kind == "exogenous" and "C1" not in check.reason else "C1:")
    if game.num_agents > 1:
        exact = game.exact()
        policy, other = data.draw(policies(game)).exact(), data.draw(policies(game)).exact()
        agents = data.draw(st.permutations(range(game.num_agents)))[:2]
        residual = four_cycle(exact, policy, [other[agent] for agent in agents], agents)
        assert abs(residual) <= Fraction(check.residual)


@settings(deadline=None, max_examples=20)
@given(samples(**SMALL, kinds=("exogenous",), rough=False))
def test_proofs_of_exact_games_are_exact(sample):
    check = check_potential(sample.game.exact(), rng=rng())
    assert (check.verdict, check.residual) == (Verdict.PROVEN, 0)


def test_exact_games_have_no_tolerance():
    game = congestion_game_exogenous(num_agents=2).exact()
    assert check_potential(game, rng=rng()).residual == 0
    rewards = as_given(game, "rewards").copy()
    rewards[0, 0, 0, 0, 0] += Fraction(1, 10**40)
    check = check_potential(with_rewards(game, rewards), rng=rng())
    assert check.verdict is Verdict.REFUTED
    assert check.witness.rounding == 0
    assert recheck(with_rewards(game, rewards), check.witness) == check.residual != 0


@settings(deadline=None, max_examples=25)
@given(samples(**SMALL, kinds=("cooperative",)), st.integers(0, 2**32 - 1))
def test_terms_that_nobody_can_influence_are_class_c4(sample, seed):
    game, random = sample.game, rng(seed)
    # A term f(s_h) − E f(s_{h+1}) that is paid along the way telescopes to what nobody can change, f(s_0).
    rewards = np.repeat(game.rewards, game.horizon, axis=1) if game.rewards.shape[1] == 1 else game.rewards.copy()
    dense = game.exact().transition
    for agent in range(1, game.num_agents):
        worth = random.integers(-8, 9, size=game.num_states) / 8
        for h in range(game.horizon):
            ahead = dense[0 if len(dense) == 1 else h] @ worth if h < game.horizon - 1 else 0
            rewards[agent, h] += worth.reshape(-1, *(1 for _ in game.num_actions)) - ahead
    check = check_potential(with_rewards(game, rewards), rng=rng())
    assert check.verdict is Verdict.PROVEN
    assert check.reason[:2] in ("C1", "C2", "C4")
    assert check.residual < 1e-10


def test_a_telescoping_term_is_class_c4_discounted_too():
    random = rng(1)
    transition = random.dirichlet(np.ones(3), size=(1, 3, 2, 2))
    common, worth = random.normal(size=(1, 3, 2, 2)), random.normal(size=3)
    term = worth[:, None, None] - 0.8 * (transition[0] @ worth)
    tables = {"transition": transition, "costs": [], "thresholds": [], "initial": np.ones(3) / 3, "discount": 0.8}
    game = JointGame(rewards=np.stack([common, common + term]), **tables)
    assert check_potential(game, rng=rng()).reason.startswith("C4")
    skewed = JointGame(rewards=np.stack([common, common + 1.01 * term]), **tables)
    assert check_potential(skewed, rng=rng()).verdict is Verdict.PROVEN
    wrong = JointGame(rewards=np.stack([common, common + term**2]), **tables)
    assert check_potential(wrong, rng=rng()).verdict is Verdict.REFUTED


def test_the_last_transition_moves_nothing():
    assert check_potential(congestion_game(num_agents=3, horizon=1), rng=rng()).reason.startswith("C2")
    game = congestion_game_exogenous(num_agents=3, horizon=2)
    moving = congestion_game(num_agents=3, horizon=2).transition
    timed = replace(game, transition=np.concatenate([game.transition, moving]))
    assert check_potential(timed, rng=rng()).reason.startswith("C2")
    timed = replace(game, transition=np.concatenate([moving, game.transition]))
    assert check_potential(timed, rng=rng()).verdict is Verdict.REFUTED


@pytest.mark.parametrize("stored", ["dense", "sparse", "sparse with zeros out of order"])
def test_exogenous_states_are_recognised_in_any_storage(stored):
    game = spectrum()
    matrix = sp.csr_array(game.transition.reshape(-1, 4))
    if stored == "dense":
        matrix = game.transition
    elif stored != "sparse":
        backwards = np.arange(matrix.nnz).reshape(-1, 4)[:, ::-1].ravel()
        matrix = sp.csr_array((matrix.data[backwards], matrix.indices[backwards], matrix.indptr), shape=matrix.shape)
    found = replace(game, transition=matrix if stored == "dense" else [matrix])
    assert prove_potential(found).reason.startswith("C2")
    moved = game.transition.copy()
    moved[0, 2, 1, 0, 2] = moved[0, 2, 1, 0, 2, ::-1]
    matrix = moved if stored == "dense" else [sp.csr_array(moved.reshape(-1, 4))]
    assert prove_potential(replace(game, transition=matrix)) is None


# What is refuted


def hand_made_witness():
    """Two agents start in safe; j plays A at first, i plays A (to unsafe) or B; then all play A, or j in unsafe D."""
    a, b, d = np.eye(4)[[0, 1, 3]]
    always_a = np.array([[a, a], [a, a]])
    i_plays_b_first, j_plays_d_in_unsafe = always_a.copy(), always_a.copy()
    i_plays_b_first[0] = b
    j_plays_d_in_unsafe[1, 1] = d
    policy = JointPolicy((always_a, always_a))
    return FourCycle((0, 1), policy, (i_plays_b_first, j_plays_d_in_unsafe), residual=-5.0, rounding=0.0)


def test_the_hand_made_witness_against_the_congestion_game():
    game = congestion_game(num_agents=2, initial=(1.0, 0.0), unsafe_penalty=0.0)
    witness = hand_made_witness()
    values = [tuple(game.at(corner).values) for corner in witness.corners]
    assert values == [(4, 4), (4, 3), (4, 3), (3, 8)]  # i, then j, then i, then j moves
    assert abs(recheck(game, witness)) == 5
    exact = recheck(game.exact(), witness)
    assert isinstance(exact, Fraction)
    assert exact == witness.residual
    assert recheck(congestion_game(num_agents=2, initial=(1.0, 0.0)), witness) == -5  # the penalty hits both alike


def test_the_congestion_game_of_the_paper_is_not_a_potential_game():
    game = congestion_game()
    check = check_potential(game, rng=rng())
    assert check.verdict is Verdict.REFUTED
    assert "not a Markov potential game" in str(check)
    assert abs(check.residual) > 1e3 * check.witness.rounding
    assert recheck(game, check.witness) == pytest.approx(check.residual, abs=check.witness.rounding)


@pytest.mark.parametrize("variant", [congestion_game_common_reward, congestion_game_exogenous, spectrum])
def test_its_variants_are_potential_games(variant):
    game = variant()
    assert check_potential(game, rng=rng()).verdict is Verdict.PROVEN
    assert loop_test(game, rng=rng(), trials=1).passed


@settings(deadline=None, max_examples=30)
@given(samples(**SMALL, kinds=("any",), scales=(1.0, 1e9, 1e-9)))
def test_a_witness_is_confirmed_in_exact_arithmetic(sample):
    game = sample.game
    check = check_potential(game, rng=rng())
    if check.verdict is Verdict.REFUTED:
        witness = check.witness
        exact = recheck(game.exact(), witness)
        assert exact != 0
        assert abs(exact - Fraction(witness.residual)) <= Fraction(witness.rounding)
        assert not loop_test(game, rng=rng(1), trials=2).passed
        assert prove_potential(game) is None
    elif check.verdict is Verdict.PROVEN or check.error_probability is not None:
        assert loop_test(game, rng=rng(1), trials=1).passed


def test_a_small_difference_is_found_by_the_modular_test_and_then_by_a_witness():
    game = two_step_game()
    rewards = game.rewards.copy()
    rewards[0, 1, 0, 0, 0] += 1e-7
    check = check_potential(with_rewards(game, rewards), rng=rng())
    assert check.verdict is Verdict.REFUTED
    assert recheck(with_rewards(game, rewards).exact(), check.witness) != 0


def test_a_discounted_game_is_refuted_in_floating_point():
    game = congestion_game(num_agents=3)
    tables = {name: getattr(game, name) for name in ("transition", "rewards", "costs", "thresholds", "initial")}
    check = check_potential(JointGame(**tables, discount=0.9), rng=rng())
    assert check.verdict is Verdict.REFUTED
    assert recheck(JointGame(**tables, discount=0.9), check.witness) == pytest.approx(
        check.residual, abs=2 * check.witness.rounding
    )


# What is tested


@pytest.mark.parametrize("seed", range(5))
def test_a_potential_game_of_no_class_is_tested_with_a_probability(seed):
    game = two_step_game(seed=seed)
    check = check_potential(game, rng=rng(), trials=3)
    assert check.verdict is Verdict.TESTED
    assert 0 < check.error_probability < 1e-15
    assert "probability at most" in check.reason
    assert check_potential(game, rng=rng(), trials=1).error_probability == pytest.approx(
        check.error_probability ** (1 / 3)
    )
    assert check_potential(two_step_game(seed=seed, shared_later=False), rng=rng()).verdict is Verdict.REFUTED


def noisy_game():
    """A game that was meant to have a potential, with more noise than reading forgives, less than floats can tell."""
    game = two_step_game()
    return with_rewards(game, game.rewards * (1 + 1e-15 * rng(3).normal(size=game.rewards.shape)))


def test_what_the_exact_test_refutes_is_never_called_tested():
    game = noisy_game()
    check = check_potential(game, rng=rng())
    assert check.verdict is Verdict.REFUTED
    assert "nothing speaks against" not in str(check)
    assert check.error_probability is None
    assert check.witness is not None
    assert check.witness.rounding == 0
    assert 0 < abs(check.residual) < 1e-13
    assert recheck(game.exact(), check.witness) == check.residual


def test_what_the_exact_test_refutes_needs_no_witness_in_large_games(monkeypatch):
    monkeypatch.setattr("cmpg.games.potential.check.MAX_EXACT_ENTRIES", 0)
    check = check_potential(noisy_game(), rng=rng())
    assert check.verdict is Verdict.REFUTED
    assert check.witness is None
    assert "do not add up to 0" in check.reason


def test_a_discounted_potential_game_of_no_class_claims_no_probability():
    random = rng(5)
    # State 0 is left at once and for good, to where both decide; only there a reward has a term that the other moves.
    move = np.zeros((1, 3, 2, 2, 3))
    move[0, 0, ..., 1:] = random.dirichlet(np.ones(2), size=(2, 2))
    move[0, 1, ..., 1] = move[0, 2, ..., 2] = 1.0
    rewards = np.stack([random.normal(size=(1, 3, 2, 2))] * 2)
    rewards[0, 0, 0] += random.normal(size=(1, 2))
    rewards[1, 0, 0] += random.normal(size=(2, 1))
    tables = {"costs": [], "thresholds": [], "initial": [1.0, 0.0, 0.0], "discount": 0.5}
    check = check_potential(JointGame(transition=move, rewards=rewards, **tables), rng=rng())
    assert (check.verdict, check.error_probability) == (Verdict.TESTED, None)
    move[0, 1, 0, 0] = (0.5, 0.5, 0.0)  # a way back: what i plays decides how often the other's term is paid
    check = check_potential(JointGame(transition=move, rewards=rewards, **tables), rng=rng())
    assert check.verdict is Verdict.REFUTED


# Other forms


class FormWithoutTables:
    """A game that has only the contract: it hides a joint game."""

    def __init__(self, game):
        self._game = game

    def __getattr__(self, name):
        if name in ("at", "num_agents", "policy_shapes", "reward_ranges", "horizon", "discount", "thresholds", "names"):
            return getattr(self._game, name)
        raise AttributeError(name)

    def potential_proof(self):
        return None


def test_a_form_without_tables_is_refuted_by_four_cycles_or_tested_in_floating_point():
    hidden = FormWithoutTables(congestion_game(num_agents=4))
    check = check_potential(hidden, rng=rng())
    assert check.verdict is Verdict.REFUTED
    assert recheck(hidden, check.witness) == pytest.approx(check.residual, abs=check.witness.rounding)
    check = check_potential(FormWithoutTables(congestion_game_exogenous(num_agents=3)), rng=rng(), cycles=4)
    assert (check.verdict, check.error_probability) == (Verdict.TESTED, None)
    assert "4 random 4-cycles" in check.reason


def test_a_form_may_declare_its_class_and_a_single_agent_needs_none():
    proof = PotentialProof(PotentialKind.DECLARED, "C3: own states, Rosenthal delays.")
    declared = SimpleNamespace(num_agents=2, names=Names(), potential_proof=lambda: proof)
    check = check_potential(declared, rng=rng())
    assert (check.verdict, check.reason) == (Verdict.PROVEN, "C3: own states, Rosenthal delays.")
    assert (
        check_potential(SimpleNamespace(num_agents=1, names=Names(), potential_proof=lambda: None), rng=rng()).verdict
        is Verdict.PROVEN
    )


def test_the_same_generator_gives_the_same_answer():
    game = congestion_game(num_agents=3)
    one, other = (check_potential(game, rng=rng(7)) for _ in range(2))
    assert one.residual == other.residual
    assert one.witness.policy.fingerprint() == other.witness.policy.fingerprint()


@pytest.mark.parametrize("options", [{"trials": 0}, {"cycles": 0}])
def test_at_least_one_trial_is_required(options):
    with pytest.raises(GameError, match="must be at least 1"):
        check_potential(spectrum(), rng=rng(), **options)


def test_a_proof_prints_what_it_proves_of_the_tables_as_stored():
    rough = np.random.default_rng(2).normal(size=(2, 2))
    game = JointGame.from_matrices(rough, rough + np.array([[0.1], [0.7]]))
    check = check_potential(game, rng=rng())
    assert check.verdict is Verdict.PROVEN
    assert f"no 4-cycle adds up to more than {check.residual:.2g}." in str(check) or check.residual == 0
    moved = np.array([[0.1, 0.7]])
    proven = check_potential(JointGame.from_matrices(rough, rough + moved.T, cost=None), rng=rng())
    assert proven.residual > 0
    assert "no 4-cycle adds up to more than" in str(proven)


def test_a_large_reward_elsewhere_does_not_hide_a_cycle():
    """In state 1 the rewards are 1e15; in state 0 two agents play matching pennies."""
    pennies = np.array([[1.0, -1.0], [-1.0, 1.0]])
    rewards = np.stack([np.stack([pennies, np.full((2, 2), 1e15)]), np.stack([-pennies, np.full((2, 2), 1e15)])])
    game = JointGame(
        transition=np.broadcast_to(np.eye(2)[None, :, None, None], (1, 2, 2, 2, 2)).copy(),
        rewards=rewards[:, None],
        costs=[],
        thresholds=[],
        initial=[1.0, 0.0],
        horizon=1,
    )
    assert check_potential(game, rng=rng()).verdict is Verdict.REFUTED
