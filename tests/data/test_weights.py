"""Weights that are counts: drawn from without replacement, and w baskets in every variance."""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import comb

import numpy as np
from scipy.stats import chisquare

from dpplearn.data.weights import in_variance, without_replacement


def test_every_set_of_baskets_is_drawn_equally_often() -> None:
    """Against Π C(w_i, x_i)/C(Σw, n), by counts."""
    rng, counts, n, draws = np.random.default_rng(0), np.array([3, 1, 4, 2]), 5, 5000
    drawn = Counter(tuple(without_replacement(counts, n, rng).tolist()) for _ in range(draws))
    kinds = [x for x in product(*(range(w + 1) for w in counts)) if sum(x) == n]
    ways = [float(np.prod([comb(w, each) for w, each in zip(counts, x, strict=True)])) for x in kinds]
    assert set(drawn) <= set(kinds)
    observed = [drawn[x] for x in kinds]
    assert chisquare(observed, np.array(ways) / comb(10, n) * draws).pvalue > 1e-3
    alike = np.full(len(kinds), draws / len(kinds))  # a wrong law, which the same test must reject
    assert chisquare(observed, alike).pvalue < 1e-9


def test_a_count_of_w_is_w_baskets_in_a_variance_and_an_importance_of_w_is_one() -> None:
    assert in_variance(np.array([1.0, 3.0])).tolist() == [1, 3]
    assert in_variance(np.array([0.5, 3.0])).tolist() == [0.25, 9]
