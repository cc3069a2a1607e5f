"""The results file gives back the rows that were written, or says why not; every experiment fits its columns."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import duckdb
import numpy as np
import pytest

from dpplearn import InputError
from dpplearn.experiments.plan import EXPERIMENTS
from dpplearn.experiments.registries import Source
from dpplearn.experiments.results import (
    COLUMNS,
    COUNT,
    FLAG,
    NUMBER,
    TEXT,
    About,
    Results,
    full_row,
    gain,
    in_order,
    job_name,
    read_results,
    write_results,
)
from dpplearn.experiments.runner import trial_journal
from dpplearn.experiments.trials.trial import Job, Row
from dpplearn.learners.starts import wishart
from helpers.registry_files import shoppers, write_registry

ABOUT = About(seed=3, data="original", digest="abc", version="1.2.3")
NAMES = ['a "quoted" bib', "bib, with sleeves", "l'été", "two\nlines", ""]
PAPER = {"source": "the authors' paper", "averages": {"wishart": 3.76}}
TYPES = {TEXT: str, COUNT: int, NUMBER: float, FLAG: bool}


def results_of(*rows: Row, paper: Mapping[str, object] | None = None) -> Results:
    return Results(ABOUT, rows, "2024-05-06T07:08:09+00:00", paper)


def row_of(job: Job, **found: object) -> Row:
    return full_row(job, found)


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "results.parquet"
    write_results(path, results_of(row_of(Job("wishart", "bells"), em_test=-1.5)))
    return path


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    """Six items, and one of the authors' runs that never was."""
    folder = tmp_path_factory.mktemp("registries")
    write_registry(folder, "bells", shoppers(40, 6, seed=1), 6)
    runs = folder / "authors_runs"
    runs.mkdir()
    source = Source(folder, 0, reference=folder)
    np.savez(
        runs / "bells_wishart_0.npz",
        train_rows=np.arange(28),
        test_rows=np.arange(28, 40),
        K_start=wishart(source.load("bells"), np.random.default_rng(0)).K,
        em_test=-3.0,
        ka_test=-3.5,
        em_objective=np.zeros(8),
        ka_objective=np.zeros(4),
    )
    return source


JOBS = {
    "growth": Job("growth", "k", 0, n_items=6, n_train=4, set_size=2),
    "recovery": Job("recovery", "clustered", 0, n_items=6, n_train=30),
    "authors": Job("authors", "bells_wishart_0"),
}


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_experiment_gives_known_columns_of_their_kinds_that_json_keeps(experiment: str, source: Source) -> None:
    job = JOBS.get(experiment, Job(experiment, "bells"))
    row = full_row(job, EXPERIMENTS[experiment](job, source))
    assert list(row) == list(COLUMNS)
    for name, value in row.items():
        kind = COLUMNS[name][0]
        assert value is None or type(value) is TYPES.get(kind, list), name
    assert repr(json.loads(json.dumps(row))) == repr(row)


def test_the_row_of_an_authors_run_has_what_their_program_found(source: Source) -> None:
    row = EXPERIMENTS["authors"](JOBS["authors"], source)
    assert (row["authors_em_test"], row["authors_em_iterations"]) == (-3.0, 7)
    assert (row["authors_ka_test"], row["authors_ka_iterations"]) == (-3.5, 3)
    assert (row["n_train"], row["n_test"]) == (28, 12)


def test_an_unknown_column_is_not_dropped_in_silence() -> None:
    with pytest.raises(AssertionError, match="em_tset"):
        full_row(Job("wishart", "bells"), {"em_tset": -1.0})


def test_rows_are_read_as_they_were_written(tmp_path: Path) -> None:
    rows = [
        row_of(Job("wishart", "bells", 1), em_test=-math.inf, ka_test=math.nan, em_set=NAMES, ka_set=[], n_items=6),
        row_of(Job("preparation", NAMES[0]), admitted=True, strength=0.1, independent_kl=math.inf),
        row_of(Job("recovery", NAMES[1], 0, 20, 40), admitted=False, em_kl=1 / 3, n_train=2**40),
    ]
    folder = tmp_path / "it's here"
    folder.mkdir()
    write_results(folder / "results.parquet", results_of(*rows, paper=PAPER))
    found = read_results(folder / "results.parquet")
    assert repr(found.rows) == repr(tuple(rows))  # repr, because NaN is not itself
    assert (found.about, found.finished, found.paper) == (ABOUT, "2024-05-06T07:08:09+00:00", PAPER)


def test_no_rows_and_no_paper_are_read_as_such(tmp_path: Path) -> None:
    write_results(tmp_path / "results.parquet", results_of())
    found = read_results(tmp_path / "results.parquet")
    assert found.rows == ()
    assert found.paper is None


