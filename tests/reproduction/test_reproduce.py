"""Runs of several trials, their files, tables and figures, and the command line."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from dpplearn import InputError
from helpers.registries import shoppers, write_registry
from reproduction import run
from reproduction.__main__ import main
from reproduction.data import PAPER, Source
from reproduction.experiments import EXPERIMENTS, Row, Scale, Trial
from reproduction.figures import write_figures
from reproduction.run import Results, add_row, read_results, read_rows, reproduce, run_over_processes
from reproduction.tables import all_tables, gain, quartiles

SMALL = Scale(trials=2, small_tol=1, textbook=1, textbook_2N=1)
RunOne = Callable[[Trial], Row]
N_TRIALS = 1 + 1 + 1 + 1 + 2 + 2 + 2 + 1 + 1  # on one category


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    folder = tmp_path_factory.mktemp("registries")
    write_registry(folder, "furniture", shoppers(75, 25), 25)
    return Source(folder)


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[Trial]:
    """Run trials that cost nothing, without other processes; the list has the trials that were run."""
    trials: list[Trial] = []

    def cheap(source: Source, trial: Trial) -> Row:
        trials.append(trial)
        return {"em_test": -1.0 - trial.number, "ka_test": -math.inf, "em_seconds": float(len(trials))}

    def run_here(todo: Sequence[Trial], run_one: RunOne, *_: object) -> Iterator[tuple[Trial, Row]]:
        return ((trial, run_one(trial)) for trial in todo)

    monkeypatch.setattr(run, "run_over_processes", run_here)
    for experiment in EXPERIMENTS:
        monkeypatch.setitem(EXPERIMENTS, experiment, cheap)
    return trials


@pytest.mark.slow
def test_an_interrupted_run_continues_and_a_finished_run_does_nothing(
    source: Source, tmp_path: Path, done: list[Trial], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(source: Source, trial: Trial) -> Row:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setitem(EXPERIMENTS, "moments_2N", interrupt)
        with pytest.raises(KeyboardInterrupt):
            reproduce(source, tmp_path, SMALL, ["furniture"])
    assert 0 < len(done) < N_TRIALS
    results = reproduce(source, tmp_path, SMALL, ["furniture"])
    assert len({*done}) == len(done) == N_TRIALS
    files = {path.stem: read_rows(path) for path in tmp_path.iterdir()}
    assert set(files) == set(EXPERIMENTS) - {"authors"}  # no run of the authors' program is there
    assert sum(map(len, files.values())) == N_TRIALS
    assert reproduce(source, tmp_path, SMALL, ["furniture"]) == results == read_results(tmp_path)
    assert len(done) == N_TRIALS
    for other, value in ((Source(None), "generated"), (Source(source.folder, seed=1), "seed 1")):
        with pytest.raises(InputError, match=value):
            reproduce(other, tmp_path, SMALL, ["furniture"])
    assert read_results(tmp_path) == results


@pytest.mark.slow
def test_a_failed_trial_is_named() -> None:
    with pytest.raises(InputError, match="job -7"):
        list(run_over_processes([-7], math.sqrt, 1))


def test_rows_are_read_as_they_were_written_without_an_interrupted_one(tmp_path: Path) -> None:
    rows = [{"n": 3, "x": -math.inf, "set": ["crib", "cot"]}, {"n": 4, "x": 0.1, "set": []}]
    add_row(tmp_path / "rows", rows[0])
    with open(tmp_path / "rows", "a") as file:
        file.write('\n{"n": 4, "x"')  # an interruption
    add_row(tmp_path / "rows", rows[1])
    assert read_rows(tmp_path / "rows") == rows


def comparison(category: str, trial: int, em: float, ka: float) -> Row:
    row = {"category": category, "trial": trial, "n_items": PAPER[category].n_items}
    for name, test in (("em", em), ("ka", ka), ("independent", -5.0)):
        row |= {f"{name}_test": test, f"{name}_seconds": 1.0, f"{name}_off_diagonal": 0.5, f"{name}_zeros": 0}
    return row | {"ka_first_zeros": 1, "em_greedy_set": ["crib"], "ka_greedy_set": ["cot"]}


def test_tables_and_figures_have_our_numbers_next_to_the_papers(tmp_path: Path) -> None:
    """Gains of 1, 2 and 3 % in one category and of 5 % in the other."""
    rows = [comparison("safety", trial, -100.0 + gain, -100.0) for trial, gain in enumerate((1.0, 2.0, 3.0))]
    rows.append(comparison("furniture", 0, -95.0, -100.0))
    results: Results = {experiment: [] for experiment in EXPERIMENTS} | {"wishart": rows, "moments": rows}
    tables = {table.title: table for table in all_tables(results)}
    lines = {line[0]: list(line[1:]) for line in tables["Wishart start, all training data"].rows}
    assert lines["safety"] == ["3", "2.00 [1.50, 2.50]", "11.05 [10.88, 11.12]"]
    assert lines["furniture"] == ["1", "5.00 [5.00, 5.00]", "9.89 [9.80, 10.07]"]
    assert lines["average"] == ["", "3.50", "10.47"]
    lines = {line[0]: list(line[1:]) for line in tables["Moments start, all training data"].rows}
    assert lines["safety"] == ["3", "2.00 [1.50, 2.50]", "1.00 to 3.00", "-0.13"]
    assert [path.name for path in write_figures(results, tmp_path)] == ["wishart.png", "moments.png"]
    assert math.isnan(gain({"em_test": -9.0, "ka_test": -math.inf}))
    assert quartiles([math.nan, 1.0, 2.0, 3.0, math.inf]) == [1.5, 2.0, 2.5]


@pytest.mark.slow
def test_a_small_run_on_generated_registries_writes_tables_and_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["--quick", "--generated", "-o", str(tmp_path / "out"), "--processes", "1"]
    quick = Scale(1, 1, 0, 0)
    assert main(command, quick, ["safety"]) == 0
    first = capsys.readouterr()
    assert "| safety " in first.out
    assert "| safety " in (tmp_path / "out" / "tables.md").read_text()
    for name in ("wishart", "moments", "moments_2N"):
        assert (tmp_path / "out" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    (row,) = read_rows(tmp_path / "out" / "wishart.jsonl")
    assert (row["category"], row["data"]) == ("safety", "generated")
    assert main(command, quick, ["safety"]) == 0
    assert capsys.readouterr().out == first.out
    assert main(["--data", str(tmp_path)]) == 1  # no registries there
    failed = capsys.readouterr()
    assert failed.out == ""
    assert str(tmp_path) in failed.err
