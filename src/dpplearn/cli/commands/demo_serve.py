"""dpplearn demo-serve: a shelf learned from generated registries, and the service over it."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import urllib.request
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from dpplearn.cli.options import Quiet
from dpplearn.cli.output import wants_progress
from dpplearn.datasets import make_registries
from dpplearn.errors import InputError
from dpplearn.pipeline.fit_all import fit_all
from dpplearn.pipeline.prepare import prepare

CATEGORIES = ("safety", "carseats", "health")
N = 2000
WAIT = 60  # seconds for the server to be ready


def demo_serve(
    check: Annotated[bool, typer.Option("--check", help="Ask one request of each kind, and leave.")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Where to listen; 0 for any that is free.")] = 8000,
    quiet: Quiet = False,
) -> None:
    """Learn a small shelf from generated registries, and serve it until Ctrl-C."""
    with TemporaryDirectory() as folder:
        shelf = make_shelf(Path(folder), progress=wants_progress(quiet))
        serve(shelf, 0 if check else port, checked=check)


def write_orders(path: Path) -> None:
    """Registries of three categories, one after another of the same people."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["basket", "item", "category"])
        for category in CATEGORIES:
            for number, basket in enumerate(make_registries(category, N, rng=0)):
                rows.writerows([number, item, category] for item in basket)


def make_shelf(folder: Path, *, progress: bool) -> Path:
    write_orders(folder / "orders.csv")
    prepared = prepare(folder / "orders.csv", folder / "prepared", min_products=1, min_count=20, min_items=10)
    fit_all(prepared, folder / "shelf", segments=3, progress=progress)
    return folder / "shelf"


def ask(url: str, path: str, body: Any = None) -> Any:
    """The answer of the service."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as response:
        text = response.read().decode()
    return json.loads(text) if path != "/metrics" and not text.startswith("<") else text


def check_all(url: str) -> None:
    """One request of each kind; what it answers, in a line."""
    model = "/v1/models/safety"
    monitor = ask(url, f"{model}/items?search=video+monitor&limit=1")["items"][0]["item"]
    asked: list[tuple[str, Any]] = [
        ("/healthz", None),
        ("/readyz", None),
        ("/v1/models", None),
        ("/v1/models/safety", None),
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
        typer.echo(f"{'GET ' if body is None else 'POST'} {path:36} {len(str(answer)):6} characters")
    first = ask(url, f"{model}/recommend", {"basket": [monitor], "k": 1})["items"][0]["item"]
    typer.echo(f"beside a {monitor}, the first suggestion is: {first}")
    if "video monitor" in first:
        raise InputError("a second video monitor is suggested first")


def other_than(item: str, url: str, model: str) -> str:
    found = ask(url, f"{model}/items?limit=2")["items"]
    return next(str(each["item"]) for each in found if each["item"] != item)


def serve(shelf: Path, port: int, *, checked: bool) -> None:
    """The server in a process of its own, until Ctrl-C or until all is checked."""
    program = [sys.executable, "-m", "dpplearn", "serve", str(shelf), "--port", str(port)]
    with subprocess.Popen(program, stderr=subprocess.PIPE, text=True) as server:
        try:
            url = address_of(server)
            if checked:
                check_all(url)
            else:
                typer.echo(f"Open {url}/ and {url}/analyst; the API is at {url}/docs. Ctrl-C ends it.")
                server.communicate()  # its log is not shown
        finally:
            server.terminate()
            server.communicate(timeout=WAIT)


def address_of(server: subprocess.Popen[str]) -> str:
    """Where it listens, once it does."""
    assert server.stderr is not None
    url, said = "", ""
    for line in server.stderr:
        event = json.loads(line) if line.startswith("{") else {"event": line.strip()}
        url = event["address"].rstrip("/") if event["event"] == "serving" else url
        if event["event"] == "Application startup complete.":
            return url
        said = event["event"]
    raise InputError(f"the service did not start: {said}")
