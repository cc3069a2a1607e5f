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
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import dpplearn as dl
from benchmarks.measure import Result
from dpplearn.arrays import Floats
from dpplearn.models.shelf import FORMAT
from dpplearn.tools.files import digest
from dpplearn.tools.manifest import write_manifest

SECONDS = 3.0  # of each measurement
CONNECTIONS = (1, 8, 64)
TICK = os.sysconf("SC_CLK_TCK")
JSON = {"content-type": "application/json"}


def small(n: int, seed: int = 0) -> dl.Mixture:
    rng = np.random.default_rng(seed)
    U, A = rng.standard_normal((n, 5)) / 3, rng.standard_normal((n, n)) / n
    return mixture(rng, n, U @ U.T + A - A.T)


def large(n: int) -> dl.Mixture:
    rng = np.random.default_rng(0)
    return mixture(rng, n, (rng.standard_normal((n, 20)) / 3, np.eye(20)))


def mixture(rng: np.random.Generator, n: int, interaction: Floats | tuple[Floats, Floats]) -> dl.Mixture:
    """Return six random segments with about 5 items per set."""
    weights, log_odds = rng.dirichlet(np.ones(6)), rng.standard_normal((6, n)) - np.log(n / 5)
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
    write_manifest(folder, {"kind": "shelf", "format": FORMAT, "categories": entries})


class Server:
    """`dpplearn serve` and its log."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "log"
        program = [sys.executable, "-m", "dpplearn", "serve", str(folder), "--port", "0", "--poll", "0.05"]
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
def served(models: dict[str, dl.Mixture]) -> Iterator[Server]:
    with TemporaryDirectory() as folder:
        write_models(Path(folder), models)
        server = Server(Path(folder))
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


def run() -> list[Result]:
    found: list[Result] = []
    with served({f"category-{i}": small(100, i) for i in range(13)}) as server:
        found.append(Result("start to ready, 13 models", server.seconds, "s", 3, at_least=False))
    with served({"n100": small(100), "n1000": large(1000)}) as server:
        found += [*latencies(server, 100), *latencies(server, 1000), half_load(server)]
    return found
