"""recommend_all: what to add to every basket of a table, as a table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from os import PathLike, fspath
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from dpplearn.data.baskets import Baskets
from dpplearn.data.catalogue import Label
from dpplearn.data.tables import Columns, explained, one_number
from dpplearn.data.unknown import check_unknown
from dpplearn.data.writing import check_format, copy_table
from dpplearn.errors import InputError, whole_number
from dpplearn.models.answers import RECOMMENDATION_TABLE
from dpplearn.models.dpp import DPP
from dpplearn.models.mixture import Mixture
from dpplearn.models.model import SetModel
from dpplearn.models.store import ModelStore, Ranking
from dpplearn.pipeline.bad_rows import rejected_lines
from dpplearn.pipeline.inputs import as_memory
from dpplearn.pipeline.source import Inputs, find_files, open_groups, rows_query
from dpplearn.pipeline.stage import within_means
from dpplearn.pipeline.writing import LONGEST_INTEGER
from dpplearn.utils.files import check_replaceable, same_file
from dpplearn.utils.progress import Progress, shown_progress
from dpplearn.utils.text import Facts, Part, contents, count
from dpplearn.utils.threads import thread_count

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

AT_ONCE = 3_000_000  # recommendations of all categories, of as many baskets as are looked at together
MOST_AT_ONCE = 50_000  # baskets
SHOWN = 3  # examples


@dataclass(frozen=True)
class Recommended:
    """What became of a table of baskets.

    Examples
    --------
    >>> Recommended(Path("out.csv"), 10, 1, 5, n_unknown=2, unknown=("crip",)).n_baskets
    10
    """

    output: Path
    n_baskets: int
    n_items: int  # what they hold together, each item of a basket once
    n_recommendations: int
    n_unknown: int = 0  # rows that name an item that no category has
    unknown: tuple[Label, ...] = ()  # the most frequent of those items
    n_bad_rows: int = 0  # rows that cannot be used, left out
    n_impossible: int = 0  # baskets to which nothing can be added, as they have no probability
    impossible: tuple[Any, ...] = ()  # some of them

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {**asdict(self), "output": str(self.output)}

    def tables(self) -> Iterator[Part]:
        """Yield the numbers, and what was left out."""
        yield Facts(
            "Recommended",
            [
                ("baskets", f"{count(self.n_baskets)} with {count(self.n_items, 'item')}"),
                ("recommendations", count(self.n_recommendations)),
            ],
        )
        if self.n_unknown:
            yield f"{count(self.n_unknown, 'row')} dropped: unknown items such as {contents(self.unknown)}."
        if self.n_bad_rows:
            yield f"{count(self.n_bad_rows, 'bad row')} dropped."
        if self.n_impossible:
            n = count(self.n_impossible, "basket")
            yield f"{n} of probability zero without recommendations, such as {contents(self.impossible)}."


def recommend_all(
    store: ModelStore | SetModel | str | PathLike[str],
    baskets: Inputs,
    output: str | PathLike[str],
    *,
    k: int = 10,
    basket: str = "basket",
    item: str = "item",
    unknown: str = "error",
    memory: str | float | None = None,
    threads: int | None = None,
    force: bool = False,
    progress: bool = False,
) -> Recommended:
    """Recommend items for every basket of a table, which may be larger than memory.

    Parameters
    ----------
    store
        A `ModelStore`, a model, or the path of one.
    baskets
        Files, folders and patterns, as `prepare` takes them: one row per item of a basket.
    output
        The table to write, by its ending CSV (.csv), Parquet (.parquet, .pq) or JSON lines (.jsonl): basket, rank,
        item, score, probability, and for a store folder the category; by basket and rank. Identifiers are as they came,
        integers where all of them are.
    k
        How many items at most for each basket.
    basket, item
        The columns that tell which basket, and which item.
    unknown
        What to do about items that no model has: "error", or "drop" to leave them out and count them.
    memory
        What duckdb may use, in bytes or as "4GB"; by default half of what there is.
    threads
        How many; by default one per core.
    force
        Replace an existing file of any type. By default only a table of recommendations is replaced.
    progress
        Show on standard error how far it is.

    Returns
    -------
    Recommended
        How many baskets there were, and what was wrong.

    Examples
    --------
    >>> import dpplearn as dl
    >>> from tempfile import TemporaryDirectory
    >>> dpp = dl.DPP.from_K([[0.5, 0.3, 0], [0.3, 0.4, 0], [0, 0, 0.3]], ["crib", "cot", "monitor"])
    >>> with TemporaryDirectory() as folder:
    ...     table, out = Path(folder) / "baskets.csv", Path(folder) / "out.csv"
    ...     _ = table.write_text("basket,item\\n7,crib\\n8,monitor\\n8,crip\\n")
    ...     found = recommend_all(dpp, table, out, k=1, unknown="drop")
    ...     [line.split(",")[:3] for line in out.read_text().splitlines()]
    ...     found.n_baskets, found.n_unknown, found.unknown
    [['basket', 'rank', 'item'], ['7', '1', 'monitor'], ['8', '1', 'crib']]
    (2, 1, ('crip',))
    """
    k, target = whole_number("k", k, 1), Path(output)
    check_unknown(unknown)
    paths = find_files(baskets, target)
    _check_target(target, paths, force)
    models = _store(store)
    threads, size = thread_count(threads), as_memory(memory)
    means = within_means(f"recommending for {paths[0]}", size)
    with shown_progress(progress, transient=True) as shown, means, _database(size, threads) as connection:
        table = _read(connection, paths, Columns(basket, item, None), models, shown)
        if unknown == "error" and table.n_unknown:
            _refuse(connection, table.n_unknown, models)
        found = _suggested(connection, models, k, threads, shown)
        copy_table(connection, "results", target)
        return Recommended(
            target,
            n_baskets=table.n_baskets,
            n_items=table.n_items,
            n_recommendations=one_number(connection, "SELECT count(*) FROM results"),
            n_unknown=table.n_unknown,
            unknown=tuple(label for label, _ in _unknown(connection)[:SHOWN]),
            n_bad_rows=table.n_bad,
            n_impossible=len(found),
            impossible=tuple(_ids(connection, found[:SHOWN])),
        )


def _check_target(target: Path, paths: list[str], force: bool) -> None:
    check_format(target)
    source = next((path for path in paths if same_file(path, target)), None)
    if source is not None:
        raise InputError(f"{target} is also an input ({source}); choose another output file")
    check_replaceable(target, RECOMMENDATION_TABLE, force=force)


def _store(store: ModelStore | SetModel | str | PathLike[str]) -> ModelStore:
    if isinstance(store, ModelStore):
        return store
    if isinstance(store, SetModel):
        assert isinstance(store, DPP | Mixture)
        return ModelStore("", {"categories": [{"slug": "model", "file": "model"}]}, {"model": store})
    return ModelStore.open(fspath(store))


def _with_category(store: ModelStore) -> bool:
    """Whether the output has a column of categories: not for a single model."""
    return len(store) > 1 or "kind" in store.manifest


@contextmanager
def _database(memory: float, threads: int) -> Iterator[DuckDBPyConnection]:
    """On disk, as a table may be larger than memory."""
    import duckdb

    with (
        TemporaryDirectory(prefix="dpplearn-") as folder,
        duckdb.connect(str(Path(folder) / "baskets.duckdb")) as connection,
    ):
        connection.execute(f"SET memory_limit = '{int(memory)}B'; SET threads = {threads}")
        connection.execute("SET temp_directory = ?", [str(Path(folder) / "spilled")])
        connection.execute("SET enable_progress_bar = false")
        yield connection


@dataclass(frozen=True)
class Table:
    """What was read."""

    n_baskets: int
    n_items: int
    n_unknown: int
    n_bad: int


def _read(
    connection: DuckDBPyConnection, paths: list[str], columns: Columns, store: ModelStore, shown: Progress
) -> Table:
    """Tables of the baskets' identifiers by number, and of their items by position in the catalogue."""
    source = paths[0] if len(paths) == 1 else f"{len(paths)} files ({paths[0]}, ...)"
    shown.bar(f"reading {source}")
    labels = list(map(str, store.catalogue.labels))
    connection.execute(
        "CREATE TABLE labels AS SELECT unnest(?) AS text, unnest(?) AS label", [labels, [*range(len(labels))]]
    )
    with explained(source), open_groups(connection, paths, columns, None) as (groups, columns):
        rows = rows_query(connection, groups, columns)
        connection.execute(f"""
            CREATE TABLE pairs AS SELECT basket, label, reason, CASE WHEN label IS NULL THEN item END AS unknown
            FROM ({rows}) LEFT JOIN labels ON item = text
        """)
        n_rejected = len(rejected_lines(connection, groups))
    n_bad = n_rejected + one_number(connection, "SELECT count(*) FROM pairs WHERE reason IS NOT NULL")
    _number_baskets(connection)
    n_baskets = one_number(connection, "SELECT count(*) FROM ids")
    if not n_baskets:
        raise InputError(f"{source} has no row that can be used; expected one row per item of a basket")
    connection.execute("""
        CREATE TABLE held AS SELECT DISTINCT number, label FROM pairs JOIN ids USING (basket)
        WHERE reason IS NULL AND label IS NOT NULL ORDER BY number, label
    """)
    n_unknown = one_number(connection, "SELECT count(unknown) FROM pairs WHERE reason IS NULL")
    return Table(n_baskets, one_number(connection, "SELECT count(*) FROM held"), n_unknown, n_bad)


