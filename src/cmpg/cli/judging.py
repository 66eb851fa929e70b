"""`cmpg judge`: policies from anywhere before one judge.

Exit codes: 0 if every policy is proved to be Nash within epsilon, 1 if not, 2 for bad input.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cmpg.cli.interrupts import on_interrupt, written
from cmpg.cli.options import DEFAULT_EPSILON, AllowRounding, Epsilon, Exact, Json, Seed
from cmpg.cli.output import ProgressLine, show, show_json
from cmpg.cli.targets import GameArgument, chosen, finite, policy_of

if TYPE_CHECKING:
    from cmpg.games.contract import Game
    from cmpg.judging.side_by_side import SideBySide
    from cmpg.policy import JointPolicy

BESIDE = ("ours", "independent", "selfish", "planner")
"""Policies that are computed to stand beside those that are given."""

FORMS = (".csv", ".tex", ".html", ".md")


def judge(
    target: GameArgument,
    policies: Annotated[
        list[Path],
        typer.Argument(
            metavar="POLICY...",
            help="Policy files (.npz, .json), rows as `cmpg export --what policy` writes them (.csv), or a .json of "
            "probabilities by agent.",
        ),
    ],
    beside: Annotated[
        str,
        typer.Option(
            metavar="<names>",
            help="Policies to compute and judge beside: ours, independent (gradient steps of each agent on its own), "
            "selfish (no constraints), planner; separated by commas.",
        ),
    ] = "",
    epsilon: Epsilon = DEFAULT_EPSILON,
    allow_rounding: AllowRounding = 0.0,
    exact: Exact = False,
    bound_seconds: Annotated[
        float, typer.Option(metavar="<float>", help="Seconds for the upper bound over all feasible policies.")
    ] = 60.0,
    output: Annotated[
        Path | None, typer.Option("--out", "-o", help="Table to write: .csv, .tex, .md, or a page: .html.")
    ] = None,
    seed: Seed = None,
    as_json: Json = False,
) -> None:
    """Judge policies from anywhere: costs, what each agent could gain, how good.

    Each agent's best deviation within the constraints is computed, and its gain is proved. Exit code 0 if every
    given policy is proved feasible and Nash, 1 otherwise.
    """
    from cmpg.judging.side_by_side import judge_side_by_side
    from cmpg.report.judging import judged_summary, side_by_side_record, side_by_side_summary

    for option, number in (("epsilon", epsilon), ("allow-rounding", allow_rounding), ("bound-seconds", bound_seconds)):
        finite(option, number)
    wanted = [chosen("beside", word.strip(), {name: name for name in BESIDE}) for word in beside.split(",") if word]
    if output is not None:
        _check_out(output)
    with ProgressLine("building the game") as progress:
        game = target.build(seed=seed, exact=exact)
        given = _read(policies, game, exact=exact)
        for name in wanted:
            progress.begin(f"computing {name}")
            given[name] = _computed(name, game, seed or 0)
        progress.begin("judging")
        together = judge_side_by_side(
            game, given, epsilon=epsilon, allow_rounding=allow_rounding, exact=exact, time_limit=bound_seconds
        )
    if output is not None:
        _write(together, output, title=target.name)
    if as_json:
        show_json(side_by_side_record(together))
    elif len(given) == 1:
        show(judged_summary(together.judged[0]))
    else:
        show(side_by_side_summary(together))
    proved = [
        each.certificate.proves(epsilon, allow_rounding=allow_rounding) for each in together.judged[: len(policies)]
    ]
    raise typer.Exit(0 if all(proved) else 1)


def _read(paths: list[Path], game: Game, *, exact: bool) -> dict[str, JointPolicy]:
    """Read policy files; those of one name are told apart by their folders."""
    names = [path.stem if [each.stem for each in paths].count(path.stem) == 1 else str(path) for path in paths]
    return {name: policy_of(path, game, exact=exact)[0] for name, path in zip(names, paths, strict=True)}


def _computed(name: str, game: Game, seed: int) -> JointPolicy:
    """Compute a policy to compare with."""
    import numpy as np

    from cmpg.comparison.gradients import IndependentGradient
    from cmpg.comparison.methods import JointPlanner, NashCA
    from cmpg.equilibrium.solve import solve
    from cmpg.errors import InfeasibleError
    from cmpg.games.contract import in_floats
    from cmpg.policy import JointPolicy

    floats, rng = in_floats(game), np.random.default_rng(seed)
    if name == "ours":
        result = solve(floats, rng=rng)
        if result.incumbent is None:
            raise InfeasibleError(f"`ours` has no policy: {result.message}")
        return result.policy
    methods: dict[str, Any] = {"independent": IndependentGradient(), "selfish": NashCA(), "planner": JointPlanner()}
    found: JointPolicy = methods[name](floats, JointPolicy.uniform(floats.policy_shapes), rng=rng).policy
    return found


def _check_out(output: Path) -> None:
    from cmpg.errors import FileError

    if output.suffix.lower() not in FORMS:
        raise FileError(f"{output}: its ending is {output.suffix!r}; one of {', '.join(FORMS)} is required.")
    if output.is_dir() or not output.parent.is_dir():
        raise FileError(f"{output}: cannot be written there; name a file in a folder that exists.")
    on_interrupt(written(output))


def _write(together: SideBySide, output: Path, *, title: str) -> None:
    from cmpg.faces import table_markdown
    from cmpg.files.containers import write_text
    from cmpg.report.judging import side_by_side_page, side_by_side_table, table_csv, table_latex

    table, form = side_by_side_table(together), output.suffix.lower()
    if form == ".html":
        write_text(output, side_by_side_page(together, title=f"Policies of {title}"))
    elif form == ".md":
        write_text(output, "\n".join([*table_markdown(table), ""]))
    else:
        write_text(output, table_csv(table) if form == ".csv" else table_latex(table))
