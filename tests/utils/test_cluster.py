"""Fits and jobs on Dask workers: the same results as in this process, also if workers die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpplearn as dl
from dpplearn import InputError, Parts, read_parts
from dpplearn.utils.cluster import run_over_cluster
from dpplearn.utils.parallel import Failure
from helpers.parts import write_parts
from helpers.problems import sampled
from helpers.program import is_running, within

pytestmark = pytest.mark.slow
EM = {"learner": "em", "rng": 0, "max_iter": 15, "tol": 0.0}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_parts(tmp_path_factory.mktemp("parts"), sampled(0, n=300, n_items=8), 3)


@pytest.fixture(scope="module")
def there(files: str) -> Iterator[Parts]:
    """Parts kept by two worker processes."""
    with read_parts(files, cluster="local:2") as parts:
        yield parts


@pytest.fixture(scope="module")
def here(files: str) -> Parts:
    return read_parts(files)


def client_of(parts: Parts) -> Any:
    assert parts.cluster is not None
    return parts.cluster.client


def address_of(parts: Parts) -> str:
    return str(client_of(parts).scheduler.address)


def begin(program: str, *options: object, path: Path | None = None) -> subprocess.Popen[bytes]:
    """One of Dask's programs, with a folder that comes first among those that Python looks into."""
    command = [sys.executable, "-m", f"distributed.cli.{program}", *map(str, options), "--dashboard-address", ":0"]
    paths = os.pathsep.join([*([str(path)] if path else []), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": paths}, stderr=subprocess.DEVNULL)


def same(one: dl.FitResult, other: dl.FitResult) -> None:
    """Parts are added in the same order everywhere, so that only compilers and libraries can make a difference."""
    ours, theirs = (result.model.distribution.arrays() for result in (one, other))
    for name, array in ours.items():
        np.testing.assert_allclose(array, theirs[name], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(one.history.log_likelihood, other.history.log_likelihood, rtol=1e-12)
    np.testing.assert_allclose(one.history.validation, other.history.validation, rtol=1e-12)


def test_workers_learn_what_this_process_learns(there: Parts, here: Parts) -> None:
    options = {"learner": "em", "max_iter": 3, "shrinkage": 0.1, "validation": 0.2, "rng": 0}
    same(dl.fit_dpp(there, **options), dl.fit_dpp(here, **options))
    options = {"segments": 2, "rng": 0, "max_iter": 130, "tol": 0.0}
    same(dl.fit(there, **options), dl.fit(here, **options))


def test_a_fit_survives_a_killed_worker_unchanged(there: Parts, here: Parts) -> None:
    """The worker is killed a moment after the third iteration began."""
    client = client_of(there)
    nannies = client.cluster.workers.values()  # to kill a worker before Dask knows that it has started is another story
    assert within(30, lambda: all(each.process and each.process.status.name == "running" for each in nannies))
    process = min(client.run(os.getpid).values())
    killer = threading.Timer(0.02, os.kill, (process, signal.SIGKILL))
    found_dead = []

    def callback(now: dl.FitProgress) -> None:
        if now.iteration == 3:
            killer.start()
        found_dead.append(not is_running(process))

    result = dl.fit_dpp(there, **EM, callback=callback)
    assert found_dead[-1], "the fit was over before the worker was"
    same(result, dl.fit_dpp(here, **EM))


def test_a_scheduler_is_found_by_its_address_and_its_workers_stay(
    files: str, there: Parts, here: Parts, tmp_path: Path
) -> None:
    with read_parts(files, cluster=address_of(there)) as parts:
        np.testing.assert_array_equal(parts.pair_weights, here.pair_weights)
    assert within(60, lambda: len(client_of(there).nthreads()) == 2)
    (tmp_path / "a.csv").write_text("place,item\n1,bib\n")
    with pytest.raises(InputError, match="basket"):  # an error of a worker is raised here
        read_parts(tmp_path / "a.csv", cluster=address_of(there))


def test_workers_with_other_versions_are_refused_by_name(files: str, there: Parts, tmp_path: Path) -> None:
    other = tmp_path / "dpplearn-0.0.1.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: dpplearn\nVersion: 0.0.1\n")
    worker = begin("dask_worker", address_of(there), "--no-nanny", "--local-directory", tmp_path, path=tmp_path)
    try:
        client_of(there).wait_for_workers(3, timeout=30)
        with pytest.raises(InputError, match=rf"0\.0.*{dl.__version__}"):
            read_parts(files, cluster=address_of(there))
    finally:
        worker.kill()
        worker.wait()


def test_without_dask_or_a_scheduler_there_is_an_error_before_work_starts(
    files: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match=r"127\.0.*1"):
        read_parts(files, cluster="tcp://127.0.0.1:1")
    for wrong in ("local:", "local:0", "local:many", "local:2000", "scheduler:8786", "tcp://scheduler", "ftp://host:1"):
        with pytest.raises(InputError, match=rf"cluster.*{wrong}"):
            read_parts(files, cluster=wrong)
    monkeypatch.setitem(sys.modules, "distributed.utils", None)
    with pytest.raises(InputError, match=r"'dpplearn\[cluster\]'"):
        read_parts(files, cluster="local:1")


def test_workers_that_are_all_gone_and_a_scheduler_that_is_are_named(files: str, tmp_path: Path) -> None:
    from distributed import Client

    where = tmp_path / "scheduler.json"
    scheduler = begin("dask_scheduler", "--port", "0", "--host", "127.0.0.1", "--scheduler-file", where)
    worker = begin("dask_worker", "--scheduler-file", where, "--no-nanny", "--local-directory", tmp_path)
    try:
        with Client(scheduler_file=str(where), timeout=60, set_as_default=False) as client:
            client.wait_for_workers(1, timeout=60)
            address = client.scheduler.address
        with read_parts(files, cluster=address) as parts:
            worker.kill()
            assert parts.cluster is not None
            parts.cluster.patience, parts.cluster.without_workers = 0.2, 0.5
            with pytest.raises(InputError, match=r"0\.5"):
                dl.fit_dpp(parts, **EM)
            parts.cluster.without_workers = 600.0
            threading.Timer(0.5, scheduler.kill).start()
            with pytest.raises(InputError):
                dl.fit_dpp(parts, **EM)
    finally:
        for process in (scheduler, worker):
            process.kill()
            process.wait()


def test_no_worker_is_left_whatever_happens(files: str) -> None:
    processes: list[int] = []

    def fail() -> None:
        with read_parts(files, cluster="local:1") as parts:
            processes.extend(client_of(parts).run(os.getpid).values())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert processes
    assert within(10, lambda: not any(map(is_running, processes)))


def root(number: float) -> float:
    if number < 0:
        raise InputError(f"{number:g} has no root")
    return float(number**0.5)


def die_once(marker: str) -> str:
    """Of the first worker that is asked nothing is left."""
    if not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "done"


def test_jobs_come_with_results_or_errors_and_move_on_from_a_dead_worker(there: Parts, tmp_path: Path) -> None:
    found = dict(run_over_cluster([4.0, -1.0, 9.0], root, address_of(there)))
    assert found == {4.0: 2.0, -1.0: Failure("-1 has no root"), 9.0: 3.0}
    jobs = [str(tmp_path / "one"), str(tmp_path)]
    assert dict(run_over_cluster(jobs, die_once, address_of(there))) == dict.fromkeys(jobs, "done")
