"""`cmpg learn` and `cmpg bounds`: equilibria of games whose transition is hidden, and what the theory says they take.

Exit codes of `learn`: 0 if every seed was certified, 1 if one was not (the table says why), 2 for bad input. The game
that is named plays the unknown one: learners see it through a simulator only, and it judges them afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cmpg.cli.interrupts import on_interrupt
from cmpg.cli.options import Backend, Delta, Epsilon, JobsNumber, Json, Resume, Scheduler, check_out, jobs_of
from cmpg.cli.output import ProgressLine, remark, show, show_json
from cmpg.cli.targets import GameArgument, Target, chosen, finite, joint_form, policy_of

if TYPE_CHECKING:
    from numpy.random import Generator, SeedSequence

    from cmpg.arrays import FloatArray
    from cmpg.errors import CMPGError
    from cmpg.files.containers import Fields
    from cmpg.games.contract import Game
    from cmpg.learning.samples import Known
    from cmpg.learning.trials import Behind, Door, Method, Progress, Trial
    from cmpg.policy import JointPolicy
    from cmpg.runs.runner import Jobs


def learn(
    target: GameArgument = None,  # type: ignore[assignment]  # left out where --env is given
    mode: Annotated[
        str,
        typer.Option(
            help="generative: sample a model for each response; shared: sample one model for all; safe: play "
            "episodes, with policies proved to respect the thresholds only. In local games the first two are the same.",
            autocompletion=lambda: ["generative", "shared", "safe"],
        ),
    ] = "generative",
    epsilon: Epsilon = 0.1,
    delta: Delta = 0.1,
    seeds: Annotated[int, typer.Option(help="Number of independent runs.")] = 1,
    jobs: JobsNumber = 1,
    backend: Backend = None,
    scheduler: Scheduler = None,
    seed: Annotated[int, typer.Option(min=0, metavar="<int>", help="Random seed for all runs.")] = 1,
    budget: Annotated[int | None, typer.Option(help="Most samples per run.")] = None,
    time_limit: Annotated[float | None, typer.Option(help="Most seconds per run.")] = None,
    margin: Annotated[
        float | None, typer.Option(help="Safe mode: how far below every threshold responses stay.")
    ] = None,
    growth: Annotated[
        float | None,
        typer.Option(help="Safe mode: solve again after this fraction of additional episodes; 0.1 if omitted."),
    ] = None,
    start: Annotated[Path | None, typer.Option(help="File of a policy to start from, which you vouch for.")] = None,
    payoff_noise: Annotated[
        float | None, typer.Option(help="Hide rewards and costs, too: observations are off by this, up or down.")
    ] = None,
    reveal_support: Annotated[
        bool, typer.Option("--reveal-support", help="Tell the learners which next states are possible.")
    ] = False,
    env: Annotated[
        str | None,
        typer.Option(
            metavar="<module:factory>",
            help="Learn an environment instead of a game: factory() returns it, and what is known of it.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--out", help="New folder for policies, records and curves."),
    ] = None,
    resume: Resume = False,
    as_json: Json = False,
) -> None:
    """Learn a Nash policy from samples, and judge it.

    The game stands for an unknown one: learners only see it through a simulator, and it judges them afterwards. Exit
    code 0 if every run is certified (with probability 1 − delta), 1 otherwise.
    """
    import numpy as np

    from cmpg.files.records import names_record
    from cmpg.learning.confidence import check_accuracy
    from cmpg.report.learning_page import trials_face, trials_record

    check_out(output, resume=resume)
    check_accuracy(epsilon, delta)
    limit = np.inf if time_limit is None else finite("time-limit", time_limit, positive=True)
    if seeds < 1:
        raise _refusal(f"--seeds is {seeds}; at least 1 is required.")
    if (target is None) == (env is None):
        raise _refusal("name a game, or an environment with --env module:factory, and not both.")
    options = {"budget": budget, "payoff_noise": payoff_noise, "reveal_support": reveal_support}
    hidden = _hidden_game(target, epsilon=epsilon, seed=seed, **options) if env is None else _environment(env, options)
    build = chosen("mode", mode, {"generative": _generative, "safe": _safe, "shared": _shared})
    wish = _Wish(hidden, epsilon=epsilon, delta=delta, start=start, margin=margin, growth=growth, time_limit=limit)
    asked = {"mode": mode, "epsilon": epsilon, "delta": delta, "seed": seed, "margin": margin, "growth": growth}
    asked |= {**options, "name": hidden.name, "start": None if start is None else str(start), "time_limit": time_limit}
    trials = _Trials(hidden, build(wish), np.random.SeedSequence(seed).spawn(seeds), asked)
    done, failure = trials.run(jobs=jobs_of(jobs, backend, scheduler), output=output, resume=resume)
    if as_json:
        show_json(trials_record(done) | ({} if hidden.game is None else names_record(hidden.game)))
    elif done:
        show(trials_face(done, thresholds=hidden.thresholds))
    if failure is not None:
        raise failure
    if output is not None and not as_json:
        page = f"; make a page of it with: cmpg report {output}" if hidden.game is not None else ""
        show(f"written to {output}/{page}")
    raise typer.Exit(0 if len(done) == seeds and all(each["certified"] for each in done) else 1)


def bounds(
    target: GameArgument,
    epsilon: Epsilon = 0.1,
    delta: Delta = 0.1,
    slack: Annotated[float | None, typer.Option(help="Slack to assume instead of the Slater constant.")] = None,
    margin: Annotated[
        float | None, typer.Option(help="Slack of the policies to explore from (c of Assumption 2), at most the slack.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Print how many samples the theory asks for, and which can be run.

    Iterations T, episodes M per value, confidence δ′ and samples: as printed in the paper, as corrected, and for the
    adaptive learner.
    """
    import numpy as np

    from cmpg.equilibrium.starts.min_cost import feasible_start
    from cmpg.files.records import names_record
    from cmpg.learning.bounds import bounds_table
    from cmpg.learning.simulator import GameSimulator, refuse_masks
    from cmpg.learning.slater import cmdp_slack, slater_constant
    from cmpg.report.learning_page import bounds_face, bounds_record

    if slack is not None:
        finite("slack", slack, positive=True)
    built = target.build()
    refuse_masks(built)
    game = joint_form(built, wanted="has no joint transition to learn")
    known = GameSimulator(game, rng=np.random.default_rng(0)).known
    slater = slater_constant(game)
    assumed = slater.value if slack is None else slack
    exact = slater.exact or slack is not None
    table = bounds_table(known, slater=assumed, epsilon=epsilon, delta=delta, exact=exact, margin=margin)
    policy = feasible_start(game).policy
    agents = range(game.num_agents)
    slacks = [] if policy is None else [cmdp_slack(game.at(policy).induced_cmdp(agent)) for agent in agents]
    if as_json:
        show_json(bounds_record(table, slater, slacks) | names_record(game))
    else:
        show(bounds_face(table, slater, slacks))


