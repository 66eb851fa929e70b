"""Workers that are lost, clusters that are not there, and backends that say nothing until the end."""

import os
import signal
import sys

import pytest

from cmpg import runs
from cmpg.errors import CMPGError, WorkerError
from cmpg.runs import runner


def test_tasks_whose_workers_die_together_are_tried_once_more_one_by_one(monkeypatch):
    asked = []

    def mortal(call, tasks, jobs):
        asked.append(sorted(tasks))
        if len(tasks) > 1:
            raise runner._WorkerDied("it was killed.")
        yield from ((place, call(task)) for place, task in tasks.items())

    monkeypatch.setattr(runner, "_on_joblib", mortal)
    assert dict(runs.run_tasks(abs, [-1, 2, -3], jobs=2)) == {0: 1, 1: 2, 2: 3}
    assert asked == [[0, 1, 2]] * (runner.MOST_LOSSES + 1) + [[0], [1], [2]]


@pytest.mark.parametrize(("backend", "package"), [("dask", "distributed"), ("ray", "ray")])
def test_a_cluster_that_is_not_installed_says_what_to_install(backend, package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(CMPGError, match=rf"needs {package}.*pip install 'cmpg\[{backend}\]'"):
        list(runs.run_tasks(abs, [1, 2], jobs=runs.Jobs(2, backend)))


def test_a_backend_that_gives_all_results_at_the_end_is_used():
    from joblib import parallel_config, register_parallel_backend
    from joblib._parallel_backends import ThreadingBackend

    class AtTheEnd(ThreadingBackend):
        supports_return_generator = False

    register_parallel_backend("at the end", AtTheEnd)
    with parallel_config(backend="at the end"):
        assert dict(runs.run_tasks(abs, [-1, 2, -3], jobs=runs.Jobs(2))) == {0: 1, 1: 2, 2: 3}


def fail(number):
    if number == 2:
        raise ValueError("two")
    return number


def die(number):
    os.kill(os.getpid(), signal.SIGKILL)


IMPATIENT = {"distributed.comm.timeouts.connect": "300ms", "distributed.scheduler.allowed-failures": 0}


def test_a_dask_scheduler_that_does_not_answer_is_named():
    pytest.importorskip("distributed")
    import dask

    with dask.config.set(IMPATIENT), pytest.raises(CMPGError, match=r"answers at tcp://127\.0\.0\.1:9"):
        list(runs.run_tasks(abs, [1, 2], jobs=runs.Jobs(2, "dask", "tcp://127.0.0.1:9")))


def test_a_cluster_that_is_there_tells_errors_of_tasks_from_lost_workers(monkeypatch):
    distributed = pytest.importorskip("distributed")
    import dask

    monkeypatch.setattr(runner, "MOST_LOSSES", 0)
    local = {"threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
    with dask.config.set(IMPATIENT), distributed.LocalCluster(n_workers=1, **local) as cluster:
        there = runs.Jobs(1, "dask", cluster.scheduler_address)
        with pytest.raises(ValueError, match="two"):
            list(runs.run_tasks(fail, [1, 2], jobs=there))
        with pytest.raises(WorkerError, match=r"one of the tasks 0 .* a worker of the cluster was killed"):
            list(runs.run_tasks(die, [1], jobs=there))
