"""Ranking by a weighted mean of model scores and item-to-item scores, which rank rare pairs with a large lift better.

The blend is only a score to rank by. Probabilities remain those of the model.
"""

from __future__ import annotations

import numpy as np

from dpplearn.arrays import Bools, Floats, row_slices
from dpplearn.data.baskets import Baskets
from dpplearn.distributions.components import MAX_NUMBERS, sets_of
from dpplearn.distributions.distribution import SetDistribution, Top
from dpplearn.distributions.ranking import chosen, highest
from dpplearn.errors import InputError
from dpplearn.models.record import Training

MAX_BASKETS, MIN_BASKETS = 2000, 300  # that a weight is learned from
MAX_SCORES = 40_000_000  # that are computed for it
MAX_STEPS, TOLERANCE = 200, 1e-6  # of EM


def blended(
    distribution: SetDistribution, training: Training, sets: Baskets, weight: float, candidate: Bools | bool = True
) -> Floats:
    """Return (1 − w) · model + w · item-to-item, (s, n_items); 0 for items that cannot be recommended."""
    model, items = both_shares(distribution, training, sets, candidate)
    return np.asarray((1 - weight) * model + weight * items)


def top_blended(
    distribution: SetDistribution,
    training: Training | None,
    blend: float | str,
    sets: Baskets,
    k: int,
    candidate: Bools | None,
) -> Top:
    """Return the k candidates with the highest blended score for each set, with probabilities under the model."""
    weight = training.blend if blend == "auto" and training is not None else blend
    if training is None or isinstance(weight, bool | str) or weight is None or not 0 <= weight <= 1:
        raise InputError(
            "blend must be between 0 and 1 for a model with training counts, or 'auto' for one fitted with validation, "
            f"got {blend!r}"
        )
    shape, possible = (len(sets), k), distribution.log_inclusion(sets) > -np.inf
    top = Top(np.empty(shape, np.int64), np.empty(shape), np.empty(shape), possible)
    for rows in row_slices(len(sets), distribution.n_items, MAX_NUMBERS):
        scores = blended(distribution, training, sets[rows], weight, True if candidate is None else candidate)
        best = highest(scores, k)
        probabilities = distribution.next_probabilities(sets[rows], best)
        top.items[rows], top.scores[rows] = best, chosen(scores, best)
        top.probabilities[rows] = np.where(best >= 0, probabilities, np.nan)
    return top


def both_shares(
    distribution: SetDistribution, training: Training, sets: Baskets, candidate: Bools | bool = True
) -> Floats:
    """Return the scores of the model and of item-to-item, each scaled to sum to 1 over the candidates, (2, s, n_items).

    The score of an item is P(A ∪ i)/P(A), or P(i ∈ Y given A ⊆ Y) where P(A) is zero.
    """
    scores = distribution.next_scores(sets)
    impossible = np.flatnonzero(np.isnan(scores).any(axis=1))
    if len(impossible):
        scores[impossible] = distribution.next_probabilities(sets.subset(impossible))
    scores = np.where(candidate, scores, 0)
    items = np.array([training.item_to_item(sets.positions(row)) for row in range(len(sets))])
    both = np.array([scores, np.where(scores > 0, items, 0)])
    return np.asarray(both / np.maximum(both.sum(axis=2, keepdims=True), np.finfo(float).tiny))


def blend_weight(
    distribution: SetDistribution, training: Training, baskets: Baskets, rng: np.random.Generator
) -> float | None:
    """Return the weight of item-to-item that predicts one held-out item of each basket best, by EM.

    The baskets must not be those that the model or `training` were learned from. Up to 2,000 of them are drawn, fewer
    if there are many items. None is returned if no basket has two items.

    Examples
    --------
    >>> import dpplearn as dl
    >>> train = dl.Baskets.from_lists([["tea", "milk"], ["tea", "milk"], ["beer", "nuts"], ["beer"]] * 9)
    >>> independent = dl.Mixture.from_arrays([1.0], np.full((1, 4), -1.0), np.zeros((4, 4)))
    >>> blend_weight(independent.distribution, Training.of(train), train, np.random.default_rng(0)) > 0.9
    True
    """
    rows = np.flatnonzero((baskets.sizes >= 2) & (baskets.sizes < baskets.n_items) & (baskets.weights > 0))
    most = max(min(MAX_BASKETS, MAX_SCORES // distribution.n_items), MIN_BASKETS)
    rows = rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))
    whole = [baskets.positions(row) for row in rows.tolist()]
    places = [int(rng.integers(len(basket))) for basket in whole]
    held = np.array([basket[place] for basket, place in zip(whole, places, strict=True)])
    sets = sets_of(list(map(np.delete, whole, places)), distribution.n_items)
    found = np.zeros((len(rows), 2))
    for part in row_slices(len(sets), distribution.n_items, MAX_NUMBERS):
        shares = both_shares(distribution, training, sets[part])
        found[part] = shares[:, np.arange(shares.shape[1]), held[part]].T
    possible = found.max(axis=1) > 0  # also false for NaN, of a basket that is impossible
    return _em(found[possible], baskets.weights[rows][possible]) if possible.any() else None


def _em(likelihoods: Floats, weights: Floats) -> float:
    """Return the w that maximises Σ log((1 − w) a + w b), for rows (a, b)."""
    w = 0.5
    for _ in range(MAX_STEPS):
        of_items = w * likelihoods[:, 1]
        before, w = w, float(np.average(of_items / ((1 - w) * likelihoods[:, 0] + of_items), weights=weights))
        if abs(w - before) < TOLERANCE or w in (0.0, 1.0):
            break
    return w
