"""`cmpg learn` and `cmpg bounds`: equilibria of games whose transition is hidden, and what the theory says they take.

Exit codes of `learn`: 0 if every seed was certified, 1 if one was not (the table says why), 2 for bad input. The game
that is named plays the unknown one: learners see it through a simulator only, and it judges them afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

import cmpg
from cmpg import files, interop, learning, report
from cmpg.cli.interrupts import on_interrupt
from cmpg.cli.options import Delta, Epsilon, Json, Resume, Tasks, check_out, further, option
from cmpg.cli.output import ProgressLine, remark, show, show_json
from cmpg.cli.targets import GameArgument, Target, chosen, finite, joint_form, policy_of
from cmpg.errors import CMPGError, FileError
from cmpg.runs.runner import Jobs

if TYPE_CHECKING:
    from numpy.random import SeedSequence

    from cmpg.files.containers import Fields
    from cmpg.games.game import Game
    from cmpg.learning.samples import ProblemSpec
    from cmpg.learning.trials import Hidden, Method, Progress, Trial
    from cmpg.policy import JointPolicy


@dataclass(frozen=True)
class LearnOptions:
    """How to learn, and how well."""

    HEADING: ClassVar = "How to learn"
    mode: Annotated[
        str,
        option(
            "generative: sample a model for each response; shared: one model for all; safe: play only "
            "policies proved to respect the thresholds.",
            words=["generative", "shared", "safe"],
        ),
    ] = "generative"
    epsilon: Epsilon = 0.1
    delta: Delta = 0.1
    time_limit: Annotated[float | None, option("Most seconds per run.")] = None
    margin: Annotated[float | None, further("Safe mode: how far below every threshold responses stay.")] = None
    growth: Annotated[
        float | None, further("Safe mode: solve again after this fraction of additional episodes; 0.1 if omitted.")
    ] = None
    start: Annotated[Path | None, further("File of a policy to start from, which you vouch for.")] = None


@dataclass(frozen=True)
class SampleOptions:
    """What learners may see, and how much of it."""

    HEADING: ClassVar = "How to learn"
    budget: Annotated[int | None, option("Most samples per run.")] = None
    payoff_noise: Annotated[
        float | None, further("Hide rewards and costs, too: observations are off by this, up or down.")
    ] = None
    reveal_support: Annotated[
        bool, further("Tell the learners which next states are possible.", "--reveal-support")
    ] = False


@dataclass(frozen=True)
class LearnOutput:
    """Where runs are kept, and how they are shown."""

    HEADING: ClassVar = "Output"
    output: Annotated[Path | None, option("New folder for policies, records and curves.", "--out")] = None
    resume: Resume = False
    as_json: Json = False


def learn(
    *,
    target: GameArgument = None,  # type: ignore[assignment]  # left out where --env is given
    learner: LearnOptions,
    env: Annotated[
        str | None,
        further(
            "Learn an environment instead of a game: factory() returns it, and what is known of it.",
            metavar="<module:factory>",
        ),
    ] = None,
    seeds: Annotated[int, option("Number of independent runs.")] = 1,
    seed: Annotated[int, option("Random seed for all runs.", least=0)] = 1,
    samples: SampleOptions,
    tasks: Tasks,
    kept: LearnOutput,
) -> None:
    """Learn a Nash policy from samples, and judge it.

    The game stands for an unknown one: learners only see it through a simulator, and it judges them afterwards. Exit
    code 0 if every run is certified (with probability 1 − delta), 1 otherwise.
    """
    import numpy as np

    from cmpg.learning.confidence import check_accuracy

    check_out(kept.output, resume=kept.resume)
    check_accuracy(learner.epsilon, learner.delta)
    limit = np.inf if learner.time_limit is None else finite("time-limit", learner.time_limit, positive=True)
    if seeds < 1:
        raise CMPGError(f"--seeds is {seeds}; at least 1 is required.")
    if (target is None) == (env is None):
        raise CMPGError("name a game, or an environment with --env module:factory, and not both.")
    settings = asdict(samples)
    hidden: Hidden
    if env is None:
        hidden, name = _hidden_game(target, epsilon=learner.epsilon, seed=seed, **settings)
    else:
        hidden, name = _hidden_environment(env, settings), env
    build = chosen("mode", learner.mode, {"generative": _generative, "safe": _safe, "shared": _shared})
    options = _Options(hidden, learner, limit)
    method, streams = build(options), np.random.SeedSequence(seed).spawn(seeds)
    start = None if learner.start is None else str(learner.start)
    request = {**asdict(learner), "seed": seed, **settings, "name": name, "start": start}
    with _opened(kept.output, hidden.game, request, seeds=seeds, resume=kept.resume) as records:
        failure = _run_trials(hidden, method, streams, records, jobs=tasks.where)
        done = records.read()
    if kept.as_json:
        show_json(
            report.learning_page.trials_record(done)
            | ({} if hidden.game is None else files.records.names_record(hidden.game))
        )
    elif done:
        thresholds = options.known.thresholds if hidden.game is None else hidden.game.thresholds
        show(report.learning_page.trials_summary(done, thresholds=thresholds))
    if failure is not None:
        raise failure
    if kept.output is not None and not kept.as_json:
        page = f"; make a page of it with: cmpg report {kept.output}" if hidden.game is not None else ""
        show(f"written to {kept.output}/{page}")
    raise typer.Exit(0 if len(done) == seeds and all(each["certified"] for each in done) else 1)


def bounds(
    *,
    target: GameArgument,
    epsilon: Epsilon = 0.1,
    delta: Delta = 0.1,
    slack: Annotated[float | None, option("Slack to assume instead of the Slater constant.")] = None,
    margin: Annotated[
        float | None, option("Slack of the policies to explore from (c of Assumption 2), at most the slack.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Print how many samples the theory asks for.

    Iterations T, episodes M per value, confidence δ′ and samples: as printed in the paper, as corrected, for the
    adaptive learner, and for the same game without its constraints.
    """
    import numpy as np

    from cmpg.learning.bounds import refuse_masks

    if slack is not None:
        finite("slack", slack, positive=True)
    built = target.build()
    refuse_masks(built)
    game = joint_form(built, wanted="has no joint transition to learn")
    known = learning.GameSimulator(game, rng=np.random.default_rng(0)).known
    slater = learning.slater_constant(game)
    assumed = slater.value if slack is None else slack
    exact = slater.exact or slack is not None
    # One reward for all is the potential itself, and varies by the range of one agent.
    one_reward = bool(np.all(game.rewards == game.rewards[0]))
    spread = float(known.reward_ranges[0]) if one_reward else None
    table = learning.bounds_table(
        known, slater=assumed, epsilon=epsilon, delta=delta, exact=exact, margin=margin, potential_range=spread
    )
    policy = cmpg.feasible_start(game).policy
    agents = range(game.num_agents)
    slacks = [] if policy is None else [learning.cmdp_slack(game.at(policy).induced_cmdp(agent)) for agent in agents]
    if as_json:
        show_json(report.learning_page.bounds_record(table, slater, slacks) | files.records.names_record(game))
    else:
        show(report.learning_page.bounds_summary(table, slater, slacks))


