"""Work in other processes, on this or other machines, by Dask: values in the memory of workers, and jobs.

Every value is the result of a task that Dask can repeat, so the other workers recompute what a lost worker had.
Arguments are sent with the tasks. No other module uses Dask.
"""

from __future__ import annotations

import asyncio
import logging
import math
import pickle
import re
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import cycle
from multiprocessing import resource_tracker
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from dpplearn.errors import InputError
from dpplearn.utils.parallel import Failure, Function, PartStore, call, own_arguments
from dpplearn.utils.text import listed
from dpplearn.utils.threads import without_interrupts

Job = TypeVar("Job")
Result = TypeVar("Result")

LOCAL = "local:"
MOST_WORKERS, LONGEST = 1024, 4  # worker processes on one machine, and digits of that number
PATIENCE = 5.0  # seconds until a scheduler must answer and have a worker
STARTING = 60.0  # seconds until local worker processes must be ready
WITHOUT_WORKERS = 60.0  # seconds to wait for a new worker if all are lost
SAME_EVERYWHERE = ("python", "dpplearn", "numpy", "scipy", "numba", "distributed")
OFTEN = 1.0  # seconds between updates of the list of workers
AT_A_TIME = 16  # results fetched per request
ADDRESS = re.compile(r"(tcp|tls)://.+:\d{1,5}")
LOGS = ("distributed", "distributed.client", "distributed.gc")  # loggers whose level Dask sets
CONFIG = {
    "distributed.admin.large-graph-warning-threshold": "10GB",  # kernels are sent with the tasks
    "distributed.deploy.lost-worker-timeout": f"{PATIENCE}s",  # until a lost worker is replaced
    "distributed.scheduler.work-stealing": False,  # a part stays where it is, unless `_share_evenly` moves it
}


