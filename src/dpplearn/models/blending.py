"""Item-to-item mixed into the ranking of a model: large lifts of rare pairs are beyond what a model keeps of pairs.

The blend is a score to rank by; probabilities remain those of the model.
"""

from __future__ import annotations

import numpy as np

from dpplearn.arrays import Bools, Floats, Ints
from dpplearn.data.baskets import Baskets
from dpplearn.distributions.components import PlainSets
from dpplearn.distributions.distribution import SetDistribution
from dpplearn.models.record import Training

MOST_ASKED, FEWEST_ASKED = 2000, 300  # baskets that a weight is learned from
MOST_SCORES = 40_000_000  # that are looked at for it
STEPS = 200  # of EM
CONVERGED = 1e-6


def ranking_scores(distribution: SetDistribution, basket: Ints) -> Floats:
    """What a model ranks all items by: P(A ∪ i)/P(A), or P(i ∈ Y given A ⊆ Y) where P(A) is zero."""
    scores, probabilities = distribution.next_items(PlainSets.of([basket], distribution.n_items))
    return np.asarray(probabilities[0] if np.isnan(scores).any() else scores[0])


def blended(distribution: SetDistribution, training: Training, basket: Ints, weight: float, candidate: Bools) -> Floats:
    """(1 − w) · model + w · item-to-item of every item; 0 of those that are no candidates or cannot be added."""
    model, items = both_shares(distribution, training, basket, candidate)
    return np.asarray((1 - weight) * model + weight * items)


def both_shares(
    distribution: SetDistribution, training: Training, basket: Ints, candidate: Bools
) -> tuple[Floats, Floats]:
    """Of the model and of item-to-item, each a share of its sum over the candidates."""
    model = np.where(candidate, ranking_scores(distribution, basket), 0)
    model[basket] = 0
    return _shares(model), _shares(np.where(model > 0, training.item_to_item(basket), 0))


def _shares(scores: Floats) -> Floats:
    return np.asarray(scores / max(scores.sum(), np.finfo(float).tiny))


def blend_weight(
    distribution: SetDistribution, training: Training, baskets: Baskets, rng: np.random.Generator
) -> float | None:
    """How much of item-to-item is best mixed in, by EM on baskets that neither was learned from.

    Parameters
    ----------
    distribution
        Of the model.
    training
        What it was learned from.
    baskets
        Others, over the same items; of those with two or more, up to 2,000 are asked about, fewer where items are many.
    rng
        Draws them, and the item of each that is to be found.

    Returns
    -------
    float or None
        The weight under which the items to be found are likeliest, from 0 to 1; None where there is nothing to go by.

    Examples
    --------
    >>> import dpplearn as dl
    >>> train = dl.Baskets.from_lists([["tea", "milk"], ["tea", "milk"], ["beer", "nuts"], ["beer"]] * 9)
    >>> independent = dl.Mixture.from_arrays([1.0], np.full((1, 4), -1.0), np.zeros((4, 4)))
    >>> blend_weight(independent.distribution, Training.of(train), train, np.random.default_rng(0)) > 0.9
    True
    """
    rows = np.flatnonzero((baskets.sizes >= 2) & (baskets.sizes < baskets.n_items) & (baskets.weights > 0))
    most = max(min(MOST_ASKED, MOST_SCORES // distribution.n_items), FEWEST_ASKED)
    rows = rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))
    asked = [_likely(distribution, training, baskets.positions(row).astype(np.int64), rng) for row in rows.tolist()]
    found = np.array(asked).reshape(-1, 2)
    there = found.max(axis=1) > 0
    return _em(found[there], baskets.weights[rows][there]) if there.any() else None


def _likely(
    distribution: SetDistribution, training: Training, basket: Ints, rng: np.random.Generator
) -> tuple[float, float]:
    """How likely an item of the basket is beside the others, by the model and by item-to-item."""
    at = int(rng.integers(len(basket)))
    rest, held = np.delete(basket, at), basket[at]
    model, items = both_shares(distribution, training, rest, np.ones(distribution.n_items, bool))
    return (0.0, 0.0) if np.isnan(model).any() else (float(model[held]), float(items[held]))


def _em(likely: Floats, weights: Floats) -> float:
    """The w that maximises Σ log((1 − w) a + w b)."""
    w = 0.5
    for _ in range(STEPS):
        by_items = w * likely[:, 1]
        before, w = w, float(np.average(by_items / ((1 - w) * likely[:, 0] + by_items), weights=weights))
        if abs(w - before) < CONVERGED or w in (0.0, 1.0):
            break
    return w