@dataclass(frozen=True, eq=False)
class _Hidden:
    """What is learned: a known game that plays the unknown one, or an environment of which nobody knows the game."""

    door: Door  # makes the simulator
    game: Game | None
    behind: Behind | None
    name: str

    @cached_property
    def known(self) -> Any:
        """What learners know beforehand."""
        return self.simulator.known

    @cached_property
    def simulator(self) -> Any:
        """A simulator of which nothing is drawn."""
        import numpy as np

        return self.door(np.random.default_rng(0))

    @property
    def thresholds(self) -> FloatArray:
        """α: [k]."""
        found: FloatArray = self.known.thresholds if self.game is None else self.game.thresholds
        return found


def _hidden_game(target: Target, *, epsilon: float, seed: int, **options: Any) -> _Hidden:
    """A scenario or a file: local and counting games as they are, all others over joint actions."""
    from cmpg.games.counting.game import CountingGame
    from cmpg.games.local.game import LocalGame
    from cmpg.learning.simulator import refuse_masks
    from cmpg.learning.trials import Behind
    from cmpg.learning.truncation import steps_for

    game = target.build(seed=seed)
    refuse_masks(game)
    if not isinstance(game, (LocalGame, CountingGame)):
        game = joint_form(game, wanted="has no transition to learn")
    behind = Behind(**options, horizon=None if game.discount is None else steps_for(game, epsilon))
    origin = target.origin(seed=seed)
    told = ", ".join(f"{name} {value}" for name, value in origin.options.items() if name != "seed")
    return _Hidden(partial(_hide, behind, game), game, behind, f"{origin.name} ({told})" if told else origin.name)


def _hide(behind: Behind, game: Game, rng: Generator) -> Any:
    return behind.hide(game, rng=rng)


