"""Generated orders: baskets over several categories of generated registries, as one raw table."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import Seed
from dpplearn.datasets.registries import CATEGORIES, make_registries
from dpplearn.errors import whole_number

MEAN_CATEGORIES = 4.0  # of a basket, about


def make_orders(n: int, rng: Seed = None) -> dict[str, npt.NDArray[Any]]:
    """Generate orders from the 13 categories, as a raw table.

    Parameters
    ----------
    n : int
        Number of baskets, which have 15 rows on average.
    rng : int or numpy.random.Generator, optional
        Seed or generator.

    Returns
    -------
    dict of str to array
        The columns basket, item and category, with one row per item of a basket, in random order. pandas, polars and
        duckdb accept it.

    Examples
    --------
    >>> orders = make_orders(1000, rng=0)
    >>> list(orders), len(set(orders["basket"].tolist())), len(set(orders["category"].tolist()))
    (['basket', 'item', 'category'], 1000, 13)
    """
    rng = np.random.default_rng(rng)
    wants = _wanted(whole_number("n", n, 1), rng)
    parts = [_part(name, np.flatnonzero(column), rng) for name, column in zip(CATEGORIES, wants.T, strict=True)]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in ("basket", "item", "category")}
    order = rng.permutation(len(columns["basket"]))
    return {name: column[order] for name, column in columns.items()}


def _wanted(n: int, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Draw the categories of each basket, (n, categories): equally likely, at least one per basket."""
    n_categories = len(CATEGORIES)
    wants = rng.random((n, n_categories)) < MEAN_CATEGORIES / n_categories
    wants[np.arange(n), rng.integers(n_categories, size=n)] |= ~wants.any(axis=1)
    return wants


def _part(category: str, baskets: npt.NDArray[np.int64], rng: np.random.Generator) -> dict[str, npt.NDArray[Any]]:
    """Generate the rows of one category for these baskets."""
    registries = make_registries(category, len(baskets), rng)
    items = np.array(registries.items, dtype=object)[registries.indices]
    names = np.full(len(items), category, dtype=object)
    return {"basket": np.repeat(baskets, registries.sizes) + 1, "item": items, "category": names}