def _number_baskets(connection: DuckDBPyConnection) -> None:
    """In the order of their identifiers, which are integers where all of them are written so."""
    plain = f"regexp_full_match(CAST(basket AS VARCHAR), '0|-?[1-9][0-9]{{0,{LONGEST_INTEGER - 1}}}')"
    integers = one_number(connection, f"SELECT coalesce(bool_and({plain}), false) FROM pairs WHERE reason IS NULL")
    if integers:
        connection.execute("UPDATE pairs SET basket = NULL WHERE reason IS NOT NULL")
        connection.execute("ALTER TABLE pairs ALTER basket TYPE BIGINT")
    connection.execute("""
        CREATE TABLE ids AS SELECT basket, row_number() OVER (ORDER BY basket) - 1 AS number
        FROM (SELECT DISTINCT basket FROM pairs WHERE reason IS NULL) ORDER BY number
    """)


def _unknown(connection: DuckDBPyConnection) -> list[tuple[str, int]]:
    """The items that no model has, the most frequent first."""
    query = "SELECT unknown, count(*) FROM pairs WHERE unknown IS NOT NULL AND reason IS NULL GROUP BY 1"
    return connection.execute(f"{query} ORDER BY 2 DESC, 1 LIMIT {SHOWN}").fetchall()


def _refuse(connection: DuckDBPyConnection, n_unknown: int, store: ModelStore) -> None:
    label, times = _unknown(connection)[0]
    try:
        store.catalogue.position(label)
    except InputError as error:
        rows = f"in {count(times, 'row')}, of {count(n_unknown, 'row')} with such items"
        raise InputError(f"{error} ({rows}); leave them out with unknown='drop' (--unknown drop)") from None


