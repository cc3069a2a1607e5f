"""The service under load, on this machine: time to start, latencies and CPU time per request.

Clients and server share the cores, so latencies are those of a busy machine; `python -m benchmarks service`.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import threading
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
from dpplearn.models.store import FORMAT, KIND
from dpplearn.utils.files import digest, write_manifest
from dpplearn.utils.parallel import run_over_processes

SECONDS = 3.0  # of each measurement
CONNECTIONS = (1, 8, 64)
CLIENT_PAUSE = 0.02  # seconds between the requests of a client process
TICK = os.sysconf("SC_CLK_TCK")
JSON = {"content-type": "application/json"}


def small(n: int, seed: int = 0, segments: int = 6) -> dl.Mixture:
    rng = np.random.default_rng(seed)
    U, A = rng.standard_normal((n, 5)) / 3, rng.standard_normal((n, n)) / n
    return mixture(rng, n, U @ U.T + A - A.T, segments)


def large(n: int) -> dl.Mixture:
    rng = np.random.default_rng(0)
    return mixture(rng, n, (rng.standard_normal((n, 20)) / 3, np.eye(20)))


def mixture(
    rng: np.random.Generator, n: int, interaction: Floats | tuple[Floats, Floats], segments: int = 6
) -> dl.Mixture:
    """Return random segments with about 5 items per set."""
    weights, log_odds = rng.dirichlet(np.ones(segments)), rng.standard_normal((segments, n)) - np.log(n / 5)
    items = [f"item {i}" for i in range(n)]
    return dl.Mixture.from_arrays(weights, log_odds, interaction, items=items, nonempty=True)


def write_models(folder: Path, models: dict[str, dl.Mixture]) -> None:
    """Write a folder of models as `fit_all` does."""
    entries = []
    for slug, model in models.items():
        path = folder / f"{slug}.safetensors"
        model.save(path)
        about = {"slug": slug, "name": slug, "file": path.name, "sha256": digest(path)}
        entries.append({**about, "share": 0.5, "n_items": len(model.items), "old": ""})
    write_manifest(folder, {"kind": KIND, "format": FORMAT, "categories": entries})


class Server:
    """`dpplearn serve` and its log."""

    def __init__(self, folder: Path, workers: int = 1) -> None:
        self.log = folder / "log"
        program = [sys.executable, "-m", "dpplearn", "serve", str(folder), "--port", "0", "--poll", "0.05"]
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

    def cpu(self) -> float:
        """Seconds that the server has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICK


@contextmanager
def served(models: dict[str, dl.Mixture], workers: int = 1) -> Iterator[Server]:
    with TemporaryDirectory() as folder:
        write_models(Path(folder), models)
        server = Server(Path(folder), workers)
        try:
            yield server
        finally:
            server.process.terminate()
            server.process.wait(30)


