"""Generated data sets for examples and tests."""

import warnings
from typing import Any

from dpplearn.datasets.orders import make_orders
from dpplearn.datasets.registries import CATEGORIES, items_by_kind, make_registries, matching_items

__all__ = ["CATEGORIES", "items_by_kind", "make_orders", "make_registries", "matching_items"]


def __getattr__(name: str) -> Any:
    if name == "substitute_groups":
        warnings.warn("datasets.substitute_groups is now called items_by_kind", DeprecationWarning, stacklevel=2)
        return items_by_kind
    raise AttributeError(f"module 'dpplearn.datasets' has no attribute {name!r}")
