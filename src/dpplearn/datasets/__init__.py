"""Generated data, to try things on."""

from dpplearn.datasets.registries import CATEGORIES, make_registries, substitute_groups

__all__ = ["CATEGORIES", "make_registries", "substitute_groups"]
