"""Proof files of devices and of infeasible games are read back exactly, checked in rationals, and refused if forged."""

import io
import re
from fractions import Fraction

import numpy as np
import pytest

import cmpg
from cmpg.equilibrium.recommendations.certificate import recommendation_claim
from cmpg.games.claims import infeasibility_claim
from cmpg.proof.claim import ClaimError
from cmpg.proof.format import check_file, read, write
from cmpg.proof.infeasible import InfeasibilityClaim, exact_bounds
from cmpg.proof.recommendations import judge_recommendation_exactly
from cmpg.scenarios import counter_example, counting_congestion_game, grid_world_local
from command_line import cmpg as run
from oracles import deviating

CONCEPTS = [cmpg.Concept.ROTA, cmpg.Concept.CORRELATED, cmpg.Concept.COARSE]


def drawn(seed):
    game, *_ = deviating.draw_potential_game(seed)
    names = ("transition", "rewards", "costs", "thresholds", "initial", "horizon")
    return cmpg.JointGame(**{name: game[name] for name in names})


def text_of(found, epsilon=1e-6):
    out = io.StringIO()
    claim = recommendation_claim(
        found.game, found.device, found.multipliers, coarse=found.concept is cmpg.Concept.COARSE
    )
    write(out, claim, epsilon)
    return out.getvalue()


@pytest.mark.parametrize("concept", CONCEPTS)
@pytest.mark.parametrize("seed", range(6))
def test_a_file_of_a_device_says_what_the_device_is(concept, seed):
    found = cmpg.recommend(drawn(seed), concept)
    text = text_of(found)
    assert f"claim {concept.word}\n" in text
    proof = read(io.StringIO(text))
    judged, given = (
        judge_recommendation_exactly(proof.claim),
        cmpg.certify(found.game, found.device, found.multipliers, concept=concept, exact=True),
    )
    np.testing.assert_array_equal(judged.gains, given.gains)  # to the last bit: the same rationals
    np.testing.assert_array_equal(judged.values, given.values)
    np.testing.assert_array_equal(judged.costs, given.costs)
    assert check_file(proof).proved is given.proves(1e-6)
    out = io.StringIO()
    write(out, proof.claim, proof.epsilon)
    again = read(io.StringIO(out.getvalue()))
    np.testing.assert_array_equal(judge_recommendation_exactly(again.claim).gains, judged.gains)


def counting():
    """A counting game whose transition no action moves: it has a potential."""
    game = counting_congestion_game(num_agents=3)
    return game.with_transition(np.full(game.transition.shape, 0.5))


@pytest.mark.parametrize("game", [grid_world_local(), counting()])
def test_rotas_of_other_forms_have_files(game):
    found = cmpg.recommend(game)
    assert check_file(read(io.StringIO(text_of(found)))).proved is found.certified is True


@pytest.mark.parametrize(
    ("concept", "line", "instead", "problem"),
    [
        (CONCEPTS[0], r"weight 0 .*", "weight 0 1", "no probability distribution"),
        (CONCEPTS[0], r"weight 0 .*", "", "weights of fewer"),
        (CONCEPTS[0], r"modes .*", "modes 999999999", "weights of fewer"),
        (CONCEPTS[0], r"modes .*\n", "", "`modes` and its numbers are required"),
        (CONCEPTS[0], r"play 1 0 0 .*", "", "the policy of agent 0 at 0 0 is missing"),
        (CONCEPTS[0], r"play 1 0 0 .*", "recommend 0 0 0 0 1", "no word of this form"),
        (CONCEPTS[1], r"recommend 0 0 0 0 .*", "", "no probability distribution"),
        (CONCEPTS[1], r"recommend 0 0 0 0 (.*)", r"recommend 0 0 0 2 \1", "out of range"),
        (CONCEPTS[1], r"claim correlated", "claim rota", "`modes` and its numbers are required"),
        (CONCEPTS[1], r"recommend 0 0 0 0 (.*)", r"play 0 0 0", "no word of this form"),
    ],
)
def test_a_file_of_a_device_that_says_something_else_is_refused(concept, line, instead, problem):
    changed, times = re.subn(line, instead, text_of(cmpg.recommend(counter_example(), concept)), count=1)
    assert times == 1
    with pytest.raises(ClaimError, match=problem):
        read(io.StringIO(changed))


