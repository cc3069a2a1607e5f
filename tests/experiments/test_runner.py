"""A reproduction that was cut off goes on where it was, and one that was finished is not run again."""

from __future__ import annotations

import json
import math
import multiprocessing
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from dpplearn import InputError
from dpplearn.experiments import reproduction
from dpplearn.experiments.plan import Scale
from dpplearn.experiments.registries import Source
from dpplearn.experiments.reproduction import JOURNAL, RESULTS, reproduce
from dpplearn.experiments.results import Results, full_row, read_results
from dpplearn.experiments.runner import run_trial, run_trials
from dpplearn.experiments.trials.trial import Job, Row
from dpplearn.tools.jobs import run_in_turn
from dpplearn.tools.progress import Bar, Progress
from helpers.registry_files import shoppers, write_registry

ONE = Scale(1, 0, 0, 0, 0, (), (), 0)  # bells: a trial of each of four experiments; two preparations
TWO = Scale(2, 0, 0, 0, 0, (), (), 0)  # three more


class Watch(Progress):
    """A progress display that counts, and does something after so many trials."""

    def __init__(self, after: int | None = None, then: Callable[[], None] = lambda: None) -> None:
        self.after, self.then = after, then
        self.bars: list[Bar] = []
        self.totals, self.done = Counter[str](), Counter[str]()
        self.advanced: list[str] = []

    def changed(self, bar: Bar) -> None:
        if bar.what == "all trials":
            return
        if bar not in self.bars:
            self.bars.append(bar)
            self.totals[bar.what], self.done[bar.what] = bar.total, bar.done
            return
        self.advanced.append(bar.what)
        if len(self.advanced) == self.after:
            self.then()


def interrupt() -> None:
    raise KeyboardInterrupt


def kill_workers() -> None:
    for child in multiprocessing.active_children():
        child.kill()


def without_times(results: Results) -> list[str]:
    """Rows that can be compared: NaN is not itself, and no two runs take the same time."""
    return [repr({name: row[name] for name in row if not name.endswith("seconds")}) for row in results.rows]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    """One category that is admitted, and one that is not."""
    folder = tmp_path_factory.mktemp("registries")
    write_registry(folder, "bells", shoppers(75, 25), 25)
    write_registry(folder, "crumbs", shoppers(10, 4), 4)
    return Source(folder, seed=0)


