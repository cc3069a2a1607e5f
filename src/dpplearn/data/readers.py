"""Files to Baskets."""

from __future__ import annotations

import csv
import glob
from collections.abc import Iterator, Sequence
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path

from dpplearn.data.baskets import Baskets
from dpplearn.data.catalogue import Label, labels_from_text
from dpplearn.data.parts import Parts
from dpplearn.data.tables import Columns, pairs_of_csv, pairs_of_parquet
from dpplearn.data.texts import lines_of, with_one_line_end
from dpplearn.errors import InputError
from dpplearn.utils.parallel import LocalParts

FORMAT_OF_ENDING = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "lines",
    ".dat": "lines",
}
FORMATS = ("auto", "csv", "parquet", "lines")
DELIMITERS = (",", "\t", ";", "|")


def read_baskets(
    path: str | PathLike[str],
    format: str = "auto",
    basket: str = "basket",
    item: str = "item",
    weight: str | None = None,
    time: str | None = None,
) -> Baskets:
    """Read baskets from a file, or from all files that a pattern such as `orders-*.parquet` matches.

    Blanks around an item, an identifier or the name of a column are no part of it, in any format and whether quoted or
    not: " a" is "a". Labels that come from memory, as in `Baskets.from_table`, are taken as they are.

    Parameters
    ----------
    path
        A file or a pattern. Text files are UTF-8, may be gzipped (.gz), and their lines may end in LF, CRLF or CR.
    format
        "csv" and "parquet" are long tables, one row per (basket, item) pair. "lines" is one basket per line, items
        between commas (quoted where they have one themselves), or between blanks where the file has no comma; an
        empty line is an empty basket. "auto" goes by the ending: .parquet and .pq, .csv and .tsv, .txt and .dat.
    basket, item
        The columns of a table that tell which basket, and which item.
    weight
        The column of a table with the weight of a basket, the same in all its rows; 1 by default.
    time
        Column of dates, times (UTC unless they have a time zone) or numbers. The time of a basket is the latest of its
        rows.

    Returns
    -------
    Baskets
        Of a table in the order of their identifiers, which are `ids`; of lines in the order of the lines.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "orders.csv"
    ...     _ = path.write_text("order,product\\n1,crib\\n1,bib\\n2,bib\\n")
    ...     list(read_baskets(path, basket="order", item="product"))
    [('bib', 'crib'), ('bib',)]
    """
    paths = matching_files(fspath(path))
    if format not in FORMATS:
        raise InputError(f"format is {format!r}; expected one of {', '.join(FORMATS)}")
    if format == "auto":
        format = format_of(paths)
    columns = Columns(basket, item, weight, time=time)
    if format == "lines":
        if time is not None:
            raise InputError(f"{paths[0]} has one basket per line, and no column {time!r} of times; leave time= out")
        return _read_lines(paths)
    if format == "parquet":
        pairs = pairs_of_parquet(paths, columns)
    else:
        header, delimiter = csv_header(paths, columns)
        with with_one_line_end(paths, delimiter) as files:
            pairs = pairs_of_csv(files, paths, columns, header, delimiter)
    return Baskets.from_pairs(*pairs)


