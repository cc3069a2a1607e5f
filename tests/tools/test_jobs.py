"""Jobs end with the loop over their results: nothing is left running, whatever ends it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from dpplearn.errors import InputError
from dpplearn.tools.jobs import Failure, run_in_turn, run_over_processes, run_with_retries

pytestmark = pytest.mark.slow
PATIENCE = 60  # seconds


def wait_for(file: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while not file.exists() and time.monotonic() < deadline:
        time.sleep(0.01)


def make_or_wait_for(mark: Path, makes: bool) -> bool:
    """One job makes the mark that the other one waits for."""
    if makes:
        mark.touch()
    else:
        wait_for(mark)
    return mark.exists()


def fail(number: int) -> None:
    raise ZeroDivisionError(number)


def test_results_come_as_they_end_each_with_its_job_and_in_turn_as_they_are_asked_for(tmp_path: Path) -> None:
    run = partial(make_or_wait_for, tmp_path / "mark")
    assert list(run_over_processes([False, True], run, 2)) == [(True, True), (False, True)]
    began: list[int] = []
    results = run_in_turn([1, 2, 3], lambda job: began.append(job) or -job)
    assert next(results) == (1, -1)
    assert began == [1]
    assert list(results) == [(2, -2), (3, -3)]


def test_an_error_of_a_job_and_a_loop_that_is_left_end_the_workers() -> None:
    others = multiprocessing.active_children()
    with pytest.raises(ZeroDivisionError, match="7"):
        list(run_over_processes([7], fail, 1))
    _all_end(others)
    results = run_over_processes([0.0, 1000.0, 1000.0], time.sleep, 2)
    next(results)
    assert len([child for child in multiprocessing.active_children() if child not in others]) == 2
    results.close()
    _all_end(others)


def _all_end(others: list[multiprocessing.Process]) -> None:
    """Asked again and again: a child that another thread has just waited for is known to have ended a moment later."""
    deadline = time.monotonic() + PATIENCE
    left = multiprocessing.active_children
    while (alive := [child for child in left() if child not in others]) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not alive


SLOW_START = """
import sys, time
from pathlib import Path
from dpplearn.tools.jobs import run_over_processes
if __name__ != "__main__":  # in a worker, before its first job
    Path(sys.argv[1]).touch()
    time.sleep(1)
else:
    try:
        list(run_over_processes([1000.0], time.sleep, 1))
    except KeyboardInterrupt:
        print("interrupted")
"""


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="this system has no groups of processes")
def test_ctrl_c_while_workers_start_is_heard_by_the_parent_alone(tmp_path: Path) -> None:
    """A terminal sends it to all of them; a worker that is not yet ready would die with a traceback."""
    (tmp_path / "parent.py").write_text(SLOW_START)
    with subprocess.Popen(
        [sys.executable, tmp_path / "parent.py", tmp_path / "starting"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as parent:
        wait_for(tmp_path / "starting")
        os.killpg(parent.pid, signal.SIGINT)
        assert parent.communicate(timeout=PATIENCE) == ("interrupted\n", "")


def count_and_die(marks: Path, job: str) -> int:
    """How often it was run; "die" dies every time, "once" the first time."""
    with open(marks / job, "a") as file:
        file.write("x")
    runs = len((marks / job).read_text())
    if job == "die" or (job == "once" and runs == 1):
        os.kill(os.getpid(), signal.SIGKILL)
    if job == "input":
        raise InputError("no good")
    if job == "bug":
        raise ZeroDivisionError("by nought")
    return runs


def test_a_job_whose_worker_dies_is_run_again_and_the_others_never_notice(tmp_path: Path) -> None:
    jobs = ["once", "die", "input", "bug", "a", "b", "c"]
    found = dict(run_with_retries(jobs, partial(count_and_die, tmp_path), 2))
    died = found.pop("die")
    assert isinstance(died, Failure)
    assert died.attempts == 3
    assert found == {
        "once": 2,
        "input": Failure("no good"),
        "bug": Failure("ZeroDivisionError: by nought"),
        "a": 1,
        "b": 1,
        "c": 1,
    }
    assert len((tmp_path / "die").read_text()) == 3


def pid_then_sleep(folder: Path, job: str) -> None:
    (folder / job).write_text(str(os.getpid()))
    time.sleep(1000)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


ORPHANS = """
import sys
from functools import partial
from pathlib import Path
from dpplearn.tools.jobs import run_with_retries
from tools.test_jobs import pid_then_sleep
list(run_with_retries(["a", "b"], partial(pid_then_sleep, Path(sys.argv[1])), 2))
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="tells by /proc which processes there are")
def test_no_worker_outlives_its_killed_parent(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])}
    with subprocess.Popen(
        [sys.executable, "-c", ORPHANS, tmp_path],
        env=environment,
        stderr=subprocess.PIPE,
    ) as parent:
        for name in ("a", "b"):
            wait_for(tmp_path / name)
        parent.kill()
        parent.communicate(timeout=PATIENCE)
    deadline = time.monotonic() + PATIENCE
    pids = [int((tmp_path / name).read_text()) for name in ("a", "b")]
    while any(map(is_running, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_running, pids))