def _hidden_game(target: Target, *, epsilon: float, seed: int, **settings: Any) -> tuple[Hidden, str]:
    """Return a scenario or a file and its name: local and counting games as they are, all others over joint actions."""
    from cmpg.learning.trials import HiddenGame

    game: Game = target.build(seed=seed)
    if not isinstance(game, (cmpg.LocalGame, cmpg.DiscountedLocalGame, cmpg.CountingGame)):
        game = joint_form(game, wanted="has no transition to learn")
    horizon = None if game.discount is None else learning.steps_for(game, epsilon)
    origin = target.origin(seed=seed)
    given = ", ".join(f"{name} {value}" for name, value in origin.options.items() if name != "seed")
    return HiddenGame(game, **settings, horizon=horizon), f"{origin.name} ({given})" if given else origin.name


def _hidden_environment(words: str, settings: dict[str, Any]) -> Hidden:
    """Return an environment that a factory makes, with what is known of it."""
    if settings["payoff_noise"] is not None or settings["reveal_support"]:
        raise CMPGError("--payoff-noise and --reveal-support are for games; an environment says itself what is known.")
    return interop.hidden_environment(words, budget=settings["budget"])


@dataclass(frozen=True, eq=False)
class _Options:
    """What the command line asks of the learner."""

    hidden: Hidden
    learner: LearnOptions
    time_limit: float

    @property
    def accuracy(self) -> dict[str, Any]:
        """What every method needs: ε, δ and its seconds."""
        return {"epsilon": self.learner.epsilon, "delta": self.learner.delta, "time_limit": self.time_limit}

    @cached_property
    def simulator(self) -> Any:
        """A simulator of which nothing is drawn."""
        import numpy as np

        return self.hidden.simulator(np.random.default_rng(0))

    @property
    def known(self) -> Any:
        """What learners know beforehand."""
        return self.simulator.known


