"""Killed preparations leave the old result or the new one, never a mixture, and the next run resumes."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

import dpplearn as dl
from helpers import program
from helpers.command import answer, run, table
from helpers.order_files import random_orders, write_csv

WORK = ".prepare"
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
    return {
        name: content for name, (_, content) in state(folder).items() if name not in ("manifest.json", f"{WORK}/lock")
    }


def begin(orders: Path, out: Path) -> AbstractContextManager[subprocess.Popen[str]]:
    return program.begin("prepare", orders, "-o", out, *OPTIONS)


def leftovers(out: Path) -> list[str]:
    return [path.name for path in (out / WORK).iterdir() if path.name != "lock"]


def test_killed_it_leaves_the_old_result_or_the_new_one(orders: Path, tmp_path: Path) -> None:
    """Killed while it reads, and while it writes; into an empty folder, and over a result of another seed."""
    dl.prepare(orders, tmp_path / "whole", **RULES)
    for number, moment in enumerate((f"{WORK}/work.duckdb", f"{WORK}/new/*.parquet")):
        out, old = tmp_path / f"out {number}", None
        if number:
            old = dl.prepare(orders, out, **RULES, seed=1)
        with begin(orders, out) as process:
            program.wait_for(lambda: len(set(out.glob(moment))) >= 1 + 2 * number, process)  # noqa: B023
            process.kill()
        assert process.returncode == -signal.SIGKILL
        assert (out / "manifest.json").exists() == (old is not None)
        if old is not None:
            assert dl.Prepared.open(out).manifest == old.manifest
            assert old.is_whole()
        assert dl.prepare(orders, out, **RULES).new
        assert contents(out) == contents(tmp_path / "whole")
        assert leftovers(out) == []


def test_only_changed_input_rules_or_files_are_prepared_again(tmp_path: Path) -> None:
    orders = write_csv(tmp_path / "orders.csv", COLUMNS, random_orders(100))
    first = dl.prepare(tmp_path, tmp_path / "out", **RULES)  # the result is in the folder that is read
    assert [Path(each["path"]).name for each in first.manifest["inputs"]] == ["orders.csv"]
    before, files = state(tmp_path / "out"), contents(tmp_path / "out")
    os.utime(orders)
    assert (first.new, dl.prepare(tmp_path, tmp_path / "out", **RULES).new) == (True, False)
    assert state(tmp_path / "out") == before
    (tmp_path / "out" / first.categories[0].files["train"].file).write_bytes(b"damaged")
    assert dl.prepare(tmp_path, tmp_path / "out", **RULES).new
    assert contents(tmp_path / "out") == files
    assert dl.prepare(tmp_path, tmp_path / "out", **RULES, seed=3).new
    assert len(list((tmp_path / "out").iterdir())) == 3  # the files of the run before are gone
    write_csv(orders, COLUMNS, random_orders(101))
    assert dl.prepare(tmp_path, tmp_path / "out", **RULES, seed=3).new


def test_leftovers_of_a_run_that_was_killed_at_its_end_are_removed_by_a_run_with_nothing_to_do(tmp_path: Path) -> None:
    orders, out = write_csv(tmp_path / "orders.csv", COLUMNS, random_orders(100)), tmp_path / "out"
    dl.prepare(orders, out, **RULES)
    before = contents(out)
    for folder in (out / "baskets-0123abcd", out / WORK / "new"):
        folder.mkdir()
        (folder / "toys.train.parquet").write_bytes(b"old")
    (out / WORK / "work.duckdb").write_bytes(b"work")
    assert not dl.prepare(orders, out, **RULES).new
    assert contents(out) == before
    assert not (out / "baskets-0123abcd").exists()


def test_a_full_disk_or_a_folder_without_permission_is_an_error_and_keeps_the_old_result(
    orders: Path, tmp_path: Path
) -> None:
    out, unlimited = tmp_path / "out", resource.getrlimit(resource.RLIMIT_FSIZE)
    dl.prepare(orders, out, **RULES)
    before = contents(out)
    for limit in (4096, 100_000):  # bytes of a file: when the database is created, and when rows are stored
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, unlimited[1]))
        try:
            with pytest.raises(dl.InputError, match="disk cannot be written"):
                dl.prepare(orders, out, **RULES, seed=1)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    assert (contents(out), leftovers(out)) == (before, [])
    (out / WORK / "lock").unlink()
    (out / WORK / "lock").mkdir()  # cannot be opened, also not by root
    with pytest.raises(dl.InputError, match="lock cannot be written"):
        dl.prepare(orders, out, **RULES, seed=1)
    assert contents(out) == before


def test_two_runs_in_one_folder_do_not_mix(orders: Path, tmp_path: Path) -> None:
    (tmp_path / "out" / WORK).mkdir(parents=True)
    stage = tmp_path / "out" / WORK / "work.duckdb"
    stage.write_bytes(b"not a database" * 1000)  # is replaced
    with begin(orders, tmp_path / "out") as process:
        program.wait_for(lambda: stage.exists() and b"not a database" not in stage.read_bytes()[:100], process)
        os.kill(process.pid, signal.SIGSTOP)
        try:
            done = run("prepare", orders, "-o", tmp_path / "out", *OPTIONS)
        finally:
            os.kill(process.pid, signal.SIGCONT)
        process.communicate(timeout=60)
    assert (done.returncode, str(tmp_path / "out") in done.stderr) == (1, True)
    assert process.returncode == 0
    assert dl.Prepared.open(tmp_path / "out").is_whole()
    assert leftovers(tmp_path / "out") == []


def test_the_command_reports_the_rows_that_every_rule_removed(orders: Path, tmp_path: Path) -> None:
    shown = table("prepare", orders, "-o", tmp_path / "out", *OPTIONS)
    found = answer("prepare", "-o", tmp_path / "out")
    assert (found["new"], len(found["categories"]), found["rules"]["min_count"]) == (False, 15, 3)
    assert found["n_rows"] == sum(each["rows"] for each in found["account"])
    repeats = next(each["rows"] for each in found["account"] if each["rule"] == "repeats")
    assert [text for text in (f"-{repeats:,}", "Category 3", "category-3") if text not in shown] == []


def test_a_memory_limit_beyond_the_machine_is_the_memory_of_the_machine(tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text("basket,item\n" + "".join(f"{n},a\n{n},b\n" for n in range(30)))
    call = ("prepare", tmp_path / "orders.csv", "-o", tmp_path / "out", "--min-count", 1, "--min-items", 2)
    done = run(*call, "--min-baskets-per-item", 1, "--min-size", 1, "--memory", "99999999999999999999999")
    assert (done.returncode, done.stderr) == (0, "")
    assert dl.Prepared.open(tmp_path / "out").is_whole()
