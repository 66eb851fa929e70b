"""Workers that are lost, clusters that are not there, and backends that say nothing until the end."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cmpg import runs
from cmpg.errors import CMPGError, WorkerError
from cmpg.runs import runner


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


IMPATIENT = {"distributed.comm.timeouts.connect": "300ms"}
MORTAL = {"distributed.scheduler.allowed-failures": 0}


def test_a_dask_scheduler_that_does_not_answer_is_named():
    pytest.importorskip("distributed")
    import dask

    with dask.config.set(IMPATIENT), pytest.raises(CMPGError, match=r"answers at tcp://127\.0\.0\.1:9"):
        list(runs.run_tasks(abs, [1, 2], jobs=runs.Jobs(2, "dask", "tcp://127.0.0.1:9")))


def test_a_cluster_that_is_there_tells_errors_of_tasks_from_lost_workers(monkeypatch):
    distributed = pytest.importorskip("distributed")
    import dask

    monkeypatch.setattr(runner, "MAX_LOSSES", 0)
    local = {"threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
    with dask.config.set(MORTAL), distributed.LocalCluster(n_workers=1, **local) as cluster:
        there = runs.Jobs(1, "dask", cluster.scheduler_address)
        with pytest.raises(ValueError, match="two"):
            list(runs.run_tasks(fail, [1, 2], jobs=there))
        with pytest.raises(WorkerError, match=r"one of the tasks 0 .* a worker of the cluster was killed"):
            list(runs.run_tasks(die, [1], jobs=there))


BUSY_CLIENT = """
import os, sys, time
from pathlib import Path
from cmpg import runs

def busy(number):
    (Path(sys.argv[1]) / str(os.getpid())).touch()
    time.sleep(3600)

list(runs.run_tasks(busy, range(2), jobs=2))
"""


def is_running(process):
    """Whether there is such a process, and not only what its parent has not asked about yet."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGHUP], ids=lambda number: number.name)
def test_workers_end_when_their_client_is_killed(number, tmp_path):
    with subprocess.Popen([sys.executable, "-c", BUSY_CLIENT, str(tmp_path)]) as client:
        while len(list(tmp_path.iterdir())) < 2:
            assert client.poll() is None
            time.sleep(0.05)
        client.send_signal(number)
    workers, limit = [int(path.name) for path in tmp_path.iterdir()], time.monotonic() + 240
    while any(map(is_running, workers)):
        assert time.monotonic() < limit
        time.sleep(0.1)


STARTING_CLIENT = """
import os, signal, sys, threading
from cmpg import runs

def everybody(number):
    return number

workers = runs.run_tasks(everybody, range(4), jobs=2)
signal.signal(signal.SIGINT, lambda *_: None)
stop = threading.Event()
def press():
    while not stop.wait(0.005):
        os.killpg(0, signal.SIGINT)
threading.Thread(target=press).start()
print(sorted(workers))
stop.set()
"""


def test_ctrl_c_does_not_disturb_workers_that_are_just_starting():
    ran = subprocess.run(
        [sys.executable, "-c", STARTING_CLIENT], capture_output=True, text=True, start_new_session=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, "[(0, 0), (1, 1), (2, 2), (3, 3)]\n"), ran.stderr
    assert "Traceback" not in ran.stderr