def _generative(options: _Options) -> Method:
    from cmpg.learning.local.simulator import LocalProblemSpec
    from cmpg.learning.trials import ByResponses

    if isinstance(options.known, LocalProblemSpec):  # kernels do not depend on what others play: one model serves all
        return _shared(options)
    _refuse_safe_options(options)
    return ByResponses(**options.accuracy, start=_given(options), learner=learning.Adaptive())


def _safe(options: _Options) -> Method:
    from cmpg.learning.local.simulator import LocalProblemSpec
    from cmpg.learning.trials import ByResponses, BySharedModel

    known = options.known
    # Episodes of a known game are drawn by multinomials, so their number is not what takes time.
    growth = 0.1 if options.learner.growth is None else finite("growth", options.learner.growth, positive=True)
    pace = learning.Pace(growth=growth, most=10**13)
    if isinstance(known, LocalProblemSpec):
        if options.learner.margin is not None:
            raise CMPGError("--margin is for responses; in local games all agents explore for all. Leave it out.")
        start = _start(options)
        assert start is not None, "a local game has a start, or is refused"
        return BySharedModel(**options.accuracy, start=start, pace=pace)
    _check_margin(options, known)
    learner = learning.safe_learner(known, epsilon=options.learner.epsilon, margin=options.learner.margin, pace=pace)
    return ByResponses(**options.accuracy, start=_start(options), learner=learner)


def _shared(options: _Options) -> Method:
    from cmpg.learning.trials import BySharedModel

    _refuse_safe_options(options)
    if options.learner.start is not None:
        raise CMPGError("--start is not used where one model is sampled for all, which finds its own; leave it out.")
    return BySharedModel(**options.accuracy)


def _refuse_safe_options(options: _Options) -> None:
    for name, given in (("margin", options.learner.margin), ("growth", options.learner.growth)):
        if given is not None:
            raise CMPGError(f"--{name} is for --mode safe; leave it out.")


def _check_margin(options: _Options, known: ProblemSpec) -> None:
    """Refuse a margin that no policy could keep, whatever the transition is."""
    import numpy as np

    margin = options.learner.margin
    if margin is None:
        return
    finite("margin", margin)
    least = np.broadcast_to(known.cost_bounds[..., 0], (known.num_constraints, known.horizon)).sum(axis=1)
    for j, room in enumerate(known.thresholds - least):
        if margin > room:
            raise CMPGError(
                f"--margin is {margin:g}; constraint {j} has the threshold {known.thresholds[j]:g}, and costs "
                f"are at least {least[j]:g}, so no policy keeps that far below it. Give less, or leave it out."
            )


def _given(options: _Options) -> JointPolicy | None:
    """The start that the user gives, if any."""
    if options.learner.start is None:
        return None

    if options.hidden.game is not None:
        return policy_of(options.learner.start, options.hidden.game)[0]
    return files.policies.load_policy(options.learner.start)[0]


