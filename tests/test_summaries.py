"""One structure for everything that is printed: the same words and numbers as text, as HTML and as Markdown."""

import dataclasses
import importlib
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cmpg
from cmpg import learning
from cmpg.duality.analysis import analyse_duality
from cmpg.summaries import (
    Summary,
    Table,
    at_least,
    at_most,
    fixed,
    html,
    line,
    plain,
    significant,
    summary_text,
    table_html,
    table_markdown,
    table_text,
)

EVIL = "<script>alert(1)</script>\x1b]0;gotcha\x07\x9b31m\u202egnp.exe\n=1+1|`x`"


class Shown:
    def __init__(self, summary):
        self._face = summary

    def summary(self):
        return self._face


class Words(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.words = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.words.append(data)


TABLE = Table(("agent", "value"), (("Ada", fixed(1.5)), ("Bo", fixed(-2))), note="two of them")


def test_columns_stand_below_each_other():
    assert table_text(TABLE).splitlines() == ["agent      value", "Ada     1.500000", "Bo     -2.000000", "two of them"]


def test_html_has_the_same_words_and_every_digit():
    table = Table(("agent", "value"), (("Ada", significant(1 / 3, 3)),))
    found = Words(table_html(table))
    assert found.words == ["agent", "value", "Ada", "0.333"]
    assert f'value="{1 / 3!r}"' in table_html(table)


def test_text_and_html_tell_the_same():
    summary = Summary("DONE", "it is.", ("a line\nand another", TABLE))
    told = " ".join(Words(html(Shown(summary))).words).replace("−", "-").split()
    assert " ".join(told) == " ".join(summary_text(summary).replace("DONE: ", "DONE : ").split())


@given(st.text())
def test_nothing_steers_a_terminal(text):
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]", plain(text))


def test_names_cannot_leave_their_place():
    summary = Summary(EVIL, EVIL, (EVIL, Table((EVIL, "value"), ((EVIL, fixed(1)),), note=EVIL)))
    for told in (summary_text(summary), line(Shown(summary))):
        assert "\x1b" not in told
        assert "\x9b" not in told
        assert "\u202e" not in told
    assert "script" not in Words(html(Shown(summary))).tags
    assert len(line(Shown(summary)).splitlines()) == 1
    rows = table_markdown(Table(("name",), ((EVIL,),)))
    assert len(rows) == 3
    assert not re.search(r"(?<!\\)[<`]", rows[2])
    assert len(re.findall(r"(?<!\\)\|", rows[2])) == 2


def test_a_line_is_one_line_of_bounded_length():
    assert len(line(Shown(Summary("WORD", "x" * 10_000)))) <= 160
    assert line(Shown(Summary("3 agents"))) == "<Shown 3 agents>"


@pytest.mark.parametrize(
    ("number", "text"),
    [(1.25, "1.250000"), (-1e9, "-1e+09"), (float("nan"), ""), (float("inf"), "inf"), (12_345_678.0, "1.23457e+07")],
)
def test_numbers_that_are_large_or_unknown(number, text):
    assert fixed(number).text == text


@pytest.fixture(scope="module")
def objects():
    """One of each kind that has a summary."""
    game = cmpg.scenarios.charging()
    rng = np.random.default_rng(0)
    small = cmpg.scenarios.counter_example()
    result = cmpg.solve(small)
    learned = learning.learn_shared(learning.GameSimulator(cmpg.scenarios.spectrum(), rng=rng), epsilon=0.9, delta=0.1)
    return {
        "joint game": small,
        "local game": game,
        "counting game": cmpg.scenarios.counting_congestion_game(num_agents=30),
        "result": result,
        "infeasible result": cmpg.solve(cmpg.scenarios.counter_example(threshold=-1.0)),
        "policy": result.policy,
        "large policy": game.uniform_policy(),
        "certificate": cmpg.certify(small, result.policy, result.multipliers),
        "large certificate": cmpg.certify(game, game.uniform_policy()),
        "refutation": cmpg.check_potential(cmpg.scenarios.congestion_game(), rng=rng),
        "proof": cmpg.check_potential(small, rng=rng),
        "duality": analyse_duality(small),
        "learning": learned,
    }


KINDS = [
    *("joint game", "local game", "counting game", "policy", "large policy", "certificate", "large certificate"),
    *("refutation", "proof", "duality", "learning", "result", "infeasible result"),
]