@pytest.fixture(scope="module")
def whole(source: Source, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A run that nothing disturbed."""
    return reproduce(tmp_path_factory.mktemp("whole"), source, scale=ONE, processes=2)


Run = Callable[[Job, Source], Row]


def one_by_one(run: Run) -> Callable[..., Iterator[Row]]:
    """Like run_trials, in this process."""

    def runs(jobs: Sequence[Job], source: Source, processes: int | None) -> Iterator[tuple[Job, Row]]:
        return run_in_turn(jobs, partial(run, source=source))

    return runs


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials are run in this process."""
    monkeypatch.setattr(reproduction, "run_trials", one_by_one(run_trial))


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials cost nothing, and no two are the same, not even of one job."""
    number = count()

    def run(job: Job, source: Source) -> Row:
        return full_row(job, {"em_test": -math.inf, "ka_test": -1 - source.seed, "ka_seconds": float(next(number))})

    monkeypatch.setattr(reproduction, "run_trials", one_by_one(run))


def test_no_jobs_start_no_processes(source: Source) -> None:
    before = set(multiprocessing.active_children())
    assert list(run_trials([], source, 2)) == []
    assert set(multiprocessing.active_children()) <= before


def test_an_interrupted_run_goes_on_and_ends_as_if_it_had_not_been(
    source: Source, whole: Results, tmp_path: Path
) -> None:
    first, second = Watch(3, interrupt), Watch()
    with pytest.raises(KeyboardInterrupt):
        reproduce(tmp_path, source, scale=ONE, processes=1, progress=first)
    assert not (tmp_path / RESULTS).exists()
    assert len((tmp_path / JOURNAL).read_text().splitlines()) == 1 + 3
    results = reproduce(tmp_path, source, scale=ONE, processes=1, progress=second)
    assert second.done.total() == 3
    assert Counter(first.advanced) + Counter(second.advanced) == second.totals
    assert without_times(results) == without_times(whole)


def test_a_worker_that_was_killed_is_an_input_error_and_finished_trials_are_kept(
    source: Source, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"ended from outside.*run the same command again to go on"):
        reproduce(tmp_path, source, scale=TWO, processes=1, progress=Watch(1, kill_workers))
    assert len((tmp_path / JOURNAL).read_text().splitlines()) >= 1 + 1


def test_trials_do_not_depend_on_the_process_they_run_in(
    source: Source, whole: Results, tmp_path: Path, here: None
) -> None:
    assert without_times(reproduce(tmp_path, source, scale=ONE)) == without_times(whole)


def test_another_seed_gives_other_results(source: Source, whole: Results, tmp_path: Path, here: None) -> None:
    found = reproduce(tmp_path, Source(source.folder, seed=1), scale=ONE)
    pairs = zip(without_times(found), without_times(whole), found.rows, strict=True)
    assert {row["experiment"] for ours, theirs, row in pairs if ours == theirs} == {"preparation"}


def test_rows_come_in_one_order_whatever_order_they_finished_in(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_turn = one_by_one(lambda job, source: full_row(job, {}))
    monkeypatch.setattr(reproduction, "run_trials", lambda jobs, *rest: in_turn(jobs[::-1], *rest))
    turned = reproduce(tmp_path / "turned", source, scale=TWO).rows
    monkeypatch.setattr(reproduction, "run_trials", in_turn)
    assert reproduce(tmp_path / "in turn", source, scale=TWO).rows == turned


def test_a_finished_run_is_not_run_again(source: Source, tmp_path: Path, made_up: None) -> None:
    first, second = Watch(), Watch()
    once = reproduce(tmp_path, source, scale=TWO, progress=first)
    again = reproduce(tmp_path, source, scale=TWO, progress=second)
    assert (len(first.advanced), second.advanced) == (9, [])
    assert second.done == second.totals == Counter(bells=7, preparation=2)
    assert again == once == read_results(tmp_path / RESULTS)


def test_a_finished_run_leaves_no_file_but_its_results(source: Source, tmp_path: Path, made_up: None) -> None:
    reproduce(tmp_path / "new" / "folder", source, scale=ONE)
    assert [path.name for path in (tmp_path / "new" / "folder").iterdir()] == [RESULTS]


def test_fresh_forgets_a_finished_run(source: Source, tmp_path: Path, made_up: None) -> None:
    once = reproduce(tmp_path, source, scale=TWO)
    again = reproduce(tmp_path, source, scale=ONE, fresh=True)
    assert len(again.rows) == 6
    assert not any(row in once.rows for row in again.rows)


def test_fresh_forgets_what_an_interrupted_run_left(source: Source, tmp_path: Path, made_up: None) -> None:
    with pytest.raises(KeyboardInterrupt):
        reproduce(tmp_path, source, scale=ONE, progress=Watch(3, interrupt))
    watch = Watch()
    reproduce(tmp_path, source, scale=ONE, fresh=True, progress=watch)
    assert len(watch.advanced) == 6


def test_a_fresh_run_that_was_interrupted_goes_on_without_the_old_trials(
    source: Source, tmp_path: Path, made_up: None
) -> None:
    once = reproduce(tmp_path, source, scale=ONE)
    with pytest.raises(KeyboardInterrupt):
        reproduce(tmp_path, source, scale=ONE, fresh=True, progress=Watch(3, interrupt))
    watch = Watch()
    again = reproduce(tmp_path, source, scale=ONE, progress=watch)
    assert len(watch.advanced) == 3
    assert not any(row in once.rows for row in again.rows)


@pytest.mark.parametrize("text", ["[]\n", "1\n", '{"a": 1}\n'])
def test_a_journal_of_something_else_is_refused(source: Source, tmp_path: Path, made_up: None, text: str) -> None:
    (tmp_path / JOURNAL).write_text(text)
    with pytest.raises(InputError, match="not what an earlier run left"):
        reproduce(tmp_path, source, scale=ONE)


def runs(process: Path) -> bool:
    """Not so one that has ended and that nobody has asked about yet."""
    try:
        return (process / "stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except FileNotFoundError:
        return False


def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    code = """
import multiprocessing, os, sys
from dpplearn.experiments.registries import Source
from dpplearn.experiments.runner import run_trials
from dpplearn.experiments.trials.trial import Job
if __name__ == "__main__":
    rows = run_trials([Job("preparation", "safety"), Job("wishart as printed", "feeding")], Source(None, 0), 1)
    next(rows)
    print(*(child.pid for child in multiprocessing.active_children()), flush=True)
    next(rows)
"""
    (tmp_path / "parent.py").write_text(code)
    with subprocess.Popen([sys.executable, tmp_path / "parent.py"], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        workers = [Path("/proc") / pid for pid in parent.stdout.readline().split()]
        assert len(workers) == 1
        if not workers[0].exists():
            pytest.skip("this system has no /proc to look for processes in")
        parent.kill()
    deadline = time.monotonic() + 30
    while runs(workers[0]) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not runs(workers[0])


def test_more_trials_are_added_to_those_that_are_there(source: Source, tmp_path: Path, made_up: None) -> None:
    less = reproduce(tmp_path, source, scale=ONE).rows
    more = reproduce(tmp_path, source, scale=TWO).rows
    assert len(more) == 9
    assert all(row in more for row in less)


def test_trials_that_are_not_asked_for_this_time_are_kept(source: Source, tmp_path: Path, made_up: None) -> None:
    more = reproduce(tmp_path, source, scale=TWO).rows
    kept = reproduce(tmp_path, source, scale=ONE).rows
    assert len(kept) == len(more)
    assert all(row in kept for row in more)


def test_an_interrupted_addition_loses_neither_the_old_trials_nor_the_new(
    source: Source, tmp_path: Path, made_up: None
) -> None:
    less = reproduce(tmp_path, source, scale=ONE).rows
    with pytest.raises(KeyboardInterrupt):
        reproduce(tmp_path, source, scale=TWO, progress=Watch(2, interrupt))
    watch = Watch()
    more = reproduce(tmp_path, source, scale=TWO, progress=watch).rows
    assert len(watch.advanced) == 1
    assert all(row in more for row in less)


def test_a_folder_with_another_seed_is_refused_and_left_as_it_was(
    source: Source, tmp_path: Path, made_up: None
) -> None:
    once = reproduce(tmp_path, source, scale=ONE)
    other = Source(source.folder, seed=1)
    with pytest.raises(InputError, match=r"results.parquet holds trials of another run \(seed 0 and not 1\)"):
        reproduce(tmp_path, other, scale=ONE)
    assert read_results(tmp_path / RESULTS) == once
    assert reproduce(tmp_path, other, scale=ONE, fresh=True).about.seed == 1


def test_registries_that_changed_are_refused(tmp_path: Path, made_up: None) -> None:
    write_registry(tmp_path / "registries", "bells", shoppers(75, 25), 25)
    source = Source(tmp_path / "registries", 0)
    with pytest.raises(KeyboardInterrupt):
        reproduce(tmp_path / "out", source, scale=ONE, progress=Watch(1, interrupt))
    write_registry(tmp_path / "registries", "bells", shoppers(75, 25, seed=1), 25)
    with pytest.raises(InputError, match=r"another run \(other registries\)"):
        reproduce(tmp_path / "out", source, scale=ONE)


def test_trials_of_another_version_are_refused(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made_up: None
) -> None:
    reproduce(tmp_path, source, scale=ONE)
    monkeypatch.setattr(reproduction, "__version__", "99.0")
    with pytest.raises(InputError, match=r"version of dpplearn .* and not 99\.0"):
        reproduce(tmp_path, source, scale=ONE)


def test_the_papers_tables_are_kept_where_they_are_no_longer_at_hand(
    source: Source, tmp_path: Path, made_up: None
) -> None:
    tables = {"source": "s", "categories": {}, "averages": {}, "runtime_ratio_KA_over_EM_average": 2.1}
    (tmp_path / "paper_tables.json").write_text(json.dumps({**tables, "note": "?"}))
    with_reference = Source(source.folder, source.seed, reference=tmp_path)
    assert reproduce(tmp_path / "out", with_reference, scale=ONE).paper == tables
    assert reproduce(tmp_path / "out", source, scale=ONE).paper == tables


def test_a_file_where_the_folder_should_be_is_an_input_error(source: Source, tmp_path: Path) -> None:
    (tmp_path / "out").touch()
    with pytest.raises(InputError, match=r"out cannot be made a folder: .* name another with -o"):
        reproduce(tmp_path / "out", source, scale=ONE)


def test_a_misspelt_category_makes_no_folder(source: Source, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="did you mean bells"):
        reproduce(tmp_path / "out", source, categories=["bell"], scale=ONE)
    assert not (tmp_path / "out").exists()
