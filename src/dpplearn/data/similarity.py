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
from dpplearn.data.item_tables import read_item_table
from dpplearn.data.validate import is_null
from dpplearn.errors import InputError
from dpplearn.utils.text import count

SYMMETRIC, UNIT, DEFINITE = 1e-8, 1e-6, 1e-8  # what rounding may leave: of S − Sᵀ, of the diagonal, of eigenvalues
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
    n = len(catalogue)
    try:
        labels, values = _labelled(similarity, catalogue)
        array = np.asarray(values)
        if array.ndim == 1:
            array = np.array(list(values), dtype=object)
        if labels is not None:
            here = Catalogue.of(labels).positions(catalogue.labels)
            array = array[here] if array.ndim == 1 else array[np.ix_(here, here)]
        S = _same(array.tolist()) if array.shape == (n,) else np.asarray_chkfinite(array, dtype=float)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name}: {error}; {EXPECTED}") from None
    if S.shape != (n, n):
        raise InputError(f"{name} has shape {S.shape} for {count(n, 'item')}; {EXPECTED}")
    apart, wrong = float(np.abs(S - S.T).max()), float(np.abs(S.diagonal() - 1).max())
    S = S / 2 + S.T / 2
    np.fill_diagonal(S, 1.0)
    least = float(np.linalg.eigvalsh(S)[0])
    if apart > SYMMETRIC * max(1.0, float(np.abs(S).max())) or wrong > UNIT or least < -DEFINITE * n:
        raise InputError(
            f"{name} must be a symmetric, positive semidefinite matrix with ones on its diagonal, got an "
            f"asymmetry of {apart:.2g}, an error of {wrong:.2g} on the diagonal, and a least eigenvalue of {least:.3g}"
        )
    return S


def _labelled(similarity: Any, catalogue: Catalogue) -> tuple[Sequence[Any] | None, Any]:
    """Return labels, or None for those of the catalogue in order, and a matrix or a list of kinds."""
    if hasattr(similarity, "log_prob") and hasattr(similarity, "L"):  # a DPP
        L = np.asarray(similarity.L)
        d = np.sqrt(L.diagonal())
        with np.errstate(divide="ignore", invalid="ignore"):  # NaN for items of probability zero
            return similarity.items, L / np.outer(d, d)
    if hasattr(similarity, "tocsr"):
        return None, similarity.toarray()
    if isinstance(similarity, Mapping):
        return list(similarity), list(similarity.values())
    if hasattr(similarity, "rename_axis") and {*map(str, catalogue.labels)} <= {*map(str, similarity.index)}:
        index = similarity.index.tolist()  # of pandas
        if similarity.ndim == 1 or {*index} == {*similarity.columns}:
            return index, similarity.tolist() if similarity.ndim == 1 else similarity[index].to_numpy()
    if not isinstance(similarity, str | PathLike) and not hasattr(similarity, "columns"):
        return None, similarity
    read = read_item_table(similarity)
    labels, columns = read.catalogue.labels, read.columns
    if all(str(label) in columns for label in labels):
        return labels, [[columns[str(label)][row] for label in labels] for row in range(len(labels))]
    if len(columns) != 1:
        raise InputError(f"{read.source} has neither a column per item nor a single column")
    return labels, next(iter(columns.values()))


def _same(values: list[Any]) -> Floats:
    """Return 1 for items with the same value, else 0. An item without a value is similar only to itself."""
    kinds = [(place,) if is_null(value) else str(value) for place, value in enumerate(values)]
    numbers = {kind: number for number, kind in enumerate(dict.fromkeys(kinds))}
    number = np.array([numbers[kind] for kind in kinds])
    return np.asarray(number[:, None] == number, dtype=float)
