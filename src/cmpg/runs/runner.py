"""Many tasks, one runner: in this process, on its cores, or on a cluster.

A task is an argument of one function, and carries its own random stream (`SeedSequence.spawn`) if it draws anything. So
a result depends on its task alone, and has the same bits for any number of workers, on any backend, in any order, and
whether or not its worker was killed on the way; linear algebra runs in one thread in all of them.

Results come as they are done, so that a caller that writes them loses nothing if a run ends early. A task whose worker
died (killed, or out of memory) is run again. Ctrl-C and a closed terminal are for the client: its processes ignore
them, and are stopped by it. They end within seconds if it is gone, however it ended.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args

from cmpg.errors import CMPGError, WorkerError
from cmpg.runs.threads import one_thread

Backend = Literal["loky", "threads", "dask", "ray"]

TERMINAL_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGHUP") if hasattr(signal, name))
"""The signals that a terminal sends to all processes of a group."""

SECONDS_BETWEEN_LOOKS = 1.0
"""Pause of a worker between two looks for its client."""

MAX_LOSSES = 2
"""A pool is given up after this many workers died one after the other with no task done in between."""

Task = TypeVar("Task")
Done = TypeVar("Done")


@dataclass(frozen=True)
class Jobs:
    """How many tasks run at the same time, and where; a plain number stands for so many processes.

    Parameters
    ----------
    number
        Workers; with a scheduler, it is the cluster that decides.
    backend
        loky: processes of this machine; threads of this process; a dask or a ray cluster. Where it is left out, what
        `joblib.parallel_config` says, and loky otherwise; one job then needs no worker at all.
    scheduler
        Address of a running cluster, for dask and ray; where it is left out, one of `number` processes is started here.

    Examples
    --------
    >>> Jobs(2, backend="threads")
    Jobs(number=2, backend='threads', scheduler=None)
    """

    number: int = 1
    backend: Backend | None = None
    scheduler: str | None = None

    def __post_init__(self) -> None:
        if self.number < 1 or self.number != int(self.number):
            raise CMPGError(f"jobs is {self.number}; it must be a whole number of at least 1.")
        if self.backend is not None and self.backend not in get_args(Backend):
            raise CMPGError(f"backend is {self.backend!r}; one of {', '.join(get_args(Backend))} is required.")
        if self.scheduler is not None and self.backend not in ("dask", "ray"):
            raise CMPGError("a scheduler is the address of a cluster: say which with backend='dask' or 'ray'.")

    @classmethod
    def of(cls, jobs: int | Jobs) -> Jobs:
        """Return jobs for a number of them."""
        return jobs if isinstance(jobs, Jobs) else cls(jobs)

    @property
    def in_process(self) -> bool:
        """Whether tasks run one after the other, in the process that requests them."""
        return self.number == 1 and self.backend is None


def run_tasks(
    function: Callable[[Task], Done], tasks: Sequence[Task], *, jobs: int | Jobs = 1
) -> Iterator[tuple[int, Done]]:
    """Run a function on every task, and yield (index in `tasks`, result) in the order in which they are done.

    Parameters
    ----------
    function
        What to run. Its result depends on the task alone, and can be pickled if there are processes.
    tasks
        Its arguments.
    jobs
        How many at the same time, and where.

    Raises
    ------
    WorkerError
        Workers died again and again, and no task was done in between.

    Examples
    --------
    >>> sorted(run_tasks(abs, [-1, 2, -3], jobs=Jobs(2, backend="threads")))
    [(0, 1), (1, 2), (2, 3)]
    """
    requested = Jobs.of(jobs)
    if requested.in_process or not tasks:
        for index, task in enumerate(tasks):
            with one_thread():
                done = function(task)
            yield index, done
        return
    run = {"dask": _on_dask, "ray": _on_ray}.get(str(requested.backend), _on_joblib)
    missing, losses = dict(enumerate(tasks)), 0
    while missing:
        try:
            with contextlib.closing(run(_Call(function), dict(missing), requested)) as results:
                for index, done in results:
                    del missing[index]
                    losses = 0
                    yield index, done
        except _WorkerDied as death:
            losses += 1
            if losses > MAX_LOSSES:
                # A task that kills its worker takes the tasks beside it along: now one task at a time.
                for index in sorted(missing):
                    with contextlib.suppress(_WorkerDied):
                        for _, done in run(_Call(function), {index: missing[index]}, requested):
                            del missing[index]
                            yield index, done
                if not missing:
                    return
                indices = ", ".join(map(str, sorted(missing)[:5])) + (", …" if len(missing) > 5 else "")
                raise WorkerError(
                    f"{losses} workers died one after the other, at one of the tasks {indices} (counted from 0): "
                    f"{death} Is there enough memory? Try fewer jobs.",
                    missing=tuple(missing),
                ) from None


def in_order(results: Iterator[tuple[int, Done]]) -> Iterator[Done]:
    """Yield results in the order of their tasks, each as soon as those before it are there.

    Examples
    --------
    >>> list(in_order(iter([(1, "b"), (0, "a")])))
    ['a', 'b']
    """
    waiting: dict[int, Done] = {}
    following = 0
    for index, done in results:
        waiting[index] = done
        while following in waiting:
            yield waiting.pop(following)
            following += 1


class _WorkerDied(Exception):
    """A worker was killed; what it was at is missing."""


@dataclass(frozen=True)
class _Call:
    """What a worker does: the function, in one thread, undisturbed by the terminal's signals."""

    function: Callable[[Any], Any]

    def __call__(self, task: Any) -> Any:
        with one_thread():
            return self.function(task)

    def in_own_process(self, task: Any, client: int) -> Any:
        if os.getpid() != client and threading.current_thread() is threading.main_thread():
            _ignore_terminal()
        return self(task)

    def indexed(self, index: int, task: Any, client: int) -> tuple[int, Any]:
        return index, self.in_own_process(task, client)


