"""fit-all when it or a worker is killed, and its command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from contextlib import AbstractContextManager
from dataclasses import fields
from inspect import signature
from pathlib import Path

import pytest

import dpplearn as dl
from dpplearn.cli.app import command
from dpplearn.cli.learning import Learn
from helpers import program
from helpers.command import answer, run, table
from helpers.order_files import random_orders, write_csv
from helpers.stores import fitted

OPTIONS = ("--segments", 2, "--max-iter", 20, "--processes", 2, "--quiet")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> dl.Prepared:
    folder = tmp_path_factory.mktemp("prepared")
    orders = write_csv(folder / "orders.csv", ("basket", "item", "category"), random_orders(300, n_categories=4))
    return dl.prepare(orders, folder / "prepared", min_count=3, min_items=2)


def models_in(store: Path) -> set[str]:
    return {path.name for path in (store / "models").glob("*.safetensors")}


def n_done(store: Path) -> int:
    """Return the number of models that an unfinished run has saved."""
    path = store / "manifest.json"
    manifest = json.loads(path.read_bytes()) if path.exists() else {"categories": [], "previous": []}
    listed = {*(each["file"] for each in manifest["categories"]), *manifest["previous"]}
    return len({f"models/{name}" for name in models_in(store)} - listed)


def begin(prepared: dl.Prepared, store: Path, *options: object) -> AbstractContextManager[subprocess.Popen[str]]:
    return program.begin("fit-all", prepared.folder, "-o", store, *OPTIONS, *options)


def test_killed_it_leaves_the_old_models_whole_and_continues_with_the_missing_categories(
    prepared: dl.Prepared, tmp_path: Path
) -> None:
    """The first run finds an empty folder, the second one the models of another seed."""
    store, slugs = tmp_path / "store", [each.slug for each in prepared.categories]
    for number, options in enumerate(((), ("--seed", 1))):
        old = dl.ModelStore.open(store) if number else None
        with begin(prepared, store, *options) as process:
            program.wait_for(lambda: n_done(store) >= 2, process)
            process.kill()
        assert process.returncode == -signal.SIGKILL
        assert program.within(60, lambda: not program.processes_of(process.pid))  # workers end, too
        done, before = n_done(store), models_in(store)
        assert (store / "manifest.json").exists() == (old is not None)
        assert old is None or (old.verify() == [] and dl.ModelStore.open(store).versions == old.versions)
        again = fitted(prepared, output=store, segments=2, max_iter=20, seed=number)
        assert (list(again), len(again.fitted), again.verify() == []) == (slugs, len(slugs) - done, True)
        assert before <= models_in(store)
        assert n_done(store) == 0
        hidden = [path for path in store.rglob("*") if path.name.startswith(".") and path.name != ".fit-all"]
        assert (hidden, [path.name for path in (store / ".fit-all").iterdir()]) == ([], ["lock"])


@pytest.mark.skipif(not program.HAS_PROC, reason="finds the workers by /proc")
def test_a_worker_that_is_killed_is_replaced_and_nothing_is_lost(prepared: dl.Prepared, tmp_path: Path) -> None:
    with begin(prepared, tmp_path / "store", "--restarts", 3) as process:
        program.wait_for(lambda: len(models_in(tmp_path / "store")) >= 1, process)
        commands = {pid: Path(f"/proc/{pid}/cmdline").read_text() for pid in program.processes_of(process.pid)}
        os.kill(next(pid for pid, line in commands.items() if "popen_loky" in line), signal.SIGKILL)
        assert process.communicate(timeout=120)[1] == ""
    assert process.returncode == 0
    assert list(dl.ModelStore.open(tmp_path / "store")) == [each.slug for each in prepared.categories]


def test_ctrl_c_ends_it_and_keeps_the_finished_categories(prepared: dl.Prepared, tmp_path: Path) -> None:
    with begin(prepared, tmp_path / "store", "--restarts", 10) as process:
        program.wait_for(lambda: n_done(tmp_path / "store") >= 1, process)
        process.send_signal(signal.SIGINT)
        assert "Traceback" not in process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert n_done(tmp_path / "store") >= 1


def test_the_command_reports_fitted_and_failed_categories(prepared: dl.Prepared, tmp_path: Path) -> None:
    call = ("fit-all", prepared.folder, "-o", tmp_path / "store", "--segments", 1, "--max-iter", 2, "--processes", 1)
    assert "category-3" in table(*call)
    found = answer(*call)
    assert (found["fitted"], len(found["categories"]), found["failed"]) == ([], 4, [])
    damaged = prepared.folder / prepared.category("category-3").files["train"].file
    content = damaged.read_bytes()
    damaged.write_bytes(b"no table")
    try:
        done = run(*call, "--fresh")
    finally:
        damaged.write_bytes(content)
    assert (done.returncode, "category-3" in done.stderr, "category-2" in done.stderr) == (1, True, False)
    for name in ("fit", "fit-all"):
        assert {each.name for each in fields(Learn)} <= signature(command(name)).parameters.keys()