def read_parts(
    path: str | PathLike[str] | Sequence[str | PathLike[str]],
    format: str = "auto",
    basket: str = "basket",
    item: str = "item",
    weight: str | None = None,
    *,
    cluster: str | None = None,
) -> Parts:
    """Read every file as one part of the baskets, for `fit` where they do not fit into one process or one machine.

    Parameters
    ----------
    path
        A pattern such as `orders/part-*.parquet`, or a list of files and patterns. A basket lies in one file: equal
        identifiers in different files are different baskets. Workers read the files by their absolute paths, which
        must lead to the same files on all machines.
    format, basket, item, weight
        As in `read_baskets`.
    cluster
        Who holds the parts: by default this process; "local:4" starts four worker processes here; and the address of
        a Dask scheduler, such as "tcp://scheduler:8786", finds those that it has. What is learned from the same parts
        is the same to the last bit, on processors of one kind. Needs the extra `cluster`.

    Returns
    -------
    Parts
        In the order of the files, over the items of all of them. To be closed, best by `with`, so that workers that
        were started are ended.

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
    patterns = [path] if isinstance(path, str | PathLike) else list(path)
    files = [str(Path(file).absolute()) for pattern in patterns for file in matching_files(fspath(pattern))]
    how = format, basket, item, weight
    if cluster is None:
        return Parts.over_all_items(LocalParts(tuple(files)).changed(_read_part, *how))
    from dpplearn.utils.cluster import Cluster

    workers = Cluster.at(cluster)
    try:
        return Parts.over_all_items(workers.holding(_read_part, *how, each=files))
    except BaseException:
        workers.close()
        raise


def _read_part(format: str, basket: str, item: str, weight: str | None, file: str) -> Baskets:
    return replace(read_baskets(file, format, basket, item, weight), ids=None)  # learning has no use for them


def read_items(path: str | PathLike[str]) -> list[str]:
    """The items of a file of one per line, as text; blanks around them and empty lines are nothing."""
    (file,) = matching_files(glob.escape(fspath(path)))
    items = [line.strip() for line in lines_of(file) if line.strip()]
    if not items:
        raise InputError(f"{path} names no item; expected one per line")
    return items


def matching_files(pattern: str) -> list[str]:
    """The file of this name, or those that match it as a pattern."""
    try:
        if Path(pattern).is_dir():
            raise InputError(f"{pattern} is a folder; name a file, or files with a pattern such as {pattern}/*.parquet")
        paths = [pattern] if Path(pattern).exists() else sorted(glob.glob(pattern, recursive=True))
        if not paths:
            raise InputError(f"no file is called {pattern}, and none matches it as a pattern")
        for path in paths:
            if not Path(path).is_file():
                raise InputError(f"{path} is not a regular file; it is read more than once, so save it to a file first")
            if Path(path).stat().st_size == 0:
                raise InputError(f"{path} is empty")
    except OSError as error:
        raise InputError(f"{pattern} cannot be read: {error.strerror}") from None
    return paths


def format_of(paths: Sequence[str]) -> str:
    endings = {Path(path.removesuffix(".gz")).suffix.lower() for path in paths}
    formats = {FORMAT_OF_ENDING.get(ending) for ending in endings}
    if len(formats) > 1:
        raise InputError(f"the files end in {', '.join(sorted(endings))}; read one format at a time")
    format = formats.pop()
    if format is None:
        raise InputError(
            f"the format of {paths[0]} cannot be told from its ending; "
            "pass format= (--format) csv or parquet for a table, lines for one basket per line"
        )
    return format


def csv_header(paths: Sequence[str], columns: Columns, errors: str = "strict") -> tuple[list[str], str]:
    """The header, which must be the same in all files, and the delimiter with which it has the columns."""
    headers = [next(lines_of(path, errors), "") for path in paths]
    for path, header in zip(paths, headers, strict=True):
        if header != headers[0]:
            raise InputError(f"{path} has the header {header!r}, but {paths[0]} has {headers[0]!r}; read them apart")
    if not headers[0].strip():
        raise InputError(f"{paths[0]} is empty, or its first line is; expected a header with the names of the columns")
    readings = [(_fields(paths[0], 1, headers[0], delimiter=delimiter), delimiter) for delimiter in DELIMITERS]
    for names, delimiter in readings:
        if columns.are_in(names):
            return names, delimiter
    names, _ = max(readings, key=lambda reading: len(reading[0]))
    raise columns.missing(
        names, paths[0], "; if each line of the file is one basket, pass format='lines' (--format lines)"
    )


def _read_lines(paths: Sequence[str]) -> Baskets:
    delimiter = "," if any("," in line for path in paths for line in lines_of(path)) else None
    lists = [tokens for path in paths for tokens in _tokens(path, lines_of(path), delimiter)]
    texts = {token for tokens in lists for token in tokens}
    if not texts:
        raise InputError(f"{paths[0]} names no item: all its lines are empty")
    labels: list[Label] = labels_from_text(sorted(texts))
    return Baskets.from_lists(lists, items=sorted(labels))


def _tokens(path: str, lines: Iterator[str], delimiter: str | None) -> Iterator[list[str]]:
    for number, line in enumerate(lines, start=1):
        quoted = delimiter is not None and '"' in line
        fields = _fields(path, number, line, delimiter=",", strict=True) if quoted else line.split(delimiter)
        tokens = [token.strip() for token in fields] if line.strip() else []
        if "" in tokens:
            raise InputError(f"line {number} of {path} has nothing before, between or after its commas: {line!r}")
        yield tokens


def _fields(path: str, number: int, line: str, *, delimiter: str, strict: bool = False) -> list[str]:
    """The fields of one line of CSV, without the quotes around them."""
    try:
        return next(csv.reader([line], delimiter=delimiter, strict=strict, skipinitialspace=True), [])
    except csv.Error as error:
        raise InputError(f"line {number} of {path} is not a line of CSV ({error}): {line[:80]!r}") from None
