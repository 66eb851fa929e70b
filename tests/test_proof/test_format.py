"""Proof files say what the claim says, exactly, and a file that says too much, too little or nonsense is refused."""

import io
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from cmpg.games import JointGame
from cmpg.proof.claim import Claim, ClaimError, arrays_of
from cmpg.proof.format import read, write
from cmpg.proof.rounding import Csr
from cmpg.scenarios import counting_congestion_game, grid_world, grid_world_local, spectrum
from oracles.random_claims import draw_claim
from oracles.sweeping import build
from test_proof.test_kernel import claimed

EXAMPLE = re.findall(
    r"```text\n(.*?)```", (Path(__file__).parents[2] / "docs" / "proof-format.md").read_text("utf-8"), re.DOTALL
)[0]


def text_of(claim, epsilon=1e-6, **options):
    out = io.StringIO()
    write(out, claim, epsilon, **options)
    return out.getvalue()


def everything(claim: Claim):
    """All numbers of a claim by step, as rationals; rows of probabilities divided by their sums."""

    def exact(table):
        return np.vectorize(Fraction, otypes=[object])(table) if table.size else table.astype(object)

    def divided(rows):
        rows = exact(rows)
        return rows / rows.sum(axis=-1, keepdims=True)

    def dense(matrix, *, rows=True):
        if isinstance(matrix, Csr):
            table = np.full((len(matrix.indptr) - 1, matrix.columns), Fraction(0), dtype=object)
            table[np.repeat(np.arange(len(table)), np.diff(matrix.indptr)), matrix.indices] = exact(matrix.data)
            matrix = table
        return divided(matrix) if rows else exact(matrix)

    def stepped(table, axis):
        return np.repeat(table, claim.steps, axis=axis) if table.shape[axis] == 1 else table

    tables = claim.tables
    found = [exact(claim.thresholds), exact(claim.multipliers), *map(divided, claim.policy)]
    holders = getattr(tables, "agents", None) or (tables,)
    for holder in holders:
        found += [
            divided(holder.initial),
            *(dense(matrix) for matrix in holder.transition * (claim.steps // len(holder.transition))),
        ]
        for name, axis in (("rewards", 1), ("costs", 1), ("reward", 0), ("private_rewards", 1), ("class_rewards", 0)):
            table = getattr(holder, name, None)
            if name == "rewards" and hasattr(holder, "class_rewards"):
                table, axis = np.concatenate([0 * table[..., :1], table[..., 1:]], axis=-1), 0
            if table is not None and table.size:
                found.append(stepped(exact(table), axis))
        for matrix in getattr(holder, "uses", ()) and holder.uses * (claim.steps // len(holder.uses)):
            found.append(dense(matrix, rows=False))
    if holders is not (tables,) and hasattr(tables, "delay"):
        found += [stepped(exact(tables.delay), 0), stepped(exact(tables.load_costs), 1)]
    return found


def assert_same(first: Claim, second: Claim):
    one, other = everything(first), everything(second)
    pairs = zip(
        [x for x in one if x.size and any(x.ravel())], [x for x in other if x.size and any(x.ravel())], strict=True
    )
    for left, right in pairs:
        assert left.shape == right.shape
        assert (left == right).all()
    assert np.array_equal(first.binds, second.binds)


@pytest.mark.parametrize("block", range(6))
def test_a_random_claim_is_read_back_exactly_as_it_was_written(block):
    written = 0
    for seed in range(40 * block, 40 * block + 40):
        drawn = draw_claim(seed)
        if drawn.large or "discount" in drawn.game or np.isinf(np.asarray(drawn.multipliers, dtype=float)).any():
            continue
        claim = claimed(build(drawn.game), drawn.policy, drawn.multipliers, drawn.binds)
        found = read(io.StringIO(text_of(claim, Fraction(1, 3))))
        assert found.epsilon == Fraction(1, 3)
        assert_same(claim, found.claim)
        written += 1
    assert written > 5


@pytest.mark.parametrize(
    "game", [spectrum(), grid_world_local(), counting_congestion_game()], ids=lambda g: type(g).__name__
)
def test_scenarios_are_read_back(game):
    shape = (game.num_agents, len(game.thresholds))
    claim = claimed(game, game.uniform_policy(), np.full(shape, 0.1))
    found = read(io.StringIO(text_of(claim, 0.25, precision=200)))
    assert (found.epsilon, found.precision) == (Fraction(1, 4), 200)
    assert_same(claim, found.claim)


def test_rows_that_do_not_sum_to_one_are_divided_and_counted():
    game = spectrum()
    policy = [np.full(shape, 1 / 3) if shape[2] == 3 else np.full(shape, 0.5) for shape in game.policy_shapes]
    claim = claimed(game, policy, np.zeros((3, 1)))
    out = io.StringIO()
    divided = write(out, claim, 0)
    assert f"# divided {divided} rows of probabilities by their sums" in out.getvalue()
    for table in arrays_of(read(io.StringIO(out.getvalue())).claim):
        assert table.dtype == object or table.dtype.kind in "ib"


def test_an_infinite_multiplier_is_written_as_a_large_number():
    game = grid_world()
    claim = claimed(game, game.uniform_policy(), [[np.inf], [0.5]])
    assert read(io.StringIO(text_of(claim))).claim.multipliers[0, 0] == 10**80
    assert read(io.StringIO(text_of(claim, large=Fraction(7)))).claim.multipliers.tolist() == [[7], [Fraction(1, 2)]]


def discounted(discount):
    return JointGame(
        transition=np.ones((1, 1, 2, 1)), rewards=[[[[0.0, 1.0]]]], costs=[[[[0.0, 2.0]]]], thresholds=[3.0],
        initial=[1.0], discount=discount,
    )  # fmt: skip


@pytest.mark.parametrize("discount", [0.0, 0.5, 0.9])
def test_a_discounted_claim_is_read_back_and_looks_as_far_ahead_as_it_must(discount):
    game = discounted(discount)
    claim = claimed(game, game.uniform_policy(), [[0.25]])
    found = read(io.StringIO(text_of(claim, 1e-6)))
    assert (found.claim.horizon, found.claim.discount, found.precision) == (None, Fraction(discount), 256)
    assert_same(claim, found.claim)
    assert Fraction(discount) ** found.ahead * 4 / (1 - Fraction(discount)) < Fraction(1, 2**40 * 10**6)


def test_what_the_format_has_not_is_refused():
    game = discounted(1 - 2.0**-53)
    with pytest.raises(ClaimError, match="so close to 1 that a proof would look"):
        write(io.StringIO(), claimed(game, game.uniform_policy(), [[0.25]]), 1e-6)
    counting = replace(counting_congestion_game(), discount=0.5, horizon=None)
    with pytest.raises(ClaimError, match="discounted games in joint form only"):
        write(io.StringIO(), claimed(counting, counting.uniform_policy(), np.zeros((counting.num_agents, 1))), 1e-6)
    text = text_of(claimed(discounted(0.5), discounted(0.5).uniform_policy(), [[0.25]]))
    for line in ("discount 1 5", "discount 1/2", "discount 1/2 -1", "discount -1/2 5", "duration 5"):
        with pytest.raises(ClaimError):
            read(io.StringIO(re.sub("discount .*", line, text)))


def test_the_example_of_the_page_is_read():
    found = read(io.StringIO(EXAMPLE))
    assert (found.epsilon, found.claim.thresholds.tolist()) == (0, [Fraction(1, 2)])
    assert "\n".join(sorted(text_of(found.claim, 0).replace("transition 0 0 0 0", "transition * 0 * *").splitlines()))


@pytest.mark.parametrize(
    ("line", "instead", "problem"),
    [
        ("cmpg-proof 1", "cmpg-proof 2", "line 1: `cmpg-proof 1` is required"),
        ("form joint", "form local", "line 4: `states` and its numbers are required"),
        ("claim nash", "claim true", r"line 3: `claim nash \| rota .*` is required"),
        ("horizon 1", "horizon 0", "sizes of at least 1 are required"),
        ("horizon 1", "horizon 1e3", "'1e3' is no whole number"),
        ("actions 2 2", "actions 2 2000000000", "'2000000000' is no whole number of at most 9 digits"),
        ("epsilon 0", "", "epsilon .* is missing"),
        ("epsilon 0", "epsilon -1/3", "epsilon is -1/3; at least 0 is required"),
        ("epsilon 0", "epsilon 0.1", "'0.1' is no rational p or p/q"),
        ("epsilon 0", "epsilon 1/0", "'1/0' is no rational p or p/q"),
        ("epsilon 0", "epsilon 0\nepsilon 0", "epsilon .* is given twice"),
        ("threshold 0 1/2", "threshold 1 1/2", "threshold .* is out of range"),
        ("threshold 0 1/2", "threshold * 1/2", r"'\*' is no whole number"),
        ("initial 0 1", "initial 0 1/2", "initial has a row that is no probability distribution"),
        ("transition * 0 * * 0 1", "transition * 0 0 * 0 1", "transition 0 0 1 0 is missing"),
        ("transition * 0 * * 0 1", "transition * 0 * * 0 1/2 0 1/2", "a next state is given twice"),
        ("transition * 0 * * 0 1", "transition * 0 * * 1 1", "an entry beyond its 1 columns"),
        ("transition * 0 * * 0 1", "transition * 0 * * 0", "pairs of a next state and its probability"),
        ("reward 0 * 0 0 1 2", "reward 0 * 0 * 1 2", "is given twice"),
        ("reward 0 * 0 0 1 2", "reward 0 * 0 0", "reward has 5 indices and something after them"),
        ("reward 0 * 0 0 1 2", "reward 2 * 0 0 1 2", "out of range"),
        ("play 0 0 0", "play 0 0 2", "has action 2; there are 2"),
        ("play 0 0 0", "play 0 0 -", "the policy of agent 0 at 0 0 is missing"),
        ("play 0 0 0", "play 0 0 0\npolicy 0 0 0 1 0", "is given twice"),
        ("play 0 0 0", "policy 0 0 0 1/2 1/3", "no probability distribution"),
        ("play 0 0 0", "policy 0 0 0 1", "has 1 numbers; 2 are required"),
        ("multiplier 0 0 0", "multiplier 0 0 -1", "negative"),
        ("multiplier 0 0 0", "multiplier 0 0 1\nbinds 0 1", "does not bind that agent"),
        ("multiplier 0 0 0", "price 0 0 0", "'price' is no word of this form"),
        ("end", "", "the file ends without `end`"),
        ("end", "end\nepsilon 0", "nothing but comments may follow"),
    ],
)  # fmt: skip
def test_a_file_that_says_something_else_is_refused(line, instead, problem):
    assert f"\n{line}\n" in f"\n{EXAMPLE}"
    changed = f"\n{EXAMPLE}".replace(f"\n{line}\n", f"\n{instead}\n", 1).lstrip("\n")
    with pytest.raises(ClaimError, match=problem):
        read(io.StringIO(changed))


def changed(old: str, new: str) -> io.StringIO:
    assert old in EXAMPLE
    return io.StringIO(EXAMPLE.replace(old, new, 1))


@pytest.mark.parametrize(
    ("new", "problem"),
    [
        ("states 1 2", "line 5: `states` and one number are required; there are 2"),
        ("states 999999999", "initial would have 999,999,999 entries"),
        ("states \u0661", "is no whole number"),
        ("states 1_0", "is no whole number"),
        ("states\t1", "`states` and its numbers are required"),
        ("states 1\r", "is no whole number"),
    ],
)
def test_sizes_that_are_none_are_refused_before_anything_is_made(new, problem):
    with pytest.raises(ClaimError, match=re.escape(problem)):
        read(changed("states 1", new))


@pytest.mark.parametrize(
    "number", ["1e5", "nan", "1_0", "+1", "1/-2", "1/0", "1/00", "\u0661", "0x1", "1.5", "7" * 4301]
)
def test_numbers_that_are_none_are_refused(number):
    with pytest.raises(ClaimError, match=r"is no rational p or p/q|more than 4300 digits"):
        read(changed("epsilon 0", f"epsilon {number}"))


def test_a_fact_behind_a_carriage_return_is_part_of_the_comment(tmp_path):
    path = tmp_path / "hidden.proof"
    path.write_bytes(EXAMPLE.replace("epsilon 0", "# nothing\repsilon 5\nepsilon 0").encode())
    assert read(path).epsilon == 0


def test_many_actions_in_a_counting_game_are_no_reason_to_wait():
    head = "cmpg-proof 1\nform counting\nclaim nash\nagents 40\nactions 40\nstates 1\nhorizon 1\nclasses every"
    with pytest.raises(ClaimError, match="transition would have 53,753,604,366,668,088,230,810 entries"):
        read(io.StringIO(f"{head}\nconstraints 0\ninitial 0 1\nend\n"))


def test_sums_beyond_every_float_are_refused_with_a_sentence():
    huge = "1" + "0" * 400
    with pytest.raises(ClaimError, match="sums to inf"):
        read(changed("initial 0 1", f"initial 0 {huge}"))
