"""The matrix L or K of a model as a file that other programs read, and back: .npy, or CSV with the items' names."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import Floats
from dpplearn.data.catalogue import Label, is_plain_integer, labels_from_text
from dpplearn.errors import InputError
from dpplearn.kernels.symmetric.kernel import Kernel
from dpplearn.models.dpp import DPP
from dpplearn.tools.files import replace_file, same_file
from dpplearn.tools.words import count

FROM: Mapping[str, Callable[[npt.ArrayLike], Kernel]] = {"K": Kernel.from_K, "L": Kernel.from_L}


def write_kernel(dpp: DPP, path: str | PathLike[str], kind: str = "K") -> tuple[Path, ...]:
    """Write the matrix K or L of a model.

    A .csv file has the items as its first row and first column, and K or L in the corner. A .npy file has the matrix
    alone, so its items go to a text file beside it, one per line. Every digit is kept, but where an eigenvalue of K is
    near 1, L itself has few digits left for the others: K is the one to come back from.

    Parameters
    ----------
    dpp
        The model.
    path
        A file that ends in .npy or .csv; one that is there is replaced.
    kind
        "K", the marginal kernel, or "L", the L-ensemble's.

    Returns
    -------
    tuple of Path
        The files written.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> dpp = DPP(Kernel.from_K([[0.5, 0.25], [0.25, 0.5]]), ["crib", "cot"])
    >>> with TemporaryDirectory() as folder:
    ...     [each.name for each in write_kernel(dpp, f"{folder}/kernel.npy")]
    ['kernel.npy', 'kernel_items.txt']
    """
    path = Path(path)
    if not isinstance(dpp, DPP):
        raise InputError(
            f"got a {type(dpp).__name__}, which has a kernel per segment and no single matrix {kind}; in Python, "
            "model.kernel.L(c) and model.kernel.K[c] are those of segment c; or learn a DPP (model='dpp', dpplearn fit "
            "--model dpp)"
        )
    return _format_of(path).write(dpp, path, _check_kind(kind))


def read_kernel(path: str | PathLike[str], kind: str | None = None, items: Sequence[Label] | None = None) -> DPP:
    """The model of a matrix K or L in a .npy or .csv file.

    Parameters
    ----------
    path
        A file that ends in .npy or .csv.
    kind
        "K" or "L"; needed unless the corner of a .csv file says it.
    items
        The labels. By default those of the .csv file, in its first row or column or both; for a .npy file, those that
        `write_kernel` put beside it; and 0, 1, ... where there are none.

    Returns
    -------
    DPP
        With the items as its labels.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "kernel.csv"
    ...     _ = path.write_text("K,crib,cot\\ncrib,0.5,0.25\\ncot,0.25,0.5\\n")
    ...     read_kernel(path)
    DPP(2 named items, expected size 1.00)
    """
    path = Path(path)
    table = _format_of(path).read(path, items)
    kind = _kind(path, kind, table.kind)
    try:
        return DPP(FROM[kind](table.matrix), table.items)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def read_items(path: str | PathLike[str]) -> list[Label]:
    """One item per line."""
    lines = _text(Path(path)).removesuffix("\n").split("\n")
    return labels_from_text([line.removesuffix("\r") for line in lines])


def items_file(path: Path) -> Path:
    """Where the items of a .npy file stand: kernel_items.txt beside kernel.npy."""
    return path.with_name(f"{path.stem}_items.txt")


def files_of(path: Path) -> tuple[Path, ...]:
    """The file of a kernel, and the one beside it that belongs to it."""
    return (path, items_file(path)) if path.suffix.lower() == ".npy" else (path,)


class _Table(NamedTuple):
    """What a file holds, as far as it says."""

    matrix: Any
    items: Sequence[Label] | None
    kind: str | None


class _Format(NamedTuple):
    write: Callable[[DPP, Path, str], tuple[Path, ...]]
    read: Callable[[Path, Sequence[Label] | None], _Table]


def _check_kind(kind: str) -> str:
    if kind not in FROM:
        raise InputError(f"the kind of kernel is {kind!r}; expected K, the marginal kernel, or L, the L-ensemble's")
    return kind


def _kind(path: Path, asked: str | None, said: str | None) -> str:
    found = asked or said
    if found is None:
        raise InputError(f"{path} does not say whether it holds K or L; pass kind= (--kernel) K or L")
    if said not in (None, _check_kind(found)):
        raise InputError(f"{path} says that it holds {said}, but {asked} was asked for; ask for {said}")
    return found


def _matrix(dpp: DPP, kind: str) -> Floats:
    try:
        return dpp.kernel.K if kind == "K" else dpp.kernel.L
    except InputError as error:
        raise InputError(f"{error}; write K instead (kind='K', --kernel K)") from None


def _write_npy(dpp: DPP, path: Path, kind: str) -> tuple[Path, ...]:
    file, labels = io.BytesIO(), [str(label) for label in dpp.items]
    np.save(file, _matrix(dpp, kind), allow_pickle=False)
    broken = next((label for label in labels if "\n" in label or label.endswith("\r")), None)
    if broken is not None:
        raise InputError(f"item {broken!r} has a line end in it, and a .npy file's items are one a line; write a .csv")
    beside = items_file(path)
    if same_file(path, beside):
        raise InputError(f"{path} and {beside}, where its items go, are links to one file; name another")
    replace_file(path, file.getvalue())
    replace_file(beside, "".join(f"{label}\n" for label in labels).encode())
    return path, beside


def _read_npy(path: Path, given: Sequence[Label] | None) -> _Table:
    try:
        with path.open("rb") as file:
            matrix = np.lib.format.read_array(file, allow_pickle=False)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, EOFError) as error:  # of another kind, cut short, or of objects, which would be pickled
        raise InputError(f"{path} is not a .npy file of numbers: {error}") from None
    beside = items_file(path)
    if given is not None or not beside.is_file():
        return _Table(matrix, given, None)
    items = read_items(beside)
    if matrix.shape[:1] != (len(items),):
        has = f"{path} has an array of shape {matrix.shape}"
        raise InputError(f"{beside} names {count(len(items), 'item')}, but {has}; pass items= (--items)")
    return _Table(matrix, items, None)


def _write_csv(dpp: DPP, path: Path, kind: str) -> tuple[Path, ...]:
    file = io.StringIO()
    rows = csv.writer(file, lineterminator="\n")
    rows.writerow([kind, *dpp.items])
    rows.writerows([item, *row] for item, row in zip(dpp.items, _matrix(dpp, kind).tolist(), strict=True))
    replace_file(path, file.getvalue().encode())
    return (path,)


def _read_csv(path: Path, given: Sequence[Label] | None) -> _Table:
    """A square table has names above and to the left where its corner is no number, and none otherwise. One row more
    than columns is a row of names above; one column more, a column of names to the left."""
    lines = _csv_rows(path)
    corner, n_rows, n_columns = lines[0].fields[0], len(lines), len(lines[0].fields)
    named = corner in FROM  # as we write it; then what stands above and beside are names, whatever they look like
    both = n_rows == n_columns and (named or not (_is_number(corner) or _are_entries(lines[0].fields[1:])))
    top, left = int(both or n_rows == n_columns + 1), int(both or n_columns == n_rows + 1)
    above = lines[0].fields[left:] if top else None
    beside = [line.fields[0] for line in lines[top:]] if left else None
    names = beside if above is None else above
    if n_rows - top != n_columns - left or (names and not named and _are_entries(names)):
        raise InputError(f"{path} has {n_rows} rows and {n_columns} columns; expected a square matrix")
    if above is not None and beside is not None:
        _check_names(path, above, lines[1:])
    matrix = [_numbers(path, line, left) for line in lines[top:]]
    items = _agreed(path, None if names is None else labels_from_text(names), given)
    return _Table(matrix, items, corner if corner in FROM else None)


class _Line(NamedTuple):
    number: int
    fields: list[str]


def _csv_rows(path: Path) -> list[_Line]:
    """All of one length; empty lines are left out."""
    reader = csv.reader(io.StringIO(_text(path), newline=""), strict=True)
    try:
        lines = [_Line(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        raise InputError(f"line {reader.line_num} of {path} is not a line of CSV: {error}") from None
    if not lines:
        raise InputError(f"{path} is empty; expected a square matrix")
    for number, fields in lines:
        if len(fields) != len(lines[0].fields):
            first = f"the first has {len(lines[0].fields)}"
            raise InputError(f"line {number} of {path} has {len(fields)} fields between commas, but {first}")
    return lines


def _check_names(path: Path, above: Sequence[str], lines: Sequence[_Line]) -> None:
    for name, (number, fields) in zip(above, lines, strict=True):
        if name != fields[0]:
            raise InputError(
                f"line {number} of {path} is called {fields[0]!r}, but the column in its place {name!r}; "
                "rows and columns name the same items in the same order"
            )


def _agreed(path: Path, found: list[Label] | None, given: Sequence[Label] | None) -> Sequence[Label] | None:
    if found is None or given is None:
        return given if found is None else found
    if list(map(str, given)) != list(map(str, found)):
        raise InputError(f"{path} has names of its own, which are not the items given; leave out items= (--items)")
    return given


def _numbers(path: Path, line: _Line, first: int) -> list[float]:
    for place, field in enumerate(line.fields[first:], start=first + 1):
        if not _is_number(field) or not math.isfinite(float(field)):
            raise InputError(f"line {line.number}, column {place} of {path} holds {field!r}; expected a finite number")
    return [float(field) for field in line.fields[first:]]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _are_entries(names: Sequence[str]) -> bool:
    """Whether what stands where names are expected belongs to the matrix: numbers, not all of them whole."""
    return all(map(_is_number, names)) and not all(map(is_plain_integer, names))


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text ({error.reason} at byte {error.start}); convert it first") from None


def _format_of(path: Path) -> _Format:
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"{path} cannot be a kernel file: its name must end in {' or '.join(FORMATS)}")
    return FORMATS[path.suffix.lower()]


FORMATS: Mapping[str, _Format] = {".npy": _Format(_write_npy, _read_npy), ".csv": _Format(_write_csv, _read_csv)}