def _environment(words: str, options: dict[str, Any]) -> _Hidden:
    """An environment that a factory makes, with what is known of it."""
    from cmpg.interop.environments import environment_door

    if options["payoff_noise"] is not None or options["reveal_support"]:
        raise _refusal("--payoff-noise and --reveal-support are for games; an environment says itself what is known.")
    return _Hidden(environment_door(words, budget=options["budget"]), None, None, words)


@dataclass(frozen=True, eq=False)
class _Wish:
    """What the command line asks for."""

    hidden: _Hidden
    _: KW_ONLY
    epsilon: float
    delta: float
    start: Path | None
    margin: float | None
    growth: float | None
    time_limit: float


def _generative(wish: _Wish) -> Method:
    from cmpg.learning.generative import Adaptive
    from cmpg.learning.local.simulator import LocalKnown
    from cmpg.learning.trials import ByResponses

    if isinstance(wish.hidden.known, LocalKnown):  # kernels do not depend on what others play: one model serves all
        return _shared(wish)
    _refuse_safe_options(wish)
    return ByResponses(
        epsilon=wish.epsilon, delta=wish.delta, start=_given(wish), learner=Adaptive(), time_limit=wish.time_limit
    )


def _safe(wish: _Wish) -> Method:
    from cmpg.learning.local.simulator import LocalKnown
    from cmpg.learning.safe import Pace, safe_learner
    from cmpg.learning.trials import ByResponses, BySafeModel

    known = wish.hidden.known
    # Episodes of a known game are drawn by multinomials, so their number is not what takes time.
    growth = 0.1 if wish.growth is None else finite("growth", wish.growth, positive=True)
    pace = Pace(growth=growth, most=10**13)
    if isinstance(known, LocalKnown):
        if wish.margin is not None:
            raise _refusal("--margin is for responses; in local games all agents explore for all. Leave it out.")
        start = _start(wish)
        assert start is not None, "a local game has a start, or is refused"
        accuracy = {"epsilon": wish.epsilon, "delta": wish.delta, "time_limit": wish.time_limit}
        return BySafeModel(start=start, pace=pace, **accuracy)
    _check_margin(wish, known)
    learner = safe_learner(known, epsilon=wish.epsilon, margin=wish.margin, pace=pace)
    return ByResponses(
        epsilon=wish.epsilon, delta=wish.delta, start=_start(wish), learner=learner, time_limit=wish.time_limit
    )


def _shared(wish: _Wish) -> Method:
    from cmpg.learning.trials import BySharedModel

    _refuse_safe_options(wish)
    if wish.start is not None:
        raise _refusal("--start is not used where one model is sampled for all, which finds its own; leave it out.")
    return BySharedModel(epsilon=wish.epsilon, delta=wish.delta, time_limit=wish.time_limit)


def _refuse_safe_options(wish: _Wish) -> None:
    for name, given in (("margin", wish.margin), ("growth", wish.growth)):
        if given is not None:
            raise _refusal(f"--{name} is for --mode safe; leave it out.")


def _check_margin(wish: _Wish, known: Known) -> None:
    """Refuse a margin that no policy could keep, whatever the transition is."""
    import numpy as np

    if wish.margin is None:
        return
    finite("margin", wish.margin)
    least = np.broadcast_to(known.cost_bounds[..., 0], (known.num_constraints, known.horizon)).sum(axis=1)
    for j, room in enumerate(known.thresholds - least):
        if wish.margin > room:
            raise _refusal(
                f"--margin is {wish.margin:g}; constraint {j} has the threshold {known.thresholds[j]:g}, and costs are "
                f"at least {least[j]:g}, so no policy keeps that far below it. Give less, or leave it out."
            )


def _refusal(text: str) -> Exception:
    """An error on purpose: one paragraph, and exit code 2."""
    from cmpg.errors import CMPGError

    return CMPGError(text)


def _given(wish: _Wish) -> JointPolicy | None:
    """The start that the user gives, if any."""
    if wish.start is None:
        return None
    from cmpg.files.policies import load_policy

    if wish.hidden.game is not None:
        return policy_of(wish.start, wish.hidden.game)[0]
    return load_policy(wish.start)[0]


