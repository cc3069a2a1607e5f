"""recommend_all: recommendations for every basket of a table, as a table."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from dpplearn.data.catalogue import Label, is_plain_integer
from dpplearn.data.files import Paths, find_files
from dpplearn.data.transactions import Columns, Transactions, source_name
from dpplearn.data.unknown import check_unknown
from dpplearn.data.writing import check_format, copy_table
from dpplearn.errors import InputError, whole_number
from dpplearn.models.answers import RECOMMENDATION_TABLE
from dpplearn.models.model import SetModel
from dpplearn.models.store import ModelStore
from dpplearn.pipeline.database import as_memory, open_database
from dpplearn.utils.files import check_replaceable, locked, same_file
from dpplearn.utils.progress import Progress, shown_progress
from dpplearn.utils.text import Facts, Part, contents, count

MAX_RESULTS = 3_000_000  # recommendations of one batch, over all categories
MAX_BATCH = 50_000  # baskets
MAX_SHOWN = 3  # examples


@dataclass(frozen=True)
class Recommended:
    """Summary of a call of `recommend_all`.

    Examples
    --------
    >>> Recommended(Path("out.csv"), 10, 1, 5, n_unknown=2, unknown=("crip",)).n_baskets
    10
    """

    output: Path
    n_baskets: int
    n_items: int  # of all baskets
    n_recommendations: int
    n_unknown: int = 0  # rows with an item that no category has
    unknown: tuple[Label, ...] = ()  # the most frequent of those items
    n_bad_rows: int = 0  # rows that cannot be used, left out
    n_impossible: int = 0  # baskets of probability zero, without recommendations
    impossible: tuple[Any, ...] = ()  # some of them

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {**asdict(self), "output": str(self.output)}

    def tables(self) -> Iterator[Part]:
        """Yield the numbers, and what was left out."""
        baskets = f"{count(self.n_baskets)} with {count(self.n_items, 'item')}"
        yield Facts("Recommended", [("baskets", baskets), ("recommendations", count(self.n_recommendations))])
        if self.n_unknown:
            yield f"{count(self.n_unknown, 'row')} dropped: unknown items such as {contents(self.unknown)}."
        if self.n_bad_rows:
            yield f"{count(self.n_bad_rows, 'bad row')} dropped."
        if self.n_impossible:
            n = count(self.n_impossible, "basket")
            yield f"{n} of probability zero without recommendations, such as {contents(self.impossible)}."


def recommend_all(
    store: ModelStore | SetModel | str | PathLike[str],
    baskets: Paths,
    output: str | PathLike[str],
    *,
    k: int = 10,
    basket: str | None = None,
    item: str | None = None,
    format: str = "auto",
    deny: Iterable[Label] = (),
    unknown: str = "error",
    memory: str | float | None = None,
    threads: int | None = None,
    force: bool = False,
    progress: bool = False,
) -> Recommended:
    """Recommend items for every basket of a table, which may be larger than memory.

    Parameters
    ----------
    store : ModelStore, model, or path of one
    baskets : path, pattern, folder, or list of these
        Tables with one row per item of a basket, as for `prepare`. Rows that cannot be used are left out and counted.
    output : path
        The table to write, by its ending CSV (.csv), Parquet (.parquet, .pq) or JSON lines (.jsonl), with the columns
        basket, rank, item, score, probability and, for a store, category; sorted by basket and rank.
    k : int, default 10
        Maximum number of items for each basket.
    basket, item : str, optional
        Columns of basket identifiers and of items. By default they are found by usual names, as in `read_baskets`.
    format : str, default "auto"
        As in `read_baskets`.
    deny : iterable of labels, optional
        Items that are never recommended.
    unknown : {"error", "drop"}
        What to do about items that no model has.
    memory : str or float, optional
        Memory of the whole process, in bytes or as "4GB". By default half of the available memory.
    threads : int, optional
        By default one per core.
    force : bool, default False
        Replace an existing file of any type. By default only a table of recommendations is replaced.
    progress : bool, default False
        Show progress on standard error.

    Returns
    -------
    Recommended
        Counts of baskets, recommendations, unknown items and rows that cannot be used.

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
    k, target, memory = whole_number("k", k, 1), Path(output), as_memory(memory)
    check_unknown(unknown)
    check_format(target)
    paths = find_files(baskets, target)
    for path in paths:
        if same_file(path, target):
            raise InputError(f"{target} is also an input ({path}); choose another output file")
    check_replaceable(target, RECOMMENDATION_TABLE, force=force)
    models, source = _store(store), source_name(paths)
    with (
        locked(target.parent / f".recommend-{target.name}", target) as work,
        ExitStack() as at_end,
        shown_progress(progress, transient=True) as shown,
        open_database(work, f"recommending for {source}", memory, threads) as database,
    ):
        at_end.callback(shutil.rmtree, work)
        shown.bar(f"reading {source}")
        database.execute("SET preserve_insertion_order = true")
        read = Transactions.open(paths, Columns(basket, item), format=format, on_bad_rows="skip", connection=database)
        left_out = read.unknown_items(models.catalogue)
        n_unknown = sum(n for _, n in left_out)
        if unknown == "error" and left_out:
            what = f"{models.catalogue.unknown(left_out[0][0])} ({count(n_unknown, 'row')} with such items)"
            raise InputError(f"{what}; leave them out with unknown='drop' (--unknown drop)")
        n_baskets, n_items, impossible = _write_results(read, models, k, list(deny), threads, shown)
        copy_table(database, "results", target)
        return Recommended(
            target,
            n_baskets,
            n_items,
            n_recommendations=database.execute("SELECT count(*) FROM results").fetchall()[0][0],
            n_unknown=n_unknown,
            unknown=tuple(label for label, _ in left_out[:MAX_SHOWN]),
            n_bad_rows=read.n_rejected,
            n_impossible=len(impossible),
            impossible=tuple(impossible[:MAX_SHOWN]),
        )


