"""What a reproduction found: one row per trial, in a Parquet file that is enough to draw the report again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dpplearn.datasets.registries import CATEGORIES
from dpplearn.errors import InputError
from dpplearn.evaluation.metrics import relative_gain
from dpplearn.experiments.names import LEARNERS
from dpplearn.experiments.trials.trial import Job, Row
from dpplearn.tools.files import new_file

Table = dict[str, Any]  # what a part of the report shows, as plain data

ANEW = "begin anew with --fresh, or in another folder with -o"

TEXT, COUNT, NUMBER, NAMES, FLAG = "VARCHAR", "BIGINT", "DOUBLE", "VARCHAR[]", "BOOLEAN"

_OF_A_LEARNER = {
    "train": (NUMBER, "mean log-likelihood of the training sets under the model of {}"),
    "test": (NUMBER, "mean log-likelihood of the test sets; -inf where one has probability zero"),
    "iterations": (COUNT, "iterations of {}"),
    "stop": (TEXT, "why {} stopped"),
    "seconds": (NUMBER, "time of {}; in 'growth', of one iteration's pass over the examples"),
    "matrix_seconds": (NUMBER, "growth: time of one iteration's work on N×N matrices in {}"),
    "off_diagonal": (NUMBER, "share of the off-diagonal in the squared entries of the final K"),
    "zeros": (COUNT, "eigenvalues of the final K below 1e-10"),
    "set": (NAMES, "ten items by greedy MAP, or as many as the rank allows"),
    "impossible": (COUNT, "test sets of probability zero"),
    "test_seen": (NUMBER, "test log-likelihood of the sets whose items all occur in training"),
    "test_possible": (NUMBER, "test log-likelihood of the sets that both models give a probability"),
    "test_unruled": (NUMBER, "mean log|det(K − I_Ȳ)| of the test sets, with no rule for zero"),
    "kl": (NUMBER, "recovery: KL divergence of the model of {} from the truth, in nats"),
    "kl_error": (NUMBER, "recovery: its standard error"),
}

COLUMNS: dict[str, tuple[str, str]] = {
    "job": (TEXT, "the name of the trial"),
    "experiment": (TEXT, "which experiment"),
    "category": (TEXT, "the category; the kind of kernel in 'recovery', what grows in 'growth', the run in 'authors'"),
    "trial": (COUNT, "the number of the trial; equal numbers have the same split and the same Wishart start"),
    "n_items": (COUNT, "N"),
    "n_train": (COUNT, "training sets"),
    "n_distinct": (COUNT, "different ones among them"),
    "n_test": (COUNT, "test sets"),
    "set_size": (COUNT, "growth: k, the size of every set"),
    "mean_size": (NUMBER, "the mean size of a set"),
    "largest_size": (COUNT, "the size of the largest"),
    "strength": (NUMBER, "d, the paper's off-diagonal strength"),
    "admitted": (FLAG, "whether the paper's rule admits the category"),
    "independent_train": (NUMBER, "mean log-likelihood of the training sets under independent items"),
    "independent_test": (NUMBER, "the same of the test sets"),
    "independent_kl": (NUMBER, "recovery: KL divergence of independent items from the truth"),
    "independent_kl_error": (NUMBER, "recovery: its standard error"),
    "truth_test": (NUMBER, "recovery: mean log-likelihood of the test sets under the truth"),
    "n_unseen_items": (COUNT, "items that do not occur in training"),
    "n_test_seen": (COUNT, "test sets whose items all occur in training"),
    "n_test_possible": (COUNT, "test sets that both models give a probability"),
    "ka_first_zeros": (COUNT, "eigenvalues truncated to 0 at the first accepted step of K-Ascent"),
    "ka_first_ones": (COUNT, "the same at 1"),
    **{
        f"{prefix}_{name}": (kind, meaning.format(learner))
        for prefix, learner in LEARNERS.items()
        for name, (kind, meaning) in _OF_A_LEARNER.items()
    },
    **{
        f"authors_{prefix}_{name}": (kind, f"{learner}'s {what} in the authors' own run")
        for prefix, learner in LEARNERS.items()
        for name, kind, what in (("test", NUMBER, "test log-likelihood"), ("iterations", COUNT, "iterations"))
    },
}


@dataclass(frozen=True)
class About:
    """What a run was: trials of two runs belong together only if seed, data and version are the same."""

    seed: int
    data: str  # "original" or "generated"
    digest: str  # of the registries
    version: str  # of dpplearn

    @staticmethod
    def differs(name: str, theirs: Any, ours: Any) -> str:
        """What keeps trials of two runs apart, in words."""
        names = {"seed": "seed", "data": "kind of registries", "version": "version of dpplearn"}
        return f"{names[name]} {theirs} and not {ours}" if name in names else "other registries"


@dataclass(frozen=True)
class Results:
    """Rows, what they come from, and the paper's figures if they were at hand."""

    about: About
    rows: tuple[Row, ...]
    finished: str  # when, in ISO 8601
    paper: Mapping[str, Any] | None = None
    command: str = ""  # the last that added to them

    def of(self, experiment: str, category: str | None = None) -> list[Row]:
        """The rows of an experiment, of one category or of all."""
        return [
            row
            for row in self.rows
            if row["experiment"] == experiment and (category is None or row["category"] == category)
        ]

    def categories(self, experiment: str) -> list[str]:
        """Those that an experiment was run on."""
        return list(dict.fromkeys(row["category"] for row in self.of(experiment)))

    def paper_figure(self, category: str, column: str) -> Any:
        """What the paper has for a category, or None."""
        return None if self.paper is None else self.paper["categories"].get(category, {}).get(column)

    def paper_average(self, column: str) -> float | None:
        return None if self.paper is None else float(self.paper["averages"][column])