def _start(options: _Options) -> JointPolicy | None:
    """The start of safe exploration: what the user gives; or what is safe whatever the transition; or, said aloud, one
    computed with the true model, as a user who knows it would vouch for it.
    """
    from cmpg.equilibrium.discounted import discounted_start
    from cmpg.learning.ascent import safe_start
    from cmpg.learning.local.simulator import LocalProblemSpec

    if options.learner.start is not None or options.hidden.game is None:
        return _given(options)
    if not isinstance(options.known, LocalProblemSpec) and safe_start(options.simulator) is not None:
        return None
    game = options.hidden.game
    long = isinstance(game, cmpg.DiscountedLocalGame)
    found = discounted_start(game, options.known.horizon) if long else cmpg.feasible_start(game)
    if found.policy is None:
        raise CMPGError(f"no feasible start is known: {found.found_by}. Pass --start, or raise the thresholds.")
    remark(
        "no start is safe whatever the transition is, and safe exploration needs one to begin with: one of least cost "
        "is computed with the true model, and taken as vouched for. Pass --start to use your own."
    )
    return found.policy


def _run_trials(
    hidden: Hidden, method: Method, streams: Sequence[SeedSequence], records: _Records, *, jobs: Jobs
) -> FileError | None:
    """Run the seeds that are missing, and keep each as soon as it is done; return why one could not be kept, if so."""
    from cmpg.learning.trials import trials

    seeds, done, words = len(streams), records.read(), report.learning_page
    finished = frozenset(record["seed"] for record in done)
    curve: list[Progress] = []
    try:
        with ProgressLine("learning") as line:

            def watch(progress: Progress) -> None:
                curve.append(progress)
                line.show(words.progress_text(curve, done, seed=len(done), seeds=seeds))

            for each in trials(hidden, method, streams=streams, done=finished, jobs=jobs, watch=watch):
                curve.clear()
                done.append(records.keep(each))
                line.show(words.trial_text(each, seeds=seeds), whole=True)
                if each.result.status is cmpg.Status.INTERRUPTED:
                    raise KeyboardInterrupt
    except KeyboardInterrupt:
        if not records.read():
            raise
        remark(f"interrupted: {records.summary()}")
    except FileError as problem:
        return problem
    return None


@dataclass(eq=False)
class _Records:
    """The records of the seeds that are done: in memory, or in a folder."""

    folder: Path | None
    seeds: int
    in_memory: list[Fields] = field(default_factory=list)

    def keep(self, each: Trial) -> Fields:
        """Keep a trial, and return its record."""
        if self.folder is not None:
            return files.learning_folder.keep_trial(self.folder, each)
        self.in_memory.append(files.learning_folder.trial_record(each))
        return self.in_memory[-1]

    def read(self) -> list[Fields]:
        """Return what was kept, in the order of the seeds; a folder is read back, for what is written counts."""
        kept = self.in_memory if self.folder is None else files.learning_folder.kept_records(self.folder)
        return sorted((each for each in kept if each["seed"] < self.seeds), key=lambda each: int(each["seed"]))

    def summary(self) -> str:
        """Count the seeds that are done; one that was interrupted is learned again."""
        done = sum(each["status"] != "INTERRUPTED" for each in self.read())
        where = "done" if self.folder is None else f"in {self.folder}; --resume goes on"
        return f"{done} of {self.seeds} seeds are {where}"


@contextmanager
def _opened(
    output: Path | None, game: Game | None, request: dict[str, Any], *, seeds: int, resume: bool
) -> Iterator[_Records]:
    """Begin a run, or go on with one, in a folder that only this process writes to; in memory if there is none."""
    records = _Records(output, seeds)
    if output is None:
        yield records
        return
    from cmpg.learning.truncation import finite_form

    finite = None if game is None else finite_form(game)
    request = {"command": "learn", "game": None if finite is None else files.long_runs.game_digest(finite), **request}
    on_interrupt(lambda: records.summary() if files.long_runs.is_begun(output) else "")
    with files.long_runs.sole_writer(output, resume=resume):
        files.learning_folder.resume_learning_run(output, finite, request)
        yield records
