"""Bridges to other tools: PettingZoo and Gymnasium environments, and files of other programs.

>>> from cmpg import interop, scenarios
>>> env = interop.to_parallel_env(scenarios.spectrum())       # a pettingzoo.ParallelEnv
>>> interop.from_parallel_env(env, horizon=2, thresholds=[0.15], samples_per_entry=1).game.num_agents
3
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cmpg.lazy import lazy_exports

if TYPE_CHECKING:
    from cmpg.interop.enumeration import EnumeratedEnv as EnumeratedEnv
    from cmpg.interop.enumeration import EnvStep as EnvStep
    from cmpg.interop.enumeration import from_parallel_env as from_parallel_env
    from cmpg.interop.environments import hidden_environment as hidden_environment
    from cmpg.interop.gambit import nfg_text as nfg_text
    from cmpg.interop.gambit import read_nfg as read_nfg
    from cmpg.interop.gymnasium import CMDPEnv as CMDPEnv
    from cmpg.interop.gymnasium import from_toy_text as from_toy_text
    from cmpg.interop.gymnasium import to_gymnasium_env as to_gymnasium_env
    from cmpg.interop.long_table import from_frame as from_frame
    from cmpg.interop.long_table import game_frame as game_frame
    from cmpg.interop.long_table import read_table as read_table
    from cmpg.interop.long_table import table_text as table_text
    from cmpg.interop.parallel_env import GameEnv as GameEnv
    from cmpg.interop.parallel_env import to_parallel_env as to_parallel_env
    from cmpg.interop.play import Episodes as Episodes
    from cmpg.interop.play import LearnableEnv as LearnableEnv
    from cmpg.interop.play import PolicyRunner as PolicyRunner
    from cmpg.interop.prism import PrismProblem as PrismProblem
    from cmpg.interop.prism import to_prism as to_prism
    from cmpg.interop.replays import Replay as Replay
    from cmpg.interop.replays import replay as replay
    from cmpg.interop.watching import Watcher as Watcher
    from cmpg.interop.watching import event_metrics as event_metrics
    from cmpg.interop.watching import mlflow_watcher as mlflow_watcher
    from cmpg.interop.watching import result_metrics as result_metrics
    from cmpg.interop.watching import tensorboard_watcher as tensorboard_watcher

__all__, __getattr__, __dir__ = lazy_exports(__name__)