def _start(wish: _Wish) -> JointPolicy | None:
    """The start of safe exploration: what the user gives; or what is safe whatever the transition; or, said aloud, one
    computed with the true model, as somebody who knows it would vouch for it.
    """
    from cmpg.equilibrium.starts.min_cost import feasible_start
    from cmpg.learning.ascent import safe_start
    from cmpg.learning.local.simulator import LocalKnown

    if wish.start is not None or wish.hidden.game is None:
        return _given(wish)
    if not isinstance(wish.hidden.known, LocalKnown) and safe_start(wish.hidden.simulator) is not None:
        return None
    found = feasible_start(wish.hidden.game)
    if found.policy is None:
        raise _refusal(f"no feasible start is known: {found.found_by}. Pass --start, or raise the thresholds.")
    remark(
        "no start is safe whatever the transition is, and safe exploration needs one to begin with: one of least cost "
        "is computed with the true model, and taken as vouched for. Pass --start to use your own."
    )
    return found.policy


@dataclass(frozen=True, eq=False)
class _Trials:
    """What is run, seed by seed, and all that a result depends on."""

    hidden: _Hidden
    method: Method
    streams: Sequence[SeedSequence]
    asked: dict[str, Any]

    def run(self, *, jobs: Jobs, output: Path | None, resume: bool) -> tuple[list[Fields], CMPGError | None]:
        """Run the seeds that are missing, and write each as soon as it is done.

        Returned are the records of all seeds that are done, and why the others could not be written, if so.
        """
        from cmpg.files.learning_folder import keep_trial, kept_records, resume_learning_run, trial_record
        from cmpg.files.long_runs import game_digest, is_begun, sole_writer
        from cmpg.learning.truncation import finite_form

        if output is None:
            found: dict[int, Fields] = {}
            return self._run(found, trial_record, jobs, lambda: list(found.values()), "done")
        game = None if self.hidden.game is None else finite_form(self.hidden.game)
        request = {"command": "learn", "game": None if game is None else game_digest(game), **self.asked}
        where = f"in {output}; --resume goes on"
        on_interrupt(lambda: self._told(kept_records(output), where) if is_begun(output) else "")
        with sole_writer(output, resume=resume):
            known = resume_learning_run(output, game, request)
            done = {record["seed"]: record for record in known if record["seed"] < len(self.streams)}
            return self._run(done, partial(keep_trial, output), jobs, partial(kept_records, output), where)

    def _run(
        self,
        done: dict[int, Fields],
        keep: Callable[[Trial], Fields],
        jobs: Jobs,
        kept: Callable[[], list[Fields]],
        where: str,
    ) -> tuple[list[Fields], CMPGError | None]:
        """Run what is not done; what counts at the end is what was kept, which the folder knows best."""
        from cmpg.errors import FileError

        failure, stopped = None, False
        try:
            self._run_missing(done, keep, jobs)
        except KeyboardInterrupt:
            stopped = True
        except FileError as problem:
            failure = problem
        records = sorted((each for each in kept() if each["seed"] < len(self.streams)), key=lambda each: each["seed"])
        if stopped:
            if not records:
                raise KeyboardInterrupt
            remark(f"interrupted: {self._told(records, where)}")
        return records, failure

    def _run_missing(self, done: dict[int, Fields], keep: Callable[[Trial], Fields], jobs: Jobs) -> None:
        """Run the seeds that are not done, and keep each; raise KeyboardInterrupt if one is interrupted."""
        from cmpg.equilibrium.result import Status
        from cmpg.learning.trials import trials
        from cmpg.report.learning_page import progress_text, trial_text

        seeds, known, hidden = len(self.streams), frozenset(done), self.hidden
        curve: list[Progress] = []
        with ProgressLine("learning") as line:

            def watch(progress: Progress) -> None:
                curve.append(progress)
                line.show(progress_text(curve, list(done.values()), seed=len(done), seeds=seeds))

            door = hidden.door if hidden.game is None else None
            settings: dict[str, Any] = {"behind": hidden.behind, "door": door, "watch": watch}
            for each in trials(hidden.game, self.method, streams=self.streams, done=known, jobs=jobs, **settings):
                curve.clear()
                done[each.index] = keep(each)
                line.show(trial_text(each, seeds=seeds), whole=True)
                if each.result.status is Status.INTERRUPTED:
                    raise KeyboardInterrupt

    def _told(self, records: Sequence[Fields], where: str) -> str:
        """Count the seeds that are done; one that was interrupted is learned again."""
        done = sum(each["seed"] < len(self.streams) and each["status"] != "INTERRUPTED" for each in records)
        return f"{done} of {len(self.streams)} seeds are {where}"