def load(
    server: Server,
    name: str,
    connections: int,
    *,
    explain: bool = False,
    pace: float = 0,
    seconds: float = SECONDS,
) -> tuple[Floats, int]:
    """Send requests for some seconds over several connections.

    A connection sends its next request when it has an answer; with `pace`, every so many seconds. Return how long each
    request took, from when it was due, and how many failed.
    """
    times: list[float] = []
    failed: list[str] = []
    content = json.dumps({"basket": [f"item {i}" for i in range(0, 50, 10)], "k": 10, "explain": explain})
    until = time.perf_counter() + seconds

    def ask(number: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        due = time.perf_counter() + pace * number / connections
        while time.perf_counter() < until:
            if pace:
                time.sleep(max(due - time.perf_counter(), 0))
            began = due if pace else time.perf_counter()
            due += pace
            try:
                connection.request("POST", f"/v1/models/{name}/recommend", content, JSON)
                response = connection.getresponse()
                response.read()
                if response.status != 200:
                    failed.append(str(response.status))
            except (OSError, http.client.HTTPException) as error:
                failed.append(type(error).__name__)
                connection.close()
                continue
            times.append(time.perf_counter() - began)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(connections)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return np.array(times), len(failed)


def latencies(server: Server, n: int) -> Iterator[Result]:
    for explain in (False, True):
        load(server, f"n{n}", 1, explain=explain, seconds=0.5)
        for connections in CONNECTIONS:
            before = server.cpu()
            times, failed = load(server, f"n{n}", connections, explain=explain)
            cpu = 1e6 * (server.cpu() - before) / max(len(times), 1)
            p50, p99 = 1000 * np.quantile(times, [0.5, 0.99])
            what = f"recommend{' with reasons' if explain else ''}, N = {n:,}, {connections} connections"
            target = 900.0 if n == 100 and not explain else None
            detail = f"p50 {p50:.1f} ms, p99 {p99:.1f} ms, {len(times) / SECONDS:.0f} per second, {failed} failed"
            yield Result(f"{what}: CPU per request", cpu, "µs", target, at_least=False, detail=detail)


def half_load(server: Server) -> Result:
    times, _ = load(server, "n100", 8)
    rate = len(times) / SECONDS / 2
    times, failed = load(server, "n100", 8, pace=8 / rate)
    detail = f"{rate:.0f} per second over 8 connections, {failed} failed"
    return Result("p99 at half load, N = 100", 1000 * float(np.quantile(times, 0.99)), "ms", 20, False, detail)


class ClientJob(NamedTuple):
    """A client process: what it sends, from when and for how long."""

    kind: str
    port: int
    start: float
    seconds: float
    number: int


def run_client(job: ClientJob) -> tuple[list[float], list[int]]:
    """Send requests one after another with a pause, and return latencies and statuses."""
    path = "/v1/models/n1000/recommend"
    body: dict[str, Any] = {"basket": [f"item {i}" for i in range(0, 100, 10)], "k": 10}
    if job.kind == "expensive":
        body = {"basket": [f"item {i}" for i in range(50)], "k": 4, "explain": True}
    connection = http.client.HTTPConnection("127.0.0.1", job.port, timeout=60)
    times, statuses = list[float](), list[int]()
    time.sleep(max(job.start - time.time(), 0))
    while time.time() < job.start + job.seconds:
        began = time.perf_counter()
        if job.kind == "health":
            connection.request("GET", "/healthz")
        else:
            connection.request("POST", path, json.dumps(body), JSON)
        response = connection.getresponse()
        answer = json.loads(response.read())
        if response.status == 422:  # too expensive: from now on the largest basket that is allowed
            body["basket"] = body["basket"][: answer["largest"]]
            continue
        times.append(time.perf_counter() - began)
        statuses.append(response.status)
        time.sleep(CLIENT_PAUSE)
    return times, statuses


def beside_an_expensive_client(n: int = 1000, segments: int = 30) -> Iterator[Result]:
    """p99 of three clients and of health checks, without and with a client that sends the most expensive requests."""
    with served({f"n{n}": small(n, segments=segments)}, workers=2) as server:
        for kinds in (["recommend"] * 3, ["recommend"] * 3 + ["expensive"]):
            start = time.time() + 6
            jobs = [ClientJob(kind, server.port, start, 4 * SECONDS, i) for i, kind in enumerate(["health", *kinds])]
            found = [(job.kind, each) for job, each in run_over_processes(jobs, run_client, len(jobs))]
            beside = "next to an expensive client" if "expensive" in kinds else "alone"
            for kind, limit in (("recommend", 50.0), ("health", 15.0)):
                times = np.concatenate([times for of, (times, _) in found if of == kind])
                statuses = Counter(status for of, (_, all_) in found if of == kind for status in all_)
                p50, p99 = 1000 * np.quantile(times, [0.5, 0.99])
                detail = f"p50 {p50:.1f} ms, {len(times)} requests, statuses {dict(statuses)}"
                what = f"p99 of {kind}, N = {n:,}, {segments} segments, {beside}"
                yield Result(what, float(p99), "ms", limit, at_least=False, detail=detail)
            for of, (times, statuses_) in found:
                if of == "expensive":
                    detail = f"{len(times)} requests, statuses {dict(Counter(statuses_))}"
                    yield Result(
                        "median of the expensive request", 1000 * float(np.median(times)), "ms", None, detail=detail
                    )


def run() -> list[Result]:
    found: list[Result] = []
    with served({f"category-{i}": small(100, i) for i in range(13)}) as server:
        found.append(Result("start to ready, 13 models", server.seconds, "s", 3, at_least=False))
    with served({"n100": small(100), "n1000": large(1000)}) as server:
        found += [*latencies(server, 100), *latencies(server, 1000), half_load(server)]
    return [*found, *beside_an_expensive_client()]
