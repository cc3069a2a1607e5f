"""The steps that read the input: once for which items there are and what is wrong, once more for the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from dpplearn.data.tables import Columns, explained
from dpplearn.errors import InputError
from dpplearn.pipeline import filtering
from dpplearn.pipeline.bad_rows import BadRow, examples, original, rejected_lines
from dpplearn.pipeline.filtering import Work
from dpplearn.pipeline.inputs import check_unchanged
from dpplearn.pipeline.job import Job
from dpplearn.pipeline.source import Group, find_files, items_are_integers, open_groups, rows_query
from dpplearn.pipeline.stage import Stage


def read(job: Job, work: Work) -> None:
    """Every step that needs the files; nothing where they are all done."""
    stage = work.stage
    if "reading rows" in stage.done:
        return
    with (
        explained(job.source),
        open_groups(stage.connection, job.paths, job.columns, job.category) as (groups, columns),
        _names(job, stage) as make_names,
    ):
        rows = rows_query(stage.connection, groups, columns)
        stage.step("reading names", make_names)
        with _naming_the_file(stage, groups, columns):
            stage.step("finding items", lambda: _scan(stage, groups, columns, rows))
        stage.step("numbering items", lambda: filtering.number_products(stage, work.rules))
        _check_usable(stage, job.source)
        stage.step("reading rows", lambda: filtering.make_orders(work, rows))
    check_unchanged(job.inputs)


@contextmanager
def _naming_the_file(stage: Stage, groups: Sequence[Group], columns: Columns) -> Iterator[None]:
    """Of several files that were read at once, say which it is that cannot be."""
    import duckdb

    try:
        yield
    except (duckdb.Error, RuntimeError):
        for group in groups:
            for path, file in zip(group.paths, group.files, strict=True):
                alone = replace(group, paths=(path,), files=(file,))
                with explained(path):
                    stage.rows(f"SELECT bit_xor(hash(COLUMNS(*))) FROM ({alone.query(columns)})")
        raise


@contextmanager
def _names(job: Job, stage: Stage) -> Iterator[Callable[[], None]]:
    """A function that makes the table of names, which is empty where there is no file."""
    if job.names is None:
        yield lambda: stage.run("CREATE TABLE names (item VARCHAR, name VARCHAR)")
        return
    columns = Columns(job.name, job.columns.item, None)
    try:
        paths = find_files(job.names, job.output)
        with open_groups(stage.connection, paths, columns, None) as (groups, columns):
            rows = rows_query(stage.connection, groups, columns)
            query = (
                f"SELECT item, min(CAST(basket AS VARCHAR)) AS name FROM ({rows}) WHERE reason IS NULL GROUP BY item"
            )
            yield lambda: stage.run(f"CREATE TABLE names AS {query}")
    except InputError as error:
        if "name the right ones" not in str(error):
            raise
        raise InputError(
            f"{job.names} is to have the columns {columns.item!r} and {columns.basket!r} (see --name): {error}"
        ) from None


def _scan(stage: Stage, groups: Sequence[Group], columns: Columns, rows: str) -> None:
    """Which items there are, and what is wrong."""
    stage.run(f"""
        CREATE TABLE scanned AS SELECT reason, CASE WHEN reason IS NOT NULL THEN file END AS file,
            CASE WHEN reason IS NULL THEN item END AS item, CASE WHEN reason IS NULL THEN category END AS category,
            count(*) AS n FROM ({rows}) GROUP BY ALL
    """)
    rejected = rejected_lines(stage.connection, groups)
    bad: dict[tuple[str, str], int] = {}
    for each in rejected:
        bad[each.reason, each.file] = bad.get((each.reason, each.file), 0) + 1
    for reason, file, n in stage.rows("SELECT reason, file, n FROM scanned WHERE reason IS NOT NULL"):
        bad[reason, original(file, groups)] = n
    stage.run("CREATE TABLE bad (reason VARCHAR, file VARCHAR, n BIGINT)")
    stage.run("CREATE TABLE examples (reason VARCHAR, file VARCHAR, line BIGINT, text VARCHAR)")
    for (reason, file), n in bad.items():
        stage.connection.execute("INSERT INTO bad VALUES (?, ?, ?)", [reason, file, n])
    for row in examples(stage.connection, groups, columns, rejected) if bad else ():
        stage.connection.execute("INSERT INTO examples VALUES (?, ?, ?, ?)", [*row])
    integers = items_are_integers(stage.connection, groups, columns)
    stage.run(f"CREATE TABLE kinds AS SELECT {integers} AS integers")


def _check_usable(stage: Stage, source: str) -> None:
    if stage.one("SELECT count(*) FROM products"):
        return
    bad = [BadRow(*row) for row in stage.rows("SELECT * FROM examples")]
    first = f": {bad[0].reason}, in line {bad[0].line} of {bad[0].file} ({bad[0].text!r})" if bad else ""
    raise InputError(f"{source} has no row that can be used{first}; expected one row per item of a basket")
