"""Work in other processes, on this or other machines, by Dask: values in the memory of workers, and jobs.

Every value is the result of a task that Dask can repeat, so the other workers recompute what a lost worker had.
Functions are sent with the tasks. No other module uses Dask.
"""

from __future__ import annotations

import asyncio
import logging
import pickle
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import resource_tracker
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from dpplearn.errors import InputError
from dpplearn.utils.parallel import Failure
from dpplearn.utils.threads import alone, without_interrupts

Job = TypeVar("Job")
Result = TypeVar("Result")

LOCAL = "local:"
MAX_WORKERS = 1024  # worker processes on one machine
PATIENCE = 5.0  # seconds until a scheduler must answer and have a worker
STARTING = 60.0  # seconds until local worker processes must be ready
SAME_EVERYWHERE = ("python", "dpplearn", "numpy", "scipy", "numba", "distributed")
CONFIG = {
    "distributed.admin.large-graph-warning-threshold": "10GB",  # kernels are sent with the tasks
    "distributed.deploy.lost-worker-timeout": f"{STARTING}s",  # until a worker that ended must be back
}


class Cluster(ExitStack):
    """Workers: local processes that end with `close`, or those of a Dask scheduler."""

    patience = PATIENCE
    without_workers = 60.0  # seconds to wait for a new worker if all are lost

    def __init__(self, where: str) -> None:
        """Start or connect to workers.

        `local:4` starts four local worker processes; an address such as `tcp://scheduler:8786` connects to the workers
        of a scheduler. They must have the same versions of the packages that determine results.
        """
        super().__init__()
        with ExitStack() as started:  # which ends if a later step fails
            started.enter_context(_settings())
            self.client = started.enter_context(_local(where) if where.startswith(LOCAL) else _remote(where))
            _check_versions(self.client, where)
            self.enter_context(started.pop_all())

    def keep(self, function: Callable[..., Any], *columns: Sequence[Any]) -> list[Any]:
        """Return the values function(*row) for every row of the columns, which stay in the memory of the workers.

        `function` is one of a module, or a `partial` of one. Columns may be values that were kept before.
        """
        with self.explained():
            return list(self.client.map(_kept, [_pickled(function)] * len(columns[0]), *columns, pure=False))

    def answers(self, function: Callable[..., Any], values: Sequence[Any]) -> Iterator[Any]:
        """Yield function(value) for every value that was kept, in order. A worker has one thread."""
        with self.explained():
            tasks = deque(self.client.map(_answered, [_pickled(function)] * len(values), values, pure=False))
        while tasks:  # fetched answers are released
            first = tasks.popleft()
            with self.explained():
                self.wait_for([first])
                found = first.result()
            yield pickle.loads(found)

    def wait_for(self, tasks: list[Any], which: str = "ALL_COMPLETED") -> list[Any]:
        """Return the finished tasks once all, or the first, are finished. Raise an error if no worker is left."""
        from distributed import wait

        seen = time.monotonic()  # when there was a worker last
        while time.monotonic() - seen < self.without_workers:
            with suppress(TimeoutError), self.client.as_current():
                return list(wait(tasks, timeout=self.patience, return_when=which).done)
            if self.client.nthreads():
                seen = time.monotonic()
        raise InputError(
            f"all workers were lost and none has joined for {self.without_workers:g} seconds; start some and repeat "
            "the call (with --start if there is a checkpoint)"
        )

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn failures of the connection into `InputError`. Exceptions of the work itself are not changed."""
        from distributed.comm.core import CommClosedError
        from distributed.scheduler import KilledWorker

        cut_off = (asyncio.CancelledError, futures.CancelledError, CommClosedError, TimeoutError)
        try:
            yield
        except KilledWorker:
            raise InputError(
                "every worker that tried one task was lost, perhaps because memory ran out; make the parts smaller or "
                "give the workers more memory"
            ) from None
        except (asyncio.CancelledError, Exception) as error:
            if isinstance(error, InputError) or (self.client.status == "running" and not isinstance(error, cut_off)):
                raise
            raise InputError(
                "the connection to the scheduler was lost, and with it the data of its workers; start it again and "
                "repeat the call (with --start if there is a checkpoint)"
            ) from None


def run_over_cluster(
    jobs: Sequence[Job], run: Callable[[Job], Result], where: str
) -> Iterator[tuple[Job, Result | Failure]]:
    """Yield every job with its result or `Failure`, in the order in which they end.

    `run` is a function of a module, and `where` is an argument of `Cluster`. Another worker repeats the job of a lost
    one.
    """
    with Cluster(where) as cluster:
        running = dict(zip(cluster.keep(run, jobs), jobs, strict=True))
        while running:
            with cluster.explained():
                done = cluster.wait_for(list(running), "FIRST_COMPLETED")
                ended = [(running.pop(future), _result(future)) for future in done]
            yield from ended


def _result(done: Any) -> Any:
    error = done.exception()
    return done.result() if error is None else Failure.of(error)


def _pickled(value: Any) -> bytes:
    """Return a value as bytes. Unpickled arrays keep their alignment and whether they are writeable."""
    return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)


def _kept(function: bytes, *row: Any) -> Any:
    """Compute a value in a worker, where it stays."""
    return alone(pickle.loads(function), *row)


def _answered(function: bytes, value: Any) -> bytes:
    """Compute the answer to a query in a worker, as bytes."""
    return _pickled(_kept(function, value))


@contextmanager
def _settings() -> Iterator[None]:
    """Configure Dask and silence its logs: errors report lost workers."""
    try:
        import dask
        from distributed.utils import silence_logging_cmgr
    except ImportError:
        raise InputError("a cluster needs Dask; install it with pip install 'dpplearn[cluster]'") from None
    with silence_logging_cmgr(logging.CRITICAL), dask.config.set(CONFIG):
        yield


@contextmanager
def _local(where: str) -> Iterator[Any]:
    """Yield a client of local worker processes with one thread each. All of them end with the block."""
    from distributed import Client, LocalCluster

    number = where.removeprefix(LOCAL)
    count = int(number) if number.isdecimal() and len(number) < 5 else 0
    if not 1 <= count <= MAX_WORKERS:
        raise InputError(f"cluster is {where!r}; expected {LOCAL}N with N from 1 to {MAX_WORKERS} worker processes")
    resource_tracker.ensure_running()  # the first worker would start it with signals unblocked
    with TemporaryDirectory(prefix="dpplearn-workers-") as folder, ExitStack() as ending:
        with without_interrupts([signal.SIGINT]):  # only this process handles Ctrl-C; it ends its workers
            cluster = ending.enter_context(
                LocalCluster(
                    n_workers=count,
                    threads_per_worker=1,
                    processes=True,
                    host="127.0.0.1",
                    dashboard_address="127.0.0.1:0",
                    worker_dashboard_address="127.0.0.1:0",
                    silence_logs=logging.CRITICAL,
                    local_directory=folder,
                )
            )
            client = ending.enter_context(Client(cluster, set_as_default=False))
        client.wait_for_workers(count, timeout=STARTING)
        yield client


@contextmanager
def _remote(where: str) -> Iterator[Any]:
    """Yield a client of a scheduler that has workers."""
    from distributed import Client

    with ExitStack() as ending:
        try:
            if not where.startswith(("tcp://", "tls://")):
                raise ValueError("not an address")
            client = ending.enter_context(Client(where, timeout=PATIENCE, set_as_default=False))
            client.wait_for_workers(1, timeout=PATIENCE)
        except Exception as error:  # Dask raises errors of many types, depending on what answers
            raise InputError(
                f"cluster is {where!r}, but no scheduler with workers answers there ({error}); expected local:4 for "
                "four worker processes here, or the address of a scheduler such as tcp://scheduler:8786"
            ) from None
        yield client


def _check_versions(client: Any, where: str) -> None:
    """Raise an error if a worker has other versions of the packages that determine results."""
    versions = client.get_versions(packages=SAME_EVERYWHERE[1:])
    processes = (versions["client"], *versions["workers"].values())
    ours, *others = ({name: each["packages"].get(name) for name in SAME_EVERYWHERE} for each in processes)
    for theirs in others:
        if theirs != ours:
            raise InputError(
                f"a worker of {where} has the versions {theirs}, and this process has {ours}; install the same ones, "
                "because results depend on them"
            )
