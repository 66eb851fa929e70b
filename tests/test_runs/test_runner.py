"""One runner: the same results whoever runs the tasks, and however often a worker dies."""

import os
import signal

import numpy as np
import pytest

import cmpg
from cmpg import runs
from cmpg.errors import CMPGError, WorkerError
from cmpg.runs.runner import in_order
from cmpg.runs.threads import blas_threads, one_thread


def drawn(stream):
    """A task with a stream of its own, and enough linear algebra that threads would add it up differently."""
    matrix = np.random.default_rng(stream).random((300, 300))
    return (matrix @ matrix.T).sum(axis=0).tobytes(), max(blas_threads())


def die_once(task):
    """Kill the worker, unless a file says that this was done already."""
    number, flag = task
    if number == 1 and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def die_always(number):
    if number == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def interrupted_itself(number):
    """What a terminal does to all processes of a group."""
    os.kill(os.getpid(), signal.SIGINT)
    return number


STREAMS = np.random.SeedSequence(1).spawn(5)


def test_results_have_the_same_bits_for_any_number_of_jobs_and_on_threads_and_processes():
    alone = dict(runs.run_tasks(drawn, STREAMS))
    for jobs in (2, runs.Jobs(3, "threads"), runs.Jobs(2, "loky")):
        assert dict(runs.run_tasks(drawn, STREAMS, jobs=jobs)) == alone
    assert {threads for _, threads in alone.values()} == {1}


def test_a_killed_worker_is_replaced_and_its_task_run_again(tmp_path):
    tasks = [(number, tmp_path / "died") for number in range(5)]
    assert dict(runs.run_tasks(die_once, tasks, jobs=2)) == {0: 0, 1: 1, 2: 4, 3: 9, 4: 16}
    assert (tmp_path / "died").exists()


def test_a_task_that_kills_every_worker_ends_in_an_error_when_all_others_are_done():
    done = []
    with pytest.raises(WorkerError, match=r"at one of the tasks 2 \(counted from 0\).*Try fewer jobs") as caught:
        done.extend(each for each in runs.run_tasks(die_always, range(4), jobs=2))
    assert sorted(done) == [(0, 0), (1, 1), (3, 3)]
    assert caught.value.missing == (2,)


def test_workers_leave_ctrl_c_to_the_client():
    assert dict(runs.run_tasks(interrupted_itself, [7, 8], jobs=2)) == {0: 7, 1: 8}


def drawn_by_mortals(task):
    stream, flag = task
    die_once((1, flag))
    return drawn(stream)


def test_dask_gives_the_same_bits_though_a_worker_is_killed(tmp_path):
    pytest.importorskip("distributed")
    tasks = [(stream, tmp_path / "died") for stream in STREAMS]
    assert dict(runs.run_tasks(drawn_by_mortals, tasks, jobs=runs.Jobs(2, "dask"))) == dict(
        runs.run_tasks(drawn, STREAMS)
    )
    assert (tmp_path / "died").exists()


def test_ray_gives_the_same_bits(tmp_path):
    pytest.importorskip("ray")
    assert dict(runs.run_tasks(drawn, STREAMS, jobs=runs.Jobs(2, "ray"))) == dict(runs.run_tasks(drawn, STREAMS))


def test_an_error_of_a_task_is_the_error_of_the_run():
    with pytest.raises(ZeroDivisionError):
        list(runs.run_tasks(lambda number: 1 / number, [1, 0], jobs=2))


def test_a_backend_that_the_user_has_chosen_with_joblib_is_used():
    from joblib import parallel_config

    with parallel_config(backend="threading"):
        assert {here for _, here in runs.run_tasks(lambda _: os.getpid(), range(3), jobs=2)} == {os.getpid()}


def test_threads_of_one_ascent_stay_threads_whatever_joblib_is_told():
    """They share what they learn of the agents, which processes could not."""
    from joblib import parallel_config

    def solved():
        return cmpg.solve(cmpg.scenarios.spectrum(), method=cmpg.Ascent(schedule=cmpg.GreatestGain(), workers=2), rng=3)

    with parallel_config(backend="loky"):
        inside = solved()
    assert inside.policy.fingerprint() == solved().policy.fingerprint()
    assert [step.gain for step in inside.trace] == [step.gain for step in solved().trace]


def test_results_can_be_had_in_the_order_of_their_tasks():
    assert list(in_order(iter([(2, "c"), (0, "a"), (1, "b")]))) == ["a", "b", "c"]


def test_blas_has_its_threads_again_when_the_last_task_is_done():
    before = blas_threads()
    with one_thread():
        with one_thread():
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {1}
    assert blas_threads() == before


def test_a_discounted_game_is_solved_in_one_thread(monkeypatch):
    """More threads take thirty times as long on systems of this size."""
    import scipy.linalg

    seen = []
    plain = scipy.linalg.lu_solve
    monkeypatch.setattr(
        scipy.linalg, "lu_solve", lambda *args, **more: seen.extend(blas_threads()) or plain(*args, **more)
    )
    game = cmpg.JointGame(
        transition=np.tile(np.eye(2)[:, None, None], (1, 1, 2, 2, 1)),  # states are never left: sweeps would be slow
        rewards=np.tile(np.arange(2.0)[:, None, None], (2, 1, 1, 2, 2)),
        costs=np.zeros((1, 1, 2, 2, 2)),
        thresholds=[1.0],
        initial=[0.5, 0.5],
        discount=0.99,
    )
    game.at(game.uniform_policy()).costs  # noqa: B018
    assert set(seen) == {1}


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"number": 0}, "jobs is 0"),
        ({"number": 1.5}, "jobs is 1.5"),
        ({"backend": "mpi"}, "one of loky, threads, dask, ray"),
        ({"backend": "loky", "scheduler": "tcp://here:1"}, "address of a cluster"),
    ],
)
def test_jobs_that_cannot_be_are_refused(options, complaint):
    with pytest.raises(CMPGError, match=complaint):
        runs.Jobs(**options)
