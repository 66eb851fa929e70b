"""`cmpg judge`: policies from anywhere before one judge.

Exit codes: 0 if every policy is proved to be Nash within epsilon (by episodes: feasible, and the upper end of its
exploitability at most epsilon), 1 if not, 2 for bad input.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NoReturn

import typer

import cmpg
from cmpg import comparison, files, judging, report
from cmpg.cli.options import (
    DEFAULT_EPSILON,
    AllowRounding,
    Delta,
    Epsilon,
    Exact,
    Json,
    Seed,
    check_out_file,
    further,
    option,
)
from cmpg.cli.output import ProgressLine, show, show_json
from cmpg.cli.targets import GameArgument, Target, finite, one_of, policy_of
from cmpg.errors import CMPGError, InfeasibleError
from cmpg.summaries import Summary

if TYPE_CHECKING:
    from cmpg.games.game import Game

BESIDE = ("ours", "independent", "selfish", "planner")
"""Policies that are computed to stand beside those that are given."""

DEFAULT_EPISODES = 2_000
"""Episodes to play in an environment, if none are named."""

FORMS = (".csv", ".tex", ".html", ".md")


@dataclass(frozen=True)
class Proof:
    """How policies are judged by proof."""

    HEADING: ClassVar = "How to judge"
    epsilon: Epsilon = DEFAULT_EPSILON
    allow_rounding: AllowRounding = 0.0
    exact: Exact = False
    bound_seconds: Annotated[float, further("Seconds for the upper bound over all feasible policies.")] = 60.0


@dataclass(frozen=True)
class Play:
    """How policies are judged by episodes."""

    HEADING: ClassVar = "How to judge"
    env: Annotated[
        str | None,
        further(
            "Judge in an environment instead of a game: factory() returns a cmpg.judging.EnvironmentWorld.",
            metavar="module:factory",
        ),
    ] = None
    episodes: Annotated[
        int, option("Episodes to play, and as many for each agent's deviations; 0: judge by proof.")
    ] = 0
    train: Annotated[
        str | None,
        further(
            "Trains deviations in an environment: takes a single-agent Gymnasium environment, returns a policy.",
            metavar="module:function",
        ),
    ] = None
    delta: Delta = 0.1


@dataclass(frozen=True)
class JudgeOutput:
    """What is drawn by the seed, what is written, and what is printed."""

    HEADING: ClassVar = "Output"
    output: Annotated[Path | None, option("Table to write: .csv, .tex, .md, or a page: .html.", "--out", "-o")] = None
    seed: Seed = None
    as_json: Json = False


def judge(
    *,
    target: GameArgument = None,  # type: ignore[assignment]  # left out where --env is given
    policies: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="POLICY...",
            help="Policy files: .npz, .json, or .csv as `cmpg export --what policy` writes it.",
        ),
    ] = None,
    play: Play,
    named: Annotated[
        list[str] | None,
        further(
            "A policy in Python: a function of (agent, observation, step), or an object with `predict`; may be "
            "given several times.",
            "--policy",
            metavar="module:name",
        ),
    ] = None,
    beside: Annotated[
        str,
        option(
            "Computed policies to judge beside, separated by commas: ours, independent, selfish, planner.",
            metavar="<names>",
        ),
    ] = "",
    proof: Proof,
    wanted: JudgeOutput,
) -> None:
    """Judge policies from anywhere: costs, gains, quality.

    Each agent's best deviation within the constraints is computed, and its gain proved. Exit code 0 if every given
    policy is proved feasible and Nash.
    """
    for name, number in (
        ("epsilon", proof.epsilon),
        ("allow-rounding", proof.allow_rounding),
        ("bound-seconds", proof.bound_seconds),
    ):
        finite(name, number)
    if (target is None) == (play.env is None):
        raise CMPGError("name a game, or an environment with --env module:factory, and not both.")
    words = [*(policies or []), *(named or [])]
    if not words:
        raise CMPGError("there is no policy to judge: name a file after the game, or --policy module:name.")
    if play.env is not None or play.episodes:
        if beside or proof.exact:
            raise CMPGError("--beside and --exact are for policies of known games that are judged by proof.")
        if play.train is not None and play.env is None:
            raise CMPGError("--train needs observations to train from: name an environment with --env module:factory.")
        _judge_by_episodes(target, words, play, proof.epsilon, wanted)
    if play.train is not None:
        raise CMPGError("--train is for environments, which are judged by episodes: --env module:factory.")
    names = [one_of("beside", word.strip(), BESIDE) for word in beside.split(",") if word]
    _judge_by_proof(target, words, names, proof, wanted)


def _judge_by_proof(target: Target, words: list[str], beside: list[str], proof: Proof, wanted: JudgeOutput) -> NoReturn:
    """Judge policies of a known game, and some that are computed beside them; print what was found, and exit."""
    check_out_file(wanted.output, *FORMS)
    with ProgressLine("building the game") as progress:
        game = target.build(seed=wanted.seed, exact=proof.exact)
        given = _read(words, game, exact=proof.exact)
        for name in beside:
            progress.begin(f"computing {name}")
            given[name] = _computed(name, game, wanted.seed or 0)
        progress.begin("judging")
        together = cmpg.judge_side_by_side(
            game,
            given,
            epsilon=proof.epsilon,
            allow_rounding=proof.allow_rounding,
            exact=proof.exact,
            time_limit=proof.bound_seconds,
        )
    if wanted.output is not None:
        if wanted.output.suffix.lower() == ".html":
            files.containers.write_text(
                wanted.output, report.judging.side_by_side_page(together, title=f"Policies of {target.name}")
            )
        else:
            report.formats.write_table(report.judging.side_by_side_table(together), wanted.output)
    if wanted.as_json:
        show_json(report.judging.side_by_side_record(together))
    elif len(given) == 1:
        show(report.judging.judged_summary(together.judged[0]))
    else:
        show(report.judging.side_by_side_summary(together))
    judged = together.judged[: len(words)]
    proved = [each.certificate.proves(proof.epsilon, allow_rounding=proof.allow_rounding) for each in judged]
    raise typer.Exit(0 if all(proved) else 1)


def _is_module(words: str) -> bool:
    """Whether words are module:name, and no path with a drive."""
    module, colon, name = words.partition(":")
    return bool(colon) and name.isidentifier() and all(part.isidentifier() for part in module.split("."))


def _read(words: list[str], game: Game, *, exact: bool) -> dict[str, cmpg.JointPolicy]:
    """Read policies; files of one name are distinguished by their folders."""
    from cmpg.interop.environments import named_policy

    found = {}
    for name, each in zip(_names(words), words, strict=True):
        if _is_module(each):
            function = judging.policy_function(named_policy(each), game.names.all_agents(game.num_agents))
            found[name] = cmpg.JointPolicy.from_callable(game.policy_shapes, function)
        else:
            found[name] = policy_of(Path(each), game, exact=exact)[0]
    return found


def _names(words: list[str]) -> list[str]:
    """Return what policies are called: a file by its name, if that is not the name of two."""
    stems = [each if _is_module(each) else Path(each).stem for each in words]
    return [stem if stems.count(stem) == 1 else each for stem, each in zip(stems, words, strict=True)]


def _judge_by_episodes(target: Target, words: list[str], play: Play, epsilon: float, wanted: JudgeOutput) -> NoReturn:
    """Judge policies by playing them, print what was found, and exit."""
    import numpy as np

    from cmpg.interop.environments import environment_world, named_policy

    check_out_file(wanted.output, *FORMS)
    with ProgressLine("building the world") as progress:
        world: Any
        if play.env is not None:
            world = environment_world(play.env)
            trainer = None if play.train is None else named_policy(play.train)
            given = {each: named_policy(each) for each in words}
        else:
            game, trainer = target.build(seed=wanted.seed), None
            world, given = judging.GameWorld(game), _read(words, game, exact=False)
        found = [
            judging.audit(
                world,
                policy,
                rng=np.random.default_rng([wanted.seed or 0, place]),
                episodes=play.episodes or DEFAULT_EPISODES,
                delta=play.delta,
                name=name,
                train=trainer,
                on_progress=progress.begin,
            )
            for place, (name, policy) in enumerate(given.items())
        ]
    table = report.judging.audit_table(found)
    if wanted.output is not None:
        if wanted.output.suffix.lower() == ".html":
            title = f"Policies of {play.env or target.name}, judged by episodes"
            files.containers.write_text(wanted.output, report.judging.audits_page(found, title=title))
        else:
            report.formats.write_table(table, wanted.output)
    if wanted.as_json:
        show_json([report.judging.audit_record(each) for each in found])
    else:
        show(*(report.judging.audit_summary(each) for each in found))
        if len(found) > 1:
            show(Summary("side by side", "", (table,)))
    proved = [each.feasible and each.exploitability.upper <= epsilon for each in found]
    raise typer.Exit(0 if all(proved) else 1)


def _computed(name: str, game: Game, seed: int) -> cmpg.JointPolicy:
    """Compute a policy to compare with."""
    import numpy as np

    rng = np.random.default_rng(seed)
    if name == "ours":
        result = cmpg.solve(game, rng=rng)
        if result.incumbent is None:
            raise InfeasibleError(f"`ours` has no policy: {result.message}")
        return result.policy
    methods: dict[str, Any] = {
        "independent": comparison.IndependentGradient(),
        "selfish": comparison.NashCA(),
        "planner": comparison.JointPlanner(),
    }
    found: cmpg.JointPolicy = methods[name](game, cmpg.JointPolicy.uniform(game.policy_shapes), rng=rng).policy
    return found
