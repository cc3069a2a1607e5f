"""fit-all when it or a worker is killed, and its command."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from dataclasses import fields
from inspect import signature
from pathlib import Path

import numpy as np
import pytest

import dpplearn as dl
from dpplearn.cli.app import command
from dpplearn.cli.learning import Learning
from helpers import program
from helpers.command import answer, run, table
from helpers.order_files import random_orders, write_csv
from helpers.shelves import fitted

OPTIONS = ("--segments", 2, "--max-iter", 20, "--processes", 2, "--quiet")
pytestmark = pytest.mark.slow
HAS_PROC = Path("/proc/self/stat").exists()
SAME = {"segments": 2, "max_iter": 20}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> dl.Prepared:
    folder = tmp_path_factory.mktemp("prepared")
    orders = write_csv(folder / "orders.csv", ("basket", "item", "category"), random_orders(500, n_categories=6))
    return dl.prepare(orders, folder / "prepared", min_count=3, min_items=2)


def children(pid: int) -> list[int]:
    """The processes that a process started, told by /proc."""
    found = []
    for each in Path("/proc").iterdir():
        try:
            after_name = (each / "stat").read_text().rsplit(")", 1)[1].split()
        except (OSError, IndexError):
            continue
        if int(after_name[1]) == pid and "resource_tracker" not in (each / "cmdline").read_text():
            found.append(int(each.name))
    return found


def kill(process: subprocess.Popen[str]) -> bool:
    """Whether it was still running. Its workers end by themselves, a moment later."""
    workers = children(process.pid) if HAS_PROC else []
    process.send_signal(signal.SIGKILL)
    process.communicate()
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{pid}").exists() for pid in workers) and time.monotonic() < deadline:
        time.sleep(0.02)
    return process.returncode == -signal.SIGKILL


def fit_all(prepared: dl.Prepared, shelf: Path, *options: object) -> subprocess.Popen[str]:
    return program.begin("fit-all", prepared.folder, "-o", shelf, *OPTIONS, *options)


def models_in(shelf: Path) -> set[str]:
    return {path.name for path in (shelf / "models").glob("*.safetensors")}


def test_killed_at_any_moment_the_old_shelf_or_the_new_is_there_whole(prepared: dl.Prepared, tmp_path: Path) -> None:
    """At first there is nothing; after that, the shelf of another seed. What was learned is not learned again."""
    began = time.monotonic()
    assert program.run("fit-all", prepared.folder, "-o", tmp_path / "timed", *OPTIONS).returncode == 0
    takes = time.monotonic() - began
    slugs = [each.slug for each in prepared.categories]
    kills = 0
    for trial, moment in enumerate(np.sort(np.random.default_rng(0).uniform(0.4, 1.0, 3)) * takes):
        out = tmp_path / f"out {trial}"
        old = fitted(prepared, output=out, seed=1) if trial % 2 else None
        process = fit_all(prepared, out)
        time.sleep(moment)
        kills += kill(process)
        if old is not None or (out / "manifest.json").exists():
            found = dl.Shelf.open(out)
            assert (found.is_whole(), list(found)) == (True, slugs)
        assert old is None or old.is_whole()
        found = fitted(prepared, output=out, **SAME)
        assert (found.is_whole(), list(found), found.manifest["seed"]) == (True, slugs, 0)
        assert len(list((out / "models").iterdir())) == len(slugs) * (2 if old is not None else 1)
    assert kills >= 1


def test_killed_in_the_middle_it_goes_on_with_the_categories_that_are_missing(
    prepared: dl.Prepared, tmp_path: Path
) -> None:
    journal = tmp_path / "shelf" / ".fit-all" / "journal.jsonl"
    process = fit_all(prepared, tmp_path / "shelf")
    program.wait_for(lambda: journal.exists() and journal.read_text().count("\n") >= 3, process)
    assert kill(process)
    done = journal.read_text().count("\n") - 1
    before = models_in(tmp_path / "shelf")
    assert not (tmp_path / "shelf" / "manifest.json").exists()
    again = fitted(prepared, output=tmp_path / "shelf", **SAME)
    assert (len(again), len(again.learned)) == (6, 6 - done)
    assert len(before & models_in(tmp_path / "shelf")) >= done
    assert not journal.exists()


@pytest.mark.skipif(not HAS_PROC, reason="finds the workers by /proc")
def test_a_worker_that_is_killed_is_replaced_and_nothing_is_lost(prepared: dl.Prepared, tmp_path: Path) -> None:
    process = fit_all(prepared, tmp_path / "shelf", "--restarts", 10)
    program.wait_for(lambda: len(models_in(tmp_path / "shelf")) >= 1, process)
    os.kill(children(process.pid)[0], signal.SIGKILL)
    assert (process.wait(), process.communicate()[1]) == (0, "")
    assert list(dl.Shelf.open(tmp_path / "shelf")) == [each.slug for each in prepared.categories]


def test_ctrl_c_ends_it_with_what_was_learned_kept(prepared: dl.Prepared, tmp_path: Path) -> None:
    journal = tmp_path / "shelf" / ".fit-all" / "journal.jsonl"
    process = fit_all(prepared, tmp_path / "shelf", "--restarts", 10)
    program.wait_for(lambda: journal.exists() and journal.read_text().count("\n") >= 2, process)
    process.send_signal(signal.SIGINT)
    assert (process.wait(), "Traceback" in process.communicate()[1]) == (130, False)
    assert journal.read_text().count("\n") >= 2


def test_the_command_reports_fitted_and_failed_categories(prepared: dl.Prepared, tmp_path: Path) -> None:
    call = ("fit-all", prepared.folder, "-o", tmp_path / "shelf", "--segments", 1, "--max-iter", 2)
    assert "category-5" in table(*call)
    found = answer(*call)
    assert (found["learned"], len(found["categories"]), found["failed"]) == ([], 6, [])
    damaged = prepared.folder / prepared.category("category-3").files["train"].file
    content = damaged.read_bytes()
    damaged.write_bytes(b"no table")
    try:
        done = run(*call, "--fresh")
    finally:
        damaged.write_bytes(content)
    assert (done.returncode, "category-3" in done.stderr) == (1, True)
    assert "category-4" not in done.stderr


def test_fit_and_fit_all_have_all_options_of_learning() -> None:
    for name in ("fit", "fit-all"):
        assert {each.name for each in fields(Learning)} <= signature(command(name)).parameters.keys()


def test_the_command_rejects_invalid_arguments(prepared: dl.Prepared, tmp_path: Path) -> None:
    new = (prepared.folder, "-o", tmp_path / "out")
    for arguments, code, names in (
        ((tmp_path / "nowhere", "-o", tmp_path / "out"), 1, "nowhere"),
        ((prepared.folder, "-o", prepared.folder, "--force"), 2, str(prepared.folder)),
        ((*new, "--shrinkage", 0.5, "--segments", 2), 2, "--segments"),
        ((*new, "--learner", "em", "--nonempty"), 2, "--nonempty"),
        ((*new, "--processes", 0), 2, "'--processes'"),
    ):
        done = run("fit-all", *arguments)
        assert (done.returncode, names in done.stderr) == (code, True), done.stderr
        assert not (tmp_path / "out").exists()
