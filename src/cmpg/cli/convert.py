"""`cmpg convert`: a game from one form of file to another, or a policy from one version of its file to the other.

In: scenarios, `.json` and `.npz` (the library's own), `.dpomdp` (MADP), `.nfg` (Gambit) and `.csv` (a long table). Out:
`.json`, `.npz`, `.nfg`, `.csv`, and `.prism`, the CMDP that one agent faces, with its question in `.props`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import cmpg
from cmpg import files, interop
from cmpg.cli.interrupts import on_interrupt, written
from cmpg.cli.options import Seed, option
from cmpg.cli.output import remark, show
from cmpg.cli.targets import GameArgument, joint_form, policy_of
from cmpg.errors import FileError, GameError

if TYPE_CHECKING:
    from cmpg.games.game import Game


def convert(
    *,
    target: GameArgument,
    output: Annotated[Path, typer.Argument(metavar="OUTPUT", help="File to write: .json, .npz, .nfg, .csv or .prism.")],
    exact: Annotated[bool, option("Keep fractions such as 1/3 (.json, .nfg, .csv).", "--exact")] = False,
    without_constraints: Annotated[
        bool, option("Leave the constraints out: a .nfg file has no place for them.", "--without-constraints")
    ] = False,
    agent: Annotated[int, option("For .prism: whose problem is written.", least=0)] = 0,
    policy: Annotated[
        Path | None, option("For .prism: file of the policy that the others play; uniform if omitted.")
    ] = None,
    policy_version: Annotated[
        int | None,
        option(
            "For a policy file: 1 writes tables, 2 actions and the rows that mix; 2 for large policies in .npz.",
            least=1,
            most=2,
        ),
    ] = None,
    seed: Seed = None,
) -> None:
    """Convert a game, or a policy, to another file format."""
    from cmpg.games.rationals import is_exact

    kind = files.containers.checked_ending(output, (".json", ".npz", ".nfg", ".csv", ".prism"))
    paths = [output, output.with_suffix(".props")] if kind == ".prism" else [output]
    for path in paths:
        files.containers.check_new_file(path)
    on_interrupt(written(*paths))
    if _is_policy(target.name):
        _convert_policy(target.name, output, policy_version, exact=exact)
        return
    game = target.build(seed=seed, exact=exact)
    if kind in (".json", ".npz"):
        if kind == ".npz" and is_exact(game):
            remark("a .npz holds floats: numbers that are none are rounded; .json, .nfg and .csv keep them")

        files.games.save_game(game, output)
    else:
        texts = [_text(game, kind, without_constraints)] if kind != ".prism" else _prism(game, agent, policy)
        for path, text in zip(paths, texts, strict=True):
            files.containers.write_text(path, text)
    show(f"written to {' and '.join(map(str, paths))}")


def _is_policy(name: str) -> bool:
    return (
        name.lower().endswith(files.containers.ENDINGS)
        and Path(name).is_file()
        and files.containers.file_kind(name) == "cmpg-policy"
    )


def _convert_policy(source: str, output: Path, version: int | None, *, exact: bool) -> None:
    if output.suffix.lower() not in (".json", ".npz"):
        raise FileError(f"{output}: a policy is written as .json or .npz; `cmpg export` writes it as a table of rules.")
    policy, multipliers = files.policies.load_policy(source, exact=exact)
    files.policies.save_policy(
        output, policy, multipliers=multipliers, version=None if version is None else 1 if version == 1 else 2
    )
    show(f"written to {output}")


def _text(game: Game, kind: str, without_constraints: bool) -> str:
    joint = joint_form(game, wanted="has no table of joint actions")
    return (
        interop.nfg_text(joint, without_constraints=without_constraints)
        if kind == ".nfg"
        else interop.table_text(joint)
    )


def _prism(game: Game, agent: int, policy: Path | None) -> list[str]:
    if agent >= game.num_agents:
        raise GameError(f"--agent is {agent}; the agents are counted from 0 to {game.num_agents - 1}.")
    others = cmpg.JointPolicy.uniform(game.policy_shapes) if policy is None else policy_of(policy, game)[0]
    problem = interop.to_prism(game.at(others).induced_cmdp(agent))
    return [problem.model, problem.properties]
