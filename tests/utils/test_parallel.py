"""Jobs over processes: retries, failures, and nothing left running however the loop ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from dpplearn.errors import InputError
from dpplearn.utils.parallel import Failure, run_with_retries
from helpers.program import HAS_PROC, is_running, within

pytestmark = pytest.mark.slow
PATIENCE = 60  # seconds
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])}


def pid_then_sleep(folder: Path, job: str) -> None:
    if job:
        temporary = folder / f"{job}.tmp"
        temporary.write_text(str(os.getpid()))
        temporary.rename(folder / job)  # nobody sees the file before its content
        time.sleep(1000)


def pids_of(folder: Path) -> list[int]:
    """Return the processes of both jobs, once they run."""
    files = [folder / name for name in ("a", "b")]
    assert within(PATIENCE, lambda: all(file.exists() for file in files))
    return [int(file.read_text()) for file in files]


PARENT = """
import os, sys
from functools import partial
from pathlib import Path
from dpplearn.utils.parallel import run_with_retries
from utils.test_parallel import pid_then_sleep
os.environ["WORKERS"] = sys.argv[1]
try:
    list(run_with_retries(["a", "b"], partial(pid_then_sleep, Path(sys.argv[1])), 2))
except KeyboardInterrupt:
    print("interrupted")
"""

# A module that Python imports when it starts, before a worker can set a signal handler.
SLOW_START = """
import os, sys, time
from pathlib import Path
if "WORKERS" in os.environ and "popen_loky" in str(sys.orig_argv):
    Path(os.environ["WORKERS"], "starting").touch()
    time.sleep(1)
"""


def test_leaving_the_loop_ends_the_workers(tmp_path: Path) -> None:
    results = run_with_retries(["", "a", "b"], partial(pid_then_sleep, tmp_path), 3)
    assert next(results) == ("", None)
    pids = pids_of(tmp_path)
    assert all(map(is_running, pids))
    results.close()
    assert within(PATIENCE, lambda: not any(map(is_running, pids)))


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="this system has no groups of processes")
def test_ctrl_c_while_workers_start_is_handled_by_the_parent_alone(tmp_path: Path) -> None:
    """A terminal sends it to all of them; a worker that is not yet ready would die with a traceback."""
    (tmp_path / "sitecustomize.py").write_text(SLOW_START)
    paths = os.pathsep.join([str(tmp_path), ENVIRONMENT["PYTHONPATH"]])
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, tmp_path],
        env={**ENVIRONMENT, "PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as parent:
        assert within(PATIENCE, (tmp_path / "starting").exists)
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
    assert found.pop("die").attempts == len((tmp_path / "die").read_text()) == 3
    failures = {"input": Failure("no good"), "bug": Failure("ZeroDivisionError: by nought")}
    assert found == {"once": 2, **failures, "a": 1, "b": 1, "c": 1}


@pytest.mark.skipif(not HAS_PROC, reason="tells by /proc which processes there are")
def test_no_worker_outlives_its_killed_parent(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT, tmp_path], env=ENVIRONMENT) as parent:
        pids = pids_of(tmp_path)
        parent.kill()
    assert within(PATIENCE, lambda: not any(map(is_running, pids)))
