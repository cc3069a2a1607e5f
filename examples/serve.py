"""Fit models of three categories of generated registries and serve them over HTTP until Ctrl-C.

Run: python examples/serve.py           (needs dpplearn[serve]; open http://127.0.0.1:8000/)
     python examples/serve.py --check   (send one request to each endpoint, then stop)
"""

import csv
import json
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

import dpplearn as dl

CATEGORIES = ("safety", "carseats", "health")
MONITOR = "Willow video monitor"
REQUESTS = {
    "/v1/models": None,
    "/v1/models/safety/recommend": {"basket": [MONITOR], "k": 3, "explain": True},
    "/v1/models/safety/complete": {"k": 10},
    "/v1/models/safety/sample": {"n": 2, "k": 5, "seed": 0},
    "/v1/models/safety/explain": {"basket": [MONITOR], "item": "Alder night light"},
    "/v1/models/safety/segments": {"basket": [MONITOR]},
    "/v1/models/safety/analysis": None,
    "/v1/recommend": {"basket": [MONITOR], "k": 5},
    "/v1/complete": {"basket": [MONITOR], "k": 10},
    "/metrics": None,
    "/openapi.json": None,
    "/": None,
    "/analyst": None,
}


def fit_models(folder):
    """Write generated orders to a CSV file and fit one model per category. Return the folder of the models."""
    with open(folder / "orders.csv", "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["basket", "item", "category"])
        for category in CATEGORIES:
            for basket, items in enumerate(dl.datasets.make_registries(category, 2000, rng=0)):
                rows.writerows((basket, item, category) for item in items)
    prepared = dl.prepare(folder / "orders.csv", folder / "prepared", min_products=1, min_count=20, min_items=10)
    dl.fit_all(prepared, folder / "models", segments=3)
    return folder / "models"


def wait_for_address(server):
    """Return the server's address once it is ready. Its log has one JSON object per line."""
    address = ""
    for line in server.stderr:
        event = json.loads(line) if line.startswith("{") else {"event": line.strip()}
        address = event.get("address", address).rstrip("/")
        if event["event"] == "Application startup complete.":
            return address
    raise SystemExit("The server did not start.")


def send_requests(address):
    for path, body in REQUESTS.items():
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(address + path, data, {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as response:
            print(f"{request.get_method():4} {path:30} {response.status} {len(response.read()):7,} bytes")


def main():
    check = "--check" in sys.argv
    with tempfile.TemporaryDirectory() as folder:
        models = fit_models(Path(folder))
        command = [sys.executable, "-m", "dpplearn", "serve", str(models), "--port", "0" if check else "8000"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
            try:
                address = wait_for_address(server)
                if check:
                    send_requests(address)
                else:
                    print(f"Open {address}/ and {address}/analyst. API: {address}/openapi.json. Press Ctrl-C to stop.")
                    server.communicate()
            except KeyboardInterrupt:
                print("Stopped.")
            finally:
                server.terminate()
                server.communicate()


if __name__ == "__main__":
    main()
