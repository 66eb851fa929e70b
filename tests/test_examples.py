"""Every example runs, on fewer runs than it does by itself, and leaves a picture."""

import runpy
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

EXAMPLES = Path(__file__).parents[1] / "examples"
FEWER = {
    "congestion_actions": {"runs": 1},
    "congestion_four_cycle": {},
    "congestion_runs": {"runs": 2},
    "congestion_transitions": {"num_agents": 4},
    "dual_function": {"points": 11},
    "grid_world_policies": {"restarts": 2},
    "grid_world_runs": {"runs": 2},
    "sample_bounds": {"accuracies": (0.4, 0.3)},
    "theorem_1": {"runs": 1},
}
SAYS = {
    "congestion_actions": "CERTIFIED",
    "congestion_four_cycle": "REFUTED",
    "congestion_runs": "CERTIFIED",
    "congestion_transitions": "safe leads to unsafe: k* from 3 to 4",
    "dual_function": "counter-example: strong duality fails",
    "grid_world_runs": "CERTIFIED",
    "sample_bounds": "ε = 0.4",
    "theorem_1": "grid world, joint state: printed 240, corrected 4800",
}


def test_every_figure_example_is_tested():
    drawing = {path.stem for path in EXAMPLES.glob("*.py") if "def draw(" in path.read_text("utf-8")}
    assert drawing == set(FEWER)


@pytest.mark.parametrize("name", sorted(FEWER))
def test_an_example_draws_its_figure(name, tmp_path, capsys):
    draw = runpy.run_path(str(EXAMPLES / f"{name}.py"))["draw"]
    target = tmp_path / f"{name}.svg"
    assert draw(target, **FEWER[name]) == target
    assert target.read_text("utf-8").rstrip().endswith("</svg>")
    assert SAYS.get(name, "") in capsys.readouterr().out


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_says_what_it_shows(path):
    assert path.read_text("utf-8").startswith('"""')