def _ignore_terminal() -> None:
    for each in TERMINAL_SIGNALS:
        signal.signal(each, signal.SIG_IGN)


def _begin_worker(client: int) -> None:
    """Prepare a process that runs tasks: it ignores the terminal, and ends when its client has ended."""
    _ignore_terminal()
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, TERMINAL_SIGNALS)
    threading.Thread(target=_follow, args=(client,), daemon=True).start()


def _follow(client: int) -> None:
    """End this process when its parent is another one than the client.

    Linux could send a signal instead (PR_SET_PDEATHSIG), but at the end of the thread that has started the process.
    """
    while os.getppid() == client:
        time.sleep(SECONDS_BETWEEN_LOOKS)
    os._exit(1)


@contextlib.contextmanager
def _terminal_held_back() -> Iterator[None]:
    """Hold the terminal's signals back; processes that are started inside begin with that, and import undisturbed."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # begun later, by the first worker, it would let SIGINT through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, TERMINAL_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _on_joblib(call: _Call, tasks: dict[int, Any], jobs: Jobs) -> Generator[tuple[int, Any], None, None]:
    """Run on processes or threads of this machine, or on whatever `joblib.parallel_config` names."""
    from joblib import Parallel, delayed
    from joblib._parallel_backends import LokyBackend
    from joblib.externals.loky.process_executor import BrokenProcessPool
    from joblib.parallel import get_active_backend

    named = {"loky": "loky", "threads": "threading"}.get(str(jobs.backend))
    # Arrays are not put into shared files: a client that is killed would leave them behind.
    options: dict[str, Any] = {"n_jobs": jobs.number, "batch_size": 1, "max_nbytes": None}
    if named == "loky" or (named is None and isinstance(get_active_backend()[0], LokyBackend)):
        options |= {"initializer": _begin_worker, "initargs": (os.getpid(),)}
    calls = [delayed(call.indexed)(index, task, os.getpid()) for index, task in tasks.items()]
    try:
        run = Parallel(**options, backend=named, return_as="generator_unordered")
    except ValueError:
        # The user's backend gives all results at the end only, as that of ray does.
        yield from Parallel(**options, backend=named)(calls)
        return
    # Threads of this process: some versions of OpenBLAS obey the main thread alone.
    with one_thread(), contextlib.ExitStack() as stack:
        with _terminal_held_back():  # workers are started here
            results = stack.enter_context(contextlib.closing(run(calls)))
        try:
            yield from results
        except BrokenProcessPool as problem:
            raise _WorkerDied(str(problem).partition("\n")[0]) from None


def _on_dask(call: _Call, tasks: dict[int, Any], jobs: Jobs) -> Generator[tuple[int, Any], None, None]:
    """Run on a dask cluster; not through joblib, whose generator waits for ever for a task that killed its worker."""
    try:
        from distributed import Client, LocalCluster, as_completed
        from distributed.scheduler import KilledWorker
    except ImportError as missing:
        raise CMPGError(
            f"the backend dask needs {missing.name}, which is not installed: pip install 'cmpg[dask]'"
        ) from None
    with contextlib.ExitStack() as stack:
        where: Any = jobs.scheduler
        if where is None:
            where = stack.enter_context(
                LocalCluster(
                    n_workers=jobs.number, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
                )
            )
        try:
            client = stack.enter_context(Client(where, set_as_default=False))
        except OSError as problem:
            raise CMPGError(f"no dask scheduler answers at {jobs.scheduler}: {problem}.") from None
        here = os.getpid()
        indices = {client.submit(call.in_own_process, task, here, pure=False): index for index, task in tasks.items()}
        lost = ""
        for future, result in as_completed(list(indices), loop=client.loop, with_results=True, raise_errors=False):
            index = indices.pop(future)
            if future.status == "finished":
                yield index, result
            elif future.status == "error" and not isinstance(result[1], KilledWorker):
                raise result[1]
            else:
                lost = "a worker of the cluster was killed."
        if lost:
            raise _WorkerDied(lost)


def _on_ray(call: _Call, tasks: dict[int, Any], jobs: Jobs) -> Generator[tuple[int, Any], None, None]:
    """Run on a ray cluster, in rounds: its joblib backend gives all results of a call at the end only."""
    try:
        import ray
        from ray.util.joblib import register_ray
    except ImportError as missing:
        raise CMPGError(
            f"the backend ray needs {missing.name}, which is not installed: pip install 'cmpg[ray]'"
        ) from None
    from joblib import Parallel, delayed

    register_ray()
    ours = not ray.is_initialized()
    if ours:
        here: dict[str, Any] = {}
        if jobs.scheduler is None:
            # Workers on this machine import what the client can.
            paths = {"env_vars": {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}}
            here = {"num_cpus": jobs.number, "include_dashboard": False, "runtime_env": paths}
        ray.init(address=jobs.scheduler or "local", log_to_driver=False, logging_level="ERROR", **here)
    number = jobs.number if jobs.scheduler is None else int(ray.cluster_resources().get("CPU", jobs.number))
    indices = list(tasks)
    try:
        with Parallel(n_jobs=number, backend="ray", batch_size=1) as run:
            for first in range(0, len(indices), number):
                chosen = indices[first : first + number]
                yield from run(delayed(call.indexed)(index, tasks[index], os.getpid()) for index in chosen)
    except ray.exceptions.RayActorError as problem:
        raise _WorkerDied(str(problem).partition("\n")[0]) from None
    finally:
        if ours:
            ray.shutdown()
