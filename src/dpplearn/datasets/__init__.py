"""Generated data sets for examples and tests."""

from dpplearn.datasets.orders import make_orders
from dpplearn.datasets.registries import CATEGORIES, items_by_kind, make_registries, matching_items

__all__ = ["CATEGORIES", "items_by_kind", "make_orders", "make_registries", "matching_items"]
