"""The server in a process of its own: its log, model swaps under load, killed workers, shutdown."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from dpplearn.utils.files import digest
from helpers import command
from helpers.problems import as_mixture, random_mixture
from helpers.program import PATIENCE, is_running, wait_for
from helpers.service import Connection, Server, server
from helpers.stores import edit_category

pytestmark = pytest.mark.slow

SWAPS = 3
RECOMMEND = "/v1/models/sleep/recommend"


@pytest.fixture
def served(folder: Path, tmp_path: Path) -> Iterator[Server]:
    with server(folder, tmp_path / "log") as found:
        yield found


def swap(folder: Path, seed: int) -> None:
    """Replace a model as fit_all does: a file of a new name, and the manifest last."""
    file = folder / f"sleep-{seed}.safetensors"
    as_mixture(random_mixture(2, 3, seed=seed), ["cot", "crib", "lamp"]).save(file)
    edit_category(folder, "sleep", file=file.name, sha256=digest(file))


def test_one_server_swaps_models_under_load_logs_no_baskets_and_finishes_a_request_before_it_ends(
    served: Server, folder: Path
) -> None:
    statuses: list[int] = []
    versions: set[str] = set()
    done = threading.Event()

    def load() -> None:
        with closing(Connection(served.url)) as connection:
            while not done.is_set():
                status, body = connection.ask("POST", RECOMMEND, {"basket": ["crib"]})
                statuses.append(status)
                versions.add(json.loads(body)["version"])

    with ThreadPoolExecutor() as pool:
        loads = [pool.submit(load) for _ in range(3)]
        try:
            for seed in range(SWAPS):
                wait_for(lambda n=seed: len(versions) > n, served.process)  # type: ignore[misc]
                swap(folder, seed)
            wait_for(lambda: len(versions) > SWAPS, served.process)
        finally:
            done.set()
    for each in loads:
        each.result()
    assert set(statuses) == {200}
    assert len(served.events("store_replaced")) == SWAPS
    served.ask("POST", RECOMMEND, {"basket": ["crib"]}, {"x-request-id": "mine"})
    served.ask("GET", "/nowhere")
    wait_for(lambda: served.events("request")[-1]["status"] == 404, served.process)
    *_, asked, _ = served.events("request")
    assert (asked["path"], asked["status"], asked["model"], asked["n_basket"]) == (RECOMMEND, 200, "sleep", 1)
    assert asked["id"] == "mine"
    assert "crib" not in served.log.read_text()
    with closing(Connection(served.url)) as connection:
        body = json.dumps({"basket": ["crib"]}).encode()
        headers = {"content-type": "application/json", "content-length": str(len(body) + 2)}  # two bytes are missing
        connection.request("POST", RECOMMEND, body, headers)
        time.sleep(1)  # until the server has read the rest, also on a busy machine
        served.process.send_signal(signal.SIGTERM)
        wait_for(lambda: bool(served.events("Shutting down")), served.process)
        connection.send(b"  ")
        status, answer = connection.read()
    assert status == 200
    assert json.loads(answer)["items"]
    assert served.process.wait(PATIENCE) == 0


def counted(served: Server) -> float:
    """Return how many recommendations the metrics count."""
    status, metrics = served.ask("GET", "/metrics")
    assert status == 200, metrics
    lines = [line for line in metrics.decode().splitlines() if line.startswith("dpplearn_requests_total{")]
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if "recommend" in line)


def test_a_worker_that_is_killed_is_replaced_and_the_others_answer(folder: Path, tmp_path: Path) -> None:
    with server(folder, tmp_path / "log", "--workers", 2, "--log-baskets") as served:
        wait_for(lambda: len(served.workers()) == 2, served.process)
        killed = served.workers()[0]
        before = [served.ask("POST", RECOMMEND, {"basket": ["crib"]})[0] for _ in range(30)]
        wait_for(lambda: counted(served) == 30, served.process)  # a request is counted after its answer is sent
        os.kill(killed, signal.SIGKILL)
        wait_for(lambda: not is_running(killed), served.process)
        after = [served.ask("POST", RECOMMEND, {"basket": ["crib"]})[0] for _ in range(10)]
        assert before + after == [200] * 40
        wait_for(lambda: len(served.workers()) == 2, served.process)
        wait_for(lambda: counted(served) == 40, served.process)
        assert {counted(served) for _ in range(10)} == {40}  # every worker reports all, including the killed one
        assert any(each.get("asked", {}).get("basket") == ["crib"] for each in served.events("request"))
        workers = served.workers()
        assert served.stop() == 0
        assert not any(map(is_running, workers))


def test_a_port_that_is_taken_is_reported_on_one_line(folder: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = command.run("serve", folder, "--port", port)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert str(port) in done.stderr
