"""A shelf learned from generated registries, and the service over it: `make demo-serve`.

With --check, one request of each kind is asked and the server ends.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import dpplearn as dl
from dpplearn.datasets import make_registries

CATEGORIES = ("safety", "carseats", "health")
N = 2000
WAIT = 60  # seconds for the server to be ready


def write_orders(path: Path) -> None:
    """Registries of three categories, one after another of the same people."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["basket", "item", "category"])
        for category in CATEGORIES:
            for number, basket in enumerate(make_registries(category, N, rng=0)):
                rows.writerows([number, item, category] for item in basket)


def make_shelf(folder: Path) -> Path:
    """Learned once; a second call finds that nothing has changed."""
    folder.mkdir(parents=True, exist_ok=True)
    write_orders(folder / "orders.csv")
    prepared = dl.prepare(folder / "orders.csv", folder / "prepared", min_products=1, min_count=20, min_items=10)
    dl.fit_all(prepared, folder / "shelf", segments=3, progress=sys.stderr.isatty())
    return folder / "shelf"


def ask(url: str, path: str, body: Any = None) -> Any:
    """The answer of the service."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as response:
        text = response.read().decode()
    return json.loads(text) if path != "/metrics" and not text.startswith("<") else text


def check(url: str) -> None:
    """One request of each kind; what it answers, in a line."""
    model = "/v1/models/safety"
    monitor = ask(url, f"{model}/items?search=video+monitor&limit=1")["items"][0]["item"]
    asked: list[tuple[str, Any]] = [
        ("/v2/health/live", None),
        ("/v2/health/ready", None),
        ("/v1/models", None),
        ("/v2/models/safety", None),
        (f"{model}/recommend", {"basket": [monitor], "k": 3, "explain": True}),
        (f"{model}/recommend/batch", {"rows": [{"basket": [monitor]}, {"basket": ["no such item"]}]}),
        (f"{model}/complete", {"k": 10}),
        (f"{model}/sample", {"n": 2, "k": 5, "seed": 0}),
        (f"{model}/explain", {"basket": [monitor], "item": other_than(monitor, url, model)}),
        (f"{model}/substitutes", {"item": monitor}),
        (f"{model}/complements", {"item": monitor}),
        (f"{model}/segments", {"basket": [monitor]}),
        (f"{model}/analysis", None),
        ("/v1/analysis", None),
        ("/v1/recommend", {"basket": [monitor], "k": 5}),
        ("/v1/recommend/batch", {"rows": [{"basket": [monitor]}]}),
        ("/v1/complete", {"basket": [monitor], "k": 10}),
        ("/metrics", None),
        ("/openapi.json", None),
        ("/", None),
        ("/analyst", None),
        ("/docs", None),
    ]
    for path, body in asked:
        answer = ask(url, path, body)
        print(f"{'GET ' if body is None else 'POST'} {path:36} {len(str(answer)):6} characters", flush=True)
    first = ask(url, f"{model}/recommend", {"basket": [monitor], "k": 1})["items"][0]["item"]
    print(f"beside a {monitor}, the first suggestion is: {first}")
    if "video monitor" in first:
        raise SystemExit("a second video monitor is suggested first")


def other_than(item: str, url: str, model: str) -> str:
    found = ask(url, f"{model}/items?limit=2")["items"]
    return next(str(each["item"]) for each in found if each["item"] != item)


def serve(shelf: Path, *, checked: bool) -> int:
    """The server in a process of its own, until Ctrl-C or until all is checked."""
    port = 0 if checked else 8000
    program = [sys.executable, "-m", "dpplearn", "serve", str(shelf), "--port", str(port)]
    with subprocess.Popen(program, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        url = ""
        for line in server.stderr:
            event = json.loads(line) if line.startswith("{") else {"event": line.strip()}
            if event["event"] == "serving":
                url = event["address"].rstrip("/")
            if event["event"] == "Application startup complete.":
                break
            if not line.startswith("{"):
                print(line, end="", file=sys.stderr)
        try:
            if not url or server.poll() is not None:
                return 1
            if checked:
                check(url)
            else:
                print(f"Open {url}/ and {url}/analyst; the API is at {url}/docs. Ctrl-C ends it.", flush=True)
                for _ in server.stderr:  # the log
                    pass
        except KeyboardInterrupt:
            pass
        finally:
            server.terminate()
            server.stderr.close()
            server.wait(WAIT)
    return 0


def main(arguments: list[str]) -> int:
    began = time.perf_counter()
    shelf = make_shelf(Path("build") / "demo-serve")
    print(f"{shelf} is learned ({time.perf_counter() - began:.0f} s)", flush=True)
    return serve(shelf, checked="--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