@pytest.mark.parametrize("kind", KINDS)
class TestObjects:
    def test_repr_is_one_short_line(self, kind, objects):
        shown = repr(objects[kind])
        assert len(shown.splitlines()) == 1
        assert len(shown) <= 160
        assert type(objects[kind]).__name__ in shown

    def test_print_begins_with_what_matters_and_is_short(self, kind, objects):
        lines = str(objects[kind]).splitlines()
        assert objects[kind].summary().headline == lines[0]
        assert len(lines) <= 35

    def test_a_notebook_shows_the_same_words(self, kind, objects):
        told = " ".join(Words(objects[kind]._repr_html_()).words).replace("−", "-").replace("\xa0×\xa010", "e")
        powers = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
        shown = str(objects[kind]).replace("…", "").replace("−", "-")
        for word in re.findall(r"[A-Za-z]{3,}", shown):
            assert word in told
        assert len(re.findall(r"\d+\.\d+", shown)) == len(re.findall(r"\d+\.\d+", told.translate(powers)))


def test_agents_are_counted_from_zero_and_named_as_in_the_game(objects):
    assert "agent 0" in str(objects["joint game"])
    assert "agent 0" in str(objects["certificate"])
    assert "car 5 at P-06" in str(objects["local game"])
    assert "both play 2" in str(objects["certificate"])
    assert "both play 2" in str(objects["duality"])
    assert "agent 2" not in str(objects["joint game"])


def test_a_certificate_shows_values_prices_and_costs(objects):
    proof = objects["certificate"]
    for number in (*proof.values, *proof.multipliers.ravel(), *proof.costs, *proof.thresholds):
        assert f'value="{float(number)!r}"' in proof._repr_html_()


ROOMS = ("comparison", "duality", "equilibrium", "games", "interop", "learning", "paper")
LARGE = ("Array", "JointPolicy", "CMDP", "Game", "Position")


def public_dataclasses():
    for room in ("cmpg", *(f"cmpg.{name}" for name in ROOMS)):
        door = importlib.import_module(room)
        for name in door.__all__:
            kind = getattr(door, name)
            if dataclasses.is_dataclass(kind) and any(
                word in str(each.type) for each in dataclasses.fields(kind) for word in LARGE
            ):
                yield pytest.param(kind, id=f"{room}.{name}")


@pytest.mark.parametrize("kind", [*public_dataclasses()])
def test_a_public_class_that_holds_arrays_or_games_is_one_line(kind):
    # What `dataclass` writes by itself is wrapped against recursion, and prints every array.
    assert not hasattr(kind.__repr__, "__wrapped__")


@pytest.mark.parametrize("scenario", ["counter_example", "charging", "counting_congestion_game"])
def test_positions_cmdps_and_responses_are_one_line(scenario):
    game = getattr(cmpg.scenarios, scenario)()
    start = cmpg.feasible_start(game)
    position = game.at(start.policy)
    cmdp = position.induced_cmdp(0)
    for thing in (position, cmdp, cmpg.Exact()(cmdp), start, game.names):
        assert len(repr(thing).splitlines()) == 1
        assert len(repr(thing)) <= 160
        assert repr(thing).startswith(f"{type(thing).__name__}(")


def test_bounds_are_rounded_so_that_no_more_is_said_than_is_proved() -> None:
    """Each of two agents gains exactly one third by deviating."""
    rng = np.random.default_rng(1)
    for number in [1 / 3, 2 / 3, *(rng.normal(size=200) * 10.0 ** rng.integers(-200, 200, size=200)).tolist()]:
        for digits in (2, 3, 9):
            assert float(at_least(number, digits)) <= number <= float(at_most(number, digits))
    game = cmpg.JointGame(
        transition=np.ones((1, 1, 2, 2, 1)),
        rewards=np.broadcast_to(np.array([1 / 3, 0.0])[:, None], (2, 1, 1, 2, 2)),
        costs=np.zeros((0, 1, 1, 2, 2)),
        thresholds=[],
        initial=[1],
        horizon=1,
    )
    second = cmpg.JointPolicy((np.array([[[0.0, 1.0]]]),) * 2)
    found = cmpg.certify(game, second)
    assert found.gains[0] >= 1 / 3
    assert "no agent gains more than 0.334 by deviating" in str(found)
    assert "0.34" in str(found)  # in the table
