"""Enormous counts are rejected with an InputError in every function that takes one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dpplearn as dl
from dpplearn import Baskets, InputError
from dpplearn.datasets.registries import make_registries
from helpers.problems import sampled

ENORMOUS = 99999999999999999999  # more than 64 bits hold
BASKETS = sampled(0, 40)
MODEL = dl.DPP.from_K(np.diag(np.linspace(0.2, 0.7, BASKETS.n_items)))

COUNTS: dict[str, Callable[[], Any]] = {
    "restarts": lambda: dl.fit_dpp(BASKETS, restarts=10**9),  # would fill the memory
    "max_iter": lambda: dl.fit_dpp(BASKETS, max_iter=ENORMOUS),
    "threads": lambda: dl.fit_dpp(BASKETS, threads=10**5),
    "folds": lambda: dl.cross_validate(BASKETS, folds=ENORMOUS),
    "k": lambda: dl.evaluate(MODEL, BASKETS, k=ENORMOUS),
    "k recommended": lambda: MODEL.recommend([0], ENORMOUS),
    "k completed": lambda: MODEL.complete([0], ENORMOUS),
    "k substitutes": lambda: MODEL.substitutes(0, ENORMOUS),
    "n": lambda: MODEL.sample(ENORMOUS),
    "n registries": lambda: make_registries("safety", ENORMOUS),
    "most_items": lambda: dl.diagnose(BASKETS, most_items=ENORMOUS),
    "n_items": lambda: Baskets.from_lists([[0]], n_items=ENORMOUS),
}


@pytest.mark.parametrize("name", COUNTS)
def test_an_enormous_count_is_rejected(name: str) -> None:
    with pytest.raises(InputError, match=r"9{19}|10{5}"):
        COUNTS[name]()