def test_writing_replaces_the_old_file_and_leaves_no_other(written: Path) -> None:
    write_results(written, results_of())
    assert read_results(written).rows == ()
    assert list(written.parent.iterdir()) == [written]


def test_a_missing_results_file_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no file is called .*results.parquet of an earlier dpplearn reproduce"):
        read_results(tmp_path / "results.parquet")


@pytest.mark.parametrize("kept", [0, 0.5, 0.99])
def test_a_truncated_results_file_is_an_input_error(written: Path, kept: float) -> None:
    whole = written.read_bytes()
    written.write_bytes(whole[: int(kept * len(whole))])
    with pytest.raises(InputError, match=r"is not a whole results.parquet"):
        read_results(written)


def test_somebody_elses_parquet_file_is_an_input_error(tmp_path: Path) -> None:
    path = tmp_path / "theirs.parquet"
    duckdb.sql(f"COPY (SELECT 1 AS job) TO '{path}'")
    with pytest.raises(InputError, match=r"theirs.parquet is not a whole results.parquet"):
        read_results(path)


def test_a_text_file_is_an_input_error(tmp_path: Path) -> None:
    path = tmp_path / "results.parquet"
    path.write_text("job,experiment\n")
    with pytest.raises(InputError, match=r"is not a whole results.parquet"):
        read_results(path)


def test_a_results_file_with_other_columns_says_which_version_wrote_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as then:
        then.setitem(COLUMNS, "left_out_since", (NUMBER, ""))
        write_results(tmp_path / "results.parquet", results_of())
    with pytest.raises(InputError, match=r"written by dpplearn 1\.2\.3 with other columns; begin anew"):
        read_results(tmp_path / "results.parquet")


def test_a_job_is_named_by_all_that_tells_it_apart() -> None:
    jobs = [
        Job("wishart", "bells"),
        Job("wishart", "bells", 1),
        Job("moments", "bells"),
        Job("recovery", "bells", 0, 20, 40),
        Job("recovery", "bells", 0, 40, 20),
        Job("growth", "bells", 0, 20, 40, 5),
    ]
    assert len({job_name(job) for job in jobs}) == len(jobs)
    assert job_name(jobs[-1]) == "growth/bells/N=20/n=40/k=5/0"


def test_rows_are_ordered_by_experiment_the_papers_categories_size_and_trial() -> None:
    jobs = [
        Job("moments", "feeding", 2),
        Job("moments", "feeding", 10),
        Job("moments", "bath"),
        Job("moments", "a category of its own"),
        Job("recovery", "wishart", 1, 20, 40),
        Job("recovery", "wishart", 0, 20, 200),
        Job("recovery", "wishart", 0, 100, 200),
        Job("wishart", "feeding"),
    ]
    rows = [full_row(job, {"n_items": job.n_items, "n_train": job.n_train}) for job in jobs]
    assert [row["job"] for row in in_order(rows[::-1])] == [row["job"] for row in rows]


def test_rows_of_an_experiment_are_found_by_category() -> None:
    jobs = [Job("wishart", "bells"), Job("wishart", "hats"), Job("wishart to 1e-6", "bells")]
    results = results_of(*map(row_of, jobs))
    assert [row["job"] for row in results.of("wishart")] == ["wishart/bells/0", "wishart/hats/0"]
    assert [row["job"] for row in results.of("wishart", "hats")] == ["wishart/hats/0"]


def test_gain_is_relative_to_k_ascent_and_positive_where_em_is_ahead() -> None:
    row = {"em_test": -9.0, "ka_test": -10.0, "em_test_seen": -4.0, "ka_test_seen": -2.0}
    assert gain(row) == 10.0
    assert gain(row, "test_seen") == -100.0


@pytest.mark.parametrize(("em", "ka"), [(-math.inf, -1.0), (-1.0, -math.inf), (-math.inf, -math.inf), (-1.0, 0.0)])
def test_gain_is_not_a_number_unless_both_are_finite(em: float, ka: float) -> None:
    assert math.isnan(gain({"em_test": em, "ka_test": ka}))


OURS = trial_journal(Path("unfinished.jsonl"), ABOUT)


def test_runs_of_the_same_seed_data_and_version_do_not_differ() -> None:
    assert OURS.differences(asdict(ABOUT)) == []


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (About(4, "original", "abc", "1.2.3"), "seed 4 and not 3"),
        (About(3, "generated", "abc", "1.2.3"), "kind of registries generated and not original"),
        (About(3, "original", "xyz", "1.2.3"), "other registries"),
        (About(3, "original", "abc", "1.2.2"), "version of dpplearn 1.2.2 and not 1.2.3"),
    ],
)
def test_what_keeps_two_runs_apart_is_said_in_words(other: About, words: str) -> None:
    assert OURS.differences(asdict(other)) == [words]
