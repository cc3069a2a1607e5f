"""The service under load: time to start, and latencies with and without a client that sends expensive requests.

Server workers and clients are separate processes that share the cores of this machine; `python -m benchmarks service`.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

import dpplearn as dl
from benchmarks.measure import Result
from dpplearn.arrays import Floats
from reproduction.run import run_over_processes

SECONDS = 12.0  # of each measurement
CLIENT_START = 6.0  # seconds until all client processes have started
CLIENT_PAUSE = 0.02  # seconds between the requests of a client process
N_ITEMS, N_SEGMENTS, N_WORKERS = 1000, 30, 2
MAX_RATIO = 5.0  # of latencies with and without the expensive client
JSON = {"content-type": "application/json"}


def mixture(n: int, seed: int = 0, segments: int = 6) -> dl.Mixture:
    """Return random segments with about 5 items per set."""
    rng = np.random.default_rng(seed)
    U, A = rng.standard_normal((n, 5)) / 3, rng.standard_normal((n, n)) / n
    weights, log_odds = rng.dirichlet(np.ones(segments)), rng.standard_normal((segments, n)) - np.log(n / 5)
    items = [f"item {i}" for i in range(n)]
    return dl.Mixture.from_arrays(weights, log_odds, U @ U.T + A - A.T, items=items, nonempty=True)


class Server:
    """`dpplearn serve` and its log."""

    def __init__(self, folder: Path, workers: int = 1) -> None:
        self.log = folder / "log"
        program = [sys.executable, "-m", "dpplearn", "serve", str(folder), "--port", "0"]
        program += ["--workers", str(workers)]
        began = time.perf_counter()
        with open(self.log, "w", encoding="utf-8") as file:
            environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
            self.process = subprocess.Popen(program, stderr=file, env=environment)
        while not self.events("serving"):
            time.sleep(0.01)
        self.port = int(self.events("serving")[0]["address"].rstrip("/").rsplit(":", 1)[1])
        while not self._is_ready():
            time.sleep(0.01)
        self.seconds = time.perf_counter() - began

    def _is_ready(self) -> bool:
        with suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        return False

    def events(self, name: str) -> list[dict[str, Any]]:
        with open(self.log, encoding="utf-8") as file:
            return [json.loads(line) for line in file if f'"event": "{name}' in line and line.endswith("}\n")]


@contextmanager
def served(models: dict[str, dl.Mixture], workers: int = 1) -> Iterator[Server]:
    with TemporaryDirectory() as folder:
        for name, model in models.items():
            model.save(Path(folder) / f"{name}.safetensors")
        server = Server(Path(folder), workers)
        try:
            yield server
        finally:
            server.process.terminate()
            server.process.wait(30)


def items(n: int, step: int = 1) -> list[str]:
    return [f"item {i}" for i in range(0, n * step, step)]


ORDINARY = ("recommend", {"basket": items(10, 10), "k": 10})
# The largest of each kind that the service allows: lists are cut as its 422 responses say.
EXPENSIVE: list[tuple[str, dict[str, Any]]] = [
    ("recommend", {"basket": items(50), "k": 10, "explain": True}),
    ("recommend", {"baskets": [items(10, 10)] * 1000, "k": 10}),
    ("explain", {"basket": items(200), "item": "item 999"}),
    ("complete", {"k": 300}),
    ("recommend", {"basket": [f"unknown {i}" for i in range(15_000)]}),  # nearly the largest body
    ("recommend", {"basket": items(10), "k": N_ITEMS}),
]


class ClientJob(NamedTuple):
    """A client process: what it sends, from when and for how long."""

    kind: str
    port: int
    start: float
    seconds: float


def run_client(job: ClientJob) -> tuple[list[float], list[int]]:
    """Send requests one after another with a pause, and return latencies and statuses."""
    requests = {"expensive": [(what, dict(body)) for what, body in EXPENSIVE], "recommend": [ORDINARY]}.get(
        job.kind, []
    )
    connection = http.client.HTTPConnection("127.0.0.1", job.port, timeout=60)
    times, statuses = list[float](), list[int]()
    time.sleep(max(job.start - time.time(), 0))
    while time.time() < job.start + job.seconds:
        what, body = requests[len(times) % len(requests)] if requests else ("", {})
        began = time.perf_counter()
        if what:
            connection.request("POST", f"/v1/models/shop/{what}", json.dumps(body), JSON)
        else:
            connection.request("GET", "/healthz")
        response = connection.getresponse()
        answer = json.loads(response.read())
        if response.status == 422 and "largest" in answer:
            name = "baskets" if "baskets" in body else "basket" if body.get("basket") else "k"
            body[name] = body[name][: answer["largest"]] if isinstance(body[name], list) else answer["largest"]
            continue
        times.append(time.perf_counter() - began)
        statuses.append(response.status)
        time.sleep(CLIENT_PAUSE)
    return times, statuses


def latencies(server: Server, clients: list[str]) -> Iterator[tuple[str, Floats, Counter[int]]]:
    """Run the clients at the same time, and yield the latencies in ms and the statuses of each kind."""
    start = time.time() + CLIENT_START
    jobs = [ClientJob(kind, server.port, start, SECONDS) for kind in clients]
    found = [(job.kind, each) for job, each in run_over_processes(jobs, run_client, len(jobs))]
    for kind in dict.fromkeys(clients):
        times = np.concatenate([times for of, (times, _) in found if of == kind])
        yield kind, 1000 * times, Counter(status for of, (_, all_) in found if of == kind for status in all_)


def next_to_an_expensive_client(server: Server) -> Iterator[Result]:
    """Compare three ordinary clients and a health check, without and with a fourth client with expensive requests."""
    alone: dict[str, float] = {}
    for others in ([], ["expensive"]):
        where = "next to an expensive client" if others else "alone"
        for kind, times, statuses in latencies(server, ["recommend"] * 3 + ["health", *others]):
            p50, p99 = (float(each) for each in np.quantile(times, [0.5, 0.99]))
            detail = f"p50 {p50:.1f} ms, {len(times)} requests, statuses {dict(statuses)}"
            limit = {"recommend": 50.0, "health": 15.0}.get(kind)
            yield Result(f"p99 of {kind}, {where}", p99, "ms", limit, at_least=False, detail=detail)
            if others and kind in alone:
                ratio = p99 / alone[kind]
                yield Result(f"p99 of {kind}, ratio of both", ratio, "", MAX_RATIO, at_least=False)
            alone.setdefault(kind, p99)


def explain_cpu(model: dl.Mixture) -> Result:
    """Measure `explain` for a basket of 50 items with the default of 50 orders."""
    basket, times = items(50), list[float]()
    for _ in range(4):  # the first run may compile
        began = time.process_time()
        model.explain(basket, "item 999")
        times.append(time.process_time() - began)
    return Result("explain, 50 items: CPU", 1000 * min(times), "ms", 150, at_least=False)


def run() -> list[Result]:
    found: list[Result] = []
    with served({f"category-{i}": mixture(100, i) for i in range(13)}) as server:
        found.append(Result("start to ready, 13 models of 100 items", server.seconds, "s", 3, at_least=False))
    model = mixture(N_ITEMS, segments=N_SEGMENTS)
    with served({"shop": model}, N_WORKERS) as server:
        found.append(Result(f"start to ready, N = {N_ITEMS:,}, {N_SEGMENTS} segments", server.seconds, "s"))
        found += next_to_an_expensive_client(server)
    return [*found, explain_cpu(model)]
