"""read_baskets and read_parts: files and data frames to Baskets and Parts."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from dpplearn.data.baskets import Baskets
from dpplearn.data.catalogue import labels_from_text
from dpplearn.data.files import Paths, find_files, format_of, read_lines
from dpplearn.data.parts import Parts
from dpplearn.data.transactions import Columns, Transactions
from dpplearn.errors import InputError


def read_baskets(
    source: Any,
    *,
    basket: str | None = None,
    item: str | None = None,
    weight: str | None = None,
    time: str | None = None,
    format: str = "auto",
    on_bad_rows: str = "raise",
) -> Baskets:
    """Read baskets from files or from a data frame.

    Blanks around items, identifiers and names of columns are ignored.

    Parameters
    ----------
    source : path, pattern, folder, list of these, DataFrame or Arrow table
        Files, such as `orders-*.parquet`, or a table in memory. Text is UTF-8 and may be gzipped (.gz).
    basket, item : str, optional
        Columns of basket identifiers and of items. By default they are found by usual names, such as `order_id` and
        `sku`, with a warning that says which.
    weight : str, optional
        Column of the weight of a basket, the same in all its rows. By default all weights are 1.
    time : str, optional
        Column of dates, times (UTC unless they have a zone) or Unix timestamps. The time of a basket is that of its
        latest row, when it was complete.
    format : {"auto", "csv", "parquet", "json", "lines"}, default "auto"
        "csv", "parquet" and "json" (one object per line) are tables with one row per item of a basket. "lines" has one
        basket per line, items separated by commas, or by blanks if the file has no comma; an empty line is an empty
        basket. "auto" uses the ending: .csv and .tsv, .parquet and .pq, .jsonl, .ndjson and .json, .txt and .dat.
    on_bad_rows : {"raise", "skip"}, default "raise"
        What to do about rows that cannot be used: without a basket or an item, with too few columns, and so on.

    Returns
    -------
    Baskets
        From a table in the order of their identifiers, which are `ids`; from lines in the order of the lines.

    Raises
    ------
    InputError
        If a file cannot be read or a column is missing, and, unless they are skipped, if rows cannot be used. The
        message names the first of them by file and line.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "orders.csv"
    ...     _ = path.write_text("order,product\\n1,crib\\n1,bib\\n2,bib\\n")
    ...     list(read_baskets(path, basket="order", item="product"))
    [('bib', 'crib'), ('bib',)]
    """
    if isinstance(source, str | PathLike | list | tuple):
        paths = find_files(source)
        if {format_of(path, format) for path in paths} == {"lines"}:
            if weight is not None or time is not None:
                raise InputError(f"{paths[0]} has one basket per line and no column {time or weight!r}")
            lists = read_lines(paths)
            labels = sorted(labels_from_text(sorted({item for items in lists for item in items})))
            return Baskets.from_lists(lists, items=labels)
    columns = Columns(basket, item, weight, time=time)
    return Transactions.open(source, columns, format=format, on_bad_rows=on_bad_rows).to_baskets()


def read_parts(
    source: Paths,
    *,
    basket: str | None = None,
    item: str | None = None,
    weight: str | None = None,
    format: str = "auto",
    cluster: str | None = None,
) -> Parts:
    """Read every file as one part of the baskets, for data that do not fit into one process or one machine.

    Parameters
    ----------
    source : path, pattern, folder, or list of these
        A basket lies in one file: equal identifiers in different files are different baskets. Workers read the files
        by their absolute paths, which must lead to the same files on all machines.
    basket, item, weight, format
        As for `read_baskets`.
    cluster : str, optional
        Where the parts are held: by default in this process; "local:4" starts four worker processes; the address of a
        Dask scheduler, such as "tcp://scheduler:8786", uses its workers. The result of a fit is the same everywhere, on
        processors of one kind. Needs the extra `cluster`.

    Returns
    -------
    Parts
        In the order of the files, over the items of all of them. Close it, best by `with`, to end the workers.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     for number, line in enumerate(["1,crib", "1,bib"]):
    ...         _ = (Path(folder) / f"part-{number}.csv").write_text(f"basket,item\\n{line}\\n")
    ...     with read_parts(f"{folder}/*.csv") as parts:
    ...         print(parts)
    Parts(2 parts, 2 baskets, 2 named items)
    """
    files = [str(Path(file).absolute()) for file in find_files(source)]
    read = partial(_read_part, basket=basket, item=item, weight=weight, format=format)
    if cluster is None:
        return Parts.of(list(map(read, files)))
    from dpplearn.utils.cluster import Cluster

    workers = Cluster(cluster)
    try:
        return Parts.of(workers.keep(read, files), workers)
    except BaseException:
        workers.close()
        raise


def _read_part(file: str, **options: Any) -> Baskets:
    return replace(read_baskets(file, **options), ids=None)  # a fit does not use them
