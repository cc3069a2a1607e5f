"""Killed preparations leave the old result or the new one, never a mixture, and the next run resumes."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import duckdb
import numpy as np
import pytest

import dpplearn as dl
from dpplearn.pipeline.stage import DATABASE, WORK
from helpers import program
from helpers.command import answer, run, table
from helpers.order_files import random_orders, write_csv

COLUMNS = ("basket", "item", "category")
RULES = {"min_count": 3, "min_items": 2}
pytestmark = pytest.mark.slow
OPTIONS = ("--min-count", 3, "--min-items", 2, "--threads", 1)


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = random_orders(1500, n_categories=15)
    return write_csv(tmp_path_factory.mktemp("orders") / "orders.csv", COLUMNS, rows)


def state(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file with the time it was written and what is in it."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


def contents(folder: Path) -> dict[str, bytes]:
    return {name: content for name, (_, content) in state(folder).items() if name != "manifest.json"}


def test_killed_at_any_moment_nothing_is_half_written_and_nothing_is_lost(orders: Path, tmp_path: Path) -> None:
    """At first there is nothing in the folder; after that, what was prepared by other rules."""
    old = dl.prepare(orders, tmp_path / "old", **RULES, seed=1)
    dl.prepare(orders, tmp_path / "whole", **RULES)
    began = time.monotonic()
    assert program.run("prepare", orders, "-o", tmp_path / "timed", *OPTIONS).returncode == 0
    takes = time.monotonic() - began
    rng = np.random.default_rng(0)
    kills = 0
    for trial, moment in enumerate(np.sort(rng.uniform(0.2, 1.0, 4)) * takes):
        out = tmp_path / f"out {trial}"
        if trial % 2:
            dl.prepare(orders, out, **RULES, seed=1)
        process = program.begin("prepare", orders, "-o", out, *OPTIONS)
        time.sleep(moment)
        process.send_signal(signal.SIGKILL)
        kills += process.wait() == -signal.SIGKILL
        process.communicate()
        check_whole(out, old if trial % 2 else None)
        assert program.run("prepare", orders, "-o", out, *OPTIONS).returncode == 0
        assert contents(out) == contents(tmp_path / "whole")
    assert kills >= 2


def check_whole(out: Path, old: dl.Prepared | None) -> None:
    """The manifest tells of files that are there as they were written, or there is none yet."""
    if not (out / "manifest.json").exists():
        assert old is None
        return
    found = dl.Prepared.open(out)
    assert found.is_whole()
    for each in found.categories:
        assert len(found.train(each.slug)) == each.n_baskets["train"]


def test_killed_while_it_writes_the_files_it_goes_on_with_those_that_are_missing(orders: Path, tmp_path: Path) -> None:
    process = program.begin("prepare", orders, "-o", tmp_path / "out", *OPTIONS)
    program.wait_for(lambda: len(list(tmp_path.glob("out/baskets-*/*.parquet"))) >= 3, process)
    process.kill()
    process.communicate()
    written = {path: path.stat().st_mtime_ns for path in sorted(tmp_path.glob("out/baskets-*/*.parquet"))[:2]}
    assert not (tmp_path / "out" / "manifest.json").exists()
    found = dl.prepare(orders, tmp_path / "out", **RULES)
    assert found.new
    assert {path: path.stat().st_mtime_ns for path in written} == written
    assert not list(tmp_path.glob("out/baskets-*/.*"))


def test_the_same_input_and_rules_change_nothing(orders: Path, tmp_path: Path) -> None:
    first = dl.prepare(orders, tmp_path / "out", **RULES)
    before = state(tmp_path / "out")
    os.utime(orders)
    second = dl.prepare(orders, tmp_path / "out", **RULES)
    assert (first.new, second.new) == (True, False)
    assert state(tmp_path / "out") == before
    assert not answer("prepare", orders, "-o", tmp_path / "out", *OPTIONS)["new"]


def test_other_rules_other_data_or_a_damaged_file_are_prepared_anew(tmp_path: Path) -> None:
    orders = write_csv(tmp_path / "orders.csv", COLUMNS, random_orders(100))
    first = dl.prepare(orders, tmp_path / "out", **RULES)
    good = contents(tmp_path / "out")
    (tmp_path / "out" / first.categories[0].files["train"].file).write_bytes(b"damaged")
    assert dl.prepare(orders, tmp_path / "out", **RULES).new
    assert contents(tmp_path / "out") == good
    assert dl.prepare(orders, tmp_path / "out", **RULES, seed=3).new
    assert len(list((tmp_path / "out").iterdir())) == 2  # the files of the run before are gone
    write_csv(orders, COLUMNS, random_orders(101))
    assert dl.prepare(orders, tmp_path / "out", **RULES, seed=3).new


def test_two_runs_in_one_folder_do_not_mix(orders: Path, tmp_path: Path) -> None:
    process = program.begin("prepare", orders, "-o", tmp_path / "out", *OPTIONS)
    program.wait_for(lambda: (tmp_path / "out" / WORK / DATABASE).exists(), process)
    os.kill(process.pid, signal.SIGSTOP)
    try:
        done = program.run("prepare", orders, "-o", tmp_path / "out", *OPTIONS)
    finally:
        os.kill(process.pid, signal.SIGCONT)
    assert (done.returncode, str(tmp_path / "out") in done.stderr) == (1, True)
    process.communicate()
    assert process.returncode == 0
    assert dl.Prepared.open(tmp_path / "out").is_whole()


def test_a_stage_that_is_no_database_is_begun_anew(orders: Path, tmp_path: Path) -> None:
    (tmp_path / "out" / WORK).mkdir(parents=True)
    (tmp_path / "out" / WORK / DATABASE).write_bytes(b"not a database" * 1000)
    assert dl.prepare(orders, tmp_path / "out", **RULES).is_whole()
    assert not (tmp_path / "out" / WORK).exists()


def test_what_was_prepared_in_a_folder_of_the_input_is_not_read_as_orders(tmp_path: Path) -> None:
    write_csv(tmp_path / "orders.csv", COLUMNS, random_orders(100))
    first = dl.prepare(tmp_path, tmp_path / "prepared", **RULES)
    assert not dl.prepare(tmp_path, tmp_path / "prepared", **RULES).new
    assert [Path(each["path"]).name for each in first.manifest["inputs"]] == ["orders.csv"]


def test_the_command_reports_the_rows_that_every_rule_removed(orders: Path, tmp_path: Path) -> None:
    found = answer("prepare", orders, "-o", tmp_path / "out", *OPTIONS)
    assert (found["new"], len(found["categories"]), found["rules"]["min_count"]) == (True, 15, 3)
    assert found["n_rows"] == sum(each["rows"] for each in found["account"])
    repeats = next(each["rows"] for each in found["account"] if each["rule"] == "repeats")
    shown = table("prepare", "--report", "-o", tmp_path / "out")
    assert [text for text in (f"-{repeats:,}", "Category 3", "category-3") if text not in shown] == []
    with duckdb.connect() as connection:
        file = tmp_path / "out" / found["categories"][0]["files"]["train"]["file"]
        columns = connection.execute(f"SELECT * FROM '{file}' LIMIT 0").description
    assert [column[0] for column in columns] == ["basket", "item"]


def test_the_command_rejects_invalid_arguments(tmp_path: Path) -> None:
    for arguments, code, names in (
        ((), 2, "--report"),
        (("--report", "-o", tmp_path), 1, "manifest.json"),
        (("x.csv", "--category", "shelf", "--one-category"), 2, "--one-category"),
        (("x.csv", "--count", "lines"), 2, "'lines'"),
    ):
        done = run("prepare", *arguments)
        assert (done.returncode, names in done.stderr) == (code, True), done.stderr
