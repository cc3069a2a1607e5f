"""Work for other processes, here or on other machines, by Dask: values that workers hold, and jobs.

A value is the result of a task that can be done again, so that what a lost worker held is made anew by the others. What
is asked of the values goes inline with the tasks. Only here is Dask known.
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
MOST_WORKERS, LONGEST = 1024, 4  # processes on one machine, and digits of their number
PATIENCE = 5.0  # seconds for a scheduler to answer, and to have a worker
STARTING = 60.0  # seconds for the worker processes here to be there
WITHOUT_WORKERS = 60.0  # seconds that are waited for a worker where all are gone
SAME_EVERYWHERE = ("python", "dpplearn", "numpy", "scipy", "numba", "distributed")
OFTEN = 1.0  # seconds between looks at which workers there are
AT_A_TIME = 16  # results that are fetched together
ADDRESS = re.compile(r"(tcp|tls)://.+:\d{1,5}")
LOGS = ("distributed", "distributed.client", "distributed.gc")  # those that have a level of their own
CONFIG = {
    "distributed.admin.large-graph-warning-threshold": "10GB",  # kernels go inline with the tasks
    "distributed.deploy.lost-worker-timeout": f"{PATIENCE}s",  # until another is started in the place of one lost
    "distributed.scheduler.work-stealing": False,  # a part stays where it is, unless `_share_evenly` moves it
}


class Cluster:
    """Workers that are there: processes that were started here and end with `close`, or those of a scheduler."""

    def __init__(self, client: Any, ending: ExitStack) -> None:
        self.client, self.ending, self.started = client, ending, len(client.nthreads())

    @classmethod
    def at(cls, where: str) -> Cluster:
        """`local:4` starts four worker processes here; the address of a scheduler, such as `tcp://scheduler:8786`,
        finds those that it has. They must have the same versions of all that results depend on."""
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
        """The values function(*arguments, own) for each of some, held by the workers in turn."""
        workers, work = sorted(self.client.nthreads()), packed(function, arguments)
        in_turn = zip(each, cycle(workers), strict=False)
        tasks = [self.submit_to(worker, _worked, work, own) for own, worker in in_turn]
        return ClusterParts(self, tasks, frozenset(workers))

    def workers(self) -> frozenset[str]:
        """Those that are there. Of worker processes here, one that died as it started is not started again by Dask, but
        by asking for as many as there were."""
        there = frozenset(self.client.nthreads())
        if self.client.cluster is not None and len(there) < self.started:
            self.client.cluster.scale(self.started)
        return there

    def submit_to(self, worker: str, function: Function, *arguments: Any) -> Any:
        """A task for this worker, or if it is gone for any."""
        return self.client.submit(function, *arguments, pure=False, workers=[worker], allow_other_workers=True)

    def results(self, tasks: list[Any]) -> Iterator[Any]:
        """Of tasks, in their order, some at a time; what was fetched is let go."""
        while tasks:
            some = tasks[:AT_A_TIME]
            del tasks[:AT_A_TIME]
            with self.explained():
                self.wait_for(some, "ALL_COMPLETED")
                found = self.client.gather(some)
            yield from found

    def map(self, function: Function, *columns: Sequence[Any]) -> list[Any]:
        """The tasks function(*row) for every row of some columns."""
        with self.explained():
            return list(self.client.map(function, *columns, pure=False))

    def wait_for(self, tasks: list[Any], which: str) -> list[Any]:
        """Those that are done, once all or the first are; an error if there has been no worker for a while."""
        from distributed import wait

        lost = 0.0
        while lost < WITHOUT_WORKERS:
            began = time.monotonic()
            with suppress(TimeoutError), self.client.as_current():
                return list(wait(tasks, timeout=PATIENCE, return_when=which).done)
            lost = 0.0 if self.workers() else lost + time.monotonic() - began
        raise InputError(
            f"all workers are gone, and for {WITHOUT_WORKERS:g} seconds none has come; start some, and repeat the call "
            "(with --start, if there is a checkpoint)"
        )

    @contextmanager
    def explained(self) -> Iterator[None]:
        """What goes wrong between here and the workers as an `InputError`; what goes wrong in their work comes as it
        is."""
        from distributed.comm.core import CommClosedError
        from distributed.scheduler import KilledWorker

        try:
            yield
        except KilledWorker as error:
            raise InputError(
                f"all workers that tried one task were lost, {error.last_worker.address} the last of them, perhaps "
                "because memory ran out; make the parts smaller, or give the workers more memory"
            ) from None
        except (asyncio.CancelledError, Exception) as error:
            cut_off = isinstance(
                error, asyncio.CancelledError | futures.CancelledError | CommClosedError | TimeoutError
            )
            if isinstance(error, InputError) or (self.client.status == "running" and not cut_off):
                raise
            raise InputError(
                "the scheduler of the cluster is gone, and with it what its workers held; start it again, and repeat "
                "the call (with --start, if there is a checkpoint)"
            ) from None


def run_over_cluster(
    jobs: Sequence[Job], run: Callable[[Job], Result], where: str
) -> Iterator[tuple[Job, Result | Failure]]:
    """Every job with its result, or with why it has none, as they end. `run` is a function of a module, and `where` it
    runs is what `Cluster.at` takes. A job whose worker is lost is done again by another."""
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
    """In the memory of workers; here are only the futures. Which worker holds what changes as workers come and go."""

    cluster: Cluster
    futures: list[Any]
    among: frozenset[str]  # the workers there were when last looked
    looked: float = -math.inf

    def __len__(self) -> int:
        return len(self.futures)

    def apply(self, function: Function, *arguments: Any, threads: int | None = None) -> Iterator[Any]:
        work = packed(function, arguments)
        self._share_evenly()
        running = self.cluster.map(_answered, [work] * len(self), self.futures)
        return map(pickle.loads, self.cluster.results(running))

    def _share_evenly(self) -> None:
        """What lost workers held is with the others; where new ones have come, they take over some of it."""
        if time.monotonic() - self.looked < OFTEN:
            return
        client, before = self.cluster.client, self.among
        with self.cluster.explained():
            now, self.looked = self.cluster.workers(), time.monotonic()
            self.among = now & before
            if now <= before:
                return
            holder = {key: where[0] for key, where in client.who_has(self.futures).items() if where}
        if len(holder) < len(self):  # some are being made anew, and who will hold them is not known yet
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
    """As bytes, of which the arrays on the other side are as they are here: apart, aligned, to be written to or not."""
    return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)


def packed(function: Function, arguments: Sequence[Any]) -> bytes:
    return _pickled((function, tuple(arguments)))


def _same(value: Any) -> Any:
    """In another worker than before."""
    return value


def _worked(work: bytes, value: Any) -> Any:
    """In a worker: a value to hold."""
    function, arguments = pickle.loads(work)
    return call(function, arguments, value)


def _answered(work: bytes, value: Any) -> bytes:
    """In a worker: what is asked of a value."""
    return _pickled(_worked(work, value))


@contextmanager
def _settings() -> Iterator[None]:
    """Of Dask, within; what it has to say of lost workers is said by the result."""
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
    """A client of worker processes here, of one thread each; none of them is left, however this ends."""
    from distributed import Client, LocalCluster

    number = where.removeprefix(LOCAL)
    count = int(number) if number.isdecimal() and len(number) <= LONGEST else 0
    if not 1 <= count <= MOST_WORKERS:
        raise InputError(f"cluster is {where!r}; expected {LOCAL} and how many worker processes, 1 to {MOST_WORKERS}")
    resource_tracker.ensure_running()  # which lets signals in, if that were left to the first worker
    with TemporaryDirectory(prefix="dpplearn-workers-") as folder, ExitStack() as ending:
        with without_interrupts([signal.SIGINT]):  # Ctrl-C is for this process, which ends its workers
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
    """A client of a scheduler that has workers."""
    from distributed import Client, Security

    if not ADDRESS.fullmatch(where):
        raise InputError(
            f"cluster is {where!r}; expected local:4 for four worker processes here, or the address of a scheduler "
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
    """Refuse workers with other versions of what results depend on."""
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
                "same ones, as results depend on them"
            )