@pytest.mark.parametrize("concept", CONCEPTS)
def test_a_forged_file_is_not_proved(concept):
    text = text_of(cmpg.recommend(counter_example(), concept))
    assert check_file(read(io.StringIO(text))).proved
    for line, instead in (
        (r"threshold 0 1/2", "threshold 0 1/4"),
        (r"multiplier 0 0 .*", "multiplier 0 0 9"),
        (r"reward 0 (\S+) 0 1 0 2", r"reward 0 \1 0 1 0 5"),
    ):
        changed, times = re.subn(line, instead, text, count=1)
        assert times == 1
        assert not check_file(read(io.StringIO(changed))).proved


def test_an_infeasibility_file_is_read_and_checked():
    for game, multipliers in ((counter_example(threshold=-0.5), [1.0]), (counting_congestion_game(), [1.0])):
        claim = infeasibility_claim(game, multipliers)
        out = io.StringIO()
        write(out, claim)
        proof = read(io.StringIO(out.getvalue()))
        assert isinstance(proof.claim, InfeasibilityClaim)
        assert exact_bounds(proof.claim) == exact_bounds(claim)
        assert check_file(proof).proved is (exact_bounds(claim)[0] > exact_bounds(claim)[1])


def test_prices_of_a_local_game_are_read_back():
    game = grid_world_local()
    rng = np.random.default_rng(3)
    tables = game.claim_tables()
    prices = rng.normal(size=(game.horizon, game.num_resources))
    claim = InfeasibilityClaim(tables, game.horizon, game.thresholds - 1e6, np.ones(len(game.thresholds)), prices)
    out = io.StringIO()
    write(out, claim)
    proof = read(io.StringIO(out.getvalue()))
    assert (proof.claim.prices == np.vectorize(Fraction)(prices)).all()
    assert exact_bounds(proof.claim) == exact_bounds(claim)
    assert check_file(proof).proved
    for line, instead in (
        ("price 0 0 .*", "price 0 999 1"),
        ("threshold 0 .*", ""),
        ("claim infeasible", "claim nash"),
    ):
        with pytest.raises(ClaimError):
            read(io.StringIO(re.sub(line, instead, out.getvalue(), count=1)))


def test_the_command_exports_and_certifies_files_of_devices(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for concept in CONCEPTS:
        name = concept.word
        assert run("solve", "counter-example", "--concept", name, "--out", name).code == 0
        done = run("export", name, "--what", "proof", "--out", f"{name}.proof")
        assert f"cmpg certify {name}.proof" in done.out
        judged = run("certify", f"{name}.proof")
        assert judged.code == 0
        assert "PROVED" in judged.out
    assert run("solve", "counter-example", "--threshold", "-0.5", "--out", "none").code == 1
    assert run("export", "none", "--what", "proof", "--out", "none.proof").code == 0
    judged = run("certify", "none.proof", "--json")
    assert (judged.code, '"proved": true' in judged.out) == (0, True)
    assert run("solve", "counter-example", "--out", "nash").code == 0
    assert run("export", "nash", "--what", "proof", "--out", "nash.proof").code == 0
    assert run("certify", "nash.proof").code == 0
    for words in (("certify", "counter-example"), ("certify", "no.proof"), ("solve", "nash.proof")):
        assert run(*words).code == 2
    (tmp_path / "bad.proof").write_text("cmpg-proof 1\nform joint\n")
    assert "line 2" in run("certify", "bad.proof").err
