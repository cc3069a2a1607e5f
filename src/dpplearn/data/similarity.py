"""Similarity matrices of items, from a matrix, a table or categories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.data.baskets import Baskets
from dpplearn.data.catalogue import Catalogue, Label
from dpplearn.data.features import as_catalogue
from dpplearn.data.item_tables import ITEM, read_item_table
from dpplearn.data.validate import as_array, is_null
from dpplearn.errors import InputError
from dpplearn.utils.text import contents, count

SYMMETRIC, UNIT, DEFINITE = 1e-8, 1e-6, 1e-8  # what rounding may leave: of S − Sᵀ, of the diagonal, of eigenvalues
SHOWN = 3  # examples
EXPECTED = (
    "expected a square array in the order of the items, a sparse matrix, a table with a row and a column per item or "
    "with the items and their kinds, one value per item (alike are those of the same value), or a DPP"
)


def read_similarity(similarity: Any, items: Baskets | Catalogue | Sequence[Label], name: str = "similarity") -> Floats:
    """Return a similarity matrix: symmetric, positive semidefinite, with ones on the diagonal.

    Parameters
    ----------
    similarity
        A square array or scipy sparse matrix, in the order of the items; a table (pandas, polars, Arrow, a path to CSV
        or Parquet) with one row and one column per item; a list of one value per item, a dict from label to value, or a
        table of two columns, the item and its value, in which items are alike if their values are the same; or a DPP,
        whose L is scaled to a unit diagonal.
    items
        Baskets, whose items they are, or labels.
    name
        What to call it in messages.

    Returns
    -------
    array of float
        (n_items, n_items).

    Examples
    --------
    >>> read_similarity({"cot": "bed", "crib": "bed", "bib": "meal"}, ["bib", "cot", "crib"]).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 1.0, 1.0]]
    """
    catalogue = as_catalogue(items)
    return _checked(_matrix(similarity, catalogue, name), name)


def _matrix(similarity: Any, catalogue: Catalogue, name: str) -> Floats:
    if hasattr(similarity, "kernel") and hasattr(similarity, "catalogue"):
        return _of_model(similarity, catalogue, name)
    if isinstance(similarity, Mapping):
        similarity = {ITEM: list(similarity), "value": list(similarity.values())}
    elif hasattr(similarity, "rename_axis"):
        similarity = _with_index(similarity, set(map(str, catalogue.labels)))
    elif hasattr(similarity, "tocsr"):
        similarity = similarity.toarray()
    if isinstance(similarity, str | PathLike | dict) or hasattr(similarity, "columns"):
        return _of_table(similarity, catalogue, name)
    array = as_array(similarity)
    if array.ndim == 1 and len(array) == len(catalogue):
        return _same(list(similarity))
    if array.shape != (len(catalogue), len(catalogue)) or array.dtype.kind not in "biuf":
        raise InputError(
            f"{name} is {array.dtype} of shape {array.shape}, for {count(len(catalogue), 'item')}; {EXPECTED}"
        )
    return np.array(array, dtype=float)


def _with_index(values: Any, labels: set[str]) -> Any:
    """Return a pandas Series or DataFrame whose index holds the items as a table. Others are in item order."""
    values = values.rename("value") if values.ndim == 1 else values
    index, columns = set(map(str, values.index)), set(map(str, getattr(values, "columns", labels)))
    return values.rename_axis(ITEM).reset_index().rename(columns=str) if index >= labels == columns else values


def _same(values: list[Any]) -> Floats:
    """Return 1 for items with the same value, else 0. An item without a value is similar only to itself."""
    kinds = [(place,) if is_null(value) else str(value) for place, value in enumerate(values)]
    numbers = {kind: number for number, kind in enumerate(dict.fromkeys(kinds))}
    number = np.array([numbers[kind] for kind in kinds])
    return np.asarray(number[:, None] == number, dtype=float)


def _of_model(model: Any, catalogue: Catalogue, name: str) -> Floats:
    here = model.catalogue.positions(catalogue.labels)
    L = getattr(model, "L", None)
    if L is None:  # of a mixture every segment has its own
        raise InputError(f"the model given as {name} is a mixture, which has no one L; {EXPECTED}")
    L = np.asarray(L)[np.ix_(here, here)]
    d = np.sqrt(L.diagonal())
    with np.errstate(divide="ignore", invalid="ignore"):  # NaN for items of probability zero
        return np.asarray(L / np.outer(d, d))


def _of_table(table: Any, catalogue: Catalogue, name: str) -> Floats:
    read = read_item_table(table)
    rows = read.rows_of(catalogue.labels)
    missing = [label for label in catalogue.labels if str(label) not in read.columns]
    if missing and len(read.columns) == 1:
        (kinds,) = read.columns.values()
        return _same([kinds[row] for row in rows])
    if missing:
        raise InputError(
            f"{read.source}, given as {name}, has no column for {count(len(missing), 'item')} of {len(catalogue)} (for "
            f"instance {contents(missing[:SHOWN])}); expected one row and one column per item, or the items and "
            "their kinds"
        )
    values = [[read.columns[str(label)][row] for label in catalogue.labels] for row in rows]
    try:
        return np.array(values, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"{read.source}, given as {name}, does not hold numbers alone; {EXPECTED}") from None


def _checked(S: Floats, name: str) -> Floats:
    if not np.isfinite(S).all():
        raise InputError(f"{name} holds values that are not finite numbers; {EXPECTED}")
    apart = float(np.abs(S - S.T).max())
    if apart > SYMMETRIC * max(1.0, float(np.abs(S).max())):
        raise InputError(f"{name} is not symmetric, by {apart:.2g}; take (S + Sᵀ)/2 if either direction will do")
    wrong = int(np.abs(S.diagonal() - 1).argmax())
    if abs(S[wrong, wrong] - 1) > UNIT:
        raise InputError(
            f"{name} has {S[wrong, wrong]:.6g} on its diagonal (item number {wrong}); expected 1, how like it is to "
            "itself: divide by sqrt(outer(d, d)), d = diag(S)"
        )
    S = S / 2 + S.T / 2
    np.fill_diagonal(S, 1.0)
    least = float(np.linalg.eigvalsh(S)[0])
    if least < -DEFINITE * len(S):
        raise InputError(
            f"{name} has an eigenvalue of {least:.3g}, and a kernel has none below 0; take (S + c I)/(1 + c) with c = "
            f"{-least:.3g}, or dot products of unit vectors, such as cosines"
        )
    return S