class Cluster:
    """Workers: local processes that end with `close`, or those of a Dask scheduler."""

    def __init__(self, client: Any, ending: ExitStack) -> None:
        self.client, self.ending, self.started = client, ending, len(client.nthreads())
        self.patience, self.without_workers = PATIENCE, WITHOUT_WORKERS  # seconds

    @classmethod
    def at(cls, where: str) -> Cluster:
        """Start or connect to workers.

        `local:4` starts four local worker processes; an address such as `tcp://scheduler:8786` connects to the workers
        of a scheduler. They must have the same versions of the packages that determine results.
        """
        with ExitStack() as ending:
            ending.enter_context(_settings())
            client = ending.enter_context(_local(where) if where.startswith(LOCAL) else _remote(where))
            _check_versions(client, where)
            return cls(client, ending.pop_all())

    def close(self) -> None:
        self.ending.close()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def holding(self, function: Function, *arguments: Any, each: Sequence[Any]) -> PartStore:
        """Return the values function(*arguments, own) for every `own` of `each`, in the memory of the workers."""
        workers, work = sorted(self.client.nthreads()), packed(function, arguments)
        in_turn = zip(each, cycle(workers), strict=False)
        tasks = [self.submit_to(worker, _worked, work, own) for own, worker in in_turn]
        return ClusterParts(self, tasks, frozenset(workers))

    def workers(self) -> frozenset[str]:
        """Return the addresses of the present workers.

        Dask does not replace a local worker that died while starting, so the original number is requested again.
        """
        there = frozenset(self.client.nthreads())
        if self.client.cluster is not None and len(there) < self.started:
            self.client.cluster.scale(self.started)
        return there

    def submit_to(self, worker: str, function: Function, *arguments: Any) -> Any:
        """Submit a task to a worker, or to any other if it is lost."""
        return self.client.submit(function, *arguments, pure=False, workers=[worker], allow_other_workers=True)

    def results(self, tasks: list[Any]) -> Iterator[Any]:
        """Yield the results of tasks in their order. Fetched results are released."""
        while tasks:
            some = tasks[:AT_A_TIME]
            del tasks[:AT_A_TIME]
            with self.explained():
                self.wait_for(some, "ALL_COMPLETED")
                found = self.client.gather(some)
            yield from found

    def map(self, function: Function, *columns: Sequence[Any]) -> list[Any]:
        """Submit function(*row) for every row of the columns."""
        with self.explained():
            return list(self.client.map(function, *columns, pure=False))

    def wait_for(self, tasks: list[Any], which: str) -> list[Any]:
        """Return the finished tasks once all, or the first, are finished. Raise an error if no worker is left."""
        from distributed import wait

        lost = 0.0
        while lost < self.without_workers:
            began = time.monotonic()
            with suppress(TimeoutError), self.client.as_current():
                return list(wait(tasks, timeout=self.patience, return_when=which).done)
            lost = 0.0 if self.workers() else lost + time.monotonic() - began
        raise InputError(
            f"all workers were lost and none has joined for {self.without_workers:g} seconds; start some and repeat "
            "the call (with --start if there is a checkpoint)"
        )

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn failures of the connection into `InputError`. Exceptions of the work itself are not changed."""
        from distributed.comm.core import CommClosedError
        from distributed.scheduler import KilledWorker

        try:
            yield
        except KilledWorker as error:
            raise InputError(
                f"every worker that tried one task was lost, the last at {error.last_worker.address}, perhaps because "
                "memory ran out; make the parts smaller or give the workers more memory"
            ) from None
        except (asyncio.CancelledError, Exception) as error:
            cut_off = isinstance(
                error, asyncio.CancelledError | futures.CancelledError | CommClosedError | TimeoutError
            )
            if isinstance(error, InputError) or (self.client.status == "running" and not cut_off):
                raise
            raise InputError(
                "the connection to the scheduler was lost, and with it the data of its workers; start it again and "
                "repeat the call (with --start if there is a checkpoint)"
            ) from None


def run_over_cluster(
    jobs: Sequence[Job], run: Callable[[Job], Result], where: str
) -> Iterator[tuple[Job, Result | Failure]]:
    """Yield every job with its result or `Failure`, in the order in which they end.

    `run` is a function of a module, and `where` is an argument of `Cluster.at`. Another worker repeats the job of
    a lost one.
    """
    with Cluster.at(where) as cluster:
        running = dict(zip(cluster.map(run, jobs), jobs, strict=True))
        while running:
            with cluster.explained():
                done = cluster.wait_for(list(running), "FIRST_COMPLETED")
                ended = [(running.pop(future), _result(future)) for future in done]
            yield from ended


def _result(done: Any) -> Any:
    error = done.exception()
    return done.result() if error is None else Failure.of(error)


@dataclass(eq=False)
class ClusterParts:
    """Parts in the memory of workers. This process has only the futures."""

    cluster: Cluster
    futures: list[Any]
    among: frozenset[str]  # workers at the last update
    looked: float = -math.inf

    def __len__(self) -> int:
        return len(self.futures)

    def apply(self, function: Function, *arguments: Any, threads: int | None = None) -> Iterator[Any]:
        work = packed(function, arguments)
        self._share_evenly()
        running = self.cluster.map(_answered, [work] * len(self), self.futures)
        return map(pickle.loads, self.cluster.results(running))

    def _share_evenly(self) -> None:
        """Move parts to new workers, so that all have about the same number."""
        if time.monotonic() - self.looked < OFTEN:
            return
        client, before = self.cluster.client, self.among
        with self.cluster.explained():
            now, self.looked = self.cluster.workers(), time.monotonic()
            self.among = now & before
            if now <= before:
                return
            holder = {key: where[0] for key, where in client.who_has(self.futures).items() if where}
        if len(holder) < len(self):  # some are being recomputed, and their worker is not known yet
            return
        self.among = now
        held = Counter(holder.values())
        most = -(-len(self) // len(self.among))
        for place, future in enumerate(self.futures):
            worker = holder.get(future.key)
            if worker is not None and held[worker] > most:
                to = min(sorted(self.among), key=lambda each: held[each])
                self.futures[place] = self.cluster.submit_to(to, _same, future)
                held[worker] -= 1
                held[to] += 1

    def changed(self, function: Function, *arguments: Any, each: Sequence[Any] = ()) -> ClusterParts:
        work = [packed(function, own) for own in own_arguments(len(self), arguments, each)]
        self._share_evenly()
        return ClusterParts(self.cluster, self.cluster.map(_worked, work, self.futures), self.among)

    def joined_by(self, value: Any) -> ClusterParts:
        last = self.cluster.client.submit(pickle.loads, _pickled(value), pure=False)
        return ClusterParts(self.cluster, [*self.futures, last], self.among)

    def close(self) -> None:
        self.cluster.close()


def _pickled(value: Any) -> bytes:
    """Return a value as bytes. Unpickled arrays keep their alignment and whether they are writeable."""
    return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)


def packed(function: Function, arguments: Sequence[Any]) -> bytes:
    return _pickled((function, tuple(arguments)))


def _same(value: Any) -> Any:
    """Return the value: a task that moves it to another worker."""
    return value


def _worked(work: bytes, value: Any) -> Any:
    """Compute a value in a worker, where it stays."""
    function, arguments = pickle.loads(work)
    return call(function, arguments, value)


def _answered(work: bytes, value: Any) -> bytes:
    """Compute the answer to a query in a worker, as bytes."""
    return _pickled(_worked(work, value))


@contextmanager
def _settings() -> Iterator[None]:
    """Configure Dask and silence its logs: errors report lost workers."""
    try:
        import dask
        import distributed  # noqa: F401
    except ImportError:
        raise InputError("a cluster needs Dask; install it with pip install 'dpplearn[cluster]'") from None
    before = [(log, log.level) for log in map(logging.getLogger, LOGS)]
    try:
        for log, _ in before:
            log.setLevel(logging.CRITICAL)
        with dask.config.set(CONFIG):
            yield
    finally:
        for log, level in before:
            log.setLevel(level)


@contextmanager
def _local(where: str) -> Iterator[Any]:
    """Yield a client of local worker processes with one thread each. All of them end with the block."""
    from distributed import Client, LocalCluster

    number = where.removeprefix(LOCAL)
    count = int(number) if number.isdecimal() and len(number) <= LONGEST else 0
    if not 1 <= count <= MOST_WORKERS:
        raise InputError(f"cluster is {where!r}; expected {LOCAL}N with N from 1 to {MOST_WORKERS} worker processes")
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
    from distributed import Client, Security

    if not ADDRESS.fullmatch(where):
        raise InputError(
            f"cluster is {where!r}; expected local:4 for four local worker processes, or the address of a scheduler "
            "such as tcp://scheduler:8786"
        )
    if where.startswith("tls:") and Security().get_connection_args("client").get("ssl_context") is None:
        raise InputError(f"{where} asks for certificates; name them in Dask's configuration (distributed.comm.tls)")
    try:
        client = Client(where, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError, MemoryError) as error:  # a web server's answer reads as a huge size
        raise InputError(
            f"no scheduler answers at {where} ({error}); start one with dask scheduler, or check the address"
        ) from None
    with client:
        try:
            client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError:
            raise InputError(
                f"the scheduler at {where} has no workers; start some with dask worker {where} --nthreads 1"
            ) from None
        yield client


def _check_versions(client: Any, where: str) -> None:
    """Raise an error if a worker has other versions of the packages that determine results."""
    found = client.get_versions(packages=SAME_EVERYWHERE[1:])
    ours = found["client"]["packages"]
    for worker, versions in sorted(found["workers"].items()):
        theirs = versions["packages"]
        other = [
            f"{name} {theirs.get(name) or 'is missing'} ({ours.get(name)} here)"
            for name in SAME_EVERYWHERE
            if theirs.get(name) != ours.get(name)
        ]
        if other:
            raise InputError(
                f"the worker {worker} of {where} has other versions than this process: {listed(other)}; install the "
                "same ones, because results depend on them"
            )