def _store(store: ModelStore | SetModel | str | PathLike[str]) -> ModelStore:
    if isinstance(store, ModelStore):
        return store
    return ModelStore.of_model(store) if isinstance(store, SetModel) else ModelStore.open(fspath(store))


def _write_results(
    read: Transactions, store: ModelStore, k: int, deny: list[Label], threads: int | None, shown: Progress
) -> tuple[int, int, list[Any]]:
    """Fill the table of results. Return the number of baskets and of their items, and the impossible baskets."""
    database, labels = read.connection, store.catalogue.labels
    # Integers of more than 64 bits are written as text.
    plain = all(is_plain_integer(str(label)) for label in labels) and not store.catalogue.named
    items = np.array(labels if plain else list(map(str, labels)), np.int64 if plain else object)
    slugs = np.array(list(store), object)
    database.execute(f"""
        CREATE TABLE results AS SELECT basket, 0 AS rank, CAST(NULL AS {"BIGINT" if plain else "VARCHAR"}) AS item,
        0.0::DOUBLE AS score, 0.0::DOUBLE AS probability{", '' AS category" if store.has_categories else ""}
        FROM {read.name} LIMIT 0
    """)
    batch_size = max(min(MAX_RESULTS // (min(k, len(labels)) * len(slugs)), MAX_BATCH), 1)
    n_baskets = n_items = 0
    impossible: list[Any] = []
    bar = None
    for batch in read.iter_baskets(store.catalogue, batch_size):
        bar = bar or shown.bar("recommending", database.execute("SELECT count(*) FROM baskets").fetchall()[0][0])
        assert batch.ids is not None
        found, possible = store.recommend_many(batch, k, deny=deny, threads=threads)
        suggested = {name: found[name].copy() for name in ("rank", "score", "probability")}
        suggested |= {"basket": batch.ids[found["basket"]], "item": items[found["item"]]}
        if store.has_categories:
            suggested["category"] = slugs[found["category"]]
        database.register("suggested", suggested)
        database.execute("INSERT INTO results BY NAME SELECT * FROM suggested")
        database.unregister("suggested")
        impossible += batch.ids[~possible].tolist()
        n_baskets, n_items = n_baskets + len(batch), n_items + len(batch.indices)
        bar.advance(len(batch))
    return n_baskets, n_items, impossible