def job_name(job: Job) -> str:
    sizes = {"N": job.n_items, "n": job.n_train, "k": job.set_size}
    parts = [job.experiment, job.category, *(f"{name}={size}" for name, size in sizes.items() if size is not None)]
    return "/".join([*parts, str(job.trial)])


def full_row(job: Job, found: Row) -> Row:
    """Every column, None where the experiment has no such thing."""
    unknown = found.keys() - COLUMNS.keys()
    assert not unknown, unknown
    key = {"job": job_name(job), "experiment": job.experiment, "category": job.category, "trial": job.trial}
    return {**dict.fromkeys(COLUMNS), **found, **key}


def write_results(path: Path, results: Results) -> None:
    import duckdb

    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in COLUMNS.items())
    document = {name: getattr(results, name) for name in ("finished", "paper", "command")}
    document["about"] = asdict(results.about)
    text = json.dumps(document).replace("'", "''")
    with duckdb.connect() as connection, new_file(path) as file:
        connection.execute(f"CREATE TABLE results ({columns})").fetchall()
        marks = ", ".join("?" * len(COLUMNS))
        values = [[row[name] for name in COLUMNS] for row in results.rows]
        if values:
            connection.executemany(f"INSERT INTO results VALUES ({marks})", values)
        target = str(file).replace("'", "''")
        try:
            options = f"FORMAT parquet, USE_TMP_FILE false, KV_METADATA {{dpplearn: '{text}'}}"
            connection.execute(f"COPY results TO '{target}' ({options})").fetchall()
        except duckdb.Error as error:  # a full disk, perhaps
            raise InputError(f"{path} cannot be written: {error}") from None


def read_results(path: Path) -> Results:
    """The file that `write_results` wrote."""
    import duckdb

    if not path.is_file():
        raise InputError(f"no file is called {path}; expected the results.parquet of an earlier dpplearn reproduce")
    try:
        with duckdb.connect() as connection:
            query = "SELECT decode(value) FROM parquet_kv_metadata(?) WHERE decode(key) = 'dpplearn'"
            found = connection.execute(query, [str(path)]).fetchall()
            document = json.loads(found[0][0])
            document["about"] = About(**document["about"])
            cursor = connection.execute("SELECT * FROM read_parquet(?)", [str(path)])
            names = [column[0] for column in cursor.description]
            rows = tuple(dict(zip(names, values, strict=True)) for values in cursor.fetchall())
            results = Results(rows=rows, **document)
    except (duckdb.Error, LookupError, TypeError, ValueError):
        raise InputError(f"{path} is not a whole results.parquet that dpplearn reproduce wrote; {ANEW}") from None
    if names != list(COLUMNS):
        raise InputError(f"{path} was written by dpplearn {results.about.version} with other columns; {ANEW}")
    return results


def in_order(rows: Iterable[Row]) -> tuple[Row, ...]:
    """By experiment, category (the paper's in its order), size and trial, whatever order they were finished in."""
    places = {name: place for place, name in enumerate(CATEGORIES)}

    def key(row: Row) -> tuple[object, ...]:
        sizes = (row[name] or 0 for name in ("n_items", "n_train", "set_size"))
        place = places.get(row["category"], len(places))
        return row["experiment"], place, row["category"], *sizes, row["trial"]

    return tuple(sorted(rows, key=key))


def gain(row: Row, column: str = "test") -> float:
    """EM's lead over K-Ascent in per cent; NaN unless both are finite."""
    return relative_gain(row[f"em_{column}"], row[f"ka_{column}"])
