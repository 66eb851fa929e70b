"""Workers that are lost, clusters that are not there, and backends that say nothing until the end."""

import os
import signal
import sys

import pytest

from cmpg import runs
from cmpg.errors import CMPGError, WorkerError
from cmpg.runs import runner


def die_once(task):
    """Kill the worker, unless a file says that this was done already."""
    number, flag = task
    if number == 1 and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_a_task_whose_workers_die_too_often_is_tried_once_more_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "MOST_LOSSES", 0)
    tasks = [(number, tmp_path / "died") for number in range(3)]
    assert dict(runs.run_tasks(die_once, tasks, jobs=2)) == {0: 0, 1: 1, 2: 2}


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


class TestOnDask:
    """What a dask cluster does to a run."""

    @pytest.fixture(autouse=True)
    def dask(self, monkeypatch):
        pytest.importorskip("distributed")
        import dask

        monkeypatch.setattr(runner, "MOST_LOSSES", 0)
        impatient = {"distributed.comm.timeouts.connect": "300ms", "distributed.scheduler.allowed-failures": 0}
        with dask.config.set(impatient):
            yield

    def test_a_scheduler_that_does_not_answer_is_named(self):
        with pytest.raises(CMPGError, match=r"no dask scheduler answers at tcp://127\.0\.0\.1:9"):
            list(runs.run_tasks(abs, [1, 2], jobs=runs.Jobs(2, "dask", "tcp://127.0.0.1:9")))

    def test_an_error_of_a_task_is_the_error_of_the_run(self):
        with pytest.raises(ValueError, match="two"):
            list(runs.run_tasks(fail, [1, 2], jobs=runs.Jobs(1, "dask")))

    def test_a_task_that_kills_its_worker_ends_in_an_error(self):
        with pytest.raises(WorkerError, match="a worker of the cluster was killed"):
            list(runs.run_tasks(die, [1], jobs=runs.Jobs(1, "dask")))