def _suggested(connection: DuckDBPyConnection, store: ModelStore, k: int, threads: int, shown: Progress) -> list[int]:
    """Fills the table of results; the numbers of the baskets to which nothing can be added."""
    n_baskets = one_number(connection, "SELECT count(*) FROM ids")
    _begin_results(connection, store)
    slugs, with_category = list(store), _with_category(store)
    at_once = max(min(AT_ONCE // (min(k, len(store.catalogue)) * len(slugs)), MOST_AT_ONCE), 1)
    bar, impossible = shown.bar("recommending", n_baskets), list[int]()
    for first in range(0, n_baskets, at_once):
        n = min(at_once, n_baskets - first)
        inside = f"number BETWEEN {first} AND {first + n - 1}"
        part = connection.execute(f"SELECT number, label FROM held WHERE {inside} ORDER BY ALL").fetchnumpy()
        rows, items = np.asarray(part["number"]) - first, np.asarray(part["label"])
        found = store.recommend_many(Baskets.from_pairs(rows, items, n, store.catalogue), k, threads=threads)
        _add_results(connection, found, first, inside, with_category)
        impossible += (first + np.flatnonzero(~found.possible)).tolist()
        bar.advance(n)
    return impossible


def _begin_results(connection: DuckDBPyConnection, store: ModelStore) -> None:
    slugs = list(store)
    longest = max(len(str(label)) for label in store.catalogue.labels)
    kind = "VARCHAR" if store.catalogue.named or longest > LONGEST_INTEGER else "BIGINT"
    connection.execute(f"CREATE TABLE items AS SELECT label, CAST(text AS {kind}) AS item FROM labels")
    connection.execute(
        "CREATE TABLE categories AS SELECT unnest(?) AS category, unnest(?) AS slug",
        [[*range(len(slugs))], slugs],
    )
    category = ", slug AS category" if _with_category(store) else ""
    connection.execute(f"""
        CREATE TABLE results AS SELECT basket, CAST(0 AS INTEGER) AS rank, item, CAST(0 AS DOUBLE) AS score,
        CAST(0 AS DOUBLE) AS probability{category} FROM ids, items, categories LIMIT 0
    """)


def _add_results(connection: DuckDBPyConnection, found: Ranking, first: int, inside: str, with_category: bool) -> None:
    """Of a part of the baskets, by number."""
    row, place = np.nonzero(found.items >= 0)
    suggested = {
        "number": row + first,
        "rank": place + 1,
        "label": found.items[row, place],
        "category": found.categories[row, place],
        "score": found.scores[row, place],
        "probability": found.probabilities[row, place],
    }
    connection.register("suggested", suggested)
    connection.execute(f"""
        INSERT INTO results SELECT basket, rank, item, CASE WHEN isnan(score) THEN NULL ELSE score END,
            probability{", slug" if with_category else ""}
        FROM suggested JOIN (SELECT * FROM ids WHERE {inside}) USING (number)
        JOIN items USING (label) JOIN categories USING (category) ORDER BY number, rank
    """)
    connection.unregister("suggested")


def _ids(connection: DuckDBPyConnection, numbers: list[int]) -> list[Any]:
    rows = [connection.execute("SELECT basket FROM ids WHERE number = ?", [number]).fetchall() for number in numbers]
    return [row[0][0] for row in rows]
