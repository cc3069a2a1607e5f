"""What several figures are about: generated registries of one category, and models of them."""

from __future__ import annotations

from functools import cache

import dpplearn as dl
from dpplearn.models.model import SetModel


@cache
def registries() -> tuple[dl.Baskets, dl.Baskets]:
    """To learn from, and to test on."""
    return dl.datasets.make_registries("safety", 4000, rng=0).split(0.75, rng=0)


@cache
def mixture() -> SetModel:
    return dl.fit(registries()[0], rng=0, threads=1).model


@cache
def symmetric() -> SetModel:
    return dl.fit_dpp(registries()[0], shrinkage=0.01, rng=0, threads=1).model
